//! Sources of the packets of a link: several links, or one link alone.

use bentpipe_base::Duration;
use bentpipe_net::Link;
use bentpipe_scenario::LinkId;

use crate::ids::GroupId;
use crate::network::hop::{ARRIVED, Hop, Special, link};
use crate::network::source::Source;
use crate::packet::handle::PacketHandle;
use crate::parallel::batch::Batch;

/// A link with packets of several other links.
#[derive(Debug)]
pub(crate) struct SharedLink {
    pub link: LinkId,
    /// Minimum time from arrival at the link to arrival at its far end.
    pub lookahead: Duration,
    /// Phase group behind the link.
    pub group: GroupId,
    /// Packets that wait in front of the link.
    pub batch: Batch,
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
