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

/// A network namespace. It disappears with the last process in it and the last handle to it.
#[derive(Debug)]
pub(crate) struct Namespace {
    handle: File,
}

impl Namespace {
    /// The namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        Ok(Self { handle: File::open("/proc/thread-self/ns/net")? })
    }

    /// Makes a namespace that forwards packets. The calling thread does not enter it.
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

    /// Moves the calling thread into this namespace. Allocates nothing, so that it may be called between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(self.handle.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// The identity by which its processes are found.
    pub fn id(&self) -> io::Result<NetworkId> {
        Ok(NetworkId(self.handle.metadata()?.ino()))
    }

    /// Another handle to the same.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { handle: self.handle.try_clone()? })
    }
}

/// Makes this process the administrator of a user namespace of its own, under the same names. It must have one thread.
pub(crate) fn become_administrator() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // user_namespaces(7): without privilege a group may be mapped only after setgroups(2) is given up.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    keep_capabilities().map_err(io::Error::other)
}

/// Lets the programs that this process starts administer the networks of the user namespace, too. Under the name of an ordinary user they
/// would otherwise lose this capability (capabilities(7), ambient set).
fn keep_capabilities() -> Result<(), CapsError> {
    for capability in [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW, Capability::CAP_NET_BIND_SERVICE] {
        caps::raise(None, CapSet::Inheritable, capability)?;
        caps::raise(None, CapSet::Ambient, capability)?;
    }
    Ok(())
}

/// Switches forwarding on in the network namespace of the calling thread, for TCP stacks in user space that programs bring along. To be called
/// before the namespace has devices.
fn forward() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    match fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1") {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    }
    // With the default setting each device would join the group of all routers and send reports of that over the path. Packets are
    // forwarded without it.
    fs::write("/proc/sys/net/ipv6/conf/default/forwarding", "0")
}

/// Lets everybody in the network namespace of the calling thread listen on any port and ping, as an administrator may.
pub(crate) fn open_ports() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")?;
    let group = getegid();
    fs::write("/proc/sys/net/ipv4/ping_group_range", format!("{group} {group}"))
}
