//! State shared by the threads of the proxy.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use bentpipe_scenario::deployment::{Class, Datapath, Deployment, Opener};
use rustix::event::{EventfdFlags, eventfd};

use crate::bucket::Buckets;
use crate::class::ConnectionClass;
use crate::half::{Engine, Half};
use crate::metrics::{Metrics, Reason};
use crate::packet::Tuple;
use crate::places::{Bounds, Place, Places};
use crate::report::Report;
use crate::sight::{Manner, Way};
use crate::slot::Slot;

/// Shared by all threads.
pub(crate) struct Shared {
    /// Slot of this proxy.
    pub slot: Slot,
    deployment: RwLock<Arc<Deployment>>,
    /// Connections whose client is being answered, until its half is accepted.
    expected: Mutex<HashMap<Tuple, Expected>>,
    /// The engine, if a class uses it.
    pub engine: Option<Arc<dyn Engine>>,
    /// Connections that exist or are being made.
    pub places: Places,
    /// Limit of descriptors of the process.
    pub descriptors: Descriptors,
    /// Reason why new connections are forwarded untouched; [`Reason::NONE`] if they are split.
    bypass: AtomicU8,
    /// Obstacles that the last probe found, in words.
    obstacles: Mutex<String>,
    /// The last probe has met something that drops packets of the engine only: over IPv4, over IPv6.
    engine_obstructed: [AtomicBool; 2],
    /// For each side of the opener: true if routes depend on the arrival interface of its packets.
    pub routes_by_arrival: [AtomicBool; 2],
    /// Memory in all buffers of each relay, in bytes.
    pub memory: Vec<AtomicU64>,
    pub metrics: Metrics,
    /// Rates that connections share.
    pub buckets: Buckets,
    /// Takes a report of each finished connection, if there is a log.
    pub lines: Option<SyncSender<Report>>,
    /// Number of the next connection.
    pub next_id: AtomicU64,
}

/// A connection whose client is being answered.
pub(crate) struct Expected {
    pub class: ConnectionClass,
    pub manner: Manner,
    /// The half towards the server, if that has answered already.
    pub half: Option<Half>,
    pub since: Instant,
    pub place: Place,
}

impl Expected {
    /// A connection whose server has not answered yet.
    pub fn new(class: ConnectionClass, manner: Manner, place: Place) -> Self {
        Self { class, manner, half: None, since: Instant::now(), place }
    }
}

/// Limit of descriptors of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors(pub u64);

impl Descriptors {
    /// Descriptors for everything but connections (chosen).
    const RESERVE: u64 = 64;
    /// Share of the other descriptors for pipes: one in this number (chosen). Two sockets of the kernel have a pipe only while bytes
    /// wait.
    const PIPES: u64 = 8;

    /// Returns the maximum number of connections. A connection has a socket for each half of the kernel.
    pub fn allow(self, deployment: &Deployment) -> u32 {
        let free = self.0.saturating_sub(Self::RESERVE);
        let is_of_engine = |class: &Class| class.split.satellite.datapath == Datapath::Engine;
        let sockets = match deployment.classes.iter().filter(|class| class.proxy).all(is_of_engine) {
            true => 1,
            false => 2,
        };
        u32::try_from((free - free / Self::PIPES) / sockets).unwrap_or(u32::MAX)
    }

    /// Most pipes, of two descriptors each.
    pub fn most_pipes(self) -> usize {
        usize::try_from(self.0.saturating_sub(Self::RESERVE) / Self::PIPES / 2).unwrap_or(usize::MAX)
    }
}

/// Resources of a proxy besides its configuration.
pub(crate) struct Resources {
    pub slot: Slot,
    pub descriptors: Descriptors,
    pub engine: Option<Arc<dyn Engine>>,
    pub lines: Option<SyncSender<Report>>,
    pub relays: usize,
}

impl Shared {
    pub fn new(deployment: Deployment, resources: Resources) -> Self {
        let metrics = Metrics::new();
        metrics.name_classes(&deployment);
        Self {
            slot: resources.slot,
            deployment: RwLock::new(Arc::new(deployment)),
            expected: Mutex::default(),
            engine: resources.engine,
            places: Places::default(),
            descriptors: resources.descriptors,
            bypass: AtomicU8::new(Reason::NONE),
            obstacles: Mutex::default(),
            engine_obstructed: Default::default(),
            routes_by_arrival: Default::default(),
            memory: (0..resources.relays).map(|_| AtomicU64::new(0)).collect(),
            metrics,
            buckets: Buckets::default(),
            lines: resources.lines,
            next_id: AtomicU64::new(1),
        }
    }

    /// The present configuration.
    pub fn deployment(&self) -> Arc<Deployment> {
        self.deployment.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The class that a connection has in the present configuration, if it is split.
    pub fn class(&self, opener: Opener, tuple: Tuple, way: Way) -> Option<ConnectionClass> {
        ConnectionClass::of(self.deployment(), opener, tuple, way)
    }

    /// Removes a connection whose client did not accept the answer.
    pub fn give_up(&self, expected: Expected) {
        if let Some(half) = expected.half {
            half.abort();
        }
    }

    /// Sets another configuration for new connections.
    pub fn replace_deployment(&self, deployment: Deployment) {
        self.metrics.name_classes(&deployment);
        *self.deployment.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(deployment);
    }

    pub fn expected(&self) -> MutexGuard<'_, HashMap<Tuple, Expected>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Most connections at a time.
    pub fn most_connections(&self) -> u32 {
        let deployment = self.deployment();
        deployment.limits.connections.min(self.descriptors.allow(&deployment))
    }

    /// Bytes in all buffers by the latest samples.
    pub fn memory(&self) -> u64 {
        self.memory.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    /// Returns the reason why all new connections are forwarded untouched, if they are.
    pub fn bypass(&self) -> Option<Reason> {
        Reason::from_number(self.bypass.load(Ordering::Relaxed))
    }

    pub fn set_bypass(&self, reason: Option<Reason>) {
        self.bypass.store(reason.map_or(Reason::NONE, Reason::number), Ordering::Relaxed);
    }

    /// Returns the obstacles that the last probe found, in words; empty if it passed.
    pub fn obstacles(&self) -> String {
        self.obstacles.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the obstacles that a probe found, and whether they drop packets of the engine only: over IPv4, over IPv6.
    pub fn set_obstacles(&self, words: String, of_engine: [bool; 2]) {
        for (obstructed, is_met) in self.engine_obstructed.iter().zip(of_engine) {
            obstructed.store(is_met, Ordering::Relaxed);
        }
        *self.obstacles.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// True if rules drop packets of the engine in this IP version.
    pub fn is_engine_obstructed(&self, is_v4: bool) -> bool {
        self.engine_obstructed[usize::from(!is_v4)].load(Ordering::Relaxed)
    }

    /// Reserves a half-open connection of a client, or returns the limit that is reached.
    pub fn take_place(&self, client: IpAddr) -> Result<Place, Reason> {
        let deployment = self.deployment();
        let bounds = Bounds::new(&deployment.limits, self.most_connections());
        self.bypass().map_or_else(|| self.places.take(client, &bounds), Err)
    }
}

/// A queue of messages to a thread, with a descriptor that is readable while there are any.
pub(crate) struct Inbox<T> {
    messages: Mutex<VecDeque<T>>,
    wake_fd: OwnedFd,
}

impl<T> Inbox<T> {
    pub fn new() -> io::Result<Self> {
        let wake_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { messages: Mutex::default(), wake_fd })
    }

    pub fn send(&self, message: T) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
        // This fails only if the counter of the descriptor overflows.
        let _ = rustix::io::write(&self.wake_fd, &1u64.to_ne_bytes());
    }

    /// Returns all messages in order.
    pub fn drain(&self) -> VecDeque<T> {
        let _ = rustix::io::read(&self.wake_fd, &mut [0u8; 8]);
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> AsFd for Inbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake_fd.as_fd()
    }
}
