//! Checks from outside: what must hold of links and connections whatever is inside them.
//!
//! The checkers see what the simulation tells its monitor, in the order of events, and nothing of the code that they check: [`links`] keeps books of every packet that
//! enters and leaves a link, [`streams`] carries the payload that the engine only counts.

mod links;
mod streams;
mod violations;

use bentpipe_base::Instant;
use bentpipe_net::Link;
use bentpipe_scenario::{LinkId, Topology};

use crate::ids::EndId;
use crate::observe::monitor::{HostEvent, LinkActivity};
use crate::packet::handle::PacketHandle;
use links::LinkBook;
use streams::Streams;
use violations::Violations;

/// All checkers of one run.
#[derive(Debug)]
pub(crate) struct Checker {
    links: Vec<LinkBook>,
    streams: Streams,
    violations: Violations,
}

impl Checker {
    /// For a world with these links.
    pub fn new(topology: &Topology<'_>) -> Self {
        let links = topology.links().map(|edge| LinkBook::new(&edge)).collect();
        Self { links, streams: Streams::default(), violations: Violations::default() }
    }

    /// Something happened at a connection end.
    pub fn end(&mut self, now: Instant, end: EndId, event: &HostEvent) {
        self.streams.note(now, end, event, &mut self.violations);
    }

    /// Something happened at a link.
    pub fn link(&mut self, now: Instant, link: LinkId, activity: &LinkActivity) {
        match *activity {
            LinkActivity::Copied { original, copy } => self.streams.copy(original, copy),
            LinkActivity::Lost { packet, .. } => self.streams.forget(packet.handle.index()),
            _ => {}
        }
        self.links[link as usize].note(now, activity, &mut self.violations);
    }

    /// Closes the books: `used` packets are on their way in all, on these links. Returns all violations.
    pub fn finish(mut self, now: Instant, (links, used): (&[Link<PacketHandle>], usize)) -> Vec<String> {
        for (book, link) in self.links.iter().zip(links) {
            book.close(now, link, &mut self.violations);
        }
        let inside: usize = links.iter().map(Link::packets_inside).sum();
        self.violations.unless(inside == used, now, || {
            format!("{used} packets are on their way, but the links hold {inside}")
        });
        self.violations.into_vec()
    }
}
