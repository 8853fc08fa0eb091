//! What an acknowledgement shows.

use bentpipe_base::{Duration, Segment};

use super::scoreboard::Progress;

/// Whether an acknowledgement number was acceptable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckField {
    /// It was, and the ACK was handled.
    Taken,
    /// It acknowledges data never sent, or lies more than the largest window below what is acknowledged (RFC 5961 section 5).
    Unacceptable,
}

/// What one ACK shows, as the steps of its handling find it out and pass it on.
pub(super) struct Findings<'a> {
    /// The segment that carries it.
    pub segment: &'a Segment,
    pub progress: Progress,
    pub advanced: bool,
    /// A duplicate in the sense of RFC 5681, or with SACK news.
    pub duplicate: bool,
    /// Empty, without news, and with the same acknowledgement number, even if nothing is outstanding.
    pub repeats: bool,
    pub dsack: bool,
    /// Its D-SACK answers probes, so that it tells nothing of data.
    pub reported: bool,
    pub rtt: Option<Duration>,
}
