//! The part of a thread in the execution of a world by several.

use bentpipe_team::Exchange;

use crate::engine::key::EventTarget;
use crate::network::hop::Here;
use crate::packet::handle::PacketHandle;
use crate::packet::pool::Waiting;

/// Packets of a share that come to the shared links of another.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    /// Those for the first of the links, in order, then those for the next.
    pub packets: Vec<Waiting>,
    /// Where the packets for each of the links end.
    pub ends: Vec<usize>,
}

impl Leaving {
    /// Those for one of the links.
    pub fn for_link(&self, place: usize) -> &[Waiting] {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.packets[begin..self.ends[place]]
    }

    pub fn clear(&mut self) {
        self.packets.clear();
        self.ends.clear();
    }
}

/// What became of packets of a share in another.
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
    /// The share that each link belongs to, where routes change.
    pub owners: Vec<u32>,
    /// Packets that come to shared links of other shares.
    pub leaving: Exchange<Leaving>,
    /// What became of packets that came to those of this one.
    pub returned: Exchange<Returned>,
    /// What its flows had delivered when goodput was sampled last, in bytes.
    pub delivered: u64,
    /// Packets at nodes from where they go over links of other shares, or to their hosts.
    pub crossing: Vec<(u32, PacketHandle, Here)>,
    /// The event for which all shares meet next.
    pub meeting: Option<EventTarget>,
}

impl Share {
    /// One for each of so many shares of a world with so many links.
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

    /// How many shares there are.
    pub fn count(&self) -> usize {
        self.returned.giving.len()
    }
}
