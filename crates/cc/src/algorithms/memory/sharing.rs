//! Control block sharing: a connection starts from the state of earlier and parallel connections to the same destination.
//!
//! J. Touch, M. Welzl, S. Islam, "TCP Control Block Interdependence", RFC 9040, 2021 (and RFC 2140, 1997). The satellite variant
//! is sharing TCP (STCP), which shares window and ssthresh among sequential and concurrent connections.
//!
//! | RFC 9040                     | here                                   | unit     |
//! |------------------------------|----------------------------------------|----------|
//! | `old_ssthresh`, `old_sendcwnd` | [`Saved::windows`] (temporal sharing) | segments |
//! | `old_RTT`                    | [`Saved::srtt`]                        | time     |
//! | ensemble `ssthresh`, `sendcwnd` | [`PathMemory::join`], [`Seat::settle`] | segments |
//! | merge                        | [`Config::merge`]                      | -        |
//!
//! Growth and loss reaction are Reno's. `papers/sharing.md` lists the deviations.

use alloc::boxed::Box;
use alloc::sync::Arc;

use bentpipe_base::{Instant, Rate};
use serde::{Deserialize, Serialize};

use crate::parameters::{fraction, positive};
use crate::{
    Ack, Classic, CongestionControl, ConnectionEvent, Entry, Family, Path, PathMemory, Rule, SENDER_ONLY,
    Saved, Seat, Spacing, Start, Windows, forward,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "sharing",
    title: "Reno that starts from what other connections to the same destination know",
    paper: "RFC 9040 (Touch, Welzl, Islam)",
    year: 2021,
    remembers: true,
    family: Family::Memory,
    advice: "For many short connections to one host. Long bulk flows equal Reno's.",
    ..SENDER_ONLY
};

/// Parameters of sharing.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Share with parallel connections.
    pub ensemble: bool,
    /// Share with earlier connections.
    pub temporal: bool,
    /// Time constant in seconds: after this time 1/e of a saved window is left.
    #[serde(deserialize_with = "positive")]
    pub tau_s: f64,
    /// Seconds after which saved state expires.
    #[serde(deserialize_with = "positive")]
    pub max_age_s: f64,
    /// Weight of the closing connection when it is merged with the saved state.
    #[serde(deserialize_with = "fraction")]
    pub merge: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { ensemble: true, temporal: true, tau_s: 30.0, max_age_s: 300.0, merge: 0.5 }
    }
}

impl Config {
    /// Builds a Reno sender that shares state, if [`Start::memory`] is set.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Sender::new(windows, Sharing::new(*self, start)))
    }
}

/// Sharing's additions to Reno.
#[derive(Clone, Debug)]
struct Sharing {
    config: Config,
    memory: Option<PathMemory>,
    /// Membership, shared by all copies of this rule, so that an undo does not end it.
    seat: Option<Arc<Seat>>,
    mss: u32,
    /// Rate of the first window and the sequence number that ends it. Shared state must not cause one large burst.
    first_window: Option<(Rate, u64)>,
    left_slow_start: bool,
}

impl Sharing {
    fn new(config: Config, start: &Start) -> Self {
        Self {
            config,
            memory: start.memory.clone(),
            seat: None,
            mss: start.mss,
            first_window: None,
            left_slow_start: false,
        }
    }

    /// Returns an earlier connection's windows, reduced by their age.
    fn recall(&self, windows: Windows, now: Instant) -> Windows {
        let saved = self.memory.as_ref().filter(|_| self.config.temporal).and_then(PathMemory::saved);
        let Some(saved) = saved else { return windows };
        let age_s = now.since(saved.at).as_secs_f64();
        if age_s >= self.config.max_age_s {
            return windows;
        }
        let worth = libm::exp(-age_s / self.config.tau_s);
        Windows {
            cwnd: windows.cwnd.max(worth * saved.windows.cwnd),
            ssthresh: windows.ssthresh.min(saved.windows.ssthresh.max(2.0)),
        }
    }
}

impl Sharing {
    /// Joins the members that share their windows.
    fn begin(&mut self, windows: &mut Windows, path: &Path) {
        let Some(memory) = &self.memory else { return };
        let own = self.recall(*windows, path.now);
        let start = if self.config.ensemble {
            let (seat, part) = memory.join(own);
            self.seat = Some(Arc::new(seat));
            part
        } else {
            own
        };
        *windows = start;
        if !path.srtt.is_zero() {
            let rate = Rate::from_bytes_per_s(start.cwnd * f64::from(self.mss) / path.srtt_s());
            let bytes = (start.cwnd * f64::from(self.mss)) as u64;
            self.first_window = Some((rate, path.snd_nxt + bytes));
        }
    }

    /// Saves this connection's state, merged with the saved one. Its ssthresh counts only if slow start ended: that of a short
    /// connection is a guess.
    fn keep(&mut self, windows: &Windows, path: &Path) {
        let Some(memory) = self.memory.as_ref().filter(|_| self.config.temporal) else { return };
        let before = memory.saved().map(|saved| saved.windows);
        let merge = |old: f64, new: f64| old + self.config.merge * (new - old);
        let known = before.filter(|windows| windows.ssthresh.is_finite());
        let ssthresh = match (known, self.left_slow_start) {
            (Some(old), true) => merge(old.ssthresh, windows.ssthresh),
            (Some(old), false) => old.ssthresh,
            (None, true) => windows.ssthresh,
            (None, false) => f64::INFINITY,
        };
        let cwnd = before.map_or(windows.cwnd, |old| merge(old.cwnd, windows.cwnd));
        memory.save(Saved { windows: Windows { cwnd, ssthresh }, srtt: path.srtt, at: path.now });
    }
}

impl Rule for Sharing {
    fn observe(&mut self, windows: &mut Windows, _ack: &Ack, path: &Path) {
        if let Some(seat) = &self.seat {
            seat.settle(windows);
        }
        self.left_slow_start |= !windows.in_slow_start();
        if self.first_window.is_some_and(|(_, end)| path.snd_nxt >= end) {
            self.first_window = None;
        }
    }

    fn on_event(&mut self, windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        match event {
            ConnectionEvent::Established => self.begin(windows, path),
            ConnectionEvent::Closed => {
                self.seat = None;
                self.keep(windows, path);
            }
            ConnectionEvent::Abandoned => self.seat = None,
            ConnectionEvent::Idle { .. } | ConnectionEvent::Unvalidated { .. } => {}
        }
    }
}

/// Reno's window with a paced first flight.
#[derive(Clone, Debug)]
struct Sender {
    classic: Classic<Sharing>,
}

impl Sender {
    fn new(windows: Windows, rule: Sharing) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl CongestionControl for Sender {
    forward!(classic: window, on_ack, on_loss, on_rto, on_undo, adopt, on_event, snapshot);

    fn spacing(&self) -> Spacing {
        Spacing::at(self.classic.rule.first_window.map(|(rate, _)| rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Undo, fixture};

    fn start(memory: &PathMemory) -> Start {
        Start { memory: Some(memory.clone()), ..fixture::start(10.0) }
    }

    fn open(memory: &PathMemory, config: Config, at: f64) -> Box<dyn CongestionControl> {
        let mut cc = config.build(&start(memory));
        cc.on_event(ConnectionEvent::Established, &fixture::path_at(at));
        cc
    }

    fn saved(cwnd: f64, ssthresh: f64, at: f64) -> PathMemory {
        let memory = PathMemory::new();
        let path = fixture::path_at(at);
        memory.save(Saved { windows: Windows { cwnd, ssthresh }, srtt: path.srtt, at: path.now });
        memory
    }

    #[test]
    fn parallel_connections_share_one_window() {
        let memory = saved(40.0, 40.0, 0.0);
        let mut first = open(&memory, Config::default(), 0.0);
        assert_eq!(first.window(), 40.0);
        let second = open(&memory, Config::default(), 0.0);
        assert_eq!(second.window(), 20.0);
        first.on_ack(&fixture::ack(0), &fixture::path());
        assert_eq!(first.window(), 20.0);
        let third = open(&memory, Config::default(), 0.0);
        assert!((third.window() - 40.0 / 3.0).abs() < 1e-9);
        drop((second, third));
        assert_eq!(memory.members(), 1);
    }

    #[test]
    fn a_saved_window_loses_its_worth() {
        let memory = saved(120.0, 160.0, 0.0);
        let after = |seconds| {
            let cc = open(&memory, Config::default(), seconds);
            (cc.window(), cc.snapshot().ssthresh)
        };
        let (cwnd, ssthresh) = after(30.0);
        assert!((cwnd - 44.146).abs() < 0.001, "{cwnd}");
        assert_eq!(ssthresh, 160.0);
        assert_eq!(after(300.0), (10.0, f64::INFINITY));
    }

    #[test]
    fn a_closing_connection_is_merged() {
        let memory = saved(50.0, 100.0, 0.0);
        let mut rule = Sharing::new(Config::default(), &start(&memory));
        rule.left_slow_start = true;
        rule.keep(&Windows { cwnd: 70.0, ssthresh: 60.0 }, &fixture::path_at(1.0));
        assert_eq!(memory.saved().unwrap().windows, Windows { cwnd: 60.0, ssthresh: 80.0 });
        rule.left_slow_start = false;
        rule.keep(&Windows { cwnd: 60.0, ssthresh: 500.0 }, &fixture::path_at(2.0));
        assert_eq!(memory.saved().unwrap().windows.ssthresh, 80.0, "it never left slow start");
    }

    #[test]
    fn the_first_window_is_paced() {
        let memory = saved(55.0, 60.0, 0.0);
        let mut cc = open(&memory, Config::default(), 0.0);
        let rate = cc.spacing().rate().unwrap().bytes_per_s();
        assert!((rate - 100_000.0).abs() < 1.0, "55 segments in 0.55 s: {rate}");
        cc.on_ack(&fixture::ack(1), &Path { snd_una: 1001, snd_nxt: 56_001, ..fixture::path() });
        assert_eq!(cc.spacing().rate(), None);
    }

    #[test]
    fn an_undo_keeps_the_place_among_the_others() {
        let memory = saved(40.0, 400.0, 0.0);
        let mut cc = open(&memory, Config::default(), 0.0);
        cc.on_loss(&fixture::loss(40), &fixture::path());
        cc.on_ack(&fixture::ack(0), &fixture::path());
        cc.on_undo(Undo::Reduction, &fixture::path());
        cc.on_ack(&fixture::ack(0), &fixture::path());
        assert_eq!((cc.window(), memory.members()), (40.0, 1));
    }

    #[test]
    fn an_abandoned_connection_leaves_its_place() {
        let memory = saved(40.0, 400.0, 0.0);
        let mut cc = open(&memory, Config::default(), 0.0);
        cc.on_loss(&fixture::loss(40), &fixture::path());
        cc.on_event(ConnectionEvent::Abandoned, &fixture::path());
        assert_eq!(memory.members(), 0);
    }

    #[test]
    fn without_a_memory_it_is_reno() {
        let mut cc = Config::default().build(&fixture::start(10.0));
        cc.on_event(ConnectionEvent::Established, &fixture::path());
        cc.on_ack(&fixture::ack(3), &fixture::path());
        cc.on_event(ConnectionEvent::Closed, &fixture::path());
        assert_eq!((cc.window(), cc.spacing().rate()), (13.0, None));
    }
}
