//! Beside flows that do not drain, the window grows and shrinks as CUBIC's does (RFC 9438).

use bentpipe_base::Instant;

use super::state::{Before, Contest, Mode, SMALLEST, Zenith};
use crate::algorithms::loss::cubic::{self, Curve};

impl Zenith {
    /// Enters CUBIC mode, because other flows fill the queue and do not drain. `window` is the window before the drain; the minimum delays stay.
    pub(super) fn begin_contest(&mut self, window: f64, now: Instant) {
        self.delay.hold(true);
        (self.window, self.speed) = (window, 1.0);
        self.mode = Mode::Contest(Contest { since: now, curve: Curve::new(window, window, cubic::C) });
    }

    /// Follows the curve to its value at the end of the round trip that begins now.
    pub(super) fn compete(&mut self, contest: &Contest, segments: f64, now: Instant) {
        if self.is_used() {
            let after_s = now.since(contest.since).as_secs_f64() + self.rtt_s;
            let wanted = contest.curve.window(after_s).clamp(self.window, 1.5 * self.window);
            self.window += segments * (wanted / self.window - 1.0);
        }
    }

    /// Reduces the window after an ECN mark, or in CUBIC mode after more losses than noise, once per round trip.
    pub(super) fn reduce_as_cubic(&mut self, now: Instant) {
        let before = self.window;
        self.window = (cubic::BETA * before).max(SMALLEST);
        match &mut self.mode {
            Mode::Contest(contest) => {
                let w_max = cubic::next_w_max(before, contest.curve.w_max, cubic::BETA);
                *contest = Contest { since: now, curve: Curve::new(self.window, w_max, cubic::C) };
            }
            Mode::Follow => self.end_speed(),
            Mode::Measure(_) | Mode::Double { .. } => self.settle(),
        }
        self.round.before = Before::Cut;
    }
}
