//! Checks from outside: what must hold of links and connections whatever is inside them.
//!
//! The checkers are told what happens, in the order of time, and see nothing of the code that they check. One keeps books of every packet
//! that enters and leaves a link: packets are conserved, none arrives before it could, and none above the rate of the link. The other
//! carries the payload that an engine only counts: what is read is what was written, in order.

mod event;
mod links;
mod streams;
mod violations;

use bentpipe_base::Instant;
use bentpipe_net::{Link, LinkConfig, Packet};

use self::links::LinkBook;
use self::streams::Streams;
use self::violations::Violations;
pub(crate) use event::{HostEvent, LinkActivity, SeenPacket};

/// All checkers of one run.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    links: Vec<LinkBook>,
    streams: Streams,
    violations: Violations,
}

impl Checker {
    /// The next direction of a link, in the order in which they are numbered.
    pub fn add_link(&mut self, name: String, config: &LinkConfig) {
        self.links.push(LinkBook::new(name, config));
    }

    /// Something happened at a connection end.
    pub fn end(&mut self, now: Instant, end: u32, event: &HostEvent) {
        self.streams.note(now, end, event, &mut self.violations);
    }

    /// Something happened at a link.
    pub fn link(&mut self, now: Instant, link: u32, activity: &LinkActivity) {
        match *activity {
            LinkActivity::Copied { original, copy } => self.streams.copy(original, copy),
            LinkActivity::Lost { packet, .. } => self.streams.forget(packet.number),
            _ => {}
        }
        self.links[link as usize].note(now, activity, &mut self.violations);
    }

    /// Closes the books: `used` packets are on their way in all, on these links. Returns all violations.
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
