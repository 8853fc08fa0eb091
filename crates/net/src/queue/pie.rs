//! PIE: Pan, Natarajan, Baker, White, "Proportional Integral Controller Enhanced (PIE): A Lightweight Control Scheme to
//! Address the Bufferbloat Problem", RFC 8033, 2017.
//!
//! | symbol (section 4) | here |
//! |---|---|
//! | QDELAY_REF, T_UPDATE, alpha, beta, MAX_BURST | [`PieConfig`] |
//! | drop_prob, qdelay_old, burst_allowance | `Control` |
//! | current_qdelay | age of the packet at the head, by its time stamp (section 5.2) |
//! | mark_ecnth (section 5.1) | `MARK_BELOW` |
//! | MEAN_PKTSIZE | largest packet seen by the queue |

use bentpipe_base::{Duration, Instant, Rng};
use bentpipe_trace::DropCause;

use super::backlog::{Backlog, Limit};
use super::timed_fifo::TimedFifo;
use super::updates::Updates;
use crate::error::ConfigError;
use crate::ledger::{Ledger, Verdict};
use crate::packet::Packet;

/// Drop probability from which ECN-capable packets are dropped, too.
const MARK_BELOW: f64 = 0.1;

/// Parameters of PIE.
///
/// The defaults are for terrestrial paths. Over a geostationary satellite they empty the queue of a single flow; a target
/// of 100 ms keeps the link busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// Limit of queued packets; an arrival without room is always dropped.
    pub limit: Limit,
    /// Queueing delay that the controller aims at, more than 0 s.
    pub target: Duration,
    /// Time between two updates of the drop probability, more than 0 s.
    pub update: Duration,
    /// Change of the drop probability per second of delay above the target, in each update. In Hz, more than 0.
    pub alpha: f64,
    /// Change of the drop probability per second of growth of the delay, in each update. In Hz, more than 0.
    pub beta: f64,
    /// Length of a burst after idle time that meets no drops.
    pub burst: Duration,
    /// Mark ECN-capable packets instead of dropping them while the drop probability is below 10 %.
    pub ecn: bool,
}

impl Default for PieConfig {
    /// 50 packets, 15 ms, 15 ms, 0.125 Hz, 1.25 Hz, 150 ms (RFC 8033 section 4), no ECN.
    fn default() -> Self {
        Self {
            limit: Limit::Packets(50),
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            burst: Duration::from_millis(150),
            ecn: false,
        }
    }
}

impl PieConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        self.limit.validate("limit")?;
        for (field, time) in [("target", self.target), ("update", self.update)] {
            if time.is_zero() {
                return Err(ConfigError::new(field, time, "more than 0 s"));
            }
        }
        for (field, gain) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(gain > 0.0 && gain.is_finite()) {
                return Err(ConfigError::new(field, gain, "more than 0"));
            }
        }
        Ok(())
    }
}

/// A bounded first-in-first-out queue with PIE.
#[derive(Clone, Debug)]
pub(crate) struct Pie<P> {
    config: PieConfig,
    fifo: TimedFifo<P>,
    control: Control,
    updates: Updates,
    rng: Rng,
}

/// Drop probability and what determines its next value (RFC 8033 section 4.2).
#[derive(Clone, Copy, Debug)]
struct Control {
    drop_probability: f64,
    /// Queueing delay at the latest update.
    delay: Duration,
    burst_allowance: Duration,
}

impl<P: Packet> Pie<P> {
    pub fn new(config: PieConfig, rng: Rng) -> Self {
        let control = Control { drop_probability: 0.0, delay: Duration::ZERO, burst_allowance: config.burst };
        Self { config, fifo: TimedFifo::new(), control, updates: Updates::every(config.update), rng }
    }

    pub fn enqueue(&mut self, now: Instant, mut packet: P, ledger: &mut Ledger<P>) -> Verdict {
        self.catch_up(now);
        if !self.config.limit.has_room(self.fifo.backlog(), packet.size()) {
            return ledger.refuse(packet, DropCause::Queue, now);
        }
        if self.signals_early() {
            let may_mark = self.config.ecn && self.control.drop_probability < MARK_BELOW;
            if !(may_mark && packet.ecn_capable()) {
                return ledger.refuse(packet, DropCause::Queue, now);
            }
            ledger.mark(&mut packet);
        }
        self.fifo.push(now, packet);
        Verdict::Accepted
    }

    /// Returns the next packet to send at `now`; `None` only if the queue is empty.
    pub fn dequeue(&mut self, now: Instant) -> Option<P> {
        self.catch_up(now);
        self.fifo.pop().map(|stamped| stamped.packet)
    }

    pub fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    /// Decides on an arrival (section 4.1): true to drop or mark it.
    fn signals_early(&mut self) -> bool {
        let Control { drop_probability, delay, burst_allowance } = self.control;
        let calm = delay < self.config.target / 2 && drop_probability < 0.2;
        let short = self.fifo.backlog().bytes <= 2 * u64::from(self.fifo.largest());
        burst_allowance.is_zero() && !calm && !short && self.rng.chance(drop_probability)
    }

    /// Makes the updates due at or before `now`. The head has not changed since the previous call, so its age at each
    /// update is known.
    fn catch_up(&mut self, now: Instant) {
        let Self { config, fifo, control, updates, .. } = self;
        let head = fifo.oldest();
        updates.catch_up(now, |at| {
            control.update(config, head.map_or(Duration::ZERO, |arrived| at.since(arrived)));
        });
    }
}

impl Control {
    /// Updates the drop probability (section 4.2) and the burst allowance (section 4.4).
    fn update(&mut self, config: &PieConfig, delay: Duration) {
        let seconds = Duration::as_secs_f64;
        let error = seconds(delay) - seconds(config.target);
        let growth = seconds(delay) - seconds(self.delay);
        let change = (config.alpha * error + config.beta * growth) * scale(self.drop_probability);
        // Section 5.5: no steps of more than 2 % at high probabilities.
        let change = if self.drop_probability >= 0.1 { change.min(0.02) } else { change };
        self.drop_probability += change;
        if delay.is_zero() && self.delay.is_zero() {
            self.drop_probability *= 0.98;
        }
        self.drop_probability = self.drop_probability.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(config.update);
        let half = config.target / 2;
        if self.drop_probability <= 0.0 && delay < half && self.delay < half {
            self.burst_allowance = config.burst;
        }
        self.delay = delay;
    }
}

/// Returns the factor of both gains at this drop probability, so that a step is a fraction of it (section 4.2).
fn scale(drop_probability: f64) -> f64 {
    match drop_probability {
        p if p < 0.000_001 => 1.0 / 2048.0,
        p if p < 0.000_01 => 1.0 / 512.0,
        p if p < 0.000_1 => 1.0 / 128.0,
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn control(drop_probability: f64, delay: Duration) -> Control {
        Control { drop_probability, delay, burst_allowance: Duration::ZERO }
    }

    /// Returns the change of the drop probability in an update from delay `before` to delay `after`.
    fn change(drop_probability: f64, before: Duration, after: Duration) -> f64 {
        let mut control = control(drop_probability, before);
        control.update(&PieConfig::default(), after);
        control.drop_probability - drop_probability
    }

    #[test]
    fn the_gains_shrink_with_the_drop_probability() {
        // 8 ms above the target, and 4 ms more than before.
        let full = 0.125 * 0.008 + 1.25 * 0.004;
        for (probability, divisor) in [
            (0.000_000_5, 2048.0),
            (0.000_005, 512.0),
            (0.000_05, 128.0),
            (0.000_5, 32.0),
            (0.005, 8.0),
            (0.05, 2.0),
            (0.5, 1.0),
        ] {
            let found = change(probability, MS(19), MS(23));
            assert!((found - full / divisor).abs() < 1e-12, "{probability}: {found}");
        }
    }

    #[test]
    fn the_probability_rests_at_the_target() {
        assert!(change(0.05, MS(15), MS(15)).abs() < 1e-15);
        assert!(change(0.05, MS(15), MS(14)) < 0.0);
    }

    #[test]
    fn steps_at_high_probabilities_are_at_most_two_percent() {
        assert!((change(0.1, MS(15), MS(315)) - 0.02).abs() < 1e-12);
        // Below 10 %, the same jump is half of 0.125 * 0.3 + 1.25 * 0.3.
        assert!((change(0.09, MS(15), MS(315)) - 0.206_25).abs() < 1e-12);
    }

    #[test]
    fn without_delay_the_probability_decays_by_two_percent_and_the_integral() {
        let found = change(0.5, MS(0), MS(0)) + 0.5;
        assert!((found - 0.98 * (0.5 - 0.125 * 0.015)).abs() < 1e-12, "{found}");
        assert!(change(0.0, MS(0), MS(0)).abs() < 1e-15);
    }

    #[test]
    fn the_burst_allowance_lasts_ten_updates_and_returns_after_calm() {
        let config = PieConfig::default();
        let mut control = Control { burst_allowance: config.burst, ..control(0.0, MS(0)) };
        let mut updates = 0;
        while !control.burst_allowance.is_zero() {
            control.update(&config, MS(20));
            updates += 1;
        }
        assert_eq!(updates, 10);
        // The first calm update follows one of 20 ms.
        control.update(&config, MS(7));
        assert!(control.drop_probability <= 0.0 && control.burst_allowance.is_zero());
        control.update(&config, MS(7));
        assert_eq!(control.burst_allowance, config.burst);
    }
}
