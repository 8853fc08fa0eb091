//! Network interfaces, by name and by number.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nameindex, if_nametoindex};

use crate::error::Error;

/// An interface of a network namespace; zeros stand for any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Interface {
    pub namespace: u32,
    pub number: u32,
}

impl Interface {
    /// That of this name in our network namespace.
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

    /// All of our network namespace but the loopback.
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
