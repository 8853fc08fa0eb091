//! The retransmission timer.

use bentpipe_base::Instant;

/// Transmission at the retransmission deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deadline {
    /// Retransmission timeout.
    Retransmission,
    /// Tail loss probe (RFC 8985 section 7).
    TailLossProbe,
}

/// Expiry time of the retransmission timer (RFC 6298), and the kind of the next deadline: that timer or an earlier tail
/// loss probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransmissionTimer {
    pub expires: Instant,
    pub meaning: Deadline,
}

impl RetransmissionTimer {
    pub const OFF: Self = Self { expires: Instant::FAR_FUTURE, meaning: Deadline::Retransmission };
}

/// Fate of a connection after a timer expired.
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
