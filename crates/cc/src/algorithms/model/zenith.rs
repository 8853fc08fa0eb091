//! Zenith: every flow aims at the same small queueing delay as a function of its rate.
//!
//! A scheme of our own. `papers/zenith.md` has the law, the argument for each term, and what the law is worse at. Symbols of the note:
//! w is `Zenith::window`, x `Zenith::rate`, q* `Zenith::own_target_s`, q `Delay::queue_s`, Q `Zenith::mean_s`, O `Zenith::overflow_s`.

mod chirp;
mod coexistence;
mod delay;
mod drain;
mod law;
mod loss;
mod start;
mod state;

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, Rate};

use crate::algorithms::loss::cubic;
use crate::parts::windowed::WindowedMax;
use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path, Priority,
    Requirements, SENDER_ONLY, Sent, Spacing, Start, Timeout, Undo, WindowState, state as snapshot_of,
};
use chirp::Chirp;
use delay::Delay;
use state::{Before, Crowd, Drains, LONGEST_WINDOW, Mode, PACE, PAIR_S, Phase, Round, SILENCE, SMALLEST};
pub use state::{Config, Zenith};

/// What `bentpipe list cc` says of it.
pub const ENTRY: Entry = Entry {
    name: "zenith",
    title: "aims at the same small queueing delay for every flow of a rate, and takes only losses with a queue for congestion",
    paper: "our own (papers/zenith.md)",
    year: 2026,
    in_kernel: true,
    family: Family::Model,
    advice: "For any number of its own flows on a satellite link, with or without errors: a full link and a short queue. In a queue of less than ten milliseconds many flows lose more than CUBIC's.",
    ..SENDER_ONLY
};

impl Config {
    /// A Zenith sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        Box::new(Zenith::new(*self, start))
    }
}

impl Zenith {
    /// A sender before its handshake.
    pub fn new(config: Config, start: &Start) -> Self {
        // A first flight of one segment, as after a lost SYN, measures nothing.
        let mode = if config.measured_start && start.initial_window > 1.0 {
            Mode::Measure(Box::new(Chirp::new(start.initial_window)))
        } else {
            Mode::Double { threshold: f64::INFINITY }
        };
        Self {
            config,
            window: start.initial_window.max(1.0),
            mode,
            phase: Phase::None,
            delay: Delay::new(),
            mean_s: 0.0,
            overflow_s: 0.0,
            speed: 1.0,
            calm_rounds: 0,
            noise: config.noise,
            allowance: 0.0,
            drains: Drains::new(),
            crowd: Crowd::default(),
            round: Round::new(Instant::ZERO, Before::Ordinary, None),
            delivery_rate: 0.0,
            delivery_rate_before: 0.0,
            in_flight_before: 0.0,
            longest: WindowedMax::new(LONGEST_WINDOW.as_nanos()),
            previous_s: 0.0,
            pending: (0.0, Duration::ZERO),
            before_timeout: None,
            timed_out: false,
            trusted_from: Instant::ZERO,
            last_ack: Instant::FAR_FUTURE,
            latest_rtt: Duration::ZERO,
            sent: 0,
            rtt_s: 0.0,
            mss: f64::from(start.mss),
        }
    }

    /// A round trip was measured.
    fn sample(&mut self, rtt: Duration, ack: &Ack, path: &Path) {
        // A quarter of a round trip, or more of it where that brings less than six ACKs.
        let span = (rtt * 6 / u64::from(path.in_flight.max(1))).clamp(rtt / 4, rtt);
        self.delay.sample(path.now, rtt, ack.peer_clock, span);
        let latest_s = self.delay.latest_s();
        self.longest.update(path.now.as_nanos(), latest_s.min(self.previous_s));
        self.previous_s = latest_s;
        self.round.longest_s = self.round.longest_s.max(latest_s);
        // A path that shows itself without a queue needs no drain, but a contest is judged by drains alone.
        let contests = matches!(self.mode, Mode::Contest(_));
        if rtt < self.drains.lowest || (rtt == self.drains.lowest && !contests) {
            (self.drains.lowest, self.drains.lowest_at) = (rtt, path.now);
        }
    }

    /// Once per round trip: speed, losses, and whether the path is still the same.
    fn end_round(&mut self, path: &Path) {
        let next = Round::new(path.now, Before::Ordinary, self.delay.clock);
        let round = core::mem::replace(&mut self.round, next);
        let took_s = path.now.since(round.since).as_secs_f64();
        self.in_flight_before = round.in_flight;
        if took_s > 0.0 {
            self.delivery_rate_before = self.delivery_rate;
            self.delivery_rate = round.rate(path.now, self.delay.clock);
        }
        let queue_s = self.delay.queue_s();
        self.count_calm(round.before, queue_s, path.now);
        let contests = matches!(self.mode, Mode::Contest(_));
        if round.before != Before::Cut {
            if !contests {
                self.charge(&round, took_s);
            }
            self.learn_noise(&round);
        }
        if round.before != Before::Cut && self.is_excessive(&round) {
            self.crowd.overflowed = true;
            if contests {
                self.reduce_as_cubic(path.now);
            } else if round.before == Before::Ordinary {
                if self.saw_queue(&round) {
                    self.fit(path.now, self.delivery_rate);
                }
                return;
            }
        }
        if round.before == Before::Drained {
            self.judge_drain(path.now);
        }
        self.watch_queue(queue_s);
    }

    /// Ignores segments sent before a silence: their delays and losses do not describe the path.
    fn distrust(&mut self, now: Instant) {
        self.trusted_from = now;
        self.cut_round(now);
    }

    /// Sets the window at the first ACK after a timeout, as CUBIC does after its slow start (RFC 9438, section 4.8). Pacing makes a slow start needless.
    fn resume(&mut self, now: Instant) {
        if !core::mem::take(&mut self.timed_out) {
            return;
        }
        self.distrust(now);
        if let Some(window) = self.before_timeout {
            self.window = (cubic::BETA * window).max(SMALLEST);
            if !matches!(self.mode, Mode::Follow | Mode::Contest(_)) {
                self.settle();
            }
        }
    }
}

impl CongestionControl for Zenith {
    fn window(&self) -> f64 {
        if let Phase::Drain { window, .. } = self.phase { window.min(self.window) } else { self.window }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.mss = f64::from(path.mss);
        self.rtt_s = path.srtt_s();
        let since = path.now.since(self.last_ack);
        self.last_ack = path.now;
        // The smoothed round trip follows slowly while many losses await repair.
        let pause = path.srtt.max(self.latest_rtt) + SILENCE;
        self.latest_rtt = ack.rtt.unwrap_or(self.latest_rtt);
        if since > pause {
            self.distrust(path.now);
        }
        if ack.acked > 0 {
            self.resume(path.now);
        } else if self.timed_out {
            return;
        }
        let segments = ack.delivered_bytes as f64 / self.mss;
        self.round.delivered += segments;
        self.round.lost += f64::from(ack.lost);
        self.round.in_flight = self.round.in_flight.max(f64::from(path.in_flight) + segments);
        let rtt = ack.rtt.filter(|rtt| !rtt.is_zero() && path.now - *rtt >= self.trusted_from);
        if let Some(rtt) = rtt {
            self.sample(rtt, ack, path);
        }
        self.drain(path);
        let begins = self.begin(rtt, segments, path.now);
        let Some(rtt) = rtt else { return };
        if path.now - rtt >= self.round.since && !matches!(self.phase, Phase::Drain { .. }) {
            self.end_round(path);
        }
        if !begins && self.phase == Phase::None {
            self.steer(segments, since, path);
        }
    }

    /// Losses are counted one by one, so the beginning of a loss episode changes nothing. A congestion mark counts as it does for CUBIC.
    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        if !self.timed_out {
            self.before_timeout = None;
        }
        if loss.cause == Cause::Mark {
            self.reduce_as_cubic(path.now);
        }
    }

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> BackOff {
        if !self.timed_out || self.before_timeout.is_none() {
            self.before_timeout = Some(self.window);
        }
        (self.window, self.timed_out) = (1.0, true);
        BackOff::Double
    }

    fn on_undo(&mut self, _undo: Undo, _path: &Path) {
        if let Some(window) = self.before_timeout.take() {
            self.window = window;
        }
    }

    fn spacing(&self) -> Spacing {
        let base_s = self.delay.base_s();
        let per_s = match &self.mode {
            Mode::Measure(_) if self.rtt_s > 0.0 => 1.0 / Chirp::gap_s(self.sent, self.rtt_s),
            // By the path's own round trip: a smoothed one holds what waited on the way back, too.
            Mode::Double { threshold } => {
                (2.0 * self.window).min(*threshold) / if base_s > 0.0 { base_s } else { self.rtt_s }
            }
            _ => PACE * self.rate(),
        };
        if !(per_s > 0.0 && per_s.is_finite()) {
            return Spacing::None;
        }
        let rate = Rate::from_bytes_per_s(per_s * self.mss);
        if per_s * PAIR_S < 1.0 && !matches!(self.mode, Mode::Measure(_)) {
            Spacing::Pairs { rate, gap: Duration::from_secs_f64(PAIR_S) }
        } else {
            Spacing::at(Some(rate))
        }
    }

    fn on_sent(&mut self, _sent: &Sent, path: &Path) -> Priority {
        if let Mode::Measure(chirp) = &mut self.mode {
            chirp.on_sent(path.now, self.sent);
        }
        self.sent = self.sent.saturating_add(1);
        if path.outstanding <= 1 {
            // ACKs that nothing was sent for are no silence.
            self.last_ack = path.now;
        }
        Priority::Normal
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Unvalidated { floor } => {
                self.window = self.window.min(floor.max(0.5 * self.window));
            }
            ConnectionEvent::Established => {
                (self.mss, self.rtt_s, self.last_ack) = (f64::from(path.mss), path.srtt_s(), path.now);
                self.round = Round::new(path.now, Before::Ordinary, None);
            }
            _ => {}
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match (&self.mode, self.phase) {
            _ if self.timed_out => "timeout",
            (Mode::Measure(_), _) => "measure",
            (Mode::Double { .. }, _) => "double",
            (_, Phase::Drain { .. }) => "drain",
            (Mode::Follow, _) => "follow",
            (Mode::Contest(_), _) => "contest",
        };
        snapshot_of(self, f64::INFINITY, phase)
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, sent: true, pacing: true, ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests;
