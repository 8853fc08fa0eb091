//! Results of an acknowledgement's evaluation.

use bentpipe_base::{Duration, Segment};

use super::scoreboard::Progress;

/// Acceptance of an acknowledgement number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckField {
    /// The acknowledgement number was acceptable, and the ACK was handled.
    Taken,
    /// It acknowledges data never sent, or is more than the largest window below the acknowledged data (RFC 5961 section 5).
    Unacceptable,
}

/// Results of an ACK, filled in by the steps of its handling.
pub(super) struct Findings<'a> {
    /// Segment of the ACK.
    pub segment: &'a Segment,
    pub progress: Progress,
    pub advanced: bool,
    /// True for a duplicate by RFC 5681, or with new SACK blocks.
    pub duplicate: bool,
    /// True for an empty segment with the same acknowledgement number and no new information, even if nothing is outstanding.
    pub repeats: bool,
    pub dsack: bool,
    /// Congestion marks that it reports.
    pub marks: u32,
    /// True if its D-SACK answers probes, so that it reports nothing about data.
    pub reported: bool,
    pub rtt: Option<Duration>,
}
