//! Zenith: every flow aims at the same small queueing delay as a function of its rate.
//!
//! A scheme of our own. `papers/zenith.md` has the law, the argument for each term, and what the law is worse at. Symbols of the note:
//! w is `Zenith::window`, q `Zenith::queue_s`, x `Zenith::rate`, q* `Zenith::own_s`; the others are in [`Config`].

mod coexistence;
mod delay;
mod drain;
mod law;
mod loss;
mod start;
mod state;

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, Rate};

use crate::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Entry, Family, Loss, Path,
    SENDER_ONLY, Spacing, Start, Timeout, Undo, Wants, WindowState, state as snapshot_of,
};
use delay::Delay;
pub use state::{Config, Zenith};
use state::{Crowd, HALF, Mode, PAIR_S, Round, SMALLEST, Step, Tide};

/// What `bentpipe list cc` says of it.
pub const ENTRY: Entry = Entry {
    name: "zenith",
    title: "aims at the same small queueing delay for every flow of a rate, and takes only losses with a queue for congestion",
    paper: "our own (papers/zenith.md)",
    year: 2026,
    in_kernel: true,
    family: Family::Model,
    advice: "for one or many of itself on a satellite link, with or without noise: a full link and a short queue; in a queue shorter than ten milliseconds many flows of it lose more than CUBIC's.",
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
        Self {
            config,
            window: start.initial_window.max(1.0),
            mode: Mode::Grow(1.0),
            delay: Delay::new(config.memory_s),
            step: Step::new(Instant::ZERO),
            queue_s: 0.0,
            latest_s: 0.0,
            mean_s: 0.0,
            loss_s: 0.0,
            noise: config.noise,
            saved: loss::NOISE_MEMORY * config.noise,
            longest_s: 0.0,
            tide: Tide::None,
            crowd: Crowd::default(),
            round: Round::new(Instant::ZERO, true),
            in_flight_before: 0.0,
            delivered_before: 0.0,
            before_timeout: None,
            timed_out: false,
            trusted_from: Instant::ZERO,
            last_ack: Instant::FAR_FUTURE,
            rtt_s: 0.0,
            mss: f64::from(start.mss),
        }
    }

    /// Whether half of the window was used in this round trip or in the one before (RFC 7661): only then may it grow.
    fn is_used(&self) -> bool {
        self.round.in_flight.max(self.in_flight_before) + loss::TIE >= HALF * self.window
    }

    /// A round trip was measured.
    fn sample(&mut self, rtt: Duration, ack: &Ack, path: &Path) {
        let held = matches!(self.mode, Mode::Contest(_));
        let queue_s = self.delay.sample(path.now, rtt, ack.peer_clock, held).as_secs_f64();
        self.step.queue_s = self.step.queue_s.min(queue_s);
        let seen_s = queue_s.min(self.latest_s);
        self.round.longest_s = self.round.longest_s.max(seen_s);
        self.latest_s = queue_s;
        if seen_s > HALF * self.own_s() {
            self.notice_queue(path.now);
        }
    }

    /// Once per round trip.
    fn end_round(&mut self, path: &Path) {
        let round = core::mem::replace(&mut self.round, Round::new(path.now, true));
        (self.in_flight_before, self.delivered_before) = (round.in_flight, round.delivered);
        let overflowed = round.counts && self.judge_losses(&round, path.now);
        if overflowed {
            self.notice_queue(path.now);
        }
        if self.tide == Tide::Refill {
            self.judge_drain(path.now);
        } else {
            self.watch_queue(overflowed);
        }
    }

    /// An ACK after a timeout. RFC 5681 doubles from one segment to half of the window; a paced sender begins with that half.
    fn resume(&mut self) {
        if let Some((window, _)) = self.before_timeout.filter(|_| core::mem::take(&mut self.timed_out)) {
            self.window = (0.5 * window).max(SMALLEST);
            self.mode = Mode::Grow(1.0);
        }
    }

    /// An ACK after a silence: what left before it says nothing of the path.
    fn distrust(&mut self, now: Instant) {
        self.trusted_from = now;
        self.step = Step::new(now);
        self.round = Round::new(now, false);
        self.delivered_before = f64::INFINITY;
        self.tide = Tide::None;
    }
}

impl CongestionControl for Zenith {
    fn window(&self) -> f64 {
        if let Tide::Drain { window, .. } = self.tide { window.min(self.window) } else { self.window }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.mss = f64::from(path.mss);
        self.rtt_s = path.srtt_s();
        if path.now.since(self.last_ack) > path.rto {
            self.distrust(path.now);
        }
        self.last_ack = path.now;
        if ack.acked > 0 {
            self.resume();
        } else if self.timed_out {
            return;
        }
        let segments = ack.delivered_bytes as f64 / self.mss;
        self.round.delivered += segments;
        self.round.lost += f64::from(ack.lost);
        self.round.in_flight = self.round.in_flight.max(f64::from(path.in_flight) + segments);
        self.step.segments += segments;
        if let Mode::Grow(share) = self.mode
            && self.is_used()
        {
            self.window += share * segments;
        }
        let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) else { return };
        let sent_at = path.now - rtt;
        if sent_at < self.trusted_from {
            return;
        }
        self.sample(rtt, ack, path);
        self.drains(path);
        self.take_step(path);
        if sent_at >= self.round.since && !matches!(self.tide, Tide::Drain { .. }) {
            self.end_round(path);
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
        if !self.timed_out {
            self.before_timeout = Some((self.window, self.mode));
        }
        (self.window, self.timed_out) = (1.0, true);
        BackOff::Double
    }

    fn on_undo(&mut self, _undo: Undo, _path: &Path) {
        if let Some(before) = self.before_timeout.take() {
            (self.window, self.mode) = before;
            self.timed_out = false;
        }
    }

    fn spacing(&self) -> Spacing {
        let per_s = self.pace();
        let rate = Rate::from_bytes_per_s(per_s * self.mss);
        if per_s <= 0.0 {
            Spacing::None
        } else if per_s * PAIR_S < 1.0 {
            Spacing::Pairs { rate, gap: Duration::from_secs_f64(PAIR_S) }
        } else {
            Spacing::at(Some(rate))
        }
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        match event {
            // Before the first segment: a SYN was lost (RFC 5681, section 3.1). Later half of the window is kept, and must prove itself.
            ConnectionEvent::Idle { restart } if self.trusted_from == Instant::ZERO && self.mean_s == 0.0 => {
                self.window = restart;
            }
            ConnectionEvent::Idle { restart: least } | ConnectionEvent::Unvalidated { floor: least } => {
                self.window = self.window.min(least.max(0.5 * self.window));
                self.mode = Mode::Grow(1.0);
            }
            ConnectionEvent::Established => (self.round.since, self.last_ack) = (path.now, path.now),
            _ => {}
        }
    }

    fn snapshot(&self) -> WindowState {
        let phase = match (self.mode, self.tide) {
            _ if self.timed_out => "timeout",
            (_, Tide::Drain { .. }) => "drain",
            (Mode::Grow(_), _) => "grow",
            (Mode::Follow, _) => "follow",
            (Mode::Contest(_), _) => "contest",
        };
        snapshot_of(self, f64::INFINITY, phase)
    }

    fn wants(&self) -> Wants {
        Wants { accounting: Accounting::Own, pacing: true, ..Wants::default() }
    }
}

#[cfg(test)]
mod tests;
