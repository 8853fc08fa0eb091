//! Rate and window of version 1, section 4.2 of the draft.

use bentpipe_base::Duration;

use super::{Bbr, Recovery, State, Step};
use crate::{Ack, Path, Phase};

/// Fraction by which the kernel paces below the model's rate, so that queues drain.
const LINUX_MARGIN: f64 = 0.01;

impl Bbr {
    /// Section 4.2.1: before the pipe is full, the rate only rises.
    pub(super) fn set_pacing(&mut self, gain: f64) {
        let margin = if self.linux.is_some() { LINUX_MARGIN } else { 0.0 };
        let rate = gain * (1.0 - margin) * self.modelled();
        if rate > 0.0 && (self.filled_pipe || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// Returns the send quantum in segments (section 4.2.2).
    fn send_quantum(&self) -> f64 {
        let bits_per_s = 8.0 * self.pacing;
        if bits_per_s < 1.2e6 {
            1.0
        } else if bits_per_s < 24e6 {
            2.0
        } else {
            (self.pacing * 1e-3).min(65_536.0) / self.mss
        }
    }

    /// Section 4.2.3.2: gain times BDP plus three send quanta for the end hosts, in segments.
    pub(super) fn inflight(&self, gain: f64) -> f64 {
        self.inflight_at(self.bottleneck(), gain, 0.0)
    }

    /// As `inflight`, for a rate in bytes per second and with `room` extra segments.
    fn inflight_at(&self, rate: f64, gain: f64, room: f64) -> f64 {
        if self.rtprop == Duration::MAX || rate <= 0.0 {
            return self.initial_window;
        }
        let bdp = rate * self.rtprop.as_secs_f64() / self.mss;
        let window = gain * bdp + room + 3.0 * self.send_quantum();
        if self.linux.is_none() {
            return window;
        }
        // Rounds up to an even number for receivers with delayed ACKs, and adds two segments for probing.
        let probes = matches!(self.state, State::ProbeBandwidth { index: 0, .. });
        2.0 * libm::ceil(window / 2.0) + if probes { 2.0 } else { 0.0 }
    }

    /// Section 4.2.3.2, plus the kernel's allowance for aggregated ACKs once the pipe is full.
    fn target(&self) -> f64 {
        let rate = self.modelled();
        let linux = self.linux.as_ref().filter(|_| self.filled_pipe);
        let room = linux.map_or(0.0, |linux| linux.aggregation.room(rate / self.mss));
        self.inflight_at(rate, self.cwnd_gain(), room)
    }

    /// Sections 4.2.3.4 to 4.2.3.6.
    pub(super) fn set_cwnd(&mut self, step: &Step, path: &Path) {
        let target = self.target();
        if self.recovery != Recovery::None {
            self.cwnd = (self.cwnd - step.lost).max(1.0);
        }
        if let Recovery::Conserving { .. } = self.recovery {
            self.cwnd = self.cwnd.max(f64::from(path.in_flight) + step.delivered);
        } else {
            if self.filled_pipe {
                self.cwnd = (self.cwnd + step.delivered).min(target);
            } else if self.cwnd < target || (path.delivered as f64) < self.initial_window * self.mss {
                self.cwnd += step.delivered;
            }
            self.cwnd = self.cwnd.max(self.config.min_window);
        }
        if self.probes_rtt() {
            self.cwnd = self.cwnd.min(self.probe_window());
        }
        self.cwnd = self.cwnd.max(1.0);
    }

    pub(super) fn save_cwnd(&mut self) {
        let undisturbed = self.recovery == Recovery::None && !self.probes_rtt();
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// Follows the ACK's position in a loss episode.
    pub(super) fn follow_recovery(&mut self, ack: &Ack) {
        if let Recovery::Conserving { round } = &mut self.recovery
            && let Some(sample) = &ack.rate
            && round.ends(sample.prior_delivered, u64::MAX)
        {
            self.recovery = Recovery::Growing;
        }
        // A loss repaired by a tail loss probe opens no episode: the next ACK is outside recovery.
        if self.recovery != Recovery::None && (ack.ends_episode || ack.phase == Phase::Open) {
            self.recovery = Recovery::None;
            self.restore_cwnd();
        }
    }
}
