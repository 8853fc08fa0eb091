//! Prague: the share of marked packets sets the reduction, so that a small queue keeps the link busy (L4S).
//!
//! K. De Schepper, O. Tilmans, B. Briscoe, V. Goel, "Prague Congestion Control", draft-briscoe-iccrg-prague-congestion-control,
//! 2024.
//!
//! | draft               | here                  | unit     |
//! |---------------------|-----------------------|----------|
//! | cwnd, ssthresh      | `Windows`             | segments |
//! | alpha               | `Prague::alpha`       | -        |
//! | g (1/16)            | `GAIN`                | -        |
//! | marked fraction     | `Counted::share`      | -        |
//! | CWR state           | `Prague::reduced_until` | -      |

use alloc::boxed::Box;

use bentpipe_base::{Duration, Rate, WindowState};
use serde::{Deserialize, Serialize};

use crate::rounds::Round;
use crate::{
    Ack, Classic, CongestionControl, ConnectionEvent, Entry, Family, Path, Phase, Requirements, Rule,
    SENDER_ONLY, Spacing, Start, Windows, forward,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "prague",
    title: "L4S: each round trip reduces the window by half of the share of marked packets",
    paper: "De Schepper, Tilmans, Briscoe, Goel, draft-briscoe-iccrg-prague-congestion-control",
    year: 2024,
    family: Family::Network,
    advice: "For DualPI2 queues, with Accurate ECN: a queueing delay below 1 ms at round trips up to 100 ms. Without marks it competes like Reno.",
    needs_receiver: true,
    needs_routers: true,
    ..SENDER_ONLY
};

/// Parameters of Prague: none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl Config {
    /// A Prague sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Paced {
            classic: Classic::new(windows, Prague::new()),
            srtt: Duration::ZERO,
            mss: f64::from(start.mss),
        })
    }
}

/// Weight of a round trip in alpha.
const GAIN: f64 = 1.0 / 16.0;
/// Minimum window in segments.
const SMALLEST: f64 = 2.0;
/// Pacing rate in slow start, in windows per round trip.
const SLOW_START_PACE: f64 = 2.0;

/// Packets of the present round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    delivered: f64,
    marked: f64,
}

impl Counted {
    /// Share of marked packets; `None` before a delivery.
    fn share(self) -> Option<f64> {
        (self.delivered > 0.0).then(|| (self.marked / self.delivered).min(1.0))
    }
}

/// The window law of the draft.
#[derive(Clone, Copy, Debug)]
pub struct Prague {
    /// Smoothed share of marked packets; 1 until the first mark.
    alpha: f64,
    /// True after the first mark: the bottleneck can mark.
    marked: bool,
    round: Round,
    counted: Counted,
    /// Sequence number whose acknowledgement ends the round trip of the latest reduction.
    reduced_until: u64,
}

impl Prague {
    fn new() -> Self {
        Self {
            alpha: 1.0,
            marked: false,
            round: Round::default(),
            counted: Counted::default(),
            reduced_until: 0,
        }
    }

    /// Updates alpha at the end of a round trip, once the bottleneck has marked.
    fn measure(&mut self, ack: &Ack, path: &Path) {
        self.counted.delivered += ack.delivered_bytes as f64 / f64::from(path.mss);
        self.counted.marked += f64::from(ack.marks);
        if !self.round.ends(path) {
            return;
        }
        if let (true, Some(share)) = (self.marked, self.counted.share()) {
            self.alpha += GAIN * (share - self.alpha);
        }
        self.counted = Counted::default();
    }
}

impl Rule for Prague {
    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.measure(ack, path);
        if ack.marks == 0 {
            return;
        }
        self.marked = true;
        if path.snd_una > self.reduced_until && ack.phase == Phase::Open {
            self.reduced_until = path.snd_nxt;
            windows.cwnd = (windows.cwnd * (1.0 - self.alpha / 2.0)).max(SMALLEST);
            windows.ssthresh = windows.cwnd;
        }
    }

    /// Alpha measures the path, which an undo does not change.
    fn undo(&mut self, _before: Self) {}
}

/// Prague with its pacing: without it, its own bursts would be marked.
#[derive(Clone, Debug)]
struct Paced {
    classic: Classic<Prague>,
    srtt: Duration,
    /// Payload bytes of a full segment.
    mss: f64,
}

impl Paced {
    fn note(&mut self, path: &Path) {
        (self.srtt, self.mss) = (path.srtt, f64::from(path.mss));
    }
}

impl CongestionControl for Paced {
    forward!(classic: window, on_loss, on_rto, on_undo, adopt);

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.note(path);
        self.classic.on_ack(ack, path);
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        self.note(path);
        self.classic.on_event(event, path);
    }

    fn spacing(&self) -> Spacing {
        let gain = if self.classic.windows.in_slow_start() { SLOW_START_PACE } else { 1.0 };
        let bytes = gain * self.window() * self.mss;
        let known = !self.srtt.is_zero();
        Spacing::at(known.then(|| Rate::from_bytes_per_s(bytes / self.srtt.as_secs_f64())))
    }

    fn snapshot(&self) -> WindowState {
        let inner = self.classic.snapshot();
        crate::state(self, inner.ssthresh, inner.phase)
    }

    fn requirements(&self) -> Requirements {
        Requirements { scalable: true, pacing: true, ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Loss, fixture};

    /// A sender in congestion avoidance with `cwnd` segments, whose path has marked.
    fn sender(cwnd: f64, alpha: f64) -> Classic<Prague> {
        let rule = Prague { alpha, marked: true, ..Prague::new() };
        Classic::new(Windows { cwnd, ssthresh: cwnd }, rule)
    }

    /// An ACK of ten segments, of which `marks` were marked, with `snd_una` of 1000 bytes times `una`.
    fn ack(sender: &mut Classic<Prague>, una: u64, marks: u32) {
        let path = Path { snd_una: 1000 * una + 1, snd_nxt: 1000 * una + 20_001, ..fixture::path() };
        sender.on_ack(&Ack { marks, counted: 10 - marks, ..fixture::ack(10) }, &path);
    }

    #[test]
    fn a_round_trip_moves_alpha_by_a_sixteenth_of_the_difference() {
        let mut sender = sender(20.0, 0.5);
        ack(&mut sender, 10, 0);
        assert!((sender.rule.alpha - 0.5 * 15.0 / 16.0).abs() < 1e-12, "the first ACK ends a round");
        let before = sender.rule.alpha;
        // The round ends with the ACK of the first segment sent after it began, 20 later.
        ack(&mut sender, 20, 3);
        ack(&mut sender, 30, 1);
        assert!((sender.rule.alpha - before).abs() < 1e-12);
        ack(&mut sender, 40, 2);
        assert!((sender.rule.alpha - (before + (0.2 - before) / 16.0)).abs() < 1e-12);
    }

    #[test]
    fn marks_reduce_the_window_once_in_a_round_trip_by_half_of_alpha() {
        let mut sender = sender(100.0, 0.16);
        sender.rule.round.ends(&Path { snd_una: 1, snd_nxt: 1_000_001, ..fixture::path() });
        ack(&mut sender, 10, 5);
        let reduced = 100.0 * (1.0 - 0.08);
        // Five of ten segments were not marked, and grow the window.
        assert!((sender.window() - (reduced + 5.0 / reduced)).abs() < 1e-9, "{}", sender.window());
        let before = sender.window();
        ack(&mut sender, 20, 5);
        assert!((sender.window() - (before + 5.0 / before)).abs() < 1e-9, "still the same round trip");
        ack(&mut sender, 40, 10);
        assert!((sender.window() - (before + 5.0 / before) * 0.92).abs() < 1e-9);
    }

    #[test]
    fn the_first_mark_halves_the_window_and_ends_slow_start() {
        let mut sender = Classic::new(Windows { cwnd: 80.0, ssthresh: f64::INFINITY }, Prague::new());
        ack(&mut sender, 10, 0);
        assert_eq!((sender.window(), sender.rule.alpha), (90.0, 1.0), "no mark, no measurement");
        ack(&mut sender, 20, 10);
        assert_eq!((sender.window(), sender.windows.ssthresh), (45.0, 45.0));
    }

    /// The draft's fallback: a loss, or an echo of classic ECN, halves the window as with Reno.
    #[test]
    fn losses_and_classic_echoes_halve_the_window() {
        for cause in [Cause::Loss, Cause::Mark] {
            let mut sender = sender(40.0, 0.1);
            sender.on_loss(&Loss { cause, ..fixture::loss(40) }, &fixture::path());
            assert_eq!(sender.window(), 20.0, "{cause:?}");
        }
    }

    #[test]
    fn segments_leave_at_one_window_per_round_trip_and_at_twice_that_in_slow_start() {
        let mut sender = Config {}.build(&fixture::start(10.0));
        sender.on_event(ConnectionEvent::Established, &fixture::path());
        let window_rate = 10.0 * 1000.0 / 0.55;
        let rate = |sender: &dyn CongestionControl| sender.spacing().rate().unwrap().bytes_per_s();
        assert!((rate(&*sender) - 2.0 * window_rate).abs() < 1.0);
        sender.on_loss(&fixture::loss(10), &fixture::path());
        assert!((rate(&*sender) - 0.5 * window_rate).abs() < 1.0);
    }
}
