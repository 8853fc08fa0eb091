//! The part of a thread in the execution of a world by several.

use bentpipe_net::Passing;

use crate::engine::batch::Arrival;
use crate::packet::handle::PacketHandle;

/// What became of packets of a share behind a shared link of another.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    /// Those that come to channels.
    pub to_channels: Vec<(u32, Passing<PacketHandle>)>,
    /// Those that come to other shared links.
    pub to_shared_links: Vec<(u32, Arrival)>,
    pub lost: Vec<PacketHandle>,
}

/// A thread's part in the execution of a world.
#[derive(Debug)]
pub(crate) struct Share {
    pub number: u32,
    /// For the shares, what becomes of their packets.
    pub returned: Vec<Returned>,
}
