//! The state machine of version 3, section 5.3 of the draft: Startup, Drain, ProbeBW and ProbeRTT.

use bentpipe_base::{Duration, Instant};

use super::model::{Bounds, Cycle, Slope};
use super::{AckPhase, Bbr3, State, Step};
use crate::parts::plateau::Plateau;
use crate::{Ack, Phase};

/// Rounds after which Drain ends, whatever the in-flight data (section 5.3.2).
const DRAIN_ROUNDS: u64 = 3;

/// Startup and Drain, sections 5.3.1 and 5.3.2.
impl Bbr3 {
    /// Checks in Startup whether the bandwidth still grows (`BBRCheckFullBWReached`).
    pub(super) fn check_full_pipe(&mut self, step: &Step) {
        if self.plateau.is_reached() || !step.round_start || step.app_limited {
            return;
        }
        self.plateau.round(step.rate);
        self.filled |= self.plateau.is_reached();
    }

    /// `BBRCheckStartupHighLoss` (section 5.3.1.3).
    pub(super) fn check_startup_loss(&mut self, ack: &Ack, step: &Step) {
        self.latest.loss_events += u32::from(ack.lost > 0);
        if !self.latest.round_start {
            return;
        }
        let many = self.latest.loss_events >= self.config.startup_losses;
        if !self.filled && ack.phase == Phase::Recovery && many && self.is_inflight_too_high(step) {
            self.filled = true;
            self.longterm = self.bdp(1.0).max(self.latest.inflight);
        }
        self.latest.loss_events = 0;
    }

    pub(super) fn check_startup_and_drain(&mut self, step: &Step) {
        if self.state == State::Startup && self.filled {
            self.state = State::Drain { since_round: self.round.count };
        }
        if let State::Drain { since_round } = self.state
            && (step.in_flight <= self.inflight(self.bandwidth, 1.0)
                || self.round.count > since_round + DRAIN_ROUNDS)
        {
            self.start_down(step.now, step.delivered_bytes);
        }
    }
}

/// ProbeBW, section 5.3.3.
impl Bbr3 {
    /// Begins the phase ProbeBW_DOWN (`BBRStartProbeBW_DOWN`).
    pub(super) fn start_down(&mut self, now: Instant, delivered: u64) {
        self.reset_congestion_signals();
        self.slope.per_segment = f64::INFINITY;
        let wait = self.config.probe_wait_s + self.rng.uniform();
        self.cycle = Cycle { since: now, wait: Duration::from_secs_f64(wait), rounds: self.rng.below(2) };
        self.ack_phase = AckPhase::ProbeStopping;
        self.round.restart(delivered);
        self.state = State::Down;
    }

    /// Begins the phase ProbeBW_REFILL (`BBRStartProbeBW_REFILL`).
    fn start_refill(&mut self, step: &Step) {
        self.bounds = Bounds::NONE;
        self.slope = Slope { per_segment: self.slope.per_segment, ..Slope::default() };
        self.ack_phase = AckPhase::Refilling;
        self.round.restart(step.delivered_bytes);
        self.state = State::Refill;
    }

    /// Begins the phase ProbeBW_UP (`BBRStartProbeBW_UP`).
    pub(super) fn start_up(&mut self, rate: f64, delivered: u64) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.round.restart(delivered);
        self.plateau = Plateau::above(rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// Advances the cycle of ProbeBW phases (`BBRUpdateProbeBWCyclePhase`).
    pub(super) fn update_cycle(&mut self, step: &Step) {
        if !self.filled {
            return;
        }
        self.adapt_longterm(step);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(step.now) => self.start_refill(step),
            State::Down if self.is_time_to_cruise(step) => self.state = State::Cruise,
            State::Refill if step.round_start => {
                self.probe_samples = true;
                self.start_up(step.rate, step.delivered_bytes);
            }
            State::Up => self.go_down_in_time(step),
            _ => {}
        }
    }

    /// True after the random wait of 2 to 3 s, or after the length of Reno's sawtooth at this window
    /// (section 5.3.3.5).
    fn is_time_to_probe(&self, now: Instant) -> bool {
        let reno_rounds = self.target_inflight().min(self.config.reno_rounds);
        now > self.cycle.since + self.cycle.wait || self.cycle.rounds as f64 >= reno_rounds
    }

    fn is_time_to_cruise(&self, step: &Step) -> bool {
        step.in_flight <= self.inflight_with_headroom()
            && step.in_flight <= self.inflight(self.max_bandwidth.max(), 1.0)
    }

    /// Ends ProbeBW_UP when the bandwidth no longer grows (`BBRIsTimeToGoDown`).
    fn go_down_in_time(&mut self, step: &Step) {
        if step.window_limited && self.cwnd >= self.longterm {
            // The long-term bound limits the rate, not the path.
            self.plateau = Plateau::above(step.rate);
        } else if self.plateau.is_reached() {
            self.start_down(step.now, step.delivered_bytes);
        }
    }

    /// Adapts the long-term bound of in-flight data (`BBRAdaptLongTermModel`).
    fn adapt_longterm(&mut self, step: &Step) {
        match self.ack_phase {
            AckPhase::ProbeStarting if step.round_start => self.ack_phase = AckPhase::ProbeFeedback,
            AckPhase::ProbeStopping if step.round_start => {
                self.probe_samples = false;
                self.ack_phase = AckPhase::Init;
                if self.state.is_probe_bw() && !step.app_limited {
                    self.max_bandwidth.advance();
                }
            }
            _ => {}
        }
        if self.is_inflight_too_high(step) || self.longterm.is_infinite() {
            return;
        }
        self.longterm = self.longterm.max(step.tx_in_flight);
        if self.state == State::Up {
            self.probe_upward(step);
        }
    }

    /// Raises the long-term bound of in-flight data while probing (`BBRProbeInflightLongtermUpward`).
    fn probe_upward(&mut self, step: &Step) {
        if !step.window_limited || self.cwnd < self.longterm {
            return;
        }
        self.slope.acks += step.newly;
        if self.slope.acks >= self.slope.per_segment {
            let delta = libm::floor(self.slope.acks / self.slope.per_segment);
            self.slope.acks -= delta * self.slope.per_segment;
            self.longterm += delta;
        }
        if step.round_start {
            self.raise_slope();
        }
    }

    /// Accelerates the growth of the long-term bound every round (`BBRRaiseInflightLongtermSlope`).
    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.slope.rounds.min(30));
        self.slope.rounds = (self.slope.rounds + 1).min(30);
        self.slope.per_segment = (self.cwnd / growth).max(1.0);
    }
}

/// ProbeRTT, section 5.3.4.
impl Bbr3 {
    /// Enters ProbeRTT when the minRTT has expired, and handles an ACK in ProbeRTT (`BBRCheckProbeRTT`).
    pub(super) fn check_probe_rtt(&mut self, expired: bool, step: &Step) {
        if !self.state.probes_rtt() && expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::EmptyForRtt;
            self.ack_phase = AckPhase::ProbeStopping;
            self.round.restart(step.delivered_bytes);
        }
        if self.state.probes_rtt() {
            self.handle_probe_rtt(step);
        }
        if step.newly > 0.0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, step: &Step) {
        self.limited_until = step.delivered_bytes + (step.in_flight * self.mss) as u64;
        let small = self.probe_rtt_window();
        match &mut self.state {
            State::EmptyForRtt if step.in_flight <= small => {
                let until = step.now + Duration::from_secs_f64(self.config.probe_rtt_s);
                self.state = State::ProbeRtt { until, round_done: false };
                self.round.restart(step.delivered_bytes);
            }
            State::ProbeRtt { round_done, .. } => {
                *round_done |= step.round_start;
                if *round_done {
                    self.check_probe_rtt_done(step.now, step.delivered_bytes);
                }
            }
            _ => {}
        }
    }

    /// Leaves ProbeRTT when its time is over (`BBRCheckProbeRTTDone`, `BBRExitProbeRTT`).
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant, delivered: u64) {
        let State::ProbeRtt { until, .. } = self.state else { return };
        if now <= until {
            return;
        }
        self.trip.recent_at = now;
        self.restore_cwnd();
        self.bounds = Bounds::NONE;
        if self.filled {
            self.start_down(now, delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
