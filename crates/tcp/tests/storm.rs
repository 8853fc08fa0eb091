//! Random pairs of ends over a hostile path: for any configuration, a transfer ends in order or with an error report.
//!
//! `BENTPIPE_STORM=20000 cargo test -p bentpipe-tcp --test storm` runs that many worlds from `BENTPIPE_STORM_FROM` on.
//! `BENTPIPE_STORM_SEED=17` runs only that one and prints every segment.

#[path = "common/dice.rs"]
mod dice;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::{env, panic};

use bentpipe_base::{Duration, EcnField, Flags, Instant, Rng, Segment};
use bentpipe_tcp::{Config, Connection, Events, ReceiveWindow, State, Transmit};
use dice::{Dice, config, ms};

const WORLDS: u64 = 4000;
const REPORTED: Events = Events::TIMED_OUT.union(Events::RESET);
/// Maximum rounding of the window by its scale.
const LARGEST_UNIT: u64 = 1 << 14;

/// Effects of one direction of the path on segments.
#[derive(Debug)]
struct Weather {
    delay: Duration,
    loss: f64,
    duplication: f64,
    reordering: f64,
    extra: Duration,
    marking: f64,
    outage: (Instant, Instant),
}

impl Weather {
    fn new(dice: &mut Dice) -> Self {
        let from = Instant::ZERO + ms(dice.within(1000, 20_000));
        let outage = if dice.chance(0.2) { ms(dice.spread(100, 5000)) } else { Duration::ZERO };
        Self {
            delay: ms(dice.spread(1, 300)),
            loss: dice.one_of(&[0.0, 0.0, 0.005, 0.02, 0.1, 0.2]),
            duplication: dice.one_of(&[0.0, 0.0, 0.01, 0.2]),
            reordering: dice.one_of(&[0.0, 0.0, 0.01, 0.3]),
            extra: ms(dice.spread(1, 1000)),
            marking: dice.one_of(&[0.0, 0.05]),
            outage: (from, from + outage),
        }
    }
}

impl Weather {
    /// True without any effect that could make a connection fail.
    fn is_calm(&self) -> bool {
        self.loss < 0.05 && self.outage.0 == self.outage.1
    }
}

/// Behaviour of the application at one end.
#[derive(Debug)]
struct Application {
    to_write: u64,
    written: u64,
    chunk: u64,
    pause: Duration,
    next_write: Instant,
    /// True after a partial write: only an event resumes it.
    blocked: bool,
    closed: bool,
    /// Reads this many bytes at this interval; `None` reads everything at once.
    slow_reader: Option<(u64, Duration)>,
    /// Bytes that a slow reader waits for while the peer may send more. They are at most half of the buffer, which silly window
    /// avoidance leaves.
    threshold: u64,
    next_read: Instant,
    events: Events,
}

impl Application {
    fn new(dice: &mut Dice, now: Instant, talks: bool, mss: u32, buffer: u64) -> Self {
        let most = 200 * u64::from(mss.min(1500)) + 100;
        let to_write = if talks { dice.spread(1, most) } else { 0 };
        let chunk = dice.spread(to_write.div_ceil(50).max(1), to_write.max(1) * 2);
        Self {
            to_write,
            written: 0,
            chunk,
            pause: ms(dice.within(0, 500)),
            next_write: now + ms(dice.within(0, 2000)),
            blocked: false,
            closed: false,
            slow_reader: dice.chance(0.3).then(|| (dice.spread(100, 100_000), ms(dice.spread(10, 1000)))),
            threshold: if dice.coin() { dice.spread(1, (buffer / 2).max(1)) } else { 1 },
            next_read: now,
            events: Events::empty(),
        }
    }
}

struct World {
    seed: u64,
    verbose: bool,
    dice: Dice,
    now: Instant,
    ends: [Connection; 2],
    configs: [Arc<Config>; 2],
    applications: [Application; 2],
    /// Effects of the path, by sending end.
    weather: [Weather; 2],
    in_flight: BTreeMap<(Instant, u64), (usize, Segment)>,
    serial: u64,
    /// Right edge granted to each end, and the end of its sent data.
    granted: [u64; 2],
    sent_to: [u64; 2],
}

impl World {
    fn new(seed: u64, verbose: bool) -> Self {
        let mut dice = Dice(Rng::stream(seed, "storm"));
        let now = Instant::ZERO + Duration::from_secs(1);
        let configs = [0, 1].map(|_| Arc::new(config(&mut dice)));
        let simultaneous = dice.chance(0.1);
        let second = if simultaneous {
            Connection::connect(configs[1].clone(), seed + 1, now)
        } else {
            Connection::listen(configs[1].clone(), seed + 1)
        };
        let ends = [Connection::connect(configs[0].clone(), seed, now), second];
        let mss = configs[0].mss.min(configs[1].mss);
        let both = dice.chance(0.4);
        let buffers = configs.each_ref().map(|config| match config.receiver.receive_window {
            ReceiveWindow::Fixed(bytes) | ReceiveWindow::Auto { initial: bytes, .. } => bytes,
        });
        let mut application = |end: usize, talks| Application::new(&mut dice, now, talks, mss, buffers[end]);
        let applications = [application(0, true), application(1, both)];
        let weather = [0, 1].map(|_| Weather::new(&mut dice));
        if verbose {
            println!("{configs:#?}\n{applications:#?}\n{weather:#?}");
        }
        Self {
            seed,
            verbose,
            dice,
            now,
            ends,
            configs,
            applications,
            weather,
            in_flight: BTreeMap::new(),
            serial: 0,
            granted: [1; 2],
            sent_to: [0; 2],
        }
    }

    #[track_caller]
    fn check(&self, holds: bool, what: &str) {
        assert!(
            holds,
            "{what} at {:?}; replay: BENTPIPE_STORM_SEED={} cargo test -p bentpipe-tcp --test storm\n{:?} {:?}",
            self.now,
            self.seed,
            self.ends.each_ref().map(Connection::state),
            self.applications,
        );
    }

    fn check_sent(&mut self, end: usize, segment: &Segment) {
        let payload_end = segment.seq + u64::from(segment.len);
        if segment.flags.contains(Flags::RST) {
            return;
        }
        // A FIN needs no room, and pure ACKs after it carry its number.
        let fin = u64::from(segment.len == 0);
        self.check(payload_end <= self.granted[end] + fin, "beyond the window");
        // Only the size of the options is subtracted (RFC 6691).
        let peer = &self.configs[1 - end];
        let options = if segment.timestamps.is_some() { peer.timestamps_len } else { 0 };
        self.check(segment.len + options <= peer.mss + peer.timestamps_len, "larger than the peer accepts");
        self.check(payload_end <= self.applications[end].written + 2, "never written");
        self.check(segment.ack <= self.sent_to[1 - end], "acknowledges what was never sent");
        for (i, block) in segment.sack.as_slice().iter().enumerate() {
            self.check(block.start < block.end && block.end <= self.sent_to[1 - end], "a false SACK block");
            self.check(i == 0 || block.start > segment.ack, "a stale SACK block");
        }
        self.sent_to[end] = self.sent_to[end].max(segment.seq_end());
    }

    fn drain(&mut self, end: usize) {
        let (mut burst, mut over) = (0, false);
        let mut segment = Segment::default();
        loop {
            let transmit = self.ends[end].transmit_into(self.now, &mut segment);
            self.check(transmit == Transmit::Nothing || !over, "a segment after the last one");
            if transmit == Transmit::Nothing || over {
                break;
            }
            over = transmit == Transmit::Last;
            self.check_sent(end, &segment);
            self.transmit(end, segment);
            burst += 1;
            self.check(burst < 10_000, "endless burst");
        }
        let events = self.ends[end].take_events();
        self.applications[end].events |= events;
        if self.verbose && !events.is_empty() {
            println!("{:?} {end} {events:?}", self.now);
        }
        if events.contains(Events::WRITABLE) {
            self.applications[end].blocked = false;
        }
        if events.contains(Events::READABLE) && self.applications[end].slow_reader.is_none() {
            self.ends[end].read(self.now, u64::MAX);
            self.drain(end);
        }
    }

    fn transmit(&mut self, end: usize, mut segment: Segment) {
        let Weather { delay, loss, duplication, reordering, extra, marking, outage } = self.weather[end];
        let lost = self.dice.chance(loss) || (outage.0 <= self.now && self.now < outage.1);
        if self.verbose {
            let Segment { seq, ack, len, window, flags, probe, sack, .. } = segment;
            let fate = if lost { "lost" } else { "" };
            println!(
                "{:?} {end} {seq}+{len} ack {ack} win {window} {flags:?} {probe:?} {sack:?} {fate}",
                self.now
            );
        }
        if segment.ecn != EcnField::NotCapable && self.dice.chance(marking) {
            segment.ecn = EcnField::Congested;
        }
        let copies = if lost { 0 } else { 1 + u64::from(self.dice.chance(duplication)) };
        for _ in 0..copies {
            let late = if self.dice.chance(reordering) {
                extra.mul_f64(self.dice.0.uniform())
            } else {
                Duration::ZERO
            };
            self.serial += 1;
            self.in_flight.insert((self.now + delay + late, self.serial), (1 - end, segment));
        }
    }

    fn writes(&mut self, end: usize) {
        let application = &mut self.applications[end];
        application.next_write = Instant::FAR_FUTURE;
        let left = application.to_write - application.written;
        let opening = matches!(self.ends[end].state(), State::Listen | State::SynSent);
        if left == 0 && opening {
            // An end that closes now is closed at once, which tests nothing.
            application.next_write = self.now + ms(100);
            return;
        }
        if left == 0 {
            application.closed = true;
            self.ends[end].close(self.now);
            return;
        }
        let bytes = application.chunk.min(left);
        let taken = self.ends[end].write(self.now, bytes);
        application.written += taken;
        application.blocked = taken < bytes;
    }

    fn reads(&mut self, end: usize) {
        let Some((bytes, pause)) = self.applications[end].slow_reader else { return };
        self.ends[end].read(self.now, bytes);
        self.applications[end].next_read = self.now + pause;
    }

    /// Returns the times of the next events, in the order of `act`.
    fn deadlines(&mut self) -> [Instant; 7] {
        for end in 0..2 {
            let failed = self.failed();
            let open = self.ends[end].state() != State::Closed;
            let application = &mut self.applications[end];
            if application.next_write == Instant::FAR_FUTURE
                && !application.blocked
                && !application.closed
                && open
            {
                application.next_write = self.now + application.pause;
            }
            if !open {
                application.next_write = Instant::FAR_FUTURE;
            }
            let complete = application.events.contains(Events::PEER_CLOSED) || failed;
            let enough = if complete { 1 } else { application.threshold };
            let readable = self.ends[end].readable() >= enough;
            let idle = application.slow_reader.is_none() || !readable || failed && !open;
            if idle {
                application.next_read = Instant::FAR_FUTURE;
            } else if application.next_read == Instant::FAR_FUTURE {
                application.next_read = self.now;
            }
        }
        let [a, b] = &self.applications;
        [
            self.in_flight.keys().next().map_or(Instant::FAR_FUTURE, |(at, _)| *at),
            self.ends[0].next_timeout(),
            self.ends[1].next_timeout(),
            a.next_write,
            b.next_write,
            a.next_read,
            b.next_read,
        ]
    }

    fn act(&mut self, what: usize) {
        match what {
            0 => {
                let (_, (end, segment)) = self.in_flight.pop_first().unwrap();
                if segment.flags.contains(Flags::ACK) || segment.flags.contains(Flags::SYN) {
                    self.granted[end] = self.granted[end].max(segment.ack.max(1) + u64::from(segment.window));
                }
                self.ends[end].handle_segment(self.now, &segment);
                let limit = self.configs[end].receiver.receive_window.limit();
                self.check(self.ends[end].readable() <= limit + LARGEST_UNIT, "more than the receive buffer");
            }
            1 | 2 => self.ends[what - 1].handle_timeout(self.now),
            3 | 4 => self.writes(what - 3),
            _ => self.reads(what - 5),
        }
    }

    /// Returns the bytes delivered to both applications.
    fn delivered(&self) -> u64 {
        self.ends.iter().map(|end| end.stats().delivered_bytes).sum()
    }

    fn failed(&self) -> bool {
        self.applications.iter().any(|application| application.events.intersects(REPORTED))
    }

    fn run(mut self) -> (u64, bool) {
        let (mut here, mut fruitless, mut delivered) = (0, 0, 0);
        loop {
            (0..2).for_each(|end| self.drain(end));
            let deadlines = self.deadlines();
            let (what, at) = deadlines.into_iter().enumerate().min_by_key(|(_, at)| *at).unwrap();
            let closed = self.ends.iter().all(|end| end.state() == State::Closed);
            if at == Instant::FAR_FUTURE || (closed && self.in_flight.is_empty() && what < 3) {
                break;
            }
            // Keep-alives of an end that was not informed are not awaited.
            if self.failed()
                && self.in_flight.is_empty()
                && self.now > Instant::ZERO + Duration::from_secs(36_000)
            {
                break;
            }
            here = if at > self.now { 0 } else { here + 1 };
            self.now = self.now.max(at);
            self.check(here < 20_000, "time stands still");
            // A window of one byte needs a round trip or a timeout per byte: the transfer may be long, but makes progress.
            let before = std::mem::replace(&mut delivered, self.delivered());
            fruitless = if delivered > before { 0 } else { fruitless + 1 };
            self.check(fruitless < 3_000_000, "no end in sight");
            self.act(what);
        }
        self.settle()
    }

    /// True if no end has a reason to give up. With losses, two or three consecutive ones exceed a user timeout of seconds. A
    /// short TIME-WAIT may end before the peer repeats data whose ACK was lost. Overtaken packets are also lost, if later ones
    /// have newer timestamps (RFC 7323 section 5.3).
    fn is_calm(&self) -> bool {
        let patient = self.configs.iter().all(|config| {
            config.lifetime.user_timeout.is_none() && config.lifetime.time_wait >= Duration::from_secs(60)
        });
        let may_lose = |weather: &Weather| weather.loss > 0.0 || weather.reordering > 0.0;
        self.weather.iter().all(|weather| weather.is_calm() && (patient || !may_lose(weather)))
    }

    fn settle(mut self) -> (u64, bool) {
        for end in 0..2 {
            let _ = self.ends[end].read(self.now, u64::MAX);
            let delivered = self.ends[end].stats().delivered_bytes;
            self.check(delivered <= self.applications[1 - end].written, "more than was written");
            self.check(!self.is_calm() || !self.failed(), "given up in fair weather");
            if !self.failed() {
                self.check(self.ends[end].state() == State::Closed, "neither closed nor failed");
                self.check(delivered == self.applications[1 - end].to_write, "not everything delivered");
                self.check(
                    self.applications[end].events.contains(Events::PEER_CLOSED),
                    "the peer's end not told",
                );
                self.check(self.applications[end].events.contains(Events::CLOSED), "our end not told");
            }
        }
        let sent = self.ends.iter().map(|end| end.stats().sent_segments + end.stats().acks_sent).sum();
        (sent, self.failed())
    }
}

#[test]
fn whatever_the_weather_a_transfer_ends_in_order_or_with_a_report() {
    let number = |name: &str| env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    if let Some(seed) = number("BENTPIPE_STORM_SEED") {
        World::new(seed, true).run();
        return;
    }
    let worlds = number("BENTPIPE_STORM").unwrap_or(WORLDS);
    let from = number("BENTPIPE_STORM_FROM").unwrap_or_default();
    let (mut packets, mut failures, mut wrong) = (0, 0, Vec::new());
    for seed in from..from + worlds {
        // A failing world does not stop a run of hours.
        match panic::catch_unwind(|| World::new(seed, false).run()) {
            Ok((sent, failed)) => {
                packets += sent;
                failures += u64::from(failed);
            }
            Err(_) => {
                eprintln!("replay: BENTPIPE_STORM_SEED={seed} cargo test -p bentpipe-tcp --test storm");
                wrong.push(seed);
            }
        }
    }
    println!("storm of two ends: seeds {from} to {}, {packets} packets, {failures} given up", from + worlds);
    assert!(wrong.is_empty(), "these worlds went wrong: {wrong:?}");
    assert!(
        failures * 5 < worlds,
        "{failures} of {worlds} were given up: the weather is too bad to prove anything"
    );
}
