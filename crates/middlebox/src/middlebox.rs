//! What a driver calls.

use bentpipe_base::Instant;

use crate::ack_decimator::AckDecimator;
use crate::ack_filter::AckFilter;
use crate::{Emission, MiddleboxConfig, Passing, Verdict};

/// A middlebox of any kind.
///
/// The driver calls [`Middlebox::handle`] for every packet that passes the node on its way from one end to the other, and
/// [`Middlebox::handle_timeout`] no later than [`Middlebox::next_timeout`]. After either it sends what was put into `out`, in
/// that order, and then the packet itself if it goes on. Time must not go backwards.
#[derive(Clone, Debug)]
pub enum Middlebox {
    /// Thins ACKs out where they would wait.
    AckFilter(AckFilter),
    /// Thins ACKs out regularly.
    AckDecimator(AckDecimator),
}

impl Middlebox {
    /// A middlebox that has seen nothing yet.
    pub fn new(config: &MiddleboxConfig) -> Self {
        match config {
            MiddleboxConfig::AckFilter => Self::AckFilter(AckFilter::default()),
            MiddleboxConfig::AckDecimator(config) => Self::AckDecimator(AckDecimator::new(*config)),
        }
    }

    /// A packet passes: what becomes of it.
    pub fn handle(&mut self, now: Instant, passing: &mut Passing<'_>, out: &mut Vec<Emission>) -> Verdict {
        match self {
            Self::AckFilter(filter) => filter.handle(now, passing, out),
            Self::AckDecimator(decimator) => decimator.handle(now, passing, out),
        }
    }

    /// When [`Middlebox::handle_timeout`] must be called; [`Instant::FAR_FUTURE`] while nothing is pending.
    pub fn next_timeout(&self) -> Instant {
        match self {
            Self::AckFilter(filter) => filter.next_timeout(),
            Self::AckDecimator(decimator) => decimator.next_timeout(),
        }
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Emission>) {
        match self {
            Self::AckFilter(filter) => filter.handle_timeout(now, out),
            Self::AckDecimator(decimator) => decimator.handle_timeout(now, out),
        }
    }

    /// What it counted, by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::AckFilter(filter) => filter.counters(),
            Self::AckDecimator(decimator) => decimator.counters(),
        }
    }
}
