//! The clock of the timestamps option (RFC 7323).

use bentpipe_base::Instant;

/// Returns the milliseconds for the timestamps option; never zero, which means "no echo".
pub(crate) fn clock_ms(now: Instant) -> u32 {
    ((now.as_nanos() / 1_000_000) as u32).max(1)
}

/// True if timestamp `a` is before `b` modulo 2^32 (RFC 7323 section 5.2).
pub(crate) fn is_older(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
