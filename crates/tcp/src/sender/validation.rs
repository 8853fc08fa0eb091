//! How much of the window was used lately (RFC 7661).

use bentpipe_base::Instant;

/// `pipeACK`: the most that was acknowledged in a round trip lately (RFC 7661 section 4.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Validation {
    /// Start of the current measurement and the bytes delivered then.
    pub since: Instant,
    pub delivered_since: u64,
    /// Acknowledged in the last and in the current sampling round trip, in segments.
    pub previous: f64,
    pub current: f64,
    /// Since when the window has not been used.
    pub unused_since: Option<Instant>,
}

impl Validation {
    pub fn pipe_ack(&self) -> f64 {
        self.previous.max(self.current)
    }
}
