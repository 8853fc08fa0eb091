//! The engine terminates halves of connections in user space, with any registered algorithm, over a TUN device.
//!
//! Each thread of the engine has a TUN device and a [`bentpipe_host::Stack`] that stands for clients and servers.
//! It also has the kernel's sockets for the other halves of its connections.
//! A thread sleeps until a packet, a byte, a message or a deadline is there.

mod call;
pub(crate) mod rules;
mod settings;
mod thread;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread::Builder;

use bentpipe_host::{DeviceConfig, Driver, Limits};
use bentpipe_scenario::deployment::{Class, Datapath, Deployment, Opener, interface_fits};

use crate::error::Error;
use crate::half::{self, Answer, HalfRequest, Opening};
use crate::reverse_path;
use crate::shared::Inbox;
use crate::slot::Slot;
use call::Message;
use thread::Thread;

/// Largest packet over interfaces whose MTU is not known: that of Ethernet.
const USUAL_MTU: u16 = 1500;

/// Name of the device of a thread.
fn device(thread: usize) -> String {
    format!("bp-eng{thread}")
}

/// Number of threads of the engine for a configuration; none if no class uses the engine. There are few, because each costs every packet from the
/// satellite a lookup (chosen: one for four processors).
pub(crate) fn threads(deployment: &Deployment) -> usize {
    let wanted = deployment.classes.iter().any(|class| class.split.satellite.datapath == Datapath::Engine);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if wanted { (cores / 4).clamp(1, rules::MOST_THREADS) } else { 0 }
}

/// Numbers of the threads of a proxy.
pub(crate) fn range(slot: Slot, threads: usize) -> Range<usize> {
    let first = usize::from(slot.0) * rules::MOST_THREADS;
    first..first + threads
}

/// True if the engine answers the SYNs of a class.
pub(crate) fn answers(class: &Class) -> bool {
    class.matches.opener == Opener::Satellite && class.split.satellite.datapath == Datapath::Engine
}

/// Gives connections to the threads of the engine.
struct Threads {
    threads: Vec<Arc<Inbox<Message>>>,
    hasher: RandomState,
}

/// Starts the threads.
///
/// # Errors
/// [`Error`] says what this machine lacks.
pub(crate) fn start(slot: Slot, deployment: &Deployment) -> Result<Arc<dyn half::Engine>, Error> {
    let range = range(slot, threads(deployment));
    let threads = range.len();
    let mtu = mtu(&deployment.interfaces.satellite).unwrap_or(USUAL_MTU);
    let connections = deployment.limits.connections.saturating_add(deployment.limits.half_open) as usize;
    let limits = Limits {
        connections,
        half_open: connections,
        orphans: connections,
        // The stack gives one host at most four fifths of its memory. With a quarter more, one host alone can reach the limit of the proxy.
        bytes: usize::try_from(deployment.limits.memory / threads.max(1) as u64 / 4 * 5)
            .unwrap_or(usize::MAX),
        ..Limits::default()
    };
    let start = |number: usize| {
        let config = DeviceConfig { name: Some(device(number)), networks: Vec::new(), mtu };
        let driver = Driver::new(&config, limits).map_err(|error| Error::Missing(error.to_string()))?;
        reverse_path::loosen(&device(number))?;
        let (thread, inbox) = Thread::new(driver, slot).map_err(Error::at("epoll"))?;
        Builder::new()
            .name(format!("engine-{number}"))
            .spawn(move || thread.run())
            .map_err(Error::at("cannot start a thread"))?;
        Ok(inbox)
    };
    let threads = range.map(start).collect::<Result<_, Error>>()?;
    Ok(Arc::new(Threads { threads, hasher: RandomState::new() }))
}

/// Largest packet that all interfaces take which fit one of the patterns; none if there is no such interface.
fn mtu(patterns: &[String]) -> Option<u16> {
    let interfaces = std::fs::read_dir("/sys/class/net").ok()?.flatten();
    let fits = |name: &str| patterns.iter().any(|pattern| interface_fits(pattern, name));
    let of_interface = |path: &Path| {
        let text = std::fs::read_to_string(path.join("mtu")).ok()?;
        Some(text.trim().parse().unwrap_or(u16::MAX))
    };
    interfaces
        .filter(|entry| fits(&entry.file_name().to_string_lossy()))
        .filter_map(|entry| of_interface(&entry.path()))
        .min()
}

impl Threads {
    /// The thread for a connection: the same one for all connections with these addresses and ports.
    fn thread_of(&self, client: SocketAddr, server: SocketAddr) -> &Inbox<Message> {
        let hash = self.hasher.hash_one((client, server));
        &self.threads[(hash % self.threads.len() as u64) as usize]
    }
}

impl half::Engine for Threads {
    fn open(&self, request: &HalfRequest, opening: Opening<'_>, answer: Answer) {
        let syn = match opening {
            Opening::Active => None,
            Opening::Passive(packet) => Some(packet.into()),
        };
        self.thread_of(request.client, request.server).send(Message::Open {
            request: Box::new(request.clone()),
            syn,
            answer,
        });
    }

    fn register(&self) {
        for thread in &self.threads {
            thread.send(Message::Register);
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for thread in &self.threads {
            thread.send(Message::Stop);
        }
    }
}
