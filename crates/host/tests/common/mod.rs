//! Two stacks with a network between them, and a manually advanced clock.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rng};
use bentpipe_cc::Algorithm;
use bentpipe_host::{Id, Limits, Stack, StackConfig};
use bentpipe_tcp::{Config, State};
use bentpipe_wire::{Datagram, Header, Offload};

pub const PORT: u16 = 5001;

pub fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn address(end: usize, v6: bool) -> IpAddr {
    let host = end as u8 + 1;
    if v6 { [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)].into() } else { [192, 0, 2, host].into() }
}

pub fn config() -> Config {
    let cc = Algorithm::from_name("cubic").expect("it is registered");
    Config::default().with(|config| config.sender.cc = cc)
}

pub fn stack_config(end: usize) -> StackConfig {
    StackConfig {
        addresses: vec![address(end, false), address(end, true)],
        transparent: false,
        mtu: 1500,
        offload: false,
        key: 0x1234_5678_9abc_def0_0fed_cba9_8765_4321 ^ end as u128,
        limits: Limits::default(),
    }
}

/// Effects of the network on packets.
#[derive(Clone)]
pub struct Weather {
    pub delay: Duration,
    pub loss: f64,
    pub duplication: f64,
    pub reordering: f64,
    pub corruption: f64,
    /// Packets above this size are silently lost.
    pub largest: usize,
    /// Start and end of an outage.
    pub outage: (Instant, Instant),
}

impl Default for Weather {
    fn default() -> Self {
        Self {
            delay: millis(10),
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            corruption: 0.0,
            largest: usize::MAX,
            outage: (Instant::FAR_FUTURE, Instant::FAR_FUTURE),
        }
    }
}

pub struct World {
    pub now: Instant,
    pub stacks: [Stack; 2],
    offload: [bool; 2],
    pub weather: Weather,
    under_way: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    sent: u64,
    rng: Rng,
    /// All sent packets with their sending end, before the effects of the network.
    pub seen: Vec<(usize, Vec<u8>)>,
    pub keep_seen: bool,
}

impl World {
    pub fn new(configs: [StackConfig; 2], seed: u64) -> Self {
        let offload = [configs[0].offload, configs[1].offload];
        Self {
            // The clock does not start at zero, as in a process that has run for a while.
            now: Instant::ZERO + Duration::from_secs(5),
            stacks: configs.map(Stack::new),
            offload,
            weather: Weather::default(),
            under_way: BTreeMap::new(),
            sent: 0,
            rng: Rng::stream(seed, "weather"),
            seen: Vec::new(),
            keep_seen: false,
        }
    }

    pub fn plain() -> Self {
        Self::new([stack_config(0), stack_config(1)], 1)
    }

    /// Establishes a connection from end 0 to end 1.
    pub fn connected(&mut self, configs: [Config; 2], v6: bool) -> [Id; 2] {
        let [ours, theirs] = configs;
        self.stacks[1].listen(PORT, Arc::new(theirs));
        let id = self.stacks[0].connect(self.now, SocketAddr::new(address(1, v6), PORT), ours).unwrap();
        let mut accepted = None;
        self.run_until(Duration::from_secs(60), |world| {
            accepted = accepted.or_else(|| world.stacks[1].accept(PORT));
            accepted.is_some()
        });
        [id, accepted.expect("the handshake completes")]
    }

    pub fn state(&self, end: usize, id: Id) -> State {
        self.stacks[end].connection(id).map_or(State::Closed, |connection| connection.state())
    }

    /// Delivers a packet to `end` now, as if from the network.
    pub fn inject(&mut self, end: usize, packet: &[u8]) {
        let now = self.now;
        self.stacks[end].handle_packet(now, &Offload::default(), packet);
        self.drain();
    }

    /// Lets both stacks send their packets.
    pub fn drain(&mut self) {
        for end in 0..2 {
            let mut out = Vec::new();
            while self.stacks[end].poll_packet(self.now, &mut out) {
                if self.keep_seen {
                    let skip = if self.offload[end] { 10 } else { 0 };
                    self.seen.push((end, out[skip..].to_vec()));
                }
                self.send(end, std::mem::take(&mut out));
            }
        }
    }

    fn send(&mut self, from: usize, mut packet: Vec<u8>) {
        let weather = self.weather.clone();
        let out = (weather.outage.0..weather.outage.1).contains(&self.now);
        if out || packet.len() > weather.largest || self.rng.chance(weather.loss) {
            return;
        }
        if self.rng.chance(weather.duplication) {
            self.carry(from, packet.clone(), weather.delay + millis(1));
        }
        if self.rng.chance(weather.corruption) {
            let at = self.rng.below(packet.len() as u64) as usize;
            packet[at] ^= 1 << self.rng.below(8);
        }
        let late =
            if self.rng.chance(weather.reordering) { millis(self.rng.below(20)) } else { Duration::ZERO };
        self.carry(from, packet, weather.delay + late);
    }

    fn carry(&mut self, from: usize, packet: Vec<u8>, delay: Duration) {
        self.sent += 1;
        self.under_way.insert((self.now + delay, self.sent), (from, packet));
    }

    fn arrive(&mut self, from: usize, bytes: &[u8]) {
        let stack = &mut self.stacks[1 - from];
        if self.offload[from] {
            let (offload, packet) = Offload::read(bytes).unwrap();
            stack.handle_packet(self.now, &offload, packet);
        } else {
            stack.handle_packet(self.now, &Offload::default(), bytes);
        }
    }

    /// Advances to the next event. Returns false if there is none.
    fn step(&mut self) -> bool {
        self.drain();
        let arrival = self.under_way.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), _)| *at);
        let next = self.stacks.iter().map(Stack::next_timeout).fold(arrival, Instant::min);
        if next == Instant::FAR_FUTURE {
            return false;
        }
        self.now = self.now.max(next);
        while let Some(first) = self.under_way.first_entry().filter(|first| first.key().0 <= self.now) {
            let (from, packet) = first.remove();
            self.arrive(from, &packet);
        }
        for stack in &mut self.stacks {
            stack.handle_timeouts(self.now);
        }
        true
    }

    /// Runs until `done`, for at most `span`. Returns true if `done` was reached.
    pub fn run_until(&mut self, span: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + span;
        while self.now <= end {
            if done(self) {
                return true;
            }
            if !self.step() {
                return done(self);
            }
        }
        false
    }

    /// Runs for `span`.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.drain();
            let arrival = self.under_way.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), _)| *at);
            let next = self.stacks.iter().map(Stack::next_timeout).fold(arrival, Instant::min);
            if next > end || !self.step() {
                self.now = self.now.max(end);
                return;
            }
        }
    }

    /// Sends `data[n]` from end `n` and closes. Returns the received data of each end, when both have
    /// seen the end.
    pub fn exchange(&mut self, ids: [Id; 2], data: [&[u8]; 2], span: Duration) -> [Vec<u8>; 2] {
        let (mut written, mut got) = ([0; 2], [Vec::new(), Vec::new()]);
        let mut closed = [false; 2];
        let mut buffer = vec![0; 1 << 16];
        self.run_until(span, |world| {
            for end in 0..2 {
                let stack = &mut world.stacks[end];
                let id = ids[end];
                written[end] += stack.write(world.now, id, &data[end][written[end]..]);
                if written[end] == data[end].len() && !std::mem::replace(&mut closed[end], true) {
                    stack.close(world.now, id);
                }
                loop {
                    let len = stack.read(world.now, id, &mut buffer);
                    if len == 0 {
                        break;
                    }
                    got[end].extend_from_slice(&buffer[..len]);
                }
            }
            let over = |state| matches!(state, State::TimeWait | State::Closed);
            over(world.state(0, ids[0])) && over(world.state(1, ids[1]))
        });
        got
    }
}

/// Returns bytes that depend on their position.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::stream(seed, "pattern");
    (0..len).map(|_| rng.bits() as u8).collect()
}

/// Returns header and payload length of a packet.
pub fn read(packet: &[u8]) -> (Header, usize) {
    let datagram = Datagram::read(packet).unwrap();
    let (header, payload) = Header::read(datagram.payload).unwrap();
    (header, payload.len())
}
