use std::collections::{BTreeMap, VecDeque};

use bentpipe_base::Instant;

use super::path::Path;
use super::{Chunk, Options};
use crate::outbox::{Fragment, Message, Outbox};
use crate::{Config, Progress};

const ASSOCIATION_MAX_RETRANS: u32 = 10;
const MAX_INIT_RETRANSMITS: u32 = 8;
const MISSES: u8 = 3;
/// Maximum number of packets in a burst.
const MAX_BURST: u32 = 4;

/// A sent chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    fragment: Fragment,
    place: Option<u64>,
    path: u8,
    at: Instant,
    misses: u8,
    pub state: Fate,
    pub repeated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    InFlight,
    /// Must be sent again.
    Lost,
    /// Received above a gap.
    Held,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing to send yet.
    Closed,
    /// INIT must be sent, again at this time.
    Opening {
        attempts: u32,
        at: Instant,
    },
    Open,
    Down,
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    options: Options,
    state: State,
    outbox: Outbox,
    base: u64,
    pub(super) sent: VecDeque<Sent>,
    /// First TSN beyond the receiver's window.
    limit: u64,
    /// Number of fragments of each stream so far.
    places: BTreeMap<u8, u64>,
    pub(super) paths: Vec<Path>,
    errors: u32,
    /// Packets that may leave before the next event (section 6.1 D).
    burst: u32,
    /// True if the receiver acknowledged the cookie.
    cookie_acked: bool,
    out: VecDeque<(u8, Chunk)>,
    progress: Progress,
}

impl Sender {
    /// Makes an end with `paths` paths, at least one. It opens an association at the first data.
    pub fn new(config: Config, options: Options, paths: u8) -> Self {
        Self {
            config,
            options,
            state: State::Closed,
            outbox: Outbox::default(),
            base: 0,
            sent: VecDeque::new(),
            limit: u64::from(config.window),
            places: BTreeMap::new(),
            paths: (0..paths).map(|_| Path::new(&config)).collect(),
            errors: 0,
            burst: MAX_BURST,
            cookie_acked: false,
            out: VecDeque::new(),
            progress: Progress::default(),
        }
    }

    pub(crate) fn write(&mut self, now: Instant, message: Message) {
        self.burst = MAX_BURST;
        self.outbox.push(message);
        if self.state == State::Closed {
            self.state = State::Opening { attempts: 0, at: now };
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress {
            failed: (self.state == State::Down).then_some("no response"),
            all_acknowledged: self.sent.is_empty() && self.outbox.is_empty(),
            srtt: self.paths[usize::from(self.path())].srtt.map(|(srtt, _)| srtt),
            ..self.progress
        }
    }

    fn packet(&self) -> u64 {
        u64::from(self.config.packet_bytes)
    }

    /// Returns the path for data: the first of those with the fewest consecutive timeouts.
    pub(super) fn path(&self) -> u8 {
        let best = (0..self.paths.len()).min_by_key(|path| self.paths[*path].errors);
        best.unwrap_or_default() as u8
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        match self.state {
            State::Closed | State::Down => Instant::FAR_FUTURE,
            State::Opening { at, .. } => at,
            State::Open => {
                let times = self.paths.iter().map(|path| path.expires_at.min(path.heartbeat_at));
                times.min().unwrap_or(Instant::FAR_FUTURE)
            }
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.burst = MAX_BURST;
        match self.state {
            State::Opening { attempts, at } if at <= now => self.open_again(now, attempts),
            State::Open => {
                for path in 0..self.paths.len() {
                    if self.paths[path].expires_at <= now {
                        self.expire(now, path);
                    }
                    if self.paths[path].heartbeat_at <= now {
                        self.beat(now, path);
                    }
                }
            }
            _ => {}
        }
    }

    /// Sends INIT again, on another path each time.
    fn open_again(&mut self, now: Instant, attempts: u32) {
        if attempts > MAX_INIT_RETRANSMITS {
            self.state = State::Down;
            return;
        }
        let path = (attempts as usize % self.paths.len()) as u8;
        self.out.push_back((path, Chunk::Init));
        self.progress.timeouts += u64::from(attempts > 0);
        let wait = Path::first_rto(attempts);
        self.state = State::Opening { attempts: attempts + 1, at: now + wait };
    }

    /// Handles T3-rtx of a path (section 6.3.3).
    fn expire(&mut self, now: Instant, index: usize) {
        let packet = self.packet();
        self.progress.timeouts += 1;
        let path = &mut self.paths[index];
        path.halve(packet);
        path.cwnd = packet;
        path.recovers_to = None;
        path.expires_at = Instant::FAR_FUTURE;
        self.note_error(now, index);
        for sent in &mut self.sent {
            if usize::from(sent.path) == index && sent.state == Fate::InFlight {
                sent.state = Fate::Lost;
            }
        }
        self.paths[index].in_flight = 0;
        if !self.cookie_acked {
            self.out.push_back((self.path(), Chunk::CookieEcho));
        }
    }

    fn note_error(&mut self, now: Instant, index: usize) {
        self.paths[index].fail(now);
        self.errors += 1;
        if self.errors > ASSOCIATION_MAX_RETRANS {
            self.state = State::Down;
        }
    }

    /// Sends a heartbeat that is due.
    fn beat(&mut self, now: Instant, index: usize) {
        self.paths[index].beat(now);
        self.out.push_back((index as u8, Chunk::Heartbeat { stamp: now }));
    }

    pub(crate) fn handle(&mut self, now: Instant, port: u8, chunk: &Chunk) {
        self.burst = MAX_BURST;
        match (self.state, chunk) {
            (State::Opening { .. }, Chunk::InitAck) => {
                // Data follows the cookie at once (section 5.1).
                self.state = State::Open;
                self.out.push_back((port, Chunk::CookieEcho));
            }
            (State::Open, Chunk::CookieAck) if !self.cookie_acked => {
                self.cookie_acked = true;
                // Heartbeats measure the other paths at once.
                self.paths.iter_mut().for_each(|path| path.heartbeat_at = now);
                self.handle_timeout(now);
            }
            (State::Open, Chunk::HeartbeatAck { echo }) => {
                if let Some(path) = self.paths.get_mut(usize::from(port)) {
                    path.sample(now.since(*echo));
                    path.beat(now);
                    self.errors = 0;
                }
            }
            (State::Open, Chunk::Sack { cumulative, held, window }) => {
                self.acknowledge(now, *cumulative, held);
                self.limit = self.limit.max(*cumulative + *window);
            }
            _ => {}
        }
    }

    fn acknowledge(&mut self, now: Instant, cumulative: u64, held: &[(u64, u64)]) {
        let advanced = cumulative > self.base;
        let full: Vec<bool> =
            self.paths.iter().map(|path| path.in_flight + self.packet() > path.cwnd).collect();
        let mut acknowledged = vec![0; self.paths.len()];
        let mut highest = None;
        let drained = cumulative.min(self.base + self.sent.len() as u64).saturating_sub(self.base);
        for index in 0..self.sent.len() {
            let tsn = self.base + index as u64;
            let is_held = held.iter().any(|(from, to)| (*from..*to).contains(&tsn));
            if (tsn < cumulative || is_held) && self.sent[index].state != Fate::Held {
                self.credit(now, index, &mut acknowledged);
                highest = Some(tsn);
            }
        }
        self.sent.drain(..drained as usize);
        self.base += drained;
        if let Some(highest) = highest {
            self.errors = 0;
            self.count_misses(highest);
        }
        let packet = self.packet();
        for (index, path) in self.paths.iter_mut().enumerate() {
            if path.recovers_to.is_some_and(|tsn| self.base > tsn) {
                path.recovers_to = None;
            }
            if advanced && full[index] && path.recovers_to.is_none() && acknowledged[index] > 0 {
                path.grow(acknowledged[index], packet);
            }
            if path.in_flight == 0 {
                path.expires_at = Instant::FAR_FUTURE;
            } else if acknowledged[index] > 0 {
                path.expires_at = now + path.rto;
            }
        }
    }

    /// Handles the first acknowledgement of the chunk at this index.
    fn credit(&mut self, now: Instant, index: usize, acknowledged: &mut [u64]) {
        let sent = &mut self.sent[index];
        let path = &mut self.paths[usize::from(sent.path)];
        let bytes = u64::from(sent.fragment.bytes);
        if sent.state == Fate::InFlight {
            path.in_flight -= bytes;
        }
        sent.state = Fate::Held;
        acknowledged[usize::from(sent.path)] += bytes;
        if sent.repeated {
            path.errors = 0;
        } else {
            path.sample(now.since(sent.at));
        }
    }

    /// Section 7.2.4: counts a miss for each chunk below the highest newly acknowledged one.
    pub(super) fn count_misses(&mut self, highest: u64) {
        let (packet, next) = (self.packet(), self.base + self.sent.len() as u64);
        let below = highest.saturating_sub(self.base) as usize;
        for sent in self.sent.iter_mut().take(below).filter(|sent| sent.state == Fate::InFlight) {
            sent.misses = sent.misses.saturating_add(1);
            // This rule retransmits once; further retransmissions need the timer.
            if sent.misses != MISSES || sent.repeated {
                continue;
            }
            sent.state = Fate::Lost;
            let path = &mut self.paths[usize::from(sent.path)];
            path.in_flight -= u64::from(sent.fragment.bytes);
            if path.recovers_to.is_none() {
                path.halve(packet);
                path.cwnd = path.ssthresh;
                path.recovers_to = Some(next - 1);
            }
        }
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<(u8, Chunk)> {
        if let Some((path, chunk)) = self.out.pop_front() {
            self.progress.control_packets += 1;
            self.progress.control_bytes += u64::from(chunk.bytes());
            return Some((path, chunk));
        }
        if self.state != State::Open || self.burst == 0 {
            return None;
        }
        let index = self.path();
        let path = &self.paths[usize::from(index)];
        if path.in_flight > 0 && path.in_flight + self.packet() > path.cwnd {
            return None;
        }
        self.repeat(now, index).or_else(|| self.send_new(now, index)).map(|chunk| (index, chunk))
    }

    fn repeat(&mut self, now: Instant, path: u8) -> Option<Chunk> {
        let index = self.sent.iter().position(|sent| sent.state == Fate::Lost)?;
        let sent = &mut self.sent[index];
        *sent = Sent { path, at: now, misses: 0, state: Fate::InFlight, repeated: true, ..*sent };
        let (fragment, place) = (sent.fragment, sent.place);
        self.progress.repeated_packets += 1;
        self.note_departure(now, path, fragment.bytes);
        Some(Chunk::Data { tsn: self.base + index as u64, place, fragment })
    }

    fn send_new(&mut self, now: Instant, path: u8) -> Option<Chunk> {
        let tsn = self.base + self.sent.len() as u64;
        if tsn >= self.limit {
            return None;
        }
        let fragment = self.outbox.fragment(self.config.packet_bytes)?;
        let place = (!self.options.unordered).then(|| {
            let next = self.places.entry(fragment.stream).or_default();
            *next += 1;
            *next - 1
        });
        let state = Fate::InFlight;
        self.sent.push_back(Sent { fragment, place, path, at: now, misses: 0, state, repeated: false });
        self.note_departure(now, path, fragment.bytes);
        Some(Chunk::Data { tsn, place, fragment })
    }

    /// Records data of `bytes` bytes that leaves.
    fn note_departure(&mut self, now: Instant, path: u8, bytes: u32) {
        let path = &mut self.paths[usize::from(path)];
        path.in_flight += u64::from(bytes);
        if path.expires_at == Instant::FAR_FUTURE {
            path.expires_at = now + path.rto;
        }
        self.burst -= 1;
        self.progress.sent_packets += 1;
    }
}
