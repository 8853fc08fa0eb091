//! The clock of the timestamps option (RFC 7323).

use bentpipe_base::Instant;

/// Returns the milliseconds for the timestamps option; never zero, which means "no echo".
pub(crate) fn clock_ms(now: Instant) -> u32 {
    ((now.as_nanos() / 1_000_000) as u32).max(1)
}
