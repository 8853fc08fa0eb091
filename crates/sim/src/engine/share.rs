//! The part of a thread in the execution of a world by several.

use crate::engine::key::EventTarget;
use crate::network::hop::Here;
use crate::packet::handle::PacketHandle;
use crate::packet::pool::Waiting;

/// What became of packets of a share in another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returned {
    /// Those that come to channels.
    pub to_channels: Vec<Waiting>,
    /// Those that come to other shared links.
    pub to_shared_links: Vec<(u32, Waiting)>,
    pub lost: Vec<PacketHandle>,
}

/// A thread's part in the execution of a world.
#[derive(Debug, Default)]
pub(crate) struct Share {
    pub number: u32,
    /// The share that each link belongs to, where routes change.
    pub owners: Vec<u32>,
    /// For the shares, what becomes of their packets.
    pub returned: Vec<Returned>,
    /// From the shares, what became of packets of this one.
    pub taken_back: Vec<Returned>,
    /// The packets that leave for each shared link of another share, in order.
    pub leaving: Vec<Vec<Waiting>>,
    /// For each shared link of this share those that come from the shares.
    pub coming: Vec<Vec<Vec<Waiting>>>,
    /// Packets at nodes from where they go over links of other shares, or to their hosts.
    pub crossing: Vec<(u32, PacketHandle, Here)>,
    /// The event for which all shares meet next.
    pub meeting: Option<EventTarget>,
}
