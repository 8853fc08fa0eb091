//! The deadlines of a connection. A deadline in the far future is off.

use bentpipe_base::Instant;

/// One field per deadline; drivers see only the earliest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    /// Retransmission timeout, or the earlier tail loss probe.
    pub retransmit: Instant,
    /// RACK's reordering timer.
    pub reorder: Instant,
    /// Zero-window probe.
    pub persist: Instant,
    /// Pacing timer, while data waits for it.
    pub pace: Instant,
    /// Timer of the algorithm.
    pub algorithm: Instant,
    /// Delayed ACK.
    pub delayed_ack: Instant,
    /// Life of the connection: keep-alive, FIN-WAIT-2, TIME-WAIT and the end of a released connection.
    pub life: Instant,
}

impl Timers {
    pub const OFF: Self = Self {
        retransmit: Instant::FAR_FUTURE,
        reorder: Instant::FAR_FUTURE,
        persist: Instant::FAR_FUTURE,
        pace: Instant::FAR_FUTURE,
        algorithm: Instant::FAR_FUTURE,
        delayed_ack: Instant::FAR_FUTURE,
        life: Instant::FAR_FUTURE,
    };

    pub fn earliest(&self) -> Instant {
        self.retransmit
            .min(self.reorder)
            .min(self.persist)
            .min(self.pace)
            .min(self.algorithm)
            .min(self.delayed_ack)
            .min(self.life)
    }
}

/// Returns true once if the deadline has passed, and disables it.
pub(crate) fn expired(deadline: &mut Instant, now: Instant) -> bool {
    let hit = *deadline <= now;
    if hit {
        *deadline = Instant::FAR_FUTURE;
    }
    hit
}
