//! Outstanding RTO probe.

use bentpipe_cc::{BackOff, ProbeKind};

/// Response of the sender to a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimeoutResponse {
    /// The timeout counts as real: everything is marked lost and sent again from the first unacknowledged
    /// segment on.
    Retransmit(BackOff),
    /// The timeout is not yet believed: this probe leaves, and no data before its answer or timeout.
    Probe(ProbeKind),
}

/// Origin of the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Algorithm,
    Engine,
}

/// Outstanding RTO probe: one segment; no other leaves before its answer or timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RtoProbe {
    origin: Origin,
    kind: ProbeKind,
    /// Segments outstanding at its departure.
    outstanding: u32,
    /// True if the newest segment was SACKed before, so that its arrival is no new information.
    newest_sacked: bool,
}

impl RtoProbe {
    /// Makes a probe sent with `outstanding` segments outstanding; `newest_sacked` is true if the newest was
    /// SACKed.
    pub fn new(origin: Origin, kind: ProbeKind, outstanding: u32, newest_sacked: bool) -> Self {
        Self { origin, kind, outstanding, newest_sacked }
    }

    pub fn is_of_engine(&self) -> bool {
        self.origin == Origin::Engine
    }

    /// True if it was the only outstanding segment, so that its arrival may have repaired a loss.
    pub fn may_repair_all(&self) -> bool {
        self.outstanding == 1 && self.kind != ProbeKind::AckPath
    }

    /// True if a SACK of the newest segment shows its arrival, if the peer sends SACKs.
    pub fn shows_in_sack(&self) -> bool {
        self.kind == ProbeKind::Newest && !self.newest_sacked
    }
}
