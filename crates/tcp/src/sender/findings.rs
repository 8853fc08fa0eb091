//! Findings about an acknowledgement.

use bentpipe_base::{Duration, Segment};

use super::scoreboard::Progress;

/// Result of an acknowledgement field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckField {
    /// Taken.
    Taken,
    /// Acknowledges something never sent, or less than any ACK since a window ago (RFC 5961 section 5).
    Unacceptable,
}

/// Findings about one ACK that its steps pass on.
pub(super) struct Step<'a> {
    /// The segment that carries it.
    pub segment: &'a Segment,
    pub progress: Progress,
    pub advanced: bool,
    /// A duplicate in the sense of RFC 5681, or with SACK news.
    pub duplicate: bool,
    /// Empty, without news, and with the same acknowledgement number, even if nothing is outstanding.
    pub repeats: bool,
    pub dsack: bool,
    /// The report answers probes: it says nothing of data.
    pub reported: bool,
    pub rtt: Option<Duration>,
}
