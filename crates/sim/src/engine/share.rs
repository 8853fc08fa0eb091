//! The part of a thread in the execution of a world by several.

use crate::packet::handle::PacketHandle;
use crate::packet::pool::Waiting;

/// What became of packets of a share behind a shared link of another.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    /// Those that come to channels.
    pub to_channels: Vec<Waiting>,
    /// Those that come to other shared links.
    pub to_shared_links: Vec<(u32, Waiting)>,
    pub lost: Vec<PacketHandle>,
}

/// A thread's part in the execution of a world.
#[derive(Debug)]
pub(crate) struct Share {
    pub number: u32,
    /// For the shares, what becomes of their packets.
    pub returned: Vec<Returned>,
}
