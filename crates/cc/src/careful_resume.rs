//! Careful Resume: a connection starts from half the capacity that an earlier connection found.
//!
//! N. Kuhn, E. Stephan, G. Fairhurst, R. Secchi, C. Huitema, "Convergence of Congestion Control from Retained State", RFC 9959, 2026.
//!
//! | RFC 9959                | here                                          | unit  |
//! |-------------------------|-----------------------------------------------|-------|
//! | `saved_cwnd`, `saved_rtt`, endpoint | [`Capacity`] in a [`PathMemory`]  | bytes, time |
//! | Lifetime                | [`Config::lifetime`]                          | time  |
//! | `max_jump`, `jump_cwnd` | [`Config::max_jump`], `Phase::Unvalidated`    | bytes |
//! | `PipeSize`              | `Jump::pipe`                                  | bytes |
//! | Beta                    | [`BETA`]                                      | -     |
//!
//! [`Config::around`] puts a wrapper between a transport and any algorithm. A saved capacity is used by one connection at a time. The
//! wrapper jumps only after the first flight was acknowledged without congestion, at an RTT like the saved one. It paces the jump, and
//! keeps the larger window only if the whole jump is acknowledged without congestion. `papers/careful-resume.md` lists the deviations.

use alloc::boxed::Box;

use bentpipe_base::{Duration, Instant, Rate, WindowState};

use crate::rounds::Round;
use crate::{
    Accounting, Ack, BackOff, Capacity, CongestionControl, ConnectionEvent, Detector, Feedback, Loss, Path,
    PathMemory, Priority, ProbeKind, Prober, Requirements, Sent, Sleeper, Spacing, Start, Timeout, Undo,
    Windows, state,
};

/// Part of the validated capacity that becomes ssthresh after a retreat. RFC 9959 allows 0.5 to 1, and 0.5 is its default.
pub const BETA: f64 = 0.5;
/// Part of the saved capacity to which the window jumps (RFC 9959).
const JUMP: f64 = 0.5;
/// Least window of a retreat, in segments (chosen: the rule of RFC 9959 has no lower limit, its example has the initial window).
const RETREAT_FLOOR: f64 = 2.0;
/// The path is another one at an RTT of at most this part of the saved RTT, or above this multiple of it.
const SAME_RTT: (f64, f64) = (0.5, 10.0);
/// A capacity below this many initial windows is not saved: slow start finds it as fast.
const WORTH_SAVING: f64 = 4.0;
/// Round trips for which a connection has the saved capacity for itself: one for the jump, one for its ACKs, and one of reserve.
const EXCLUSIVE_ROUND_TRIPS: u32 = 3;

/// Parameters of Careful Resume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Time after which a saved capacity is deleted. RFC 9959 gives no value: minutes for paths that change, hours for stable ones.
    pub lifetime: Duration,
    /// Maximum window of the jump in bytes; `None` for no limit but half of the saved capacity.
    pub max_jump: Option<u64>,
}

impl Default for Config {
    /// Ten minutes (chosen), and no limit.
    fn default() -> Self {
        Self { lifetime: Duration::from_secs(600), max_jump: None }
    }
}

impl Config {
    /// Puts Careful Resume around an algorithm. Without [`Start::memory`] nothing is saved, and the algorithm is returned as it is.
    pub fn around(&self, inner: Box<dyn CongestionControl>, start: &Start) -> Box<dyn CongestionControl> {
        let Some(memory) = &start.memory else { return inner };
        Box::new(CarefulResume {
            config: *self,
            requirements: requirements(&*inner, memory),
            paces: !inner.requirements().window_only,
            inner,
            memory: memory.clone(),
            initial_window: start.initial_window,
            phase: Phase::Normal,
            observed: Observed::default(),
        })
    }
}

/// Requirements of an algorithm with Careful Resume. The jump is paced. The window of a retreat already is what the path has proved,
/// so proportional rate reduction does not apply.
fn requirements(inner: &dyn CongestionControl, memory: &PathMemory) -> Requirements {
    let own = inner.requirements();
    let resumes = memory.capacity().is_some();
    let accounting =
        if resumes && own.accounting == Accounting::Pipe { Accounting::Own } else { own.accounting };
    Requirements { accounting, window_only: own.window_only && !resumes, ..own }
}

/// Data sent beyond what slow start permits.
#[derive(Clone, Copy, Debug)]
struct Jump {
    /// First sequence number of the jump.
    first: u64,
    /// Bytes in flight when it began.
    in_flight: u64,
}

impl Jump {
    /// Returns the bytes that the path has proved to carry: those in flight at the beginning, and those acknowledged since.
    fn pipe(&self, path: &Path) -> u64 {
        self.in_flight + path.snd_una.saturating_sub(self.first)
    }
}

/// Phases of RFC 9959, section 4.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The first flight tests the path; `from` is its first sequence number.
    Reconnaissance { from: u64 },
    /// The jump leaves.
    Unvalidated { jump: Jump, window: f64, rate: Rate, until: Instant },
    /// The ACKs of the jump arrive, up to `last`.
    Validating { jump: Jump, window: f64, last: u64 },
    /// The jump met congestion. The window is constant until `last` is acknowledged.
    SafeRetreat { jump: Jump, window: f64, last: u64, since: Instant, lost: u32 },
    /// The algorithm alone.
    Normal,
}

/// Payload acknowledged per round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    round: Round,
    /// Bytes delivered before the present round.
    delivered_before: u64,
    /// True if the window limited the sender in the present round.
    is_limited: bool,
}

impl Observed {
    /// Handles an ACK. Returns the bytes of a round that it ends, and true if the window limited the sender in that round.
    fn on_ack(&mut self, ack: &Ack, path: &Path) -> Option<(u64, bool)> {
        self.is_limited |= ack.window_limited;
        self.round.ends(path).then(|| {
            let bytes = path.delivered.saturating_sub(self.delivered_before);
            self.delivered_before = path.delivered;
            (bytes, core::mem::take(&mut self.is_limited))
        })
    }
}

/// An algorithm with Careful Resume around it.
struct CarefulResume {
    config: Config,
    requirements: Requirements,
    /// True if the algorithm itself sets a spacing.
    paces: bool,
    inner: Box<dyn CongestionControl>,
    memory: PathMemory,
    /// Initial window in segments.
    initial_window: f64,
    phase: Phase,
    observed: Observed,
}

/// Bytes as segments.
fn segments(bytes: u64, path: &Path) -> f64 {
    bytes as f64 / f64::from(path.mss.max(1))
}

impl CarefulResume {
    /// Returns the saved capacity, and deletes it at the end of its life.
    fn recall(&self, now: Instant) -> Option<Capacity> {
        let saved = self.memory.capacity()?;
        if now.since(saved.at) < self.config.lifetime {
            return Some(saved);
        }
        self.memory.forget_capacity();
        None
    }

    /// The first flight was acknowledged without congestion. Jumps, if the path looks like the saved one and a jump helps.
    fn end_reconnaissance(&mut self, path: &Path) {
        self.phase = Phase::Normal;
        let Some(saved) = self.recall(path.now) else { return };
        let like_saved = |rtt: Duration| rtt.as_secs_f64() / saved.min_rtt.as_secs_f64().max(1e-9);
        if like_saved(path.min_rtt) <= SAME_RTT.0 || like_saved(path.srtt) > SAME_RTT.1 {
            return;
        }
        let bytes = (saved.bytes as f64 * JUMP).min(self.config.max_jump.unwrap_or(u64::MAX) as f64);
        let window = bytes / f64::from(path.mss.max(1));
        let slow_start_is_over = self.inner.snapshot().ssthresh <= self.inner.window();
        let until = path.now + path.srtt * u64::from(EXCLUSIVE_ROUND_TRIPS);
        if window <= self.inner.window() || slow_start_is_over || !self.memory.take_capacity(path.now, until)
        {
            return;
        }
        let in_flight = u64::from(path.in_flight) * u64::from(path.mss);
        self.phase = Phase::Unvalidated {
            jump: Jump { first: path.snd_nxt, in_flight },
            window,
            rate: Rate::from_bytes_per_s(bytes / path.srtt_s().max(1e-3)),
            until: path.now + path.srtt,
        };
    }

    /// The jump has left. Its window becomes that of the algorithm, until the ACKs have validated it.
    fn end_unvalidated(&mut self, jump: Jump, path: &Path) {
        let flight = f64::from(path.outstanding);
        let pipe = segments(jump.pipe(path), path);
        let window = if flight < self.initial_window || flight <= pipe {
            self.phase = Phase::Normal;
            pipe.max(self.initial_window)
        } else {
            self.phase = Phase::Validating { jump, window: flight, last: path.snd_nxt };
            flight
        };
        let ssthresh = self.inner.snapshot().ssthresh;
        self.inner.adopt(Windows { cwnd: window.max(self.inner.window()), ssthresh: ssthresh.max(window) });
    }

    /// Handles an ACK after the algorithm.
    fn advance(&mut self, ack: &Ack, path: &Path) {
        match &mut self.phase {
            Phase::Reconnaissance { from } => {
                let acked = path.snd_una.saturating_sub(*from);
                let wanted = u64::from(path.in_flight) * u64::from(path.mss) + path.unsent;
                let waits = segments(wanted, path) > self.inner.window();
                if waits && segments(acked, path) >= self.initial_window {
                    self.end_reconnaissance(path);
                }
            }
            Phase::Unvalidated { jump, window, until, .. } => {
                let is_full = f64::from(path.outstanding) + 1.0 > *window;
                if is_full || path.snd_una > jump.first || path.now >= *until {
                    let jump = *jump;
                    self.end_unvalidated(jump, path);
                }
            }
            Phase::Validating { last, .. } if path.snd_una >= *last => self.phase = Phase::Normal,
            Phase::SafeRetreat { jump, window, last, since, lost } => {
                // The losses that began it were counted then.
                *lost += if path.now > *since { ack.lost } else { 0 };
                if path.snd_una >= *last {
                    let (cwnd, lost) = (*window, f64::from(*lost));
                    let proved = (segments(jump.pipe(path), path) - lost).max(RETREAT_FLOOR);
                    self.phase = Phase::Normal;
                    self.inner.adopt(Windows { cwnd, ssthresh: BETA * proved });
                }
            }
            Phase::Validating { .. } | Phase::Normal => {}
        }
    }

    /// Handles congestion before the algorithm.
    fn on_congestion(&mut self, lost: u32, path: &Path) {
        let (jump, last) = match self.phase {
            Phase::Unvalidated { jump, .. } => (jump, path.snd_nxt),
            Phase::Validating { jump, last, .. } => (jump, last),
            Phase::Reconnaissance { .. } => return self.phase = Phase::Normal,
            Phase::SafeRetreat { .. } | Phase::Normal => return,
        };
        self.memory.forget_capacity();
        let window = (segments(jump.pipe(path), path) / 2.0).max(RETREAT_FLOOR);
        self.phase = Phase::SafeRetreat { jump, window, last, since: path.now, lost };
    }

    /// Saves what a round has carried. It may be less than what is known only if neither slow start nor the application limited it.
    fn save(&self, (bytes, is_limited): (u64, bool), path: &Path) {
        let state = self.inner.snapshot();
        let is_capacity = is_limited && state.ssthresh <= state.cwnd;
        let known = self.recall(path.now).map_or(0, |saved| saved.bytes);
        let is_measured = path.min_rtt < Duration::MAX && !path.min_rtt.is_zero();
        let is_worth = segments(bytes, path) >= WORTH_SAVING * self.initial_window;
        if is_measured && is_worth && (is_capacity || bytes > known) {
            self.memory.save_capacity(Capacity { bytes, min_rtt: path.min_rtt, at: path.now });
        }
    }
}

impl CongestionControl for CarefulResume {
    fn window(&self) -> f64 {
        match self.phase {
            Phase::Unvalidated { window, .. } | Phase::Validating { window, .. } => {
                window.max(self.inner.window())
            }
            Phase::SafeRetreat { window, .. } => window,
            Phase::Reconnaissance { .. } | Phase::Normal => self.inner.window(),
        }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let round = self.observed.on_ack(ack, path);
        // The window is constant while the jump leaves, and in a retreat.
        let is_constant = matches!(self.phase, Phase::Unvalidated { .. } | Phase::SafeRetreat { .. });
        self.inner.on_ack(&Ack { window_limited: ack.window_limited && !is_constant, ..*ack }, path);
        self.advance(ack, path);
        if let (Some(round), Phase::Normal) = (round, self.phase) {
            self.save(round, path);
        }
    }

    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        self.on_congestion(loss.lost, path);
        self.inner.on_loss(loss, path);
    }

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        if matches!(self.phase, Phase::Unvalidated { .. } | Phase::Validating { .. }) {
            self.memory.forget_capacity();
        }
        self.phase = Phase::Normal;
        self.inner.on_rto(timeout, path)
    }

    fn timeout_probe(&mut self, timeout: &Timeout, path: &Path) -> Option<ProbeKind> {
        self.inner.timeout_probe(timeout, path)
    }

    fn spacing(&self) -> Spacing {
        match self.phase {
            Phase::Unvalidated { rate, .. } => Spacing::At { rate, quantum: 1 },
            _ if self.paces => self.inner.spacing(),
            _ => Spacing::None,
        }
    }

    fn on_sent(&mut self, sent: &Sent, path: &Path) -> Priority {
        self.inner.on_sent(sent, path)
    }

    fn on_undo(&mut self, undo: Undo, path: &Path) {
        self.inner.on_undo(undo, path);
    }

    fn adopt(&mut self, windows: Windows) {
        self.inner.adopt(windows);
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established && self.recall(path.now).is_some() {
            self.phase = Phase::Reconnaissance { from: path.snd_nxt };
        }
        self.inner.on_event(event, path);
    }

    fn snapshot(&self) -> WindowState {
        let inner = self.inner.snapshot();
        let phase = match self.phase {
            Phase::Reconnaissance { .. } => "reconnaissance",
            Phase::Unvalidated { .. } => "unvalidated",
            Phase::Validating { .. } => "validating",
            Phase::SafeRetreat { .. } => "safe-retreat",
            Phase::Normal => inner.phase,
        };
        state(self, inner.ssthresh, phase)
    }

    fn requirements(&self) -> Requirements {
        self.requirements
    }

    fn prober(&mut self) -> Option<&mut dyn Prober> {
        self.inner.prober()
    }

    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        self.inner.feedback()
    }

    fn detector(&mut self) -> Option<&mut dyn Detector> {
        self.inner.detector()
    }

    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        self.inner.sleeper()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Cause, fixture};

    const MSS: u64 = fixture::MSS as u64;

    /// A memory with 300 segments, found at a round trip of 550 ms.
    fn memory() -> PathMemory {
        let memory = PathMemory::new();
        let min_rtt = Duration::from_millis(550);
        memory.save_capacity(Capacity { bytes: 300 * MSS, min_rtt, at: Instant::ZERO });
        memory
    }

    /// A connection with Careful Resume, and its path. Packet `n` of the worked example begins at sequence number `n * MSS`.
    struct Connection {
        cc: Box<dyn CongestionControl>,
        path: Path,
    }

    impl Connection {
        fn of(name: &str, config: Config, memory: &PathMemory) -> Self {
            let start = Start { memory: Some(memory.clone()), ..fixture::start(10.0) };
            let cc = config.around(Algorithm::from_name(name).unwrap().build(&start), &start);
            let path = Path { snd_una: MSS, snd_nxt: MSS, unsent: 1 << 30, ..fixture::path_at(1.0) };
            let mut connection = Self { cc, path };
            connection.cc.on_event(ConnectionEvent::Established, &path);
            connection
        }

        fn reno(memory: &PathMemory) -> Self {
            Self::of("reno", Config::default(), memory)
        }

        /// Sends up to packet `last`.
        fn send_to(&mut self, last: u64) {
            self.path.snd_nxt = (last + 1) * MSS;
            self.count();
        }

        fn count(&mut self) {
            self.path.outstanding = ((self.path.snd_nxt - self.path.snd_una) / MSS) as u32;
            self.path.in_flight = self.path.outstanding;
        }

        /// Acknowledges up to packet `last`, 10 ms later.
        fn ack_to(&mut self, last: u64) {
            let acked = last + 1 - self.path.snd_una / MSS;
            self.path.snd_una = (last + 1) * MSS;
            self.path.delivered += acked * MSS;
            self.path.now += Duration::from_millis(10);
            self.count();
            self.cc.on_ack(&fixture::ack(acked as u32), &self.path);
        }

        fn lose(&mut self) {
            let outstanding = self.path.outstanding;
            let loss = Loss { lost: 1, cause: Cause::Loss, ..fixture::loss(outstanding) };
            self.cc.on_loss(&loss, &self.path);
        }

        /// The first flight of ten packets is acknowledged, with 29 in flight, as in the example of RFC 9959.
        fn jumped(mut self) -> Self {
            self.send_to(10);
            self.ack_to(9);
            self.send_to(29);
            // 20 are outstanding; the example has 29 in flight.
            self.path.in_flight = 29;
            let acked = fixture::ack(1);
            self.path.snd_una = 11 * MSS;
            self.cc.on_ack(&acked, &self.path);
            self
        }

        fn state(&self) -> (&'static str, f64) {
            (self.cc.snapshot().phase, self.cc.window())
        }
    }

    #[test]
    fn half_of_what_was_saved_leaves_within_a_round_trip() {
        let mut connection = Connection::reno(&memory());
        connection.send_to(10);
        connection.ack_to(9);
        assert_eq!(connection.cc.snapshot().phase, "reconnaissance", "nine of ten");
        let connection = Connection::reno(&memory()).jumped();
        assert_eq!(connection.state(), ("unvalidated", 150.0));
        let rate = connection.cc.spacing().rate().unwrap().bytes_per_s();
        assert!((rate - 150_000.0 / 0.55).abs() < 1.0, "{rate}");
    }

    /// Section 9 of the specification: packet 30 is acknowledged, then 150.
    #[test]
    fn a_jump_without_loss_is_kept() {
        let mut connection = Connection::reno(&memory()).jumped();
        connection.send_to(150);
        connection.ack_to(30);
        assert_eq!(connection.state().0, "validating");
        assert!(connection.state().1 >= 120.0, "{:?}", connection.state());
        connection.ack_to(149);
        assert_eq!(connection.state().0, "validating");
        connection.ack_to(150);
        assert_eq!(connection.cc.snapshot().phase, "slow-start");
        assert!(connection.cc.window() >= 150.0 && connection.cc.snapshot().ssthresh.is_infinite());
    }

    #[test]
    fn an_application_with_little_to_send_gets_what_it_used() {
        let mut connection = Connection::reno(&memory()).jumped();
        connection.send_to(60);
        connection.path.now += Duration::from_millis(550);
        connection.ack_to(11);
        assert_eq!(connection.state(), ("validating", 49.0));
    }

    /// Packet 64 is lost: 29 + 34 packets are proved, then 29 + 120.
    #[test]
    fn a_loss_in_the_jump_leads_below_what_was_proved() {
        let memory = memory();
        let mut connection = Connection::reno(&memory).jumped();
        connection.send_to(150);
        connection.ack_to(63);
        connection.lose();
        assert_eq!(connection.state(), ("safe-retreat", 31.5));
        assert_eq!(memory.capacity(), None);
        connection.ack_to(149);
        assert_eq!(connection.state(), ("safe-retreat", 31.5));
        connection.ack_to(150);
        let after = connection.cc.snapshot();
        assert_eq!((connection.cc.window(), after.ssthresh), (31.5, 74.5));
        assert_eq!(after.phase, "slow-start");
    }

    #[test]
    fn a_jump_that_is_lost_at_once_leaves_two_segments() {
        let mut connection = Connection::reno(&memory());
        connection.send_to(10);
        connection.ack_to(10);
        assert_eq!(connection.state(), ("unvalidated", 150.0), "nothing was in flight");
        connection.send_to(160);
        connection.lose();
        assert_eq!(connection.state(), ("safe-retreat", RETREAT_FLOOR));
    }

    #[test]
    fn congestion_before_the_jump_prevents_it_and_keeps_the_capacity() {
        let memory = memory();
        let mut connection = Connection::reno(&memory);
        connection.send_to(10);
        connection.lose();
        connection.ack_to(10);
        assert_ne!(connection.cc.snapshot().phase, "unvalidated");
        assert!(memory.capacity().is_some());
    }

    #[test]
    fn a_timeout_ends_the_jump_and_deletes_the_capacity() {
        let memory = memory();
        let mut connection = Connection::reno(&memory).jumped();
        connection.send_to(150);
        let timeout = Timeout { consecutive: 1, outstanding: connection.path.outstanding, answered: false };
        connection.cc.on_rto(&timeout, &connection.path);
        assert_eq!((connection.cc.window(), memory.capacity()), (1.0, None));
    }

    /// Section 11 of the specification: 0.4, 0.6, 5 and 12 times the saved round trip.
    #[test]
    fn another_round_trip_is_another_path() {
        let jumps = |factor: f64| {
            let memory = memory();
            let mut connection = Connection::reno(&memory);
            let rtt = Duration::from_millis(550).mul_f64(factor);
            (connection.path.srtt, connection.path.min_rtt) = (rtt, rtt);
            connection.jumped().cc.snapshot().phase == "unvalidated"
        };
        assert_eq!([0.4, 0.6, 5.0, 12.0].map(jumps), [false, true, true, false]);
    }

    #[test]
    fn one_connection_at_a_time_jumps() {
        let memory = memory();
        let first = Connection::reno(&memory).jumped();
        let second = Connection::reno(&memory).jumped();
        assert_eq!(first.cc.snapshot().phase, "unvalidated");
        assert_ne!(second.cc.snapshot().phase, "unvalidated");
        let mut third = Connection::reno(&memory);
        third.path.now += Duration::from_millis(3 * 550);
        assert_eq!(third.jumped().cc.snapshot().phase, "unvalidated");
    }

    #[test]
    fn a_capacity_dies() {
        let memory = memory();
        let config = Config { lifetime: Duration::from_secs(1), ..Config::default() };
        let connection = Connection::of("reno", config, &memory);
        assert_eq!((connection.cc.snapshot().phase, memory.capacity()), ("slow-start", None));
    }

    #[test]
    fn the_configured_limit_holds() {
        let config = Config { max_jump: Some(40 * MSS), ..Config::default() };
        assert_eq!(Connection::of("reno", config, &memory()).jumped().cc.window(), 40.0);
        let config = Config { max_jump: Some(10 * MSS), ..Config::default() };
        assert_ne!(Connection::of("reno", config, &memory()).jumped().cc.snapshot().phase, "unvalidated");
    }

    #[test]
    fn without_more_to_send_nothing_jumps() {
        let mut connection = Connection::reno(&memory());
        connection.path.unsent = 0;
        assert_eq!(connection.jumped().cc.snapshot().phase, "unvalidated", "29 in flight want more than 21");
        let mut connection = Connection::reno(&memory());
        connection.send_to(10);
        connection.path.unsent = 0;
        connection.ack_to(10);
        assert_eq!(connection.cc.snapshot().phase, "reconnaissance");
    }

    #[test]
    fn what_a_round_trip_carried_is_saved() {
        let memory = PathMemory::new();
        let mut connection = Connection::reno(&memory);
        connection.send_to(10);
        for round in 1..6_u64 {
            connection.ack_to(10 * round);
            connection.send_to(10 * (round + 1));
        }
        assert_eq!(memory.capacity(), None, "slow start finds ten segments as fast");
        connection.send_to(200);
        connection.ack_to(61);
        connection.send_to(400);
        connection.ack_to(201);
        let saved = memory.capacity().unwrap();
        assert_eq!((saved.bytes, saved.min_rtt), (140 * MSS, Duration::from_millis(550)));
        assert_eq!(saved.at, connection.path.now);
    }

    /// A short transfer has not found the capacity. After a loss, the window limits the sender by what the path carries.
    #[test]
    fn slow_start_raises_the_capacity_and_congestion_avoidance_replaces_it() {
        let memory = memory();
        let mut connection = Connection::reno(&memory);
        connection.path.unsent = 0;
        let carry = |connection: &mut Connection, from: u64, to: u64| {
            connection.send_to(to);
            connection.ack_to(from);
            connection.ack_to(to);
            memory.capacity().unwrap().bytes / MSS
        };
        connection.send_to(10);
        connection.lose();
        connection.cc.adopt(Windows { cwnd: 100.0, ssthresh: f64::INFINITY });
        assert_eq!(carry(&mut connection, 1, 100), 300);
        assert_eq!(carry(&mut connection, 101, 200), 300, "100 segments in slow start");
        connection.cc.adopt(Windows { cwnd: 100.0, ssthresh: 50.0 });
        assert_eq!(carry(&mut connection, 201, 300), 100, "100 segments above the threshold");
    }

    #[test]
    fn nothing_is_wrapped_without_a_memory() {
        let start = fixture::start(10.0);
        let cc = Config::default().around(Algorithm::from_name("reno").unwrap().build(&start), &start);
        assert!(cc.requirements().window_only);
    }
}
