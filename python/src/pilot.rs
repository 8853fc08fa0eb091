//! Sender whose window and pacing rate are set externally, once per interval.

use bentpipe_base::{Duration, Instant, Rate, WindowState};
use bentpipe_cc::{
    Accounting, Ack, BackOff, CongestionControl, ConnectionEvent, Loss, Path, Requirements, Sleeper, Spacing,
    Start, Timeout, Wake, state,
};

/// Quantities observed over an interval, with units, in the order of [`Observation`].
pub const OBSERVATIONS: [&str; 12] = [
    "t_s",
    "interval_s",
    "acked_segments",
    "lost_segments",
    "timeouts",
    "rtt_s",
    "srtt_s",
    "min_rtt_s",
    "delivery_rate_bps",
    "in_flight_segments",
    "window_segments",
    "pacing_bps",
];

/// Values in the order of [`OBSERVATIONS`]; unknown values are zero.
pub type Observation = [f64; OBSERVATIONS.len()];

/// Action: a window in segments and a pacing rate in bit/s; a rate that is not positive
/// disables pacing.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub window: f64,
    pub pacing_bps: f64,
}

/// Limits of actions; larger values are clamped.
pub const MOST_WINDOW: f64 = 1e6;
pub const MOST_PACING_BPS: f64 = 1e12;

/// Length of an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Every {
    /// One smoothed RTT.
    RoundTrip,
    /// Constant length.
    Time(Duration),
}

/// Interval before the first round-trip sample.
const FIRST_INTERVAL: Duration = Duration::from_millis(100);
/// Minimum interval.
pub const LEAST_INTERVAL: Duration = Duration::from_micros(100);

/// Sender that asks for an action after each interval.
pub struct Pilot {
    decide: Box<dyn FnMut(&Observation) -> Action + Send>,
    every: Every,
    window: f64,
    pacing: Option<Rate>,
    began: Instant,
    next: Instant,
    /// True if this end has sent no data; a receiver never does, and never asks for
    /// actions.
    silent: bool,
    delivered_bytes: u64,
    lost: u64,
    timeouts: u64,
    rtt_sum_s: f64,
    rtt_count: u32,
    /// Mean of the last interval with a sample, in seconds.
    rtt_s: f64,
}

impl Pilot {
    /// Makes a sender that starts with the initial window.
    pub fn new(start: &Start, every: Every, decide: Box<dyn FnMut(&Observation) -> Action + Send>) -> Self {
        Self {
            decide,
            every,
            window: start.initial_window.max(1.0),
            pacing: None,
            began: Instant::ZERO,
            next: Instant::FAR_FUTURE,
            silent: true,
            delivered_bytes: 0,
            lost: 0,
            timeouts: 0,
            rtt_sum_s: 0.0,
            rtt_count: 0,
            rtt_s: 0.0,
        }
    }

    fn look(&mut self, path: &Path) {
        if self.silent || path.now < self.next {
            return;
        }
        let observation = self.observe(path);
        let action = (self.decide)(&observation);
        self.window = action.window.clamp(1.0, MOST_WINDOW);
        let paced = action.pacing_bps > 0.0;
        self.pacing = paced.then(|| Rate::from_bps(action.pacing_bps.clamp(1.0, MOST_PACING_BPS) as u64));
        self.begin(path);
    }

    fn observe(&mut self, path: &Path) -> Observation {
        let interval_s = path.now.since(self.began).as_secs_f64();
        if self.rtt_count > 0 {
            self.rtt_s = self.rtt_sum_s / f64::from(self.rtt_count);
        }
        let bytes = self.delivered_bytes as f64;
        let rate_bps = if interval_s > 0.0 { 8.0 * bytes / interval_s } else { 0.0 };
        let min_rtt_s = if path.min_rtt == Duration::MAX { 0.0 } else { path.min_rtt.as_secs_f64() };
        [
            path.now.as_secs_f64(),
            interval_s,
            bytes / f64::from(path.mss.max(1)),
            self.lost as f64,
            self.timeouts as f64,
            self.rtt_s,
            path.srtt.as_secs_f64(),
            min_rtt_s,
            rate_bps,
            f64::from(path.in_flight),
            self.window,
            self.pacing.map_or(0.0, |rate| rate.bps() as f64),
        ]
    }

    fn begin(&mut self, path: &Path) {
        (self.delivered_bytes, self.lost, self.timeouts) = (0, 0, 0);
        (self.rtt_sum_s, self.rtt_count) = (0.0, 0);
        self.began = path.now;
        let interval = match self.every {
            Every::Time(time) => time,
            Every::RoundTrip if path.srtt.is_zero() => FIRST_INTERVAL,
            Every::RoundTrip => path.srtt,
        };
        self.next = path.now + interval.max(LEAST_INTERVAL);
    }
}

impl CongestionControl for Pilot {
    fn window(&self) -> f64 {
        self.window
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.silent &= ack.acked == 0;
        self.delivered_bytes += ack.delivered_bytes;
        self.lost += u64::from(ack.lost);
        if let Some(rtt) = ack.rtt {
            self.rtt_sum_s += rtt.as_secs_f64();
            self.rtt_count += 1;
        }
        self.look(path);
    }

    fn on_loss(&mut self, _: &Loss, _: &Path) {}

    fn on_rto(&mut self, _: &Timeout, _: &Path) -> BackOff {
        self.timeouts += 1;
        BackOff::Double
    }

    fn spacing(&self) -> Spacing {
        Spacing::at(self.pacing)
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established {
            self.began = path.now;
            self.next = path.now;
            self.silent = path.unsent == 0 && path.outstanding == 0;
            self.look(path);
        }
    }

    fn snapshot(&self) -> WindowState {
        state(self, f64::INFINITY, "decided")
    }

    fn requirements(&self) -> Requirements {
        Requirements { accounting: Accounting::Own, ..Requirements::default() }
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        Some(self)
    }
}

impl Sleeper for Pilot {
    fn wake_at(&self) -> Instant {
        if self.silent { Instant::FAR_FUTURE } else { self.next }
    }

    fn on_wake(&mut self, path: &Path) -> Wake {
        self.look(path);
        Wake::Quiet
    }
}
