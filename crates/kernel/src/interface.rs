//! Network interfaces, by name and by number.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::net::if_::{InterfaceFlags, if_nameindex, if_nametoindex};

use crate::error::Error;

/// Size of an interface name in the kernel, with the final zero.
pub(crate) const INTERFACE_NAME: usize = 16;

/// An interface of a network namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    pub namespace: u32,
    pub number: u32,
}

impl Interface {
    /// Returns the interface with this name in the present network namespace.
    pub fn find(name: &str) -> Result<Self, Error> {
        let number = if_nametoindex(name).map_err(|_| {
            let there = if_nameindex().into_iter().flat_map(|all| {
                all.iter().map(|one| one.name().to_string_lossy().into_owned()).collect::<Vec<_>>()
            });
            Error::Request(format!(
                "no interface {name:?}; there are {}",
                there.collect::<Vec<_>>().join(", ")
            ))
        })?;
        Ok(Self { namespace: own_namespace()?, number })
    }

    /// Returns all interfaces of the present network namespace except the loopback.
    pub fn all() -> Result<Vec<Self>, Error> {
        let unreadable = |error| Error::Work(format!("cannot list the interfaces: {error}"));
        let addresses = getifaddrs().map_err(unreadable)?;
        let names: BTreeSet<String> = addresses
            .filter(|address| !address.flags.contains(InterfaceFlags::IFF_LOOPBACK))
            .map(|address| address.interface_name)
            .collect();
        names.iter().map(|name| Self::find(name)).collect()
    }
}

fn own_namespace() -> Result<u32, Error> {
    let own = Path::new("/proc/thread-self/ns/net");
    Ok(fs::metadata(own).map_err(|error| Error::file(own, &error))?.ino() as u32)
}

/// Returns the cookie of the present network namespace, unique until the next boot.
pub(crate) fn own_cookie() -> Result<u64, Error> {
    let failed = |error| Error::Work(format!("cannot read the cookie of the network namespace: {error}"));
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed)?;
    let (mut cookie, mut length) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the number and its size are valid and outlive the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if done == 0 { Ok(cookie) } else { Err(failed(std::io::Error::last_os_error())) }
}
