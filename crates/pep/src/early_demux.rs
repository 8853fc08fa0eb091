//! `net.ipv4.tcp_early_demux`: whether Linux looks for the socket of a packet before it is known that the packet is for this machine.
//!
//! A proxy switches this setting off, because Linux drops a packet whose socket it has found instead of forwarding the packet. There are two
//! such packets. Packets of the engine have the addresses and ports of the kernel's sockets towards the clients, and are to be forwarded. A new SYN
//! from a port may have the addresses and ports of a socket in TIME-WAIT, and is to wait for the server's answer.
//!
//! The name of an empty chain in the table of the proxy keeps the former value. So the value can be restored even after a proxy was killed.

use bentpipe_system::NFT;

use crate::error::Error;
use crate::slot::Slot;

const SETTING: &str = "/proc/sys/net/ipv4/tcp_early_demux";
const CHAIN: &str = "early-demux-was-";

/// The chain that keeps the former value.
pub(crate) fn marker(before: &str) -> String {
    format!("  chain {CHAIN}{before} {{\n  }}\n")
}

/// The former value as the proxy in a slot has kept it.
pub(crate) fn before(slot: Slot) -> Option<String> {
    let chains = NFT.run(&["list", "chains", "inet"], "").ok()?;
    let table = format!("table inet {} {{", slot.table());
    let of_slot = chains.lines().skip_while(|line| *line != table).skip(1).take_while(|line| *line != "}");
    let mut names = of_slot.filter_map(|line| line.trim().strip_prefix("chain ")?.split(' ').next());
    names.find_map(|name| name.strip_prefix(CHAIN)).map(str::to_owned)
}

/// The value before any proxy ran.
///
/// # Errors
/// [`Error`] if it cannot be read.
pub(crate) fn original() -> Result<String, Error> {
    match Slot::all().find_map(before) {
        Some(before) => Ok(before),
        None => Ok(std::fs::read_to_string(SETTING).map_err(Error::at(SETTING))?.trim().to_owned()),
    }
}

/// True if the setting was switched on again.
pub(crate) fn is_on() -> bool {
    std::fs::read_to_string(SETTING).is_ok_and(|value| value.trim() != "0")
}

/// Switches it off.
///
/// # Errors
/// If this process may not change that.
pub(crate) fn switch_off() -> Result<(), Error> {
    // If the setting cannot be written, it may already be off.
    match std::fs::read_to_string(SETTING) {
        Ok(value) if value.trim() == "0" => Ok(()),
        _ => std::fs::write(SETTING, "0").map_err(Error::at(SETTING)),
    }
}

/// Restores the former value, unless another proxy needs it switched off.
pub(crate) fn restore(before: Option<String>) {
    if let Some(before) = before
        && Slot::all().find_map(self::before).is_none()
        && let Err(error) = std::fs::write(SETTING, &before)
    {
        eprintln!("bentpipe: {SETTING} cannot be set to {before} again: {error}");
    }
}
