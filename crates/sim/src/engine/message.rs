//! Packets between logical processes.

use bentpipe_base::Instant;

use crate::ids::FlowId;
use crate::packet::handle::PacketHandle;
use crate::packet::pool::PackedPacket;

/// A packet that comes to a shared link, or through it to a logical process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    /// When it comes.
    pub at: Instant,
    /// The [rank](crate::engine::key::Tie::rank) of the event in which it comes.
    pub rank: u64,
    /// Index of the [`Crossing`].
    pub crossing: u32,
    /// All but its index and its position in the routes.
    pub handle: PacketHandle,
    pub packet: PackedPacket,
}

/// Where the packets of a flow cross a shared link in one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// Index of the shared link.
    pub shared_link: u32,
    pub flow: FlowId,
    pub onward: Onward,
}

/// Where packets go behind a shared link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Onward {
    /// Over another shared link: the index of that [`Crossing`].
    Crossing(u32),
    /// To a process: its index.
    Process(u32, Entry),
}

/// Where packets of a flow come to a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Index of the process's port.
    pub port: u32,
    /// Where the route begins in the process.
    pub position: u32,
    /// Number of the flow in the process.
    pub flow: FlowId,
    /// 0 if they go to the sender, 1 if they go to the receiver.
    pub side: u32,
}
