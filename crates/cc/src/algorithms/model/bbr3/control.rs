//! Rate and window of version 3, section 5.6 of the draft.

use bentpipe_base::Duration;

use super::{Bbr3, State, Step};

impl Bbr3 {
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.startup_pacing_gain,
            State::Drain { .. } => self.config.drain_pacing_gain,
            State::Down => self.config.down_pacing_gain,
            State::Up => self.config.up_pacing_gain,
            State::Cruise | State::Refill | State::EmptyForRtt | State::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => self.config.up_cwnd_gain,
            State::EmptyForRtt | State::ProbeRtt { .. } => self.config.probe_rtt_cwnd_gain,
            _ => self.config.cwnd_gain,
        }
    }

    /// `BBRSetPacingRateWithGain`: before the pipe is full, the rate only rises.
    pub(super) fn set_pacing(&mut self, gain: f64) {
        let rate = gain * self.bandwidth * (1.0 - self.config.pacing_margin);
        if rate > 0.0 && (self.filled || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// `BBRBDPMultiple` at the bandwidth of the model, in segments.
    pub(super) fn bdp(&self, gain: f64) -> f64 {
        self.bdp_at(self.bandwidth, gain)
    }

    fn bdp_at(&self, bandwidth: f64, gain: f64) -> f64 {
        if self.trip.min == Duration::MAX {
            return self.initial_window;
        }
        gain * bandwidth * self.trip.min.as_secs_f64() / self.mss
    }

    /// Returns the in-flight data for a bandwidth and a gain, in segments (`BBRInflight`).
    pub(super) fn inflight(&self, bandwidth: f64, gain: f64) -> f64 {
        self.quantized(self.bdp_at(bandwidth, gain))
    }

    /// `BBRQuantizationBudget`: at least three send quanta of 1 ms.
    fn quantized(&self, volume: f64) -> f64 {
        let quantum = (self.pacing * 1e-3).clamp(2.0 * self.mss, 65_536.0_f64.max(2.0 * self.mss));
        let probe = if self.state == State::Up { 2.0 } else { 0.0 };
        volume.max(3.0 * quantum / self.mss).max(self.config.min_window) + probe
    }

    /// Returns the BDP, limited by the window (`BBRTargetInflight`).
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp(1.0).min(self.cwnd)
    }

    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.longterm.is_infinite() {
            return self.longterm;
        }
        let headroom = (self.config.headroom * self.longterm).max(1.0);
        (self.longterm - headroom).max(self.config.min_window)
    }

    pub(super) fn probe_rtt_window(&self) -> f64 {
        self.bdp(self.config.probe_rtt_cwnd_gain).max(self.config.min_window)
    }

    /// Sets the congestion window (`BBRSetCwnd`).
    pub(super) fn set_cwnd(&mut self, step: &Step) {
        let extra = self.aggregation.extra.get().unwrap_or(0.0);
        let most = self.quantized(self.bdp(self.cwnd_gain()) + extra);
        if self.filled {
            self.cwnd = (self.cwnd + step.newly).min(most);
        } else if self.cwnd < most || (step.delivered_bytes as f64) < self.initial_window * self.mss {
            self.cwnd += step.newly;
        }
        self.cwnd = self.cwnd.max(self.config.min_window);
        if self.state.probes_rtt() {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.bound_cwnd();
    }

    /// Limits the congestion window by the model's bounds (`BBRBoundCwndForModel`).
    fn bound_cwnd(&mut self) {
        let longterm = match self.state {
            State::Down | State::Refill | State::Up => self.longterm,
            State::Cruise | State::EmptyForRtt | State::ProbeRtt { .. } => self.inflight_with_headroom(),
            State::Startup | State::Drain { .. } => f64::INFINITY,
        };
        let cap = longterm.min(self.bounds.inflight).max(self.config.min_window);
        self.cwnd = self.cwnd.min(cap).max(1.0);
    }

    pub(super) fn save_cwnd(&mut self) {
        let undisturbed = !self.in_recovery && !self.state.probes_rtt();
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
