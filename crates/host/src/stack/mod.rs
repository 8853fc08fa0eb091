//! Many connections over one address: packets in, packets out, and nothing else.
//!
//! A [`Stack`] is told of arriving packets and of the time, and is asked for packets to send. It owns the bytes of all streams.
//! It has no clock and no device: its driver gives it both, and tests take the place of the driver.

mod arrival;
mod endpoint;
mod half_open;
mod limits;
mod output;
mod path;
mod request;
mod room;
mod secret;
mod stream_buffer;
mod tcp_packet;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bentpipe_base::{Duration, Instant};
use bentpipe_tcp::{Config, Connection, Events, State};
use bentpipe_trace::Event;
use bentpipe_wire::{Ends, Header};
use slotmap::SlotMap;

use endpoint::{Charge, Endpoint, FillBound, Numbers, Role};
pub use limits::Limits;
use limits::{Usage, prefix};
pub use output::TIMESTAMPS_LEN;
pub use request::Request;
use secret::Secret;

slotmap::new_key_type! {
    /// Names a connection until it is [released](Stack::release). An identifier is never used for a second connection.
    pub struct Id;
}

/// Configuration of a stack.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether the stack takes packets to any address, as a transparent proxy between two networks does. Connections that it opens have the
    /// addresses that the caller [chooses](Stack::connect_from); each SYN that arrives is [shown](Stack::poll_request) to the
    /// caller, who decides.
    pub transparent: bool,
    /// Largest packet of the device in bytes, IP header included.
    pub mtu: u16,
    /// The device completes checksums and cuts large packets into segments (virtio headers).
    pub offload: bool,
    /// Secret key from the random source of the operating system, new for each process: whoever knows it can guess sequence numbers.
    pub key: u128,
    /// What the stack may hold at most.
    pub limits: Limits,
}

/// Why a connection cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unopened {
    /// The stack has no address of that IP version.
    #[error("no address of our own of the same IP version")]
    NoAddress,
    /// As many connections as allowed.
    #[error("too many connections")]
    Full,
    /// There is a connection between these ends.
    #[error("the connection exists")]
    Exists,
    /// All ports to that destination are in use.
    #[error("no free port")]
    NoPort,
}

/// Counts of arriving packets that reached no connection, and of what was done to stay within the limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that are not for the stack: malformed ones, fragments, other protocols, other addresses.
    pub ignored: u64,
    /// Packets with a wrong checksum.
    pub corrupt: u64,
    /// Segments for no connection, answered by a reset.
    pub refused: u64,
    /// SYNs answered by a cookie.
    pub cookies: u64,
    /// Handshakes that a cookie completed.
    pub cookies_redeemed: u64,
    /// Packets dropped because a limit was reached: all of them, or only their payload.
    pub over_limit: u64,
    /// Released connections that were reset because a limit was reached.
    pub evicted: u64,
}

/// A port that accepts connections.
struct Listener {
    config: Arc<Config>,
    accepted: VecDeque<Id>,
}

/// A packet that is sent for no connection: a RST or a SYN-ACK with a cookie.
struct Answer {
    ends: Ends,
    header: Header,
}

/// The connections of one host, or of all hosts in whose place a transparent proxy stands.
pub struct Stack {
    config: StackConfig,
    secret: Secret,
    endpoints: SlotMap<Id, Box<Endpoint>>,
    by_ends: HashMap<Ends, Id>,
    listeners: HashMap<u16, Listener>,
    timers: BTreeSet<(Instant, Id)>,
    /// Connections that may have something to send.
    ready: VecDeque<Id>,
    eventful: VecDeque<Id>,
    answers: VecDeque<Answer>,
    /// SYNs that the caller has not been told of.
    requests: VecDeque<Request>,
    /// Ends of all SYNs that wait for the decision of the caller, so that a repeated SYN is not announced again.
    asking: HashSet<Ends>,
    /// Ends of connections of a transparent stack that are over.
    forgotten: VecDeque<Ends>,
    /// Connections whose writer waits for memory, and that no acknowledgement will wake.
    starved: Vec<Id>,
    /// The next ACK of a connection has no room for further SACK blocks.
    reports_are_full: bool,
    half_open: usize,
    /// Released connections, the oldest first; some of them may be gone.
    orphans: VecDeque<Id>,
    orphan_count: usize,
    /// Memory of all connections.
    charged: Charge,
    /// Memory and number of the connections of each remote host.
    usage: HashMap<IpAddr, Usage>,
    /// Until this time an ACK may arrive that acknowledges a SYN cookie.
    cookies_until: Instant,
    /// Time of the last call.
    now: Instant,
    next_port: u16,
    /// Connections opened so far: each number seeds an algorithm.
    opened: u64,
    counters: Counters,
}

/// First of the ports for outgoing connections (RFC 6335).
const FIRST_EPHEMERAL: u16 = 49_152;
/// How far the initial sequence number of a connection lies above the numbers of the connection in TIME-WAIT that it replaces (chosen).
const REUSE_DISTANCE: u32 = 1 << 20;
/// Entries of connections that are gone are removed from the queue of orphans if there are more than this many (chosen: seldom enough).
const MANY_ORPHANS: usize = 64;
/// Most answers that wait at one time (chosen).
const MOST_ANSWERS: usize = 1024;

impl Stack {
    /// A stack without connections.
    pub fn new(config: StackConfig) -> Self {
        let secret = Secret::new(config.key);
        Self {
            secret,
            endpoints: SlotMap::with_key(),
            by_ends: HashMap::new(),
            listeners: HashMap::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            eventful: VecDeque::new(),
            answers: VecDeque::new(),
            requests: VecDeque::new(),
            asking: HashSet::new(),
            forgotten: VecDeque::new(),
            starved: Vec::new(),
            reports_are_full: false,
            half_open: 0,
            orphans: VecDeque::new(),
            orphan_count: 0,
            charged: Charge::default(),
            usage: HashMap::new(),
            cookies_until: Instant::ZERO,
            now: Instant::ZERO,
            // The first port must be hard to guess (RFC 6056).
            next_port: FIRST_EPHEMERAL + (config.key >> 64) as u16 % (u16::MAX - FIRST_EPHEMERAL),
            opened: 0,
            counters: Counters::default(),
            config,
        }
    }

    /// Payload bytes of a full segment to `address`: what fits the device beside IP and TCP headers with timestamps.
    pub fn full_segment(&self, address: IpAddr) -> u32 {
        let headers = if address.is_ipv4() { 40 } else { 60 };
        u32::from(self.config.mtu).saturating_sub(headers + TIMESTAMPS_LEN).max(64)
    }

    /// Takes connections to `port` from now on.
    pub fn listen(&mut self, port: u16, mut config: Arc<Config>) {
        Arc::make_mut(&mut config).timestamps_len = TIMESTAMPS_LEN;
        self.listeners.insert(port, Listener { config, accepted: VecDeque::new() });
    }

    /// The next connection whose handshake is complete.
    pub fn accept(&mut self, port: u16) -> Option<Id> {
        let id = self.listeners.get_mut(&port)?.accepted.pop_front()?;
        let endpoint = &mut self.endpoints[id];
        endpoint.owned = true;
        endpoint.role = Role::Accepted;
        Some(id)
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// If there is no address, no port or no room for it.
    pub fn connect(&mut self, now: Instant, remote: SocketAddr, config: Config) -> Result<Id, Unopened> {
        if !self.has_room() {
            return Err(Unopened::Full);
        }
        let own = self.config.addresses.iter().find(|own| own.is_ipv4() == remote.is_ipv4());
        let address = *own.ok_or(Unopened::NoAddress)?;
        let ends = self.free_ends(address, remote).ok_or(Unopened::NoPort)?;
        Ok(self.open(now, ends, &Arc::new(config)))
    }

    /// Opens a connection from an address and port of the caller's choice: that of another host, if the stack is transparent. What remains of
    /// an earlier one between the same ends, which the caller has [released](Self::release), ends: with a reset, if it was not over.
    ///
    /// # Errors
    /// If there is no room for it, or another connection between the same ends.
    pub fn connect_from(&mut self, now: Instant, ends: Ends, config: &Arc<Config>) -> Result<Id, Unopened> {
        if !self.config.transparent && !self.config.addresses.contains(&ends.local.ip()) {
            return Err(Unopened::NoAddress);
        }
        if !self.has_room() {
            return Err(Unopened::Full);
        }
        let Some(old) = self.by_ends.get(&ends).copied() else {
            return Ok(self.open(now, ends, config));
        };
        let endpoint = &self.endpoints[old];
        if endpoint.owned && !matches!(endpoint.engine.state(), State::TimeWait | State::Closed) {
            return Err(Unopened::Exists);
        }
        let above = self.detach(now, old);
        let id = self.open(now, ends, config);
        self.number_above(&ends, Some(above));
        Ok(id)
    }

    fn open(&mut self, now: Instant, ends: Ends, config: &Arc<Config>) -> Id {
        let config = self.fitted(config, ends.remote.ip());
        let engine = Connection::connect(config, self.next_seed(), now);
        self.admit_owned(now, ends, engine)
    }

    fn numbers(&self, ends: &Ends, now: Instant) -> Numbers {
        Numbers { initial: self.secret.initial(ends, now), clock: self.secret.clock_offset(ends) }
    }

    /// A connection that the caller names from the beginning.
    fn admit_owned(&mut self, now: Instant, ends: Ends, engine: Connection) -> Id {
        let numbers = self.numbers(&ends, now);
        let mut endpoint = Endpoint::new(ends, engine, numbers, self.config.mtu);
        endpoint.owned = true;
        self.admit(endpoint)
    }

    /// The configuration of a connection to `remote`: its segments fit the device, and the engine knows how much room timestamps take. If that
    /// changes nothing, the connection shares the configuration that was given.
    fn fitted(&self, config: &Arc<Config>, remote: IpAddr) -> Arc<Config> {
        let (mss, timestamps_len) = (config.mss.min(self.full_segment(remote)), TIMESTAMPS_LEN);
        if (mss, timestamps_len) == (config.mss, config.timestamps_len) {
            Arc::clone(config)
        } else {
            Arc::new(Config { mss, timestamps_len, ..Config::clone(config) })
        }
    }

    fn next_seed(&mut self) -> u64 {
        self.opened += 1;
        self.opened ^ (self.config.key as u64)
    }

    fn free_ends(&mut self, address: IpAddr, remote: SocketAddr) -> Option<Ends> {
        for _ in FIRST_EPHEMERAL..u16::MAX {
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
            let ends = Ends { local: SocketAddr::new(address, self.next_port), remote };
            if !self.by_ends.contains_key(&ends) {
                return Some(ends);
            }
        }
        None
    }

    fn admit(&mut self, endpoint: Endpoint) -> Id {
        let ends = endpoint.ends;
        let id = self.endpoints.insert(Box::new(endpoint));
        self.by_ends.insert(ends, id);
        self.usage.entry(prefix(ends.remote.ip())).or_default().connections += 1;
        self.touch(id);
        id
    }

    /// Takes up to `bytes.len()` bytes to send; returns how many. No more is taken than congestion window and memory allow to leave soon;
    /// [`Events::WRITABLE`] says when there is room for more.
    pub fn write(&mut self, now: Instant, id: Id, bytes: &[u8]) -> usize {
        self.now = self.now.max(now);
        let Some(endpoint) = self.endpoints.get(id) else { return 0 };
        let spare = self.spare_to_send(endpoint);
        let taken = self.endpoints[id].write(now, bytes, spare);
        if taken < bytes.len() {
            self.await_memory(id);
        }
        self.touch(id);
        taken
    }

    /// Lets `fill` write up to `most` bytes to send directly into the memory of a connection, in pieces one after the other; it returns how
    /// many it wrote. If there is no room, `fill` is not called, and this returns `None`; [`Events::WRITABLE`] tells when to call again.
    pub fn fill(
        &mut self,
        now: Instant,
        id: Id,
        most: usize,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> usize,
    ) -> Option<usize> {
        self.now = self.now.max(now);
        let spare = self.spare_to_send(self.endpoints.get(id)?);
        let filled = self.endpoints[id].fill(now, FillBound { bytes: most, memory: spare }, fill);
        if filled.is_none() {
            self.await_memory(id);
        }
        self.touch(id);
        filled
    }

    /// Passes up to `most` bytes that arrived in order to `take`, in pieces. It returns how many it took, and so does this.
    pub fn drain(
        &mut self,
        now: Instant,
        id: Id,
        most: usize,
        take: impl FnOnce(&[IoSlice<'_>]) -> usize,
    ) -> usize {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return 0 };
        let taken = endpoint.drain(now, most, take);
        if taken > 0 {
            self.touch(id);
        }
        taken
    }

    /// Remembers a writer that waits for memory while none of its data is outstanding. No acknowledgement will arrive that could wake it, so
    /// [`trim`](Self::trim) does.
    fn await_memory(&mut self, id: Id) {
        let endpoint = &mut self.endpoints[id];
        if endpoint.unacknowledged() == 0 && !std::mem::replace(&mut endpoint.starved, true) {
            self.starved.push(id);
        }
    }

    /// The ends of a connection of a transparent stack that exists no more: packets between them are no longer for this stack.
    pub fn poll_forgotten(&mut self) -> Option<Ends> {
        self.forgotten.pop_front()
    }

    /// Bytes that [`write`](Self::write) would take now.
    pub fn send_room(&self, id: Id) -> usize {
        self.endpoints.get(id).map_or(0, |endpoint| endpoint.send_room(self.spare_to_send(endpoint)))
    }

    /// Bounds the unacknowledged bytes of a connection, in addition to the buffer that it was opened with. [`Events::WRITABLE`] tells when a
    /// quarter of the bound is free.
    pub fn set_send_limit(&mut self, id: Id, bytes: u64) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.limit = bytes;
        }
    }

    /// Marks the packets of a connection with a differentiated services code point (RFC 2474), except those of low priority.
    pub fn set_dscp(&mut self, id: Id, dscp: u8) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.dscp = dscp & 63;
        }
    }

    /// Bytes that were written and have not left yet, not even once.
    pub fn unsent(&self, id: Id) -> u64 {
        self.endpoints.get(id).map_or(0, |endpoint| endpoint.unsent())
    }

    /// Takes in-order bytes that arrived, as many as fit into `into`; returns how many.
    pub fn read(&mut self, now: Instant, id: Id, into: &mut [u8]) -> usize {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return 0 };
        let read = endpoint.read(now, into);
        if read > 0 {
            self.touch(id);
        }
        read
    }

    /// Takes and forgets in-order bytes that arrived; returns how many.
    pub fn discard(&mut self, now: Instant, id: Id) -> u64 {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return 0 };
        let read = endpoint.discard(now);
        if read > 0 {
            self.touch(id);
        }
        read
    }

    /// Nothing more will be written.
    pub fn close(&mut self, now: Instant, id: Id) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.engine.close(now);
            self.touch(id);
        }
    }

    /// Gives up at once, with a reset.
    pub fn abort(&mut self, now: Instant, id: Id) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.engine.abort(now);
            self.touch(id);
        }
    }

    /// Releases a connection: it is [closed](Self::close), exists as long as TCP needs it, and is then forgotten.
    /// Nothing is read any more: if something arrived that was not read, or does so from now on, the connection is reset (RFC 9293 section
    /// 3.6.1).
    pub fn release(&mut self, id: Id) {
        let now = self.now;
        let Some(endpoint) = self.endpoints.get_mut(id) else { return };
        endpoint.owned = false;
        endpoint.engine.release(now);
        if !std::mem::replace(&mut endpoint.orphan, true) {
            self.orphans.push_back(id);
            self.orphan_count += 1;
        }
        self.touch(id);
        while self.orphan_count > self.config.limits.orphans && self.evict_orphan() {}
    }

    /// The engine of a connection, for its state and its statistics.
    pub fn connection(&self, id: Id) -> Option<&Connection> {
        self.endpoints.get(id).map(|endpoint| &endpoint.engine)
    }

    /// Records what happens to a connection from now on, for [`poll_trace`](Self::poll_trace).
    pub fn trace(&mut self, id: Id) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.engine.set_tracing(true);
        }
    }

    /// The oldest of the recorded events that was not asked for yet, with its time.
    pub fn poll_trace(&mut self, id: Id) -> Option<(Instant, Event)> {
        self.endpoints.get_mut(id)?.engine.poll_trace()
    }

    /// The ends of a connection, seen from here.
    pub fn ends(&self, id: Id) -> Option<Ends> {
        self.endpoints.get(id).map(|endpoint| endpoint.ends)
    }

    /// A connection to which something happened, and its events since it was last returned here.
    pub fn poll_event(&mut self) -> Option<(Id, Events)> {
        loop {
            let id = self.eventful.pop_front()?;
            if let Some(endpoint) = self.endpoints.get_mut(id) {
                let events = std::mem::take(&mut endpoint.events);
                if !events.is_empty() {
                    return Some((id, events));
                }
            }
        }
    }

    /// Time by which [`handle_timeouts`](Self::handle_timeouts) must be called. Valid once all packets are polled.
    pub fn next_timeout(&self) -> Instant {
        self.timers.first().map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }

    /// Handles the timers that have expired.
    pub fn handle_timeouts(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some((at, id)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, id));
            let Some(endpoint) = self.endpoints.get_mut(id) else { continue };
            endpoint.armed = Instant::FAR_FUTURE;
            if endpoint.engine.next_timeout() <= now {
                endpoint.handle_timeout(now);
            }
            self.touch(id);
        }
    }

    /// Whether packets should be polled before another one is handled, because the next ACK has no room for more SACK blocks. The peer might
    /// retransmit in vain what no ACK reports. True once for each such ACK.
    pub fn must_report(&mut self) -> bool {
        std::mem::take(&mut self.reports_are_full)
    }

    /// Appends the next packet to `out`, behind a virtio header if the device has offloads. False if there is none.
    pub fn poll_packet(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let offload = self.config.offload;
        self.poll_answer(out) || self.poll_endpoints(|endpoint| endpoint.next_packet(now, offload, out))
    }

    /// Passes the next packet behind its virtio header to `send`, in pieces: headers in `head`, and payload in the memory of the stream, which is
    /// not copied. For devices with offloads. False if there is no packet.
    pub fn send_packet(
        &mut self,
        now: Instant,
        head: &mut Vec<u8>,
        mut send: impl FnMut(&[IoSlice<'_>]),
    ) -> bool {
        debug_assert!(self.config.offload, "the device completes checksums");
        head.clear();
        if self.poll_answer(head) {
            send(&[IoSlice::new(head)]);
            return true;
        }
        self.poll_endpoints(|endpoint| endpoint.send_next(now, head, &mut send))
    }

    fn poll_answer(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(answer) = self.answers.pop_front() else { return false };
        output::write_answer(&answer.ends, answer.header, self.config.offload, out);
        true
    }

    /// Asks connections in turn for a packet until one has some.
    fn poll_endpoints(&mut self, mut has_packet: impl FnMut(&mut Endpoint) -> bool) -> bool {
        while let Some(id) = self.ready.front().copied() {
            let Some(endpoint) = self.endpoints.get_mut(id) else {
                self.ready.pop_front();
                continue;
            };
            if has_packet(endpoint) {
                self.ready.rotate_left(1);
                return true;
            }
            self.ready.pop_front();
            endpoint.queued = false;
            self.settle(id);
        }
        false
    }

    /// Queues a connection to which something happened: it may have packets to send and events to report.
    fn touch(&mut self, id: Id) {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return };
        if !endpoint.queued {
            endpoint.queued = true;
            self.ready.push_back(id);
        }
        let events = endpoint.engine.take_events() | std::mem::take(&mut endpoint.noticed);
        self.recount(id);
        if events.contains(Events::ESTABLISHED) {
            self.established(id);
        }
        let endpoint = &mut self.endpoints[id];
        if !events.is_empty() {
            if endpoint.events.is_empty() {
                self.eventful.push_back(id);
            }
            endpoint.events |= events;
        }
        self.count_half_open(id);
    }

    fn established(&mut self, id: Id) {
        let endpoint = &mut self.endpoints[id];
        if endpoint.role == Role::HalfOpen
            && let Some(listener) = self.listeners.get_mut(&endpoint.ends.local.port())
        {
            listener.accepted.push_back(id);
            endpoint.role = Role::Waiting;
            self.half_open -= 1;
        }
    }

    fn count_half_open(&mut self, id: Id) {
        let endpoint = &mut self.endpoints[id];
        let state = endpoint.engine.state();
        if endpoint.role == Role::HalfOpen && (state.is_synchronised() || state == State::Closed) {
            endpoint.role = Role::Accepted;
            self.half_open -= 1;
        }
    }

    /// Sets the timer of a connection that has no packet to send for now, and forgets the connection if it is over.
    fn settle(&mut self, id: Id) {
        let endpoint = &mut self.endpoints[id];
        let deadline = endpoint.engine.next_timeout();
        if deadline < endpoint.armed {
            self.timers.remove(&(endpoint.armed, id));
            self.timers.insert((deadline, id));
            endpoint.armed = deadline;
        }
        if endpoint.engine.state() == State::Closed && !endpoint.owned && endpoint.role != Role::Waiting {
            self.forget(id);
        } else {
            self.recount(id);
        }
    }

    fn forget(&mut self, id: Id) {
        let Some(endpoint) = self.endpoints.remove(id) else { return };
        self.timers.remove(&(endpoint.armed, id));
        self.charged.exchange(endpoint.charge, Charge::default());
        let remote = prefix(endpoint.ends.remote.ip());
        if let Some(usage) = self.usage.get_mut(&remote) {
            usage.bytes -= endpoint.charge.all;
            usage.connections -= 1;
            if usage.connections == 0 {
                self.usage.remove(&remote);
            }
        }
        self.orphan_count -= usize::from(endpoint.orphan);
        if self.orphans.len() > 2 * self.orphan_count + MANY_ORPHANS {
            self.orphans.retain(|id| self.endpoints.contains_key(*id));
        }
        self.half_open -= usize::from(endpoint.role == Role::HalfOpen);
        if self.by_ends.get(&endpoint.ends) == Some(&id) {
            self.by_ends.remove(&endpoint.ends);
            if self.config.transparent {
                self.forgotten.push_back(endpoint.ends);
            }
        }
    }

    /// Frees the memory of streams of which nothing is outstanding. To be called by a timer of the caller, not for each packet.
    pub fn trim(&mut self) {
        for (_, endpoint) in &mut self.endpoints {
            endpoint.trim();
        }
        let all: Vec<Id> = self.endpoints.keys().collect();
        all.into_iter().for_each(|id| self.recount(id));
        for id in std::mem::take(&mut self.starved) {
            if let Some(endpoint) = self.endpoints.get_mut(id) {
                endpoint.starved = false;
                endpoint.wake_writer();
                self.touch(id);
            }
        }
    }

    /// Connections, TIME-WAIT included.
    pub fn connections(&self) -> usize {
        self.endpoints.len()
    }

    /// Payload bytes that all streams hold memory for.
    pub fn held_bytes(&self) -> usize {
        self.charged.buffers
    }

    /// Bytes of memory of all connections, their streams included. [`Limits::bytes`] bounds it.
    pub fn memory_bytes(&self) -> usize {
        self.charged.all
    }

    /// Counts of packets that reached no connection.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Round-trip time assumed after a handshake with a SYN cookie without timestamps, which measures none (chosen).
const GUESSED_ROUND_TRIP: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    /// Algorithms that draw random numbers must not draw the same ones in two connections or in two processes.
    #[test]
    fn each_connection_gets_a_seed_of_its_own() {
        let config = |key| StackConfig {
            addresses: vec![],
            transparent: true,
            mtu: 1500,
            offload: false,
            key,
            limits: Limits::default(),
        };
        let mut stack = Stack::new(config(0x55));
        let seeds: Vec<u64> = (0..1000).map(|_| stack.next_seed()).collect();
        assert_eq!(seeds.iter().collect::<HashSet<_>>().len(), 1000);
        assert_ne!(Stack::new(config(0xaa)).next_seed(), seeds[0]);
        assert_eq!(Stack::new(config(0x55)).next_seed(), seeds[0], "the same key, the same luck");
    }
}
