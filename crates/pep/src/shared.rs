//! What the threads of the proxy share.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use bentpipe_scenario::deployment::Deployment;
use rustix::event::{EventfdFlags, eventfd};

use crate::half::{Half, Speaker};
use crate::packet::Tuple;

/// Shared by all threads.
pub(crate) struct Shared {
    deployment: RwLock<Arc<Deployment>>,
    /// Halves towards servers that have answered, until the client's half is accepted.
    ready: Mutex<HashMap<Tuple, Established>>,
    /// Who speaks the half over the satellite where the kernel does not.
    pub speaker: Option<Arc<dyn Speaker>>,
    /// Connections that exist or are being made.
    pub active: AtomicU32,
    /// Most connections that descriptors allow.
    pub descriptors_allow: u32,
    /// New connections are forwarded untouched.
    pub bypass: AtomicBool,
    pub counts: Counts,
}

/// A half towards a server that has answered.
pub(crate) struct Established {
    pub half: Half,
    pub since: Instant,
}

/// What has happened so far.
#[derive(Default)]
pub(crate) struct Counts {
    pub accepted: AtomicU64,
    pub finished: AtomicU64,
    pub reset: AtomicU64,
    pub refused: AtomicU64,
    pub bypassed: AtomicU64,
}

impl Counts {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Shared {
    pub fn new(deployment: Deployment, descriptors_allow: u32, speaker: Option<Arc<dyn Speaker>>) -> Self {
        Self {
            deployment: RwLock::new(Arc::new(deployment)),
            ready: Mutex::default(),
            speaker,
            active: AtomicU32::new(0),
            descriptors_allow,
            bypass: AtomicBool::new(false),
            counts: Counts::default(),
        }
    }

    /// The configuration at the moment.
    pub fn deployment(&self) -> Arc<Deployment> {
        self.deployment.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// New connections follow another configuration.
    pub fn replace_deployment(&self, deployment: Deployment) {
        *self.deployment.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(deployment);
    }

    pub fn ready(&self) -> MutexGuard<'_, HashMap<Tuple, Established>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Most connections at a time.
    pub fn most_connections(&self) -> u32 {
        self.deployment().limits.connections.min(self.descriptors_allow)
    }

    /// True if another connection has room.
    pub fn has_room(&self) -> bool {
        !self.bypass.load(Ordering::Relaxed) && self.active.load(Ordering::Relaxed) < self.most_connections()
    }
}

/// Messages to a thread that waits for events.
pub(crate) struct Inbox<T> {
    messages: Mutex<VecDeque<T>>,
    bell: OwnedFd,
}

impl<T> Inbox<T> {
    pub fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { messages: Mutex::default(), bell })
    }

    pub fn send(&self, message: T) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
        // The counter of the bell cannot overflow: it is read before it has been rung 2^64 times.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// All that has come, in order.
    pub fn drain(&self) -> VecDeque<T> {
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> AsFd for Inbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
