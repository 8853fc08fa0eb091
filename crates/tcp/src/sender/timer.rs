//! The retransmission timer.

use bentpipe_base::Instant;

/// What is sent when the retransmission deadline is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deadline {
    /// Retransmission timeout.
    Retransmission,
    /// Tail loss probe (RFC 8985 section 7).
    TailLossProbe,
}

/// When the retransmission timer expires (RFC 6298), and whether the next deadline is that or an earlier tail loss probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransmissionTimer {
    pub expires: Instant,
    pub meaning: Deadline,
}

impl RetransmissionTimer {
    pub const OFF: Self = Self { expires: Instant::FAR_FUTURE, meaning: Deadline::Retransmission };
}

/// Whether a connection goes on after a timer expired, or is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    GoOn,
    GiveUp,
}

impl Fate {
    /// Gives up if either of two timers does.
    pub fn or(self, other: Self) -> Self {
        if self == Self::GiveUp { self } else { other }
    }
}
