//! A departing segment without the header fields of the connection.

use bentpipe_base::{Extension, Probe};

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub seq: u64,
    pub len: u32,
    pub fin: bool,
    pub probe: Probe,
    pub low_priority: bool,
    /// True if it confirms a reduction after an ECN echo.
    pub congestion_reduced: bool,
    /// True if it may be ECN-capable: new data only (RFC 3168 section 6.1.5).
    pub ecn_capable: bool,
    pub extension: Extension,
    /// True if nothing more can leave now.
    pub last: bool,
}

impl Outgoing {
    /// Makes an ordinary segment.
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

/// Result of the fast path's search for the next segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prediction {
    /// The fast path cannot decide; the slow path must.
    Unclear,
    /// No data may be sent now.
    Nothing,
    /// A full segment of new data. With `last`, no other leaves for now.
    Full { seq: u64, last: bool },
}
