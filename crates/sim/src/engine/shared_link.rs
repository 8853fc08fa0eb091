//! Where the packets of links come from: links that several others share, and links that take all their packets from one.

use bentpipe_base::Duration;
use bentpipe_net::Link;
use bentpipe_scenario::LinkId;

use crate::engine::batch::Batch;
use crate::engine::process::GroupId;
use crate::network::hop::{ARRIVED, Hop, Special, link};
use crate::packet::handle::PacketHandle;

/// A link to which packets come from several others.
#[derive(Debug)]
pub(crate) struct SharedLink {
    pub link: LinkId,
    /// No packet is at the far end of the link sooner than so long after it came there.
    pub lookahead: Duration,
    /// The phase group that it leads to.
    pub group: GroupId,
    /// Packets that come to the link.
    pub batch: Batch,
}

/// Where the packets of a link come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Nowhere,
    /// From this link alone, of which it is known in advance what leaves it when.
    One(LinkId),
    /// From several of that kind.
    Several,
    /// Also from elsewhere.
    Elsewhere,
}

impl Source {
    /// From both.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nowhere, other) => other,
            (Self::Elsewhere, _) | (_, Self::Elsewhere) => Self::Elsewhere,
            _ if self == other => self,
            _ => Self::Several,
        }
    }
}

/// Finds where packets need no event for a hop and marks it in the routes, which must be all that packets follow; returns the shared links.
pub(crate) fn find_shared_links(links: &[Link<PacketHandle>], routes: &mut [Hop]) -> Vec<SharedLink> {
    let mut sources = vec![Source::Nowhere; links.len()];
    let mut before = ARRIVED;
    for &hop in &*routes {
        if let Some(id) = link(hop) {
            let source = match link(before) {
                Some(before) if links[before as usize].is_foreseeable() => Source::One(before),
                _ => Source::Elsewhere,
            };
            sources[id as usize] = sources[id as usize].or(source);
        }
        before = hop;
    }
    let mut shared_links = Vec::new();
    let mut hops: Vec<Hop> = (0..links.len() as LinkId).collect();
    for (id, (state, source)) in links.iter().zip(sources).enumerate() {
        let (link, lookahead) = (id as LinkId, state.lookahead());
        match source {
            _ if !state.is_first_in_first_out() => {}
            Source::One(_) => hops[id] = Special::Chained(link).hop(),
            Source::Several if !lookahead.is_zero() => {
                hops[id] = Special::SharedLink(shared_links.len() as u32).hop();
                shared_links.push(SharedLink { link, lookahead, group: 0, batch: Batch::new() });
            }
            _ => {}
        }
    }
    for hop in routes {
        *hop = link(*hop).map_or(*hop, |link| hops[link as usize]);
    }
    shared_links
}
