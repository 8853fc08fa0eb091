//! The retransmission timer.

use bentpipe_base::Instant;

/// What the deadline of retransmission means when it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deadline {
    /// Retransmission timeout.
    Retransmission,
    /// Tail loss probe (RFC 8985 section 7).
    TailLossProbe,
}

/// When the retransmission timer expires (RFC 6298), and what comes first: the deadline may be that of a tail loss probe before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransmissionTimer {
    pub expires: Instant,
    pub meaning: Deadline,
}

impl RetransmissionTimer {
    pub const OFF: Self = Self { expires: Instant::FAR_FUTURE, meaning: Deadline::Retransmission };
}

/// Whether a connection goes on after a timer came, or is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    GoOn,
    GiveUp,
}

impl Fate {
    /// One reason to give up is enough.
    pub fn or(self, other: Self) -> Self {
        if self == Self::GiveUp { self } else { other }
    }
}
