//! Reactions of version 3 to losses, section 5.5.10 of the draft.

use super::{Bbr3, State, Step, Undo};

impl Bbr3 {
    pub(super) fn is_inflight_too_high(&self, step: &Step) -> bool {
        step.lost > step.tx_in_flight * self.config.loss_threshold
    }

    /// Handles a loss, which may end a probe for bandwidth (`BBRNoteLoss`, `BBRHandleLostPacket`).
    pub(super) fn handle_lost(&mut self, step: &Step) {
        self.note_loss(step.delivered_bytes);
        if self.probe_samples && self.is_inflight_too_high(step) {
            self.handle_inflight_too_high(step);
        }
    }

    pub(super) fn note_loss(&mut self, delivered: u64) {
        if !self.latest.loss_in_round {
            self.latest.round.restart(delivered);
            self.save_state();
        }
        self.latest.loss_in_round = true;
    }

    /// `BBRHandleInflightTooHigh`, once per probe.
    fn handle_inflight_too_high(&mut self, step: &Step) {
        self.probe_samples = false;
        if !step.app_limited {
            let floor = self.target_inflight() * self.config.beta;
            self.longterm = self.inflight_at_loss(step).max(floor);
        }
        if self.state == State::Up {
            self.start_down(step.now, step.delivered_bytes);
        }
    }

    /// `BBRInflightAtLoss`: in-flight volume at which the losses crossed the threshold.
    pub(super) fn inflight_at_loss(&self, step: &Step) -> f64 {
        let threshold = self.config.loss_threshold;
        let before = (step.tx_in_flight - 1.0).max(0.0);
        let lost_before = step.lost - 1.0;
        before + (threshold * before - lost_before) / (1.0 - threshold)
    }

    /// `BBRAdaptLowerBoundsFromCongestion`, once per round.
    pub(super) fn adapt_lower_bounds(&mut self) {
        let lost = core::mem::take(&mut self.latest.loss_in_round);
        if self.state.accelerates() || !lost {
            return;
        }
        if self.bounds.bandwidth.is_infinite() {
            self.bounds.bandwidth = self.max_bandwidth.max();
        }
        if self.bounds.inflight.is_infinite() {
            self.bounds.inflight = self.cwnd;
        }
        let beta = self.config.beta;
        self.bounds.bandwidth = self.latest.bandwidth.max(beta * self.bounds.bandwidth);
        self.bounds.inflight = self.latest.inflight.max(beta * self.bounds.inflight);
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.latest.loss_in_round = false;
        self.latest.bandwidth = 0.0;
        self.latest.inflight = 0.0;
    }

    /// Saves the state for an undo after a spurious loss (`BBRSaveStateUponLoss`).
    fn save_state(&mut self) {
        self.undo = Some(Undo { state: self.state, bounds: self.bounds, longterm: self.longterm });
    }
}
