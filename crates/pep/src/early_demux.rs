//! `net.ipv4.tcp_early_demux`: whether Linux looks for the socket of a packet before it is known that the packet is for this machine.
//!
//! It must not while a proxy runs, because Linux drops packets with a socket instead of forwarding them. Sockets of the kernel, the halves towards the
//! clients, have the same addresses and ports as the engine's packets, which are to be forwarded; and those in TIME-WAIT have those of a SYN
//! from a port that is used again, which is to wait for the server's answer. What it was set to before is the name of an empty chain in the table of the proxy, so that it is
//! restored also after a proxy was killed.

use crate::error::Error;
use crate::slot::Slot;
use crate::tool;

const SETTING: &str = "/proc/sys/net/ipv4/tcp_early_demux";
const CHAIN: &str = "early-demux-was-";

/// The chain that keeps the setting.
pub(crate) fn marker(before: &str) -> String {
    format!("  chain {CHAIN}{before} {{\n  }}\n")
}

/// What it was set to before the proxy in a slot came, if that changed it.
pub(crate) fn before(slot: Slot) -> Option<String> {
    let chains = tool::run("nft", "nftables", &["list", "chains", "inet"], "").ok()?;
    let table = format!("table inet {} {{", slot.table());
    let of_slot = chains.lines().skip_while(|line| *line != table).skip(1).take_while(|line| *line != "}");
    let mut names = of_slot.filter_map(|line| line.trim().strip_prefix("chain ")?.split(' ').next());
    names.find_map(|name| name.strip_prefix(CHAIN)).map(str::to_owned)
}

/// What it was set to before any proxy came.
///
/// # Errors
/// [`Error`] if it cannot be read.
pub(crate) fn original() -> Result<String, Error> {
    match Slot::all().find_map(before) {
        Some(before) => Ok(before),
        None => Ok(std::fs::read_to_string(SETTING).map_err(Error::at(SETTING))?.trim().to_owned()),
    }
}

/// Switches it off.
///
/// # Errors
/// If this process may not change that.
pub(crate) fn switch_off() -> Result<(), Error> {
    std::fs::write(SETTING, "0").map_err(Error::at(SETTING))
}

/// Sets it to what it was before, unless another proxy needs it switched off.
pub(crate) fn restore(before: Option<String>) {
    if let Some(before) = before
        && Slot::all().find_map(self::before).is_none()
        && let Err(error) = std::fs::write(SETTING, &before)
    {
        eprintln!("bentpipe: {SETTING} cannot be set to {before} again: {error}");
    }
}
