//! Many connections behind one address, as a pure state machine that exchanges packets.
//!
//! A [`Stack`] is called with arriving packets and the time, and returns packets to send. It owns the data of all streams. It has
//! neither clock nor device: the driver provides both, and tests act as the driver.

mod accounts;
mod arrival;
mod endpoint;
mod half_open;
mod known_hosts;
mod limits;
mod opening;
mod output;
mod path;
mod ports;
mod request;
mod room;
mod secret;
mod stream_buffer;
mod streams;
mod tcp_packet;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::io::IoSlice;
use std::net::IpAddr;
use std::sync::Arc;

use bentpipe_base::Instant;
use bentpipe_tcp::{Config, Connection, Events, State};
use bentpipe_trace::Event;
use bentpipe_wire::{Ends, Header};
use slotmap::SlotMap;

use accounts::Accounts;
use endpoint::{Endpoint, Role};
use known_hosts::KnownHosts;
pub use limits::Limits;
pub use opening::Unopened;
pub use output::TIMESTAMPS_LEN;
use ports::EphemeralPorts;
pub use request::Request;
use secret::Secret;

slotmap::new_key_type! {
    /// Identifier of a connection until it is [released](Stack::release). It is never reused.
    pub struct Id;
}

/// Configuration of a stack.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// Addresses of the stack.
    pub addresses: Vec<IpAddr>,
    /// True for a stack that accepts packets to any address, as a transparent proxy between two networks does. Its own
    /// connections use addresses that the caller [chooses](Stack::connect_from). Each arriving SYN is
    /// [shown](Stack::poll_request) to the caller, who decides.
    pub transparent: bool,
    /// Maximum packet size of the device in bytes, IP header included.
    pub mtu: u16,
    /// True if the device completes checksums and segments large packets (virtio headers).
    pub offload: bool,
    /// Secret key from the system's random source, new for each process. Sequence numbers can be guessed with it.
    pub key: u128,
    /// Limits of memory and of the number of connections.
    pub limits: Limits,
}

/// Counters of packets without a connection, and of actions to respect the limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets not for the stack: malformed ones, fragments, other protocols, other addresses.
    pub ignored: u64,
    /// Packets with a wrong checksum.
    pub corrupt: u64,
    /// Segments without a connection, answered by a reset.
    pub refused: u64,
    /// SYNs answered by a cookie.
    pub cookies: u64,
    /// Handshakes completed by a cookie.
    pub cookies_redeemed: u64,
    /// Packets dropped because of a limit, completely or only their payload.
    pub over_limit: u64,
    /// Released connections reset because of a limit.
    pub evicted: u64,
}

/// A port that accepts connections.
struct Listener {
    config: Arc<Config>,
    accepted: VecDeque<Id>,
}

/// Packet without a connection: a RST, or a SYN-ACK with a cookie.
struct Answer {
    ends: Ends,
    header: Header,
}

/// Connections of one host, or of all hosts whose connections a transparent proxy handles.
pub struct Stack {
    config: StackConfig,
    secret: Secret,
    endpoints: SlotMap<Id, Box<Endpoint>>,
    by_ends: HashMap<Ends, Id>,
    listeners: HashMap<u16, Listener>,
    timers: BTreeSet<(Instant, Id)>,
    /// Connections that may have packets to send.
    ready: VecDeque<Id>,
    eventful: VecDeque<Id>,
    answers: VecDeque<Answer>,
    /// SYNs not yet shown to the caller.
    requests: VecDeque<Request>,
    /// Ends of all SYNs that wait for the caller's decision, so that a repeated SYN is not announced again.
    asking: HashSet<Ends>,
    /// Ends of finished connections of a transparent stack.
    forgotten: VecDeque<Ends>,
    /// Connections whose writer waits for memory and gets no event from an acknowledgement.
    starved: Vec<Id>,
    /// True if the next ACK of a connection has no room for further SACK blocks.
    reports_are_full: bool,
    half_open: usize,
    /// Released connections, oldest first; some may no longer exist.
    orphans: VecDeque<Id>,
    orphan_count: usize,
    accounts: Accounts,
    known_hosts: KnownHosts,
    /// Time until which an ACK may acknowledge a SYN cookie.
    cookies_until: Instant,
    /// Time of the last call.
    now: Instant,
    ports: EphemeralPorts,
    /// Number of connections opened. It is the seed of algorithms.
    opened: u64,
    counters: Counters,
}

/// Distance of a connection's initial sequence number above those of a replaced connection in TIME-WAIT (chosen).
const REUSE_DISTANCE: u32 = 1 << 20;
/// Length of the orphan queue above which entries of finished connections are removed (chosen).
const MANY_ORPHANS: usize = 64;
/// Maximum number of pending answers (chosen).
const MOST_ANSWERS: usize = 1024;

impl Stack {
    /// Makes a stack without connections.
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
            accounts: Accounts::new(config.limits),
            known_hosts: KnownHosts::default(),
            cookies_until: Instant::ZERO,
            now: Instant::ZERO,
            ports: EphemeralPorts::new(config.key),
            opened: 0,
            counters: Counters::default(),
            config,
        }
    }

    /// Returns the payload bytes of a full segment to `address`: MTU minus IP and TCP headers with timestamps.
    pub fn full_segment(&self, address: IpAddr) -> u32 {
        let headers = if address.is_ipv4() { 40 } else { 60 };
        u32::from(self.config.mtu).saturating_sub(headers + TIMESTAMPS_LEN).max(64)
    }

    /// Accepts connections to `port` from now on.
    pub fn listen(&mut self, port: u16, mut config: Arc<Config>) {
        Arc::make_mut(&mut config).timestamps_len = TIMESTAMPS_LEN;
        self.listeners.insert(port, Listener { config, accepted: VecDeque::new() });
    }

    /// Returns the next connection with a complete handshake.
    pub fn accept(&mut self, port: u16) -> Option<Id> {
        let id = self.listeners.get_mut(&port)?.accepted.pop_front()?;
        let endpoint = &mut self.endpoints[id];
        endpoint.owned = true;
        endpoint.role = Role::Accepted;
        Some(id)
    }

    /// Returns the ends of a finished connection of a transparent stack: later packets between them are not for this stack.
    pub fn poll_forgotten(&mut self) -> Option<Ends> {
        self.forgotten.pop_front()
    }

    /// Returns the engine of a connection, for its state and statistics.
    pub fn connection(&self, id: Id) -> Option<&Connection> {
        self.endpoints.get(id).map(|endpoint| &endpoint.engine)
    }

    /// Records the events of a connection from now on, for [`poll_trace`](Self::poll_trace).
    pub fn trace(&mut self, id: Id) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.engine.set_tracing(true);
        }
    }

    /// Returns the oldest recorded event not yet returned, with its time.
    pub fn poll_trace(&mut self, id: Id) -> Option<(Instant, Event)> {
        self.endpoints.get_mut(id)?.engine.poll_trace()
    }

    /// Returns the ends of a connection, seen from this stack.
    pub fn ends(&self, id: Id) -> Option<Ends> {
        self.endpoints.get(id).map(|endpoint| endpoint.ends)
    }

    /// Returns a connection with new events, and its events since the last return.
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

    /// Returns the time by which [`handle_timeouts`](Self::handle_timeouts) must be called. Valid once all packets are polled.
    pub fn next_timeout(&self) -> Instant {
        self.timers.first().map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }

    /// Handles expired timers.
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

    /// True once if packets should be polled before the next arrival, because the next ACK has no room for more SACK blocks. The
    /// peer might retransmit data that no ACK reports.
    pub fn must_report(&mut self) -> bool {
        std::mem::take(&mut self.reports_are_full)
    }

    /// Appends the next packet to `out`, after a virtio header if the device has offloads. Returns false if there is none.
    pub fn poll_packet(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let offload = self.config.offload;
        self.poll_answer(out) || self.poll_endpoints(|endpoint| endpoint.next_packet(now, offload, out))
    }

    /// Passes the next packet with its virtio header to `send` in pieces: headers in `head`, payload without copying. For devices
    /// with offloads. Returns false if there is none.
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

    /// Queues a connection with a new event: it may have packets to send and events to report.
    fn touch(&mut self, id: Id) {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return };
        if !endpoint.queued {
            endpoint.queued = true;
            self.ready.push_back(id);
        }
        let events = endpoint.engine.take_events() | std::mem::take(&mut endpoint.noticed);
        self.accounts.recount(&mut self.endpoints[id]);
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
        // Only now: the source of a SYN may be forged.
        if let Some(memory) = endpoint.engine.memory() {
            self.known_hosts.remember(self.now, endpoint.ends.remote.ip(), memory);
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

    /// Sets the timer of a connection without packets, and removes the connection if it is finished.
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
            self.accounts.recount(&mut self.endpoints[id]);
        }
    }

    fn forget(&mut self, id: Id) {
        let Some(endpoint) = self.endpoints.remove(id) else { return };
        self.timers.remove(&(endpoint.armed, id));
        self.accounts.close(&endpoint);
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

    /// Frees the memory of idle streams. Call it from a timer, not for each packet.
    pub fn trim(&mut self) {
        for endpoint in self.endpoints.values_mut() {
            endpoint.trim();
            self.accounts.recount(endpoint);
        }
        for id in std::mem::take(&mut self.starved) {
            if let Some(endpoint) = self.endpoints.get_mut(id) {
                endpoint.starved = false;
                endpoint.wake_writer();
                self.touch(id);
            }
        }
    }

    /// Returns the number of connections, TIME-WAIT included.
    pub fn connections(&self) -> usize {
        self.endpoints.len()
    }

    /// Returns the payload bytes for which streams hold memory.
    pub fn held_bytes(&self) -> usize {
        self.accounts.charged().buffers
    }

    /// Returns the memory of all connections in bytes, streams included. [`Limits::bytes`] bounds it.
    pub fn memory_bytes(&self) -> usize {
        self.accounts.charged().all
    }

    /// Returns the counters of packets without a connection.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
