//! DualPI2: De Schepper, Briscoe, White, "Dual-Queue Coupled Active Queue Management (AQM) for Low Latency, Low Loss, and
//! Scalable Throughput (L4S)", RFC 9332, 2023, appendix A.
//!
//! | symbol (appendix A) | here |
//! |---|---|
//! | target, RTT_max, k | [`DualPi2Config`] |
//! | minTh, maxTh | both `step`: a step instead of a ramp |
//! | p', p_CL, p_C | `Control`: `base`, `coupled`, `classic` |
//! | p_Lmax, p_Cmax | 1 and 1/k^2, both reached at p' = 1/k: [`Control::is_overloaded`] |
//! | Th_len | one packet behind the one that leaves |
//! | recur | `Recurrence` |
//! | scheduler | weighted round robin by bytes |

use bentpipe_base::{Duration, Instant};
use bentpipe_trace::DropCause;

use super::backlog::{Backlog, Limit};
use super::timed_fifo::{Stamped, TimedFifo};
use super::updates::Updates;
use crate::error::ConfigError;
use crate::ledger::{Ledger, Verdict};
use crate::packet::Packet;

/// Parameters of DualPI2.
///
/// The defaults are for terrestrial paths. `max_rtt` must not be below the longest round trip: over a geostationary satellite
/// the controller oscillates otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Config {
    /// Limit of queued packets in both queues together; an arrival without room is always dropped.
    pub limit: Limit,
    /// Queueing delay of the classic queue that the controller aims at, more than 0 s.
    pub target: Duration,
    /// Longest expected round trip, more than 0 s. It sets both gains and the time between two updates.
    pub max_rtt: Duration,
    /// Delay in the L4S queue from which each packet is marked.
    pub step: Duration,
    /// Coupling factor k between the marking of L4S and that of classic packets, at least 1.
    pub coupling: f64,
    /// Share of the rate that the classic queue has while both queues are busy, above 0 and at most 1.
    pub classic_share: f64,
}

impl Default for DualPi2Config {
    /// 50 packets, 15 ms, 100 ms, k = 2 (RFC 9332 appendix A.1), a step at 1 ms (RFC 9332 section 4.2), 1/16.
    fn default() -> Self {
        Self {
            limit: Limit::Packets(50),
            target: Duration::from_millis(15),
            max_rtt: Duration::from_millis(100),
            step: Duration::from_millis(1),
            coupling: 2.0,
            classic_share: 1.0 / 16.0,
        }
    }
}

impl DualPi2Config {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        self.limit.validate("limit")?;
        for (field, time) in [("target", self.target), ("max_rtt", self.max_rtt)] {
            if time.is_zero() {
                return Err(ConfigError::new(field, time, "more than 0 s"));
            }
        }
        if !(self.coupling >= 1.0 && self.coupling.is_finite()) {
            return Err(ConfigError::new("coupling", self.coupling, "at least 1"));
        }
        if !(self.classic_share > 0.0 && self.classic_share <= 1.0) {
            return Err(ConfigError::new("classic_share", self.classic_share, "above 0 and at most 1"));
        }
        Ok(())
    }

    /// Returns the time between two updates.
    fn update(&self) -> Duration {
        self.target.min(self.max_rtt / 3).max(Duration::from_nanos(1))
    }
}

/// Two bounded first-in-first-out queues with one controller. L4S packets wait only for a small delay; the marks of both
/// queues are coupled so that flows of both have similar rates.
#[derive(Clone, Debug)]
pub(crate) struct DualPi2<P> {
    config: DualPi2Config,
    l4s: Half<P>,
    classic: Half<P>,
    control: Control,
    updates: Updates,
    /// Bytes that the classic queue may still send before the L4S queue, while both are busy.
    classic_credit: f64,
}

#[derive(Clone, Debug)]
struct Half<P> {
    fifo: TimedFifo<P>,
    signals: Recurrence,
}

/// Treatment of a packet that leaves a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Signal {
    None,
    Mark,
    Drop,
}

impl<P: Packet> DualPi2<P> {
    pub fn new(config: DualPi2Config) -> Self {
        let half = || Half { fifo: TimedFifo::new(), signals: Recurrence::default() };
        Self {
            config,
            l4s: half(),
            classic: half(),
            control: Control::default(),
            updates: Updates::every(config.update()),
            classic_credit: 0.0,
        }
    }

    pub fn enqueue(&mut self, now: Instant, packet: P, ledger: &mut Ledger<P>) -> Verdict {
        self.catch_up(now);
        if !self.config.limit.has_room(self.backlog(), packet.size()) {
            return ledger.refuse(packet, DropCause::Queue, now);
        }
        let half = if packet.is_l4s() { &mut self.l4s } else { &mut self.classic };
        half.fifo.push(now, packet);
        Verdict::Accepted
    }

    /// Returns the next packet to send at `now`; `None` only if both queues are empty.
    pub fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<P> {
        self.catch_up(now);
        loop {
            let (mut packet, signal) = self.next(now)?;
            match signal {
                Signal::None => return Some(packet),
                Signal::Mark if packet.ecn_capable() => {
                    ledger.mark(&mut packet);
                    return Some(packet);
                }
                Signal::Mark | Signal::Drop => ledger.drop_packet(packet, DropCause::Queue, now),
            }
        }
    }

    pub fn backlog(&self) -> Backlog {
        let (l4s, classic) = (self.l4s.fifo.backlog(), self.classic.fifo.backlog());
        Backlog { packets: l4s.packets + classic.packets, bytes: l4s.bytes + classic.bytes }
    }

    /// Removes the packet that the scheduler selects.
    fn next(&mut self, now: Instant) -> Option<(P, Signal)> {
        let Self { config, l4s, classic, control, .. } = self;
        let both_wait = l4s.fifo.oldest().is_some() && classic.fifo.oldest().is_some();
        if !both_wait {
            self.classic_credit = 0.0;
        }
        if l4s.fifo.oldest().is_none() || self.classic_credit > 0.0 {
            let Stamped { packet, .. } = classic.fifo.pop()?;
            if both_wait {
                self.classic_credit -= f64::from(packet.size()) * (1.0 - config.classic_share);
            }
            return Some((packet, control.signal_to_classic(config, &mut classic.signals)));
        }
        let Stamped { packet, arrived } = l4s.fifo.pop()?;
        if both_wait {
            self.classic_credit += f64::from(packet.size()) * config.classic_share;
        }
        let above_step = now.since(arrived) >= config.step && l4s.fifo.oldest().is_some();
        Some((packet, control.signal_to_l4s(config, &mut l4s.signals, above_step)))
    }

    fn catch_up(&mut self, now: Instant) {
        let Self { config, l4s, classic, control, updates, .. } = self;
        // The older head of both: without classic packets, the L4S queue alone moves the controller.
        let heads = [l4s.fifo.oldest(), classic.fifo.oldest()];
        let oldest = heads.into_iter().flatten().min();
        updates.catch_up(now, |at| {
            control.update(config, oldest.map_or(Duration::ZERO, |arrived| at.since(arrived)));
        });
    }
}

/// Base probability of the controller (p'), and what determines its next value.
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    base: f64,
    /// Queueing delay at the latest update.
    delay: Duration,
}

impl Control {
    /// Updates the base probability by a proportional and an integral term (appendix A.1, `dualpi2_update`).
    fn update(&mut self, config: &DualPi2Config, delay: Duration) {
        let seconds = Duration::as_secs_f64;
        let max_rtt = seconds(config.max_rtt);
        let integral = 0.1 * seconds(config.update()) / (max_rtt * max_rtt);
        let proportional = 0.3 / max_rtt;
        let error = seconds(delay) - seconds(config.target);
        let growth = seconds(delay) - seconds(self.delay);
        self.base = (self.base + integral * error + proportional * growth).clamp(0.0, 1.0);
        self.delay = delay;
    }

    /// Probability to mark an L4S packet: k p' (p_CL).
    fn coupled(&self, config: &DualPi2Config) -> f64 {
        config.coupling * self.base
    }

    /// Probability to mark or drop a classic packet: p'^2 (p_C), so p_C = (p_CL / k)^2.
    fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// True if marks alone cannot hold back the senders: each L4S packet is marked, and 1/k^2 of the classic ones.
    fn is_overloaded(&self, config: &DualPi2Config) -> bool {
        self.coupled(config) >= 1.0
    }

    fn signal_to_classic(&self, config: &DualPi2Config, signals: &mut Recurrence) -> Signal {
        match signals.recurs(self.classic()) {
            false => Signal::None,
            true if self.is_overloaded(config) => Signal::Drop,
            true => Signal::Mark,
        }
    }

    /// In overload, L4S packets are dropped with the probability of classic ones, and all others are marked (appendix A.2).
    fn signal_to_l4s(&self, config: &DualPi2Config, signals: &mut Recurrence, above_step: bool) -> Signal {
        if self.is_overloaded(config) {
            return if signals.recurs(self.classic()) { Signal::Drop } else { Signal::Mark };
        }
        let native = if above_step { 1.0 } else { 0.0 };
        if signals.recurs(self.coupled(config).max(native)) { Signal::Mark } else { Signal::None }
    }
}

/// Evenly spaced signals instead of random ones: the sum of the probabilities since the last signal.
#[derive(Clone, Copy, Debug, Default)]
struct Recurrence(f64);

impl Recurrence {
    fn recurs(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let signals = self.0 >= 1.0;
        if signals {
            self.0 -= 1.0;
        }
        signals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base: f64) -> Control {
        Control { base, delay: Duration::ZERO }
    }

    /// Returns how many of 10,000 packets get each signal.
    fn counted(mut signal: impl FnMut() -> Signal) -> [usize; 2] {
        let signals: Vec<_> = (0..10_000).map(|_| signal()).collect();
        [Signal::Mark, Signal::Drop].map(|wanted| signals.iter().filter(|signal| **signal == wanted).count())
    }

    /// RFC 9332 equation 1: p_C = (p_CL / k)^2.
    #[test]
    fn classic_packets_get_the_square_of_the_marks_of_l4s() {
        for coupling in [1.0, 2.0, 3.0] {
            let config = DualPi2Config { coupling, ..DualPi2Config::default() };
            for base in [0.01, 0.05, 0.1, 0.3] {
                let control = at(base);
                let (mut l4s, mut classic) = (Recurrence::default(), Recurrence::default());
                let [marked, dropped] = counted(|| control.signal_to_l4s(&config, &mut l4s, false));
                assert_eq!(dropped, 0);
                let [classic, dropped] = counted(|| control.signal_to_classic(&config, &mut classic));
                assert_eq!(dropped, 0);
                let law = 10_000.0 * (marked as f64 / 10_000.0 / coupling).powi(2);
                assert!((classic as f64 - law).abs() <= 2.0, "{coupling} {base}: {classic}, not {law}");
            }
        }
    }

    /// RFC 9332 appendix A.2: from p' = 1/k on, both queues drop with p_C, and every other L4S packet is marked.
    #[test]
    fn overload_drops_from_both_queues_alike() {
        let config = DualPi2Config::default();
        let (mut l4s, mut classic) = (Recurrence::default(), Recurrence::default());
        assert_eq!(counted(|| at(0.499).signal_to_l4s(&config, &mut l4s, false))[1], 0);
        assert_eq!(counted(|| at(0.499).signal_to_classic(&config, &mut classic))[1], 0);
        assert_eq!(counted(|| at(0.5).signal_to_l4s(&config, &mut l4s, false)), [7_500, 2_500]);
        assert_eq!(counted(|| at(0.5).signal_to_classic(&config, &mut classic)), [0, 2_500]);
    }

    #[test]
    fn above_the_step_every_l4s_packet_is_marked() {
        let config = DualPi2Config::default();
        let mut l4s = Recurrence::default();
        assert_eq!(counted(|| at(0.0).signal_to_l4s(&config, &mut l4s, true)), [10_000, 0]);
    }

    /// alpha = 0.1 * 0.015 / 0.1^2 = 0.15 Hz, beta = 0.3 / 0.1 = 3 Hz (appendix A.1).
    #[test]
    fn the_gains_follow_from_the_longest_round_trip() {
        let step = |base, before, after, max_rtt| {
            let config =
                DualPi2Config { max_rtt: Duration::from_millis(max_rtt), ..DualPi2Config::default() };
            let mut control = Control { base, delay: Duration::from_millis(before) };
            control.update(&config, Duration::from_millis(after));
            control.base - base
        };
        assert!((step(0.1, 19, 23, 100) - (0.15 * 0.008 + 3.0 * 0.004)).abs() < 1e-12);
        assert!((step(0.1, 19, 23, 600) - (0.15 / 36.0 * 0.008 + 0.5 * 0.004)).abs() < 1e-12);
        assert!(step(0.1, 15, 15, 100).abs() < 1e-15, "at the target it rests");
        assert!((step(0.0, 15, 0, 100)).abs() < 1e-15);
        assert!((step(0.9, 0, 900, 100) - 0.1).abs() < 1e-12);
    }
}
