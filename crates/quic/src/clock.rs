//! Simulated time as the time of the stack, and back.

use std::sync::OnceLock;
use std::time;

use bentpipe_base::{Duration, Instant};

/// The stack's time at simulated time zero. Only differences of times reach the protocol.
static ORIGIN: OnceLock<time::Instant> = OnceLock::new();

fn origin() -> time::Instant {
    *ORIGIN.get_or_init(time::Instant::now)
}

/// Returns simulated time in the stack's type.
pub(crate) fn to_stack(at: Instant) -> time::Instant {
    origin() + time::Duration::from_nanos(at.as_nanos())
}

/// Returns the stack's time as simulated time.
pub(crate) fn from_stack(at: time::Instant) -> Instant {
    Instant::ZERO + span(at.duration_since(origin()))
}

/// Returns a span of the stack.
pub(crate) fn span(span: time::Duration) -> Duration {
    Duration::from_nanos(span.as_nanos().try_into().unwrap_or(u64::MAX))
}
