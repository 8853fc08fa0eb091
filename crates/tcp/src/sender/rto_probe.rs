//! The RTO probe that is outstanding.

use bentpipe_cc::{BackOff, ProbeKind};

/// How the sender responds to a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimeoutResponse {
    /// It is believed: everything is marked lost and sent again from the first unacknowledged segment on.
    Retransmit(BackOff),
    /// It is not believed yet: this probe leaves, and no data until it is answered or times out.
    Probe(ProbeKind),
}

/// What decided on the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Algorithm,
    Engine,
}

/// The RTO probe that is outstanding: one segment, and nothing else leaves until it is answered or times out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RtoProbe {
    origin: Origin,
    kind: ProbeKind,
    /// Segments outstanding when it left.
    outstanding: u32,
    /// The newest segment had been SACKed before, so that its arrival is no news.
    newest_sacked: bool,
}

impl RtoProbe {
    /// A probe that leaves while `outstanding` segments are outstanding, the newest of which was SACKed or not.
    pub fn new(origin: Origin, kind: ProbeKind, outstanding: u32, newest_sacked: bool) -> Self {
        Self { origin, kind, outstanding, newest_sacked }
    }

    pub fn is_of_engine(&self) -> bool {
        self.origin == Origin::Engine
    }

    /// Whether it was the only segment outstanding, so that its arrival may have repaired a loss.
    pub fn may_repair_all(&self) -> bool {
        self.outstanding == 1 && self.kind != ProbeKind::AckPath
    }

    /// Whether its arrival shows in a SACK of the newest segment, if the peer sends SACKs.
    pub fn shows_in_sack(&self) -> bool {
        self.kind == ProbeKind::Newest && !self.newest_sacked
    }
}
