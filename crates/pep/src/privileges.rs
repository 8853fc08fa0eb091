//! Privileges: the proxy keeps only those that it needs while it runs.

use caps::{CapSet, Capability, CapsHashSet};
use nix::unistd::{User, setgid, setgroups, setuid};

use crate::error::Error;

/// Needed for transparent sockets, the packet filter and devices, and for raw packets.
pub(crate) const NEEDED: [Capability; 2] = [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW];
/// Useful for more pipes than an ordinary user may have.
const USEFUL: Capability = Capability::CAP_SYS_RESOURCE;

/// Keeps the privileges that the proxy and its child processes need, and drops all others. With `user` the process becomes that user.
/// Must be called before there are other threads.
pub(crate) fn give_up(user: Option<&str>) -> Result<(), Error> {
    let permitted = caps::read(None, CapSet::Permitted).map_err(failed)?;
    if let Some(missing) = NEEDED.iter().find(|capability| !permitted.contains(capability)) {
        return Err(Error::Missing(format!(
            "the capability {missing} is missing: run it as root (sudo bentpipe pep run ...), or with AmbientCapabilities= in a systemd unit"
        )));
    }
    if let Some(name) = user {
        become_user(name)?;
    }
    let wanted: CapsHashSet =
        NEEDED.into_iter().chain([USEFUL]).filter(|capability| permitted.contains(capability)).collect();
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).unwrap_or(false) {
        for capability in caps::read(None, CapSet::Bounding).map_err(failed)? {
            if !wanted.contains(&capability) {
                caps::drop(None, CapSet::Bounding, capability).map_err(failed)?;
            }
        }
    }
    // Effective and inheritable capabilities must be permitted ones.
    caps::set(None, CapSet::Effective, &wanted)
        .and_then(|()| caps::set(None, CapSet::Permitted, &wanted))
        .and_then(|()| caps::set(None, CapSet::Inheritable, &wanted))
        .and_then(|()| caps::set(None, CapSet::Ambient, &wanted))
        .map_err(failed)?;
    nix::sys::prctl::set_no_new_privs().map_err(|error| Error::at("no_new_privs")(error.into()))
}

fn become_user(name: &str) -> Result<(), Error> {
    let found = User::from_name(name).map_err(|error| Error::at("users")(error.into()))?;
    let user = found.ok_or_else(|| {
        Error::Request(format!(
            "daemon.user: found \"{name}\", accepted: a user of this machine (useradd --system {name})"
        ))
    })?;
    let changed = nix::sys::prctl::set_keepcaps(true)
        .and_then(|()| setgroups(&[]))
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid));
    changed.map_err(|error| Error::at(format!("becoming the user {name}"))(error.into()))?;
    // The change of user has emptied the effective set.
    let permitted = caps::read(None, CapSet::Permitted).map_err(failed)?;
    caps::set(None, CapSet::Effective, &permitted).map_err(failed)
}

fn failed(error: caps::errors::CapsError) -> Error {
    Error::at("capabilities")(std::io::Error::other(error))
}
