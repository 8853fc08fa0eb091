//! The part of a thread in the execution of a world by several.

use bentpipe_team::Exchange;

use crate::network::hop::Here;
use crate::packet::handle::PacketHandle;
use crate::packet::pool::Waiting;
use crate::scheduler::target::Target;

/// Packets of a share for the shared links of another share.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    /// Packets, sorted by link.
    pub packets: Vec<Waiting>,
    /// End of the packets of each link.
    pub ends: Vec<usize>,
}

impl Leaving {
    /// Packets for one of the links.
    pub fn for_link(&self, place: usize) -> &[Waiting] {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.packets[begin..self.ends[place]]
    }

    pub fn clear(&mut self) {
        self.packets.clear();
        self.ends.clear();
    }
}

/// Packets of a share that return from another share.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    /// Packets for channels.
    pub to_channels: Vec<Waiting>,
    /// Packets for further shared links.
    pub to_shared_links: Vec<(u32, Waiting)>,
    pub lost: Vec<PacketHandle>,
}

/// A thread's part in the execution of a world.
#[derive(Debug)]
pub(crate) struct Share {
    pub number: u32,
    /// The share that each link belongs to, if routes change.
    pub owners: Vec<u32>,
    /// Packets for shared links of other shares.
    pub leaving: Exchange<Leaving>,
    /// Packets that return to their shares from the links of this share.
    pub returned: Exchange<Returned>,
    /// Bytes that its flows had delivered at the last sample of goodput.
    pub delivered: u64,
    /// Packets at nodes from where they go over links of other shares, or to their hosts.
    pub crossing: Vec<(u32, PacketHandle, Here)>,
    /// The event for which all shares meet next.
    pub meeting: Option<Target>,
}

impl Share {
    /// Creates `count` shares of a world with `links` links.
    pub fn all(count: usize, links: usize) -> impl Iterator<Item = Self> {
        let exchanges = Exchange::between(count).into_iter().zip(Exchange::between(count));
        (0..).zip(exchanges).map(move |(number, (leaving, returned))| Self {
            number,
            owners: vec![0; links],
            leaving,
            returned,
            delivered: 0,
            crossing: Vec::new(),
            meeting: None,
        })
    }

    /// Number of shares.
    pub fn count(&self) -> usize {
        self.returned.giving.len()
    }
}
