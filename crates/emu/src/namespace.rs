//! Network namespaces.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::thread;

use caps::errors::CapsError;
use caps::{CapSet, Capability};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

use crate::processes::NetworkId;

/// A network namespace. The kernel removes it with its last process and last handle.
#[derive(Debug)]
pub(crate) struct Namespace {
    handle: File,
}

impl Namespace {
    /// Returns the namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        Ok(Self { handle: File::open("/proc/thread-self/ns/net")? })
    }

    /// Makes a namespace that forwards packets. The calling thread stays outside.
    pub fn create() -> io::Result<Self> {
        let create = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            forward()?;
            Self::current()
        };
        thread::scope(|scope| scope.spawn(create).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs `work` on a thread in this namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let enter = || {
            setns(self.handle.as_fd(), CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        };
        thread::scope(|scope| scope.spawn(enter).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Moves the calling thread into this namespace. It allocates nothing, so it may be called between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(self.handle.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// Returns the identity by which its processes are found.
    pub fn id(&self) -> io::Result<NetworkId> {
        Ok(NetworkId(self.handle.metadata()?.ino()))
    }

    /// Returns another handle of the namespace.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { handle: self.handle.try_clone()? })
    }
}

/// Makes this process the administrator of a new user namespace with the same user names. The process must have one
/// thread.
pub(crate) fn become_administrator() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // user_namespaces(7): an unprivileged process can map a group only after it has given up setgroups(2).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    keep_capabilities().map_err(io::Error::other)
}

/// Lets started programs administer the networks of the user namespace. Without this, they would lose the capability
/// under an ordinary user's name (capabilities(7), ambient set).
fn keep_capabilities() -> Result<(), CapsError> {
    for capability in [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW, Capability::CAP_NET_BIND_SERVICE] {
        caps::raise(None, CapSet::Inheritable, capability)?;
        caps::raise(None, CapSet::Ambient, capability)?;
    }
    Ok(())
}

/// Enables forwarding in the caller's network namespace, for user-space TCP stacks of programs. It must be called
/// before the namespace has devices.
fn forward() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    match fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1") {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    }
    // By default each device joins the group of all routers and sends reports over the path. Forwarding works without
    // it.
    fs::write("/proc/sys/net/ipv6/conf/default/forwarding", "0")
}

/// Lets everybody in the caller's network namespace listen on any port and ping.
pub(crate) fn open_ports() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")?;
    let group = getegid();
    fs::write("/proc/sys/net/ipv4/ping_group_range", format!("{group} {group}"))
}
