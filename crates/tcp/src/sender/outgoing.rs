//! A segment that is to leave, without the header fields that the connection adds.

use bentpipe_base::{Extension, Probe};

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub seq: u64,
    pub len: u32,
    pub fin: bool,
    pub probe: Probe,
    pub low_priority: bool,
    /// Confirms a reduction after an ECN echo.
    pub congestion_reduced: bool,
    /// ECN-capable: new data only (RFC 3168 section 6.1.5).
    pub ecn_capable: bool,
    pub extension: Extension,
    /// Nothing more can leave now.
    pub last: bool,
}

impl Outgoing {
    /// An ordinary segment.
    pub(super) fn plain(seq: u64, len: u32) -> Self {
        Self {
            seq,
            len,
            fin: false,
            probe: Probe::No,
            low_priority: false,
            congestion_reduced: false,
            ecn_capable: false,
            extension: Extension::None,
            last: false,
        }
    }
}

/// What the fast path finds to send next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prediction {
    /// Only the slow path can tell.
    Unclear,
    /// No data may leave.
    Nothing,
    /// A full segment of new data. With `last`, nothing more may leave for now.
    Full { seq: u64, last: bool },
}
