//! CPU cost of a segment in both engines over an ideal pipe: 1 Gbit/s and a round trip of 550 ms, or a small window. With loss,
//! a segment may cost at most twice as much.

mod steady;

use std::collections::VecDeque;
use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rng, Segment};
use bentpipe_cc::{Algorithm, CongestionControl, Custom, Start};
use bentpipe_tcp::{Config, Connection, DelayedAck, Events, ReceiveWindow, Recovery, Transmit};
use criterion::{Criterion, criterion_group, criterion_main};
use steady::{LARGE, Steady};

const DELAY_ONE_WAY: Duration = Duration::from_millis(275);
/// Time between segments of 1000 bytes at 1 Gbit/s.
const SPACING: Duration = Duration::from_micros(8);
const BUFFER: u64 = 512 << 20;

fn small(_: &Start) -> Box<dyn CongestionControl> {
    Box::new(Steady(64))
}

fn large(_: &Start) -> Box<dyn CongestionControl> {
    Box::new(Steady(LARGE))
}

/// Function that builds an algorithm, as [`Custom`] requires.
type Build = fn(&Start) -> Box<dyn CongestionControl>;

/// A sender (0), a receiver (1), and the segments in flight from each.
struct World {
    now: Instant,
    ends: [Connection; 2],
    pipes: [VecDeque<(Instant, Segment)>; 2],
    free_at: Instant,
    dice: Rng,
    loss: f64,
    arrived: u64,
}

impl World {
    fn new(build: Build, recovery: Recovery, loss: f64) -> Self {
        let config = Arc::new(Config::default().with(|config| {
            config.sender.cc = Algorithm::Custom(Custom::new("steady", build));
            config.mss = 1000;
            config.sender.recovery = recovery;
            config.receiver.delayed_ack = DelayedAck::Off;
            config.receiver.receive_window = ReceiveWindow::Fixed(BUFFER);
            config.sender.send_buffer = BUFFER;
        }));
        let now = Instant::ZERO + Duration::from_secs(1);
        let ends = [Connection::connect(config.clone(), 1, now), Connection::listen(config, 2)];
        let mut world = Self {
            now,
            ends,
            pipes: [VecDeque::new(), VecDeque::new()],
            free_at: now,
            dice: Rng::stream(1, "loss"),
            loss,
            arrived: 0,
        };
        world.drain(0);
        world.deliver(u64::from(LARGE) * 2);
        world
    }

    /// Runs until `segments` more data segments have arrived.
    fn deliver(&mut self, segments: u64) {
        let until = self.arrived + segments;
        while self.arrived < until {
            self.step();
        }
    }

    fn step(&mut self) {
        let arrival = |end: usize| self.pipes[end].front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        let times = [arrival(0), arrival(1), self.ends[0].next_timeout(), self.ends[1].next_timeout()];
        let (what, at) = times.into_iter().enumerate().min_by_key(|(_, at)| *at).expect("four of them");
        assert!(at < Instant::FAR_FUTURE, "nothing will ever happen again");
        self.now = self.now.max(at);
        if what >= 2 {
            self.ends[what - 2].handle_timeout(self.now);
            self.drain(what - 2);
            return;
        }
        let (_, segment) = self.pipes[what].pop_front().expect("it has an arrival time");
        self.arrived += u64::from(what == 0 && segment.len > 0);
        self.ends[1 - what].handle_segment(self.now, &segment);
        self.drain(1 - what);
    }

    fn drain(&mut self, end: usize) {
        let events = self.ends[end].take_events();
        if events.contains(Events::READABLE) {
            self.ends[end].read(self.now, u64::MAX);
        }
        if end == 0 && events.intersects(Events::WRITABLE.union(Events::ESTABLISHED)) {
            // More data than fits: only a partial write causes an event for new room.
            self.ends[end].write(self.now, u64::MAX);
        }
        let mut segment = Segment::default();
        loop {
            let transmit = self.ends[end].transmit_into(self.now, &mut segment);
            if transmit == Transmit::Nothing {
                break;
            }
            self.transmit(end, segment);
            if transmit == Transmit::Last {
                break;
            }
        }
    }

    fn transmit(&mut self, end: usize, segment: Segment) {
        let mut leaves = self.now;
        if segment.len > 0 {
            self.free_at = self.free_at.max(self.now) + SPACING;
            leaves = self.free_at;
            if self.loss > 0.0 && self.dice.uniform() < self.loss {
                return;
            }
        }
        self.pipes[end].push_back((leaves + DELAY_ONE_WAY, segment));
    }
}

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("per-segment");
    group.sample_size(20);
    group.warm_up_time(std::time::Duration::from_millis(500));
    group.measurement_time(std::time::Duration::from_secs(2));
    let worlds: [(&str, Build, Recovery, f64); 5] = [
        ("window 64", small, Recovery::Rack, 0.0),
        ("window 69000", large, Recovery::Rack, 0.0),
        ("window 69000, loss 1 %, rack", large, Recovery::Rack, 0.01),
        ("window 69000, sack", large, Recovery::Sack, 0.0),
        ("window 69000, loss 1 %, sack", large, Recovery::Sack, 0.01),
    ];
    for (name, build, recovery, loss) in worlds {
        let mut world = World::new(build, recovery, loss);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|segments| {
                let begun = std::time::Instant::now();
                world.deliver(segments);
                begun.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
