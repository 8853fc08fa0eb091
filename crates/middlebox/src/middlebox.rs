//! Interface for drivers.

use bentpipe_base::Instant;

use crate::ack_decimator::AckDecimator;
use crate::ack_filter::AckFilter;
use crate::ba_tcp::BaTcp;
use crate::dvegas::DVegas;
use crate::fuzzy::Fuzzy;
use crate::link_notices::LinkNotices;
use crate::snoop::Snoop;
use crate::spoofing::Spoofing;
use crate::wtcp::Wtcp;
use crate::xcp::Xcp;
use crate::{Emission, MiddleboxConfig, Passing, Spoilt, Verdict};

/// A middlebox of any kind.
///
/// The driver calls [`Middlebox::handle`] for every packet that passes the node, and [`Middlebox::handle_spoilt`] for packets
/// with errors. It calls [`Middlebox::handle_timeout`] no later than [`Middlebox::next_timeout`]. After each call it sends the
/// segments in `out` in order, then the packet itself if it goes on. Time must not run backwards.
#[derive(Clone, Debug)]
pub enum Middlebox {
    /// Filters ACKs that would wait in a queue.
    AckFilter(AckFilter),
    /// Passes every n-th ACK.
    AckDecimator(AckDecimator),
    /// Repairs losses on the next link.
    Snoop(Snoop),
    /// Repairs losses on the next link and hides the repair time from the sender.
    Wtcp(Wtcp),
    /// Acknowledges data before its delivery and guarantees the delivery; includes SaTPEP.
    Spoofing(Spoofing),
    /// An XCP or P-XCP router.
    Xcp(Xcp),
    /// A BA-TCP router.
    BaTcp(BaTcp),
    /// Fuzzy congestion control.
    Fuzzy(Fuzzy),
    /// The queue of DVegas.
    DVegas(DVegas),
    /// A ground station that reports errors and outages of its links.
    LinkNotices(LinkNotices),
}

impl Middlebox {
    /// Makes a middlebox without state.
    pub fn new(config: &MiddleboxConfig) -> Self {
        match config {
            MiddleboxConfig::AckFilter => Self::AckFilter(AckFilter::default()),
            MiddleboxConfig::AckDecimator(config) => Self::AckDecimator(AckDecimator::new(*config)),
            MiddleboxConfig::Snoop(config) => Self::Snoop(Snoop::new(*config)),
            MiddleboxConfig::Wtcp(config) => Self::Wtcp(Wtcp::new(*config)),
            MiddleboxConfig::SatPep(config) => Self::Spoofing(Spoofing::satpep(*config)),
            MiddleboxConfig::Spoofing(config) => Self::Spoofing(Spoofing::new(*config)),
            MiddleboxConfig::Xcp(config) => Self::Xcp(Xcp::new(*config)),
            MiddleboxConfig::BaTcp(config) => Self::BaTcp(BaTcp::new(*config)),
            MiddleboxConfig::Fuzzy(config) => Self::Fuzzy(Fuzzy::new(*config)),
            MiddleboxConfig::DVegas(config) => Self::DVegas(DVegas::new(*config)),
            MiddleboxConfig::LinkNotices(config) => Self::LinkNotices(LinkNotices::new(*config)),
        }
    }

    /// True if it only needs to match acknowledgements to data: it delays packets and sends copies, but creates no segments.
    /// Other information that it writes into a packet may be lost.
    pub fn works_on_copies(&self) -> bool {
        matches!(self, Self::AckFilter(_) | Self::AckDecimator(_) | Self::Snoop(_))
    }

    /// Handles a passing packet and returns its fate.
    pub fn handle(&mut self, now: Instant, passing: &mut Passing<'_>, out: &mut Vec<Emission>) -> Verdict {
        match self {
            Self::AckFilter(filter) => filter.handle(now, passing, out),
            Self::AckDecimator(decimator) => decimator.handle(now, passing, out),
            Self::Snoop(snoop) => snoop.handle(now, passing, out),
            Self::Wtcp(station) => station.handle(now, passing, out),
            Self::Spoofing(gateway) => gateway.handle(now, passing, out),
            Self::Xcp(router) => router.handle(now, passing),
            Self::BaTcp(router) => router.handle(now, passing),
            Self::Fuzzy(node) => node.handle(now, passing),
            Self::DVegas(queue) => queue.handle(now, passing),
            Self::LinkNotices(station) => station.handle(now, passing, out),
        }
    }

    /// Handles a packet that arrived with transmission errors.
    pub fn handle_spoilt(&mut self, now: Instant, spoilt: &Spoilt<'_>, out: &mut Vec<Emission>) {
        if let Self::LinkNotices(station) = self {
            station.handle_spoilt(now, spoilt, out);
        }
    }

    /// Returns the time of the next [`Middlebox::handle_timeout`]; [`Instant::FAR_FUTURE`] if nothing is pending.
    pub fn next_timeout(&self) -> Instant {
        match self {
            Self::AckFilter(filter) => filter.next_timeout(),
            Self::AckDecimator(decimator) => decimator.next_timeout(),
            Self::Snoop(snoop) => snoop.next_timeout(),
            Self::LinkNotices(station) => station.next_timeout(),
            Self::Wtcp(station) => station.next_timeout(),
            Self::Spoofing(gateway) => gateway.next_timeout(),
            Self::Xcp(_) | Self::BaTcp(_) | Self::Fuzzy(_) | Self::DVegas(_) => Instant::FAR_FUTURE,
        }
    }

    /// Executes everything due by `now`.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Emission>) {
        match self {
            Self::AckFilter(filter) => filter.handle_timeout(now, out),
            Self::AckDecimator(decimator) => decimator.handle_timeout(now, out),
            Self::Snoop(snoop) => snoop.handle_timeout(now, out),
            Self::LinkNotices(station) => station.handle_timeout(now, out),
            Self::Wtcp(station) => station.handle_timeout(now, out),
            Self::Spoofing(gateway) => gateway.handle_timeout(now, out),
            Self::Xcp(_) | Self::BaTcp(_) | Self::Fuzzy(_) | Self::DVegas(_) => {}
        }
    }

    /// Returns its counters with their names.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::AckFilter(filter) => filter.counters(),
            Self::AckDecimator(decimator) => decimator.counters(),
            Self::Snoop(snoop) => snoop.counters(),
            Self::Wtcp(station) => station.counters(),
            Self::Spoofing(gateway) => gateway.counters(),
            Self::Xcp(router) => router.counters(),
            Self::BaTcp(router) => router.counters(),
            Self::Fuzzy(node) => node.counters(),
            Self::DVegas(queue) => queue.counters(),
            Self::LinkNotices(station) => station.counters(),
        }
    }
}
