//! The state machine of version 1, section 4.3 of the draft: Drain, the gain cycle of ProbeBW, and ProbeRTT.

use bentpipe_base::Duration;

use super::{Bbr, State, Step};
use crate::Path;

/// Gains of the rate while probing for bandwidth, one per round trip (section 4.3.4.2).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

impl Bbr {
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.startup_gain,
            State::Drain => self.config.drain_gain,
            State::ProbeBandwidth { .. } if self.is_policed() => 1.0,
            State::ProbeBandwidth { index: 0, .. } => self.first_gain(CYCLE[0]),
            State::ProbeBandwidth { index, .. } => CYCLE[index % CYCLE.len()],
            State::EmptyForRtt | State::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => self.config.startup_gain,
            State::ProbeBandwidth { .. } => self.config.cwnd_gain,
            State::EmptyForRtt | State::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) fn check_drain(&mut self, path: &Path) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
            if let Some(leo) = &mut self.leo {
                leo.forget_trigger();
            }
        }
        if self.state == State::Drain && f64::from(path.in_flight) <= self.inflight(1.0) {
            self.enter_probe_bandwidth(path);
        }
    }

    /// Starts at a random phase other than the draining one (section 4.3.4.3).
    pub(super) fn enter_probe_bandwidth(&mut self, path: &Path) {
        let draw = self.rng.below(CYCLE.len() as u64 - 1) as usize;
        let index = if draw == 0 { 0 } else { draw + 1 };
        self.state = State::ProbeBandwidth { index, since: path.now };
    }

    pub(super) fn check_cycle(&mut self, step: &Step, path: &Path) {
        let State::ProbeBandwidth { index, since } = self.state else { return };
        let gain = self.pacing_gain();
        let full_length = path.now.since(since) > self.rtprop;
        let next = if gain > 1.0 {
            full_length && (step.lost > 0.0 || step.prior_in_flight >= self.inflight(gain))
        } else if gain < 1.0 {
            full_length || step.prior_in_flight <= self.inflight(1.0)
        } else {
            full_length
        };
        if next {
            self.state = State::ProbeBandwidth { index: (index + 1) % CYCLE.len(), since: path.now };
        }
    }

    /// Enters and leaves ProbeRTT (section 4.3.5).
    pub(super) fn check_probe_rtt(&mut self, expired: bool, step: &Step, path: &Path) {
        let cruises_or_bbr = self.leo.is_none() || matches!(self.state, State::ProbeBandwidth { .. });
        let due = (expired && cruises_or_bbr) || self.is_triggered();
        if !self.probes_rtt() && due && !self.idle_restart {
            self.save_cwnd();
            self.state = State::EmptyForRtt;
        }
        self.idle_restart = false;
        if self.probes_rtt() {
            self.limited_until = path.delivered + u64::from(path.in_flight) * u64::from(path.mss);
        }
        let probe_window = self.probe_window();
        match &mut self.state {
            State::EmptyForRtt if f64::from(path.in_flight) <= probe_window => {
                let until = path.now + Duration::from_secs_f64(self.config.probe_rtt_s);
                self.state = State::ProbeRtt { until, round_done: false };
                self.round.restart(path.delivered);
            }
            State::ProbeRtt { until, round_done } => {
                *round_done |= step.round_start;
                if *round_done && path.now > *until && (self.leo.is_none() || step.rtt.is_some()) {
                    self.exit_probe_rtt(step, path);
                }
            }
            _ => {}
        }
    }

    fn exit_probe_rtt(&mut self, step: &Step, path: &Path) {
        self.rtprop_at = path.now;
        self.restore_cwnd();
        if let Some(rtt) = step.rtt {
            self.renew_model(rtt);
        }
        if self.filled_pipe {
            self.enter_probe_bandwidth(path);
        } else {
            self.state = State::Startup;
        }
    }
}
