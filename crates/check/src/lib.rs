//! Independent checks: invariants of links and connections, whatever their implementation.
//!
//! The checkers receive events in the order of time, and use none of the code that they check. One keeps a ledger of
//! every packet of a link: packets are conserved, none arrives earlier than the link allows, and none above its rate.
//! The other carries the payload that the engine only counts: the receiver reads the written bytes in order.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod event;
mod links;
mod streams;
mod violations;

use bentpipe_base::Instant;
use bentpipe_net::{Link, LinkConfig, Packet};

pub use event::{HostEvent, LinkActivity, SeenPacket};
use links::LinkBook;
use streams::Streams;
use violations::Violations;

/// All checkers of one run.
#[derive(Debug, Default)]
pub struct Checker {
    links: Vec<LinkBook>,
    streams: Streams,
    violations: Violations,
}

impl Checker {
    /// Adds the next direction of a link. Directions are numbered in the order of these calls.
    pub fn add_link(&mut self, name: String, config: &LinkConfig) {
        self.links.push(LinkBook::new(name, config));
    }

    /// Checks an event of a connection end.
    pub fn end(&mut self, now: Instant, end: u32, event: &HostEvent) {
        self.streams.note(now, end, event, &mut self.violations);
    }

    /// Checks an event of a link.
    pub fn link(&mut self, now: Instant, link: u32, activity: &LinkActivity) {
        match *activity {
            LinkActivity::Copied { original, copy } => self.streams.copy(original, copy),
            LinkActivity::Lost { packet, .. } => self.streams.forget(packet.number),
            _ => {}
        }
        self.links[link as usize].note(now, activity, &mut self.violations);
    }

    /// Ends the checks and returns all violations. `used` is the number of packets in the network, all on these
    /// links.
    pub fn finish<P: Packet>(mut self, now: Instant, links: &[Link<P>], used: usize) -> Vec<String> {
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
