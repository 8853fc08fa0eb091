use bentpipe_base::{Duration, Instant};

use super::blocks::Blocks;
use super::bundle::{Bundle, Name, Pdu};
use super::stream::Stream;
use super::{Convergence, Hop};
use crate::counts::Counts;

/// A convergence-layer adapter: exchanges bundles with a neighbour during contacts.
#[derive(Debug)]
pub(super) enum Adapter {
    Blocks(Box<Blocks>),
    Stream(Box<Stream>),
}

macro_rules! each {
    ($self:expr, $way:ident => $call:expr) => {
        match $self {
            Adapter::Blocks($way) => $call,
            Adapter::Stream($way) => $call,
        }
    };
}

impl Adapter {
    /// Makes the adapter for a neighbour. `opens` is true if this agent opens the connections, if there are any.
    pub fn new(hop: Hop, packet_bytes: u32, convergence: Convergence, opens: bool) -> Self {
        match hop.tcp {
            Some(tcp) => Self::Stream(Box::new(Stream::new(hop.contacts, tcp, opens))),
            None => Self::Blocks(Box::new(Blocks::new(hop, packet_bytes, convergence))),
        }
    }

    /// Queues a bundle for sending.
    pub fn offer(&mut self, bundle: Bundle) {
        each!(self, way => way.offer(bundle));
    }

    /// Queues a bundle that was sent before, ahead of new bundles.
    pub fn offer_again(&mut self, bundle: Bundle) {
        each!(self, way => way.offer_again(bundle));
    }

    /// Cancels the sending of a bundle.
    pub fn withdraw(&mut self, name: Name) {
        each!(self, way => way.withdraw(name));
    }

    /// Returns the time at which `span` of contact time has passed.
    pub fn after(&self, now: Instant, span: Duration) -> Instant {
        each!(self, way => way.after(now, span))
    }

    /// Returns a complete bundle from the neighbour.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Bundle> {
        match self {
            Self::Blocks(way) => way.poll_arrival(),
            Self::Stream(way) => way.poll_arrival(now),
        }
    }

    /// Returns a bundle that the neighbour has. Without reports, it is a bundle that was sent.
    pub fn poll_done(&mut self) -> Option<Name> {
        each!(self, way => way.poll_done())
    }

    pub fn srtt(&self) -> Option<Duration> {
        each!(self, way => way.srtt())
    }

    pub fn next_timeout(&self) -> Instant {
        each!(self, way => way.next_timeout())
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        each!(self, way => way.handle_timeout(now));
    }

    pub fn poll_transmit(&mut self, now: Instant) -> Option<Pdu> {
        each!(self, way => way.poll_transmit(now))
    }

    pub fn handle(&mut self, now: Instant, pdu: &Pdu) {
        each!(self, way => way.handle(now, pdu));
    }

    pub fn counts(&self) -> Counts {
        match self {
            Self::Blocks(way) => way.counts,
            Self::Stream(way) => way.counts(),
        }
    }
}
