//! The RTO probe that is outstanding.

use bentpipe_cc::{BackOff, ProbeKind};

/// What follows a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimeoutResponse {
    /// It is believed: everything is marked lost and sent again from the first unacknowledged segment on.
    Retransmit(BackOff),
    /// It is not believed yet: this probe leaves, and no data until it is answered or times out.
    Ask(ProbeKind),
}

/// Who decided on the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Prober {
    Algorithm,
    Engine,
}

/// The RTO probe that is outstanding: one segment, and nothing else leaves until it is answered or times out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RtoProbe {
    pub prober: Prober,
    pub kind: ProbeKind,
    /// Segments outstanding when it left.
    pub outstanding: u32,
    /// The newest segment had been SACKed before: its arrival is no news.
    pub newest_sacked: bool,
}
