//! Additions of LeoCC to the Linux variant of version 1: a new model at each reconfiguration, and filtered estimates between them.

use bentpipe_base::{Duration, Extension, Notice};

use super::{Bbr, State, Step};
use crate::parts::plateau::Plateau;
use crate::{Ack, Feedback, Path};

/// Gain of the rate in the first phase of the cycle while the filter gives the bandwidth.
const CALM_GAIN: f64 = 1.05;
/// Time before a reconfiguration in which an ACK triggers.
const TRIGGER_WINDOW: Duration = Duration::from_millis(100);

impl Bbr {
    /// Returns the filtered bandwidth if it replaces the maximum: while cruising with a standing queue.
    pub(super) fn filtered(&self) -> Option<f64> {
        let leo = self.leo.as_ref().filter(|leo| !leo.trigger && leo.bandwidth.estimate > 0.0)?;
        let queues = leo.rtt.estimate >= self.rtprop.as_secs_f64() + leo.config.fluctuation_s;
        (queues && matches!(self.state, State::ProbeBandwidth { .. })).then_some(leo.bandwidth.estimate)
    }

    pub(super) fn first_gain(&self, gain: f64) -> f64 {
        if self.filtered().is_some() { CALM_GAIN } else { gain }
    }

    /// True if an ACK now begins a new model.
    pub(super) fn is_triggered(&self) -> bool {
        let cruises = matches!(self.state, State::ProbeBandwidth { .. });
        cruises && self.leo.as_ref().is_some_and(|leo| leo.trigger)
    }

    /// Window of ProbeRTT in segments.
    pub(super) fn probe_window(&self) -> f64 {
        let Some(leo) = &self.leo else { return self.config.min_window };
        let known = if self.rtprop == Duration::MAX { 0.0 } else { self.rtprop.as_secs_f64() };
        (leo.config.probe_bdp * self.bottleneck() * known / self.mss).max(self.config.min_window)
    }

    /// Detects a reconfiguration by the clock.
    pub(super) fn follow_clock(&mut self, path: &Path) {
        if let Some(leo) = &mut self.leo {
            leo.trigger |= leo.config.grid.is_near(path.now, TRIGGER_WINDOW);
        }
    }

    /// Handles a delivery-rate sample in bytes per second, before the maximum filter does.
    pub(super) fn follow_rate(&mut self, rate: f64, ack: &Ack, step: &Step) {
        let (cruises, probes) = (matches!(self.state, State::ProbeBandwidth { .. }), self.probes_rtt());
        let Some(leo) = &mut self.leo else { return };
        if step.round_start {
            if cruises {
                leo.bandwidth.update(leo.round_rate);
            }
            leo.round_rate = 0.0;
        }
        leo.round_rate = leo.round_rate.max(rate);
        let fell = |rtt: Duration| rtt.as_secs_f64() < leo.rtt.estimate - leo.config.theta_s;
        if probes && ack.rtt.is_some_and(fell) {
            leo.reset_rate = leo.last_rate;
        }
        leo.last_rate = rate;
    }

    pub(super) fn follow_rtt(&mut self, ack: &Ack) {
        if let (Some(leo), Some(rtt)) = (&mut self.leo, ack.rtt) {
            leo.rtt.update(rtt.as_secs_f64());
        }
    }

    /// Leaves ProbeRTT with `rtt` as the new minRTT, even if it is larger. After a trigger, Startup follows.
    pub(super) fn renew_model(&mut self, rtt: Duration) {
        let Some(leo) = self.leo else { return };
        self.rtprop = rtt;
        if leo.trigger {
            self.bandwidth.reset(self.round.count, leo.reset_rate);
        }
        if leo.trigger || !self.filled_pipe {
            (self.filled_pipe, self.plateau) = (false, Plateau::default());
        }
    }
}

impl Feedback for Bbr {
    fn receiver(&self) -> u8 {
        0
    }

    /// A link reports the end of its handover.
    fn on_feedback(&mut self, fields: &Extension, _path: &Path) {
        if let (Some(leo), Extension::Notice(Notice::Restored)) = (&mut self.leo, fields) {
            leo.trigger = true;
        }
    }
}
