//! The filter of reverse paths of Linux (`rp_filter`), for the TUN devices of the proxy. Their packets have addresses of other hosts.
//!
//! A strict filter (1) drops a packet unless the route to its sender leads back over the same device. Linux uses the larger one of the values of `all` and
//! of the device. So 2 at the device lets a packet of any sender with a route pass, whatever the administrator has set for `all`. A device without an address
//! is an exception: there, Linux treats 2 as 1.

use std::fs;

use bentpipe_system::ip;

use crate::error::Error;

/// The address of devices that need none (RFC 7600).
const DUMMY: &str = "192.0.0.8/32";

/// Sets the filter of a device to 2, and gives the device an address.
///
/// # Errors
/// [`Error`] if that is not possible, and the filter is strict.
pub(crate) fn loosen(device: &str) -> Result<(), Error> {
    ip(&["-4"], &[format!("addr replace {DUMMY} dev {device} scope host")])?;
    let path = |of: &str| format!("/proc/sys/net/ipv4/conf/{of}/rp_filter");
    let value = |of: &str| fs::read_to_string(path(of)).ok()?.trim().parse::<u8>().ok();
    match fs::write(path(device), "2") {
        Err(error) if value("all").max(value(device)) == Some(1) => Err(Error::at(path(device))(error)),
        _ => Ok(()),
    }
}
