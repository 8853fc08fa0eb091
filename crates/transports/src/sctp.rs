//! An association in the manner of SCTP (RFC 9260): several streams, each in order by itself, over two paths.
//!
//! What is taken from SCTP: the handshake with its cookie, selective acknowledgements, a congestion window for each path, fast retransmission after three
//! misses, heartbeats, and failover. Fragments carry their place in their stream as in RFC 8260, and a path that times out is avoided at once as
//! RFC 7829 recommends (PFMR = 0) instead of after five timeouts. Data chunks are not bundled, and associations are not shut down.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_base::{Duration, Instant};

use crate::outbox::{Fragment, Message, Outbox};
use crate::{Config, IP_HEADER, Progress};

const COMMON_HEADER: u32 = 12;
const DATA_HEADER: u32 = 20;
const RTO_INITIAL: Duration = Duration::from_secs(1);
const RTO_MIN: Duration = Duration::from_secs(1);
const RTO_MAX: Duration = Duration::from_secs(60);
const ASSOCIATION_MAX_RETRANS: u32 = 10;
const MAX_INIT_RETRANSMITS: u32 = 8;
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);
const SACK_DELAY: Duration = Duration::from_millis(200);
const MISSES: u8 = 3;
/// Gaps in a SACK at most: more would not fit into a packet of 1500 bytes, and never occur together.
const SACK_GAPS: usize = 100;

/// A packet of an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chunk {
    /// INIT.
    Init,
    /// INIT ACK with a cookie.
    InitAck,
    /// COOKIE ECHO.
    CookieEcho,
    /// COOKIE ACK.
    CookieAck,
    /// I-DATA.
    Data {
        /// Transmission sequence number.
        tsn: u64,
        /// Place among the fragments of its stream.
        place: u64,
        /// What it carries.
        fragment: Fragment,
    },
    /// SACK.
    Sack {
        /// Everything below has arrived.
        cumulative: u64,
        /// What has arrived above, as ranges that do not include their ends.
        held: Vec<(u64, u64)>,
        /// Packets for which the receiver has room above `cumulative`.
        window: u64,
    },
    /// HEARTBEAT.
    Heartbeat {
        /// Time of sending.
        stamp: Instant,
    },
    /// HEARTBEAT ACK.
    HeartbeatAck {
        /// Time of sending of the heartbeat.
        echo: Instant,
    },
}

impl Chunk {
    /// Size on the wire from the IP header on.
    pub(crate) fn bytes(&self) -> u32 {
        IP_HEADER
            + COMMON_HEADER
            + match self {
                Self::Init => 20,
                // With the state cookie, of a usual size.
                Self::InitAck => 120,
                Self::CookieEcho => 100,
                Self::CookieAck => 4,
                Self::Data { fragment, .. } => DATA_HEADER + fragment.bytes,
                Self::Sack { held, .. } => 16 + 4 * held.len() as u32,
                Self::Heartbeat { .. } | Self::HeartbeatAck { .. } => 16,
            }
    }
}

/// What the sender knows of a path (RFC 9260 section 7.2). Sizes in bytes.
#[derive(Clone, Debug)]
struct Path {
    cwnd: u64,
    ssthresh: u64,
    partial: u64,
    in_flight: u64,
    rto: Duration,
    srtt: Option<(Duration, Duration)>,
    /// Timeouts in a row.
    errors: u32,
    /// T3-rtx.
    expires_at: Instant,
    heartbeat_at: Instant,
    /// In fast recovery until this number is acknowledged.
    recovers_to: Option<u64>,
}

impl Path {
    fn new(config: &Config) -> Self {
        Self {
            cwnd: u64::from(config.initial_window * config.packet_bytes),
            ssthresh: u64::MAX,
            partial: 0,
            in_flight: 0,
            rto: RTO_INITIAL,
            srtt: None,
            errors: 0,
            expires_at: Instant::FAR_FUTURE,
            heartbeat_at: Instant::FAR_FUTURE,
            recovers_to: None,
        }
    }

    /// RFC 9260 section 6.3.1.
    fn sample(&mut self, rtt: Duration) {
        let (srtt, var) = match self.srtt {
            None => (rtt, rtt / 2),
            Some((srtt, var)) => (srtt * 7 / 8 + rtt / 8, var * 3 / 4 + srtt.abs_diff(rtt) / 4),
        };
        self.srtt = Some((srtt, var));
        self.rto = (srtt + var * 4).clamp(RTO_MIN, RTO_MAX);
        self.errors = 0;
    }

    fn halve(&mut self, packet: u64) {
        self.ssthresh = (self.cwnd / 2).max(4 * packet);
        self.partial = 0;
    }

    /// Section 7.2.1 and 7.2.2: so much was acknowledged while the window was full.
    fn grow(&mut self, acknowledged: u64, packet: u64) {
        if self.cwnd <= self.ssthresh {
            self.cwnd += acknowledged.min(packet);
            return;
        }
        self.partial += acknowledged;
        if self.partial >= self.cwnd {
            self.partial -= self.cwnd;
            self.cwnd += packet;
        }
    }
}

/// A chunk that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    fragment: Fragment,
    place: u64,
    path: u8,
    at: Instant,
    misses: u8,
    state: Fate,
    repeated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    InFlight,
    /// To be sent again.
    Lost,
    /// Held by the receiver above a gap.
    Held,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing to send yet.
    Closed,
    /// INIT is to be sent, again at that time.
    Opening {
        attempts: u32,
        at: Instant,
    },
    Open,
    Down,
}

/// The end that sends.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    state: State,
    outbox: Outbox,
    base: u64,
    sent: VecDeque<Sent>,
    /// First TSN for which the receiver has no room.
    limit: u64,
    /// Fragments of each stream so far.
    places: BTreeMap<u8, u64>,
    paths: Vec<Path>,
    errors: u32,
    /// The receiver has its cookie back.
    cookie_acked: bool,
    out: VecDeque<(u8, Chunk)>,
    progress: Progress,
}

impl Sender {
    /// An end with so many paths, at least one, that opens an association when it is given something to send.
    pub fn new(config: Config, paths: u8) -> Self {
        Self {
            config,
            state: State::Closed,
            outbox: Outbox::default(),
            base: 0,
            sent: VecDeque::new(),
            limit: u64::from(config.window),
            places: BTreeMap::new(),
            paths: (0..paths).map(|_| Path::new(&config)).collect(),
            errors: 0,
            cookie_acked: false,
            out: VecDeque::new(),
            progress: Progress::default(),
        }
    }

    pub(crate) fn write(&mut self, now: Instant, message: Message) {
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

    /// The path for data: of those with the fewest timeouts in a row the first.
    fn path(&self) -> u8 {
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

    /// INIT leaves, on another path each time.
    fn open_again(&mut self, now: Instant, attempts: u32) {
        if attempts > MAX_INIT_RETRANSMITS {
            self.state = State::Down;
            return;
        }
        let path = (attempts as usize % self.paths.len()) as u8;
        self.out.push_back((path, Chunk::Init));
        self.progress.timeouts += u64::from(attempts > 0);
        let wait = (RTO_INITIAL * (1 << attempts)).min(RTO_MAX);
        self.state = State::Opening { attempts: attempts + 1, at: now + wait };
    }

    /// T3-rtx of a path (section 6.3.3).
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
        let path = &mut self.paths[index];
        path.rto = (path.rto * 2).min(RTO_MAX);
        path.errors += 1;
        // A path in doubt is asked once in its timeout whether it is back.
        path.heartbeat_at = path.heartbeat_at.min(now + path.rto);
        self.errors += 1;
        if self.errors > ASSOCIATION_MAX_RETRANS {
            self.state = State::Down;
        }
    }

    /// A heartbeat is due. To a path in doubt they become rarer while nothing comes back.
    fn beat(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        let wait = if path.errors > 0 { path.rto } else { HEARTBEAT_INTERVAL + path.rto };
        path.heartbeat_at = now + wait;
        if path.errors > 0 {
            path.rto = (path.rto * 2).min(RTO_MAX);
        }
        self.out.push_back((index as u8, Chunk::Heartbeat { stamp: now }));
    }

    pub(crate) fn handle(&mut self, now: Instant, port: u8, chunk: &Chunk) {
        match (self.state, chunk) {
            (State::Opening { .. }, Chunk::InitAck) => {
                // Data follows the cookie at once (section 5.1).
                self.state = State::Open;
                self.out.push_back((port, Chunk::CookieEcho));
            }
            (State::Open, Chunk::CookieAck) if !self.cookie_acked => {
                self.cookie_acked = true;
                // The other paths are asked at once how far they are.
                self.paths.iter_mut().for_each(|path| path.heartbeat_at = now);
                self.handle_timeout(now);
            }
            (State::Open, Chunk::HeartbeatAck { echo }) => {
                if let Some(path) = self.paths.get_mut(usize::from(port)) {
                    path.sample(now.since(*echo));
                    path.heartbeat_at = now + HEARTBEAT_INTERVAL + path.rto;
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

    /// The chunk at this place is acknowledged for the first time.
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

    /// Section 7.2.4: what is below the highest newly acknowledged was missed once more.
    fn count_misses(&mut self, highest: u64) {
        let (packet, next) = (self.packet(), self.base + self.sent.len() as u64);
        let below = highest.saturating_sub(self.base) as usize;
        for sent in self.sent.iter_mut().take(below).filter(|sent| sent.state == Fate::InFlight) {
            sent.misses = sent.misses.saturating_add(1);
            // Sent again once by this rule; after that only by the timer.
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
        if self.state != State::Open {
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
        Some(self.leave(now, path, (self.base + index as u64, place, fragment)))
    }

    fn send_new(&mut self, now: Instant, path: u8) -> Option<Chunk> {
        let tsn = self.base + self.sent.len() as u64;
        if tsn >= self.limit {
            return None;
        }
        let fragment = self.outbox.fragment(self.config.packet_bytes)?;
        let next = self.places.entry(fragment.stream).or_default();
        let place = *next;
        *next += 1;
        let state = Fate::InFlight;
        self.sent.push_back(Sent { fragment, place, path, at: now, misses: 0, state, repeated: false });
        Some(self.leave(now, path, (tsn, place, fragment)))
    }

    fn leave(&mut self, now: Instant, path: u8, (tsn, place, fragment): (u64, u64, Fragment)) -> Chunk {
        let path = &mut self.paths[usize::from(path)];
        path.in_flight += u64::from(fragment.bytes);
        if path.expires_at == Instant::FAR_FUTURE {
            path.expires_at = now + path.rto;
        }
        self.progress.sent_packets += 1;
        Chunk::Data { tsn, place, fragment }
    }
}

/// Fragments of a stream that wait for those before them.
#[derive(Clone, Default, Debug)]
struct Stream {
    next: u64,
    waiting: BTreeMap<u64, Fragment>,
}

/// The end that receives.
#[derive(Clone, Debug)]
pub struct Receiver {
    window: u64,
    /// The cookie came back.
    is_open: bool,
    cumulative: u64,
    /// Numbers that arrived above, as ranges by their beginnings.
    held: BTreeMap<u64, u64>,
    streams: BTreeMap<u8, Stream>,
    delivered: VecDeque<Fragment>,
    out: VecDeque<(u8, Chunk)>,
    /// Data chunks since the last SACK, and when one is due, on the path of the last.
    unacknowledged: u32,
    sack_at: Instant,
    last_port: u8,
    progress: Progress,
}

impl Receiver {
    /// An end that waits for an association.
    pub fn new(config: Config) -> Self {
        Self {
            window: u64::from(config.window),
            is_open: false,
            cumulative: 0,
            held: BTreeMap::new(),
            streams: BTreeMap::new(),
            delivered: VecDeque::new(),
            out: VecDeque::new(),
            unacknowledged: 0,
            sack_at: Instant::FAR_FUTURE,
            last_port: 0,
            progress: Progress::default(),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    pub(crate) fn poll_delivery(&mut self) -> Option<Fragment> {
        self.delivered.pop_front()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<(u8, Chunk)> {
        let (port, chunk) = self.out.pop_front()?;
        self.progress.control_packets += 1;
        self.progress.control_bytes += u64::from(chunk.bytes());
        Some((port, chunk))
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.sack_at
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.sack_at <= now {
            self.sack();
        }
    }

    pub(crate) fn handle(&mut self, now: Instant, port: u8, chunk: &Chunk) {
        match *chunk {
            Chunk::Init => self.out.push_back((port, Chunk::InitAck)),
            Chunk::CookieEcho => {
                self.is_open = true;
                self.out.push_back((port, Chunk::CookieAck));
            }
            Chunk::Heartbeat { stamp } => self.out.push_back((port, Chunk::HeartbeatAck { echo: stamp })),
            Chunk::Data { tsn, place, fragment } if self.is_open => {
                self.last_port = port;
                let is_fresh = tsn >= self.cumulative && !self.holds(tsn);
                if is_fresh && tsn < self.cumulative + self.window {
                    self.take(tsn, place, fragment);
                }
                self.unacknowledged += 1;
                if !is_fresh || !self.held.is_empty() || self.unacknowledged >= 2 {
                    self.sack();
                } else {
                    self.sack_at = now + SACK_DELAY;
                }
            }
            _ => {}
        }
    }

    fn holds(&self, tsn: u64) -> bool {
        self.held.range(..=tsn).next_back().is_some_and(|(_, end)| tsn < *end)
    }

    fn take(&mut self, tsn: u64, place: u64, fragment: Fragment) {
        self.progress.fresh_packets += 1;
        let mut range = (tsn, tsn + 1);
        if let Some((&from, _)) = self.held.range(..tsn).next_back().filter(|(_, end)| **end == tsn) {
            self.held.remove(&from);
            range.0 = from;
        }
        if let Some(end) = self.held.remove(&range.1) {
            range.1 = end;
        }
        if range.0 == self.cumulative {
            self.cumulative = range.1;
        } else {
            self.held.insert(range.0, range.1);
        }
        let stream = self.streams.entry(fragment.stream).or_default();
        stream.waiting.insert(place, fragment);
        while let Some(fragment) = stream.waiting.remove(&stream.next) {
            stream.next += 1;
            self.delivered.push_back(fragment);
        }
    }

    fn sack(&mut self) {
        (self.unacknowledged, self.sack_at) = (0, Instant::FAR_FUTURE);
        let held = self.held.iter().map(|(from, end)| (*from, *end)).take(SACK_GAPS).collect();
        let (cumulative, window) = (self.cumulative, self.window);
        self.out.push_back((self.last_port, Chunk::Sack { cumulative, held, window }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Config = Config { packet_bytes: 1000, initial_window: 4, window: 100 };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Both ends, with data of two streams sent alternately after the cookie at 500 ms.
    fn begun() -> (Sender, Receiver, Vec<(u8, Chunk)>) {
        let (mut sender, mut receiver) = (Sender::new(CONFIG, 2), Receiver::new(CONFIG));
        for number in 0..40 {
            sender.write(at(0), Message { number, stream: (number % 2) as u8, bytes: 1000 });
        }
        sender.handle_timeout(at(0));
        let (port, init) = sender.poll_transmit(at(0)).unwrap();
        receiver.handle(at(250), port, &init);
        let (port, answer) = receiver.poll_transmit().unwrap();
        sender.handle(at(500), port, &answer);
        let chunks: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(at(500))).collect();
        let (port, echo) = &chunks[0];
        assert_eq!(*echo, Chunk::CookieEcho);
        receiver.handle(at(750), *port, echo);
        let (port, answer) = receiver.poll_transmit().unwrap();
        sender.handle(at(1000), port, &answer);
        assert_eq!(std::iter::from_fn(|| sender.poll_transmit(at(1000))).count(), 2, "heartbeats");
        let data = chunks.into_iter().filter(|(_, chunk)| matches!(chunk, Chunk::Data { .. }));
        (sender, receiver, data.collect())
    }

    #[test]
    fn a_loss_in_one_stream_does_not_hold_up_the_other() {
        let (_, mut receiver, data) = begun();
        assert_eq!(data.len(), 4);
        for (port, chunk) in &data[1..] {
            receiver.handle(at(1300), *port, chunk);
        }
        let delivered: Vec<_> = std::iter::from_fn(|| receiver.poll_delivery()).collect();
        assert_eq!(delivered.iter().map(|fragment| fragment.message).collect::<Vec<_>>(), [1, 3]);
        receiver.handle(at(1900), data[0].0, &data[0].1);
        let delivered: Vec<_> = std::iter::from_fn(|| receiver.poll_delivery()).collect();
        assert_eq!(delivered.iter().map(|fragment| fragment.message).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn windows_grow_as_the_standard_works_out() {
        let mut path = Path::new(&CONFIG);
        assert_eq!(path.cwnd, 4000);
        path.ssthresh = 64_000;
        path.grow(2000, 1000);
        assert_eq!(path.cwnd, 5000);
        (path.cwnd, path.ssthresh, path.partial) = (8000, 4000, 3000);
        path.grow(6000, 1000);
        assert_eq!((path.partial, path.cwnd), (1000, 9000));
    }

    #[test]
    fn three_misses_repeat_a_chunk_and_halve_once() {
        let (mut sender, mut receiver, data) = begun();
        sender.paths[0].cwnd = 20_000;
        let more = std::iter::from_fn(|| sender.poll_transmit(at(1000)));
        let data: Vec<_> = data.into_iter().chain(more).collect();
        for (port, chunk) in data[1..5].iter() {
            receiver.handle(at(1300), *port, chunk);
        }
        let sacks: Vec<_> = std::iter::from_fn(|| receiver.poll_transmit()).collect();
        assert_eq!(sacks.len(), 4, "a gap is reported at once");
        for (port, chunk) in &sacks[..2] {
            sender.handle(at(1600), *port, chunk);
        }
        assert_eq!(sender.sent[0].state, Fate::InFlight);
        for (port, chunk) in &sacks[2..] {
            sender.handle(at(1600), *port, chunk);
        }
        assert_eq!((sender.sent[0].state, sender.paths[0].cwnd), (Fate::Lost, 10_000));
        sender.paths[0].in_flight = 0;
        let (_, chunk) = sender.poll_transmit(at(1600)).unwrap();
        assert!(matches!(chunk, Chunk::Data { tsn: 0, .. }), "{chunk:?}");
    }

    #[test]
    fn a_chunk_may_be_missed_any_number_of_times() {
        let (mut sender, ..) = begun();
        sender.sent[0].repeated = true;
        for _ in 0..1000 {
            sender.count_misses(3);
        }
        assert_eq!(sender.sent[0].state, Fate::InFlight, "only the timer repeats it once more");
    }

    #[test]
    fn a_timeout_sends_data_over_the_other_path_and_a_heartbeat_brings_it_back() {
        let (mut sender, mut receiver, data) = begun();
        assert!(data.iter().all(|(path, _)| *path == 0));
        sender.handle_timeout(at(1500));
        let repeated: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(at(1500))).collect();
        let data: Vec<_> = repeated.iter().filter(|(_, chunk)| matches!(chunk, Chunk::Data { .. })).collect();
        assert!(data.len() == 4 && data.iter().all(|(path, _)| *path == 1), "{repeated:?}");
        // The first path is asked after its doubled timeout, answers, and carries data again.
        assert_eq!(sender.paths[0].heartbeat_at, at(3500));
        sender.handle_timeout(at(3500));
        let mut beats = std::iter::from_fn(|| sender.poll_transmit(at(3500)));
        let (port, beat) = beats.find(|(_, chunk)| matches!(chunk, Chunk::Heartbeat { .. })).unwrap();
        assert_eq!(port, 0);
        receiver.handle(at(3800), port, &beat);
        let (port, answer) = receiver.poll_transmit().unwrap();
        sender.handle(at(4100), port, &answer);
        assert_eq!((sender.path(), sender.paths[0].errors), (0, 0));
    }
}
