//! One end of a connection: its engine, its wire sequence numbers and the data of both streams.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;

use bentpipe_base::{Flags, Instant, Segment};
use bentpipe_tcp::{Connection, Events, State};
use bentpipe_wire::{Arrived, Conversation, Ends, Header, Near};

use super::path::PathLimit;
use super::stream_buffer::{CHUNK, StreamBuffer};

/// Opener of a connection, and state of its handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// This stack opened the connection.
    Opened,
    /// The peer opened the connection, and the handshake is incomplete.
    HalfOpen,
    /// The peer opened the connection, which waits for accept.
    Waiting,
    /// The peer opened the connection, which was accepted or has failed.
    Accepted,
}

/// Memory of one or more connections in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Charge {
    /// Memory in total, in bytes.
    pub all: usize,
    /// Memory of the stream buffers.
    pub buffers: usize,
    /// Memory of unsent data for peers without any acknowledgement, beyond the first chunk of each.
    pub unproven: usize,
}

impl Charge {
    /// Replaces `old` by `new` in the sum.
    pub fn exchange(&mut self, old: Self, new: Self) {
        self.all = self.all + new.all - old.all;
        self.buffers = self.buffers + new.buffers - old.buffers;
        self.unproven = self.unproven + new.unproven - old.unproven;
    }
}

/// Packet translated for a connection.
pub(super) struct Incoming {
    segment: Segment,
    /// Initial sequence numbers of the peer's SYN, while the connection waits for accept.
    opening: Option<Conversation>,
    /// Stream position of the first payload byte.
    start: u64,
    /// Stream range of the payload that must be stored.
    wanted: Range<u64>,
}

impl Incoming {
    /// Drops the payload for lack of memory. Returns false if the whole segment must be dropped: without payload and new
    /// acknowledgement it would count as a duplicate ACK.
    pub fn drop_payload(&mut self, una: u64) -> bool {
        self.segment.len = 0;
        self.segment.flags -= Flags::FIN | Flags::PSH;
        self.wanted = 0..0;
        self.opening.is_some() || self.segment.ack > una || !self.segment.sack.is_empty()
    }
}

/// Minimum limit of unacknowledged bytes for a peer without any acknowledgement, whatever its congestion window (chosen: about
/// two initial windows).
const UNPROVEN_SHARE: u64 = 32 << 10;
/// Minimum limit of unacknowledged bytes for other peers (chosen).
const PROVEN_SHARE: u64 = 256 << 10;
/// Bytes of a TCP header without options.
const LEAST_TCP_HEADER: usize = 20;
/// Estimated memory of a connection in the stack's tables in bytes: ends, timer, queue entries.
const TABLES: usize = 256;

/// One end of a connection of a stack.
pub(super) struct Endpoint {
    pub ends: Ends,
    pub engine: Connection,
    pub conversation: Conversation,
    pub role: Role,
    /// True while the application has its [`Id`](super::Id) and may use it.
    pub owned: bool,
    /// True if it is in the queue of connections that may have packets.
    pub queued: bool,
    /// Deadline of the connection in the timer list.
    pub armed: Instant,
    /// Events not yet reported to the application.
    pub events: Events,
    /// Events that did not come from the engine.
    pub noticed: Events,
    /// Segment that did not fit into the last packet.
    pub held: Option<Segment>,
    /// True if the peer's SYN offered to answer probes.
    pub knows_probes: bool,
    pub path: PathLimit,
    /// Identification field of the last IPv4 packet.
    pub identification: u16,
    /// DSCP of all packets except low-priority ones.
    pub dscp: u8,
    /// Maximum unacknowledged bytes set by the application, in addition to the limits of engine and memory.
    pub limit: u64,
    /// True if the writer had more data than the limits allowed.
    blocked: bool,
    /// True if the writer must be notified when memory is free again.
    pub starved: bool,
    /// True after the application has released the connection.
    pub orphan: bool,
    /// Memory of the connection as included in the stack's totals.
    pub charge: Charge,
    pub sending: StreamBuffer,
    receiving: StreamBuffer,
    /// Stream position after the last byte written. `read_to` is the position of the next byte to read.
    written: u64,
    read_to: u64,
}

/// Limits of [`Endpoint::fill`].
#[derive(Clone, Copy, Debug)]
pub(super) struct FillBound {
    /// Maximum bytes of the stream.
    pub bytes: usize,
    /// Maximum additional bytes of memory.
    pub memory: usize,
}

/// Initial numbers of this end on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Initial sequence number.
    pub initial: u32,
    /// Offset of the timestamp clock.
    pub clock: u32,
}

impl Endpoint {
    /// Makes a connection whose sequence numbers and timestamps begin at `numbers`.
    pub fn new(ends: Ends, engine: Connection, numbers: Numbers, mtu: u16) -> Self {
        let Numbers { initial, clock } = numbers;
        Self {
            ends,
            engine,
            conversation: Conversation::new(initial, clock),
            role: Role::Opened,
            owned: false,
            queued: false,
            armed: Instant::FAR_FUTURE,
            events: Events::empty(),
            noticed: Events::empty(),
            held: None,
            knows_probes: false,
            path: PathLimit::new(mtu),
            identification: initial as u16,
            dscp: 0,
            limit: u64::MAX,
            blocked: false,
            starved: false,
            orphan: false,
            charge: Charge::default(),
            sending: StreamBuffer::at(1),
            receiving: StreamBuffer::at(1),
            written: 1,
            read_to: 1,
        }
    }

    /// Accepts bytes of the application, as far as they fit into `spare` bytes of further memory. Returns their number.
    pub fn write(&mut self, now: Instant, bytes: &[u8], spare: usize) -> usize {
        let room = self.room(spare);
        self.blocked = room < bytes.len();
        let taken = self.engine.write(now, bytes.len().min(room) as u64) as usize;
        self.sending.put(self.written, &bytes[..taken]);
        self.written += taken as u64;
        taken
    }

    /// Returns the bytes that may be written now, with `spare` bytes of further memory.
    fn room(&self, spare: usize) -> usize {
        let room = self.send_limit().saturating_sub(self.unacknowledged() as u64);
        usize::try_from(room).unwrap_or(usize::MAX).min(self.sending.room(self.written, spare))
    }

    /// Returns the bytes that may be written now and fit into the engine's send buffer.
    pub fn send_room(&self, spare: usize) -> usize {
        usize::try_from(self.engine.send_room()).unwrap_or(usize::MAX).min(self.room(spare))
    }

    /// Returns the limit of unacknowledged bytes: about the data that will leave soon. For a peer without any acknowledgement it
    /// is about two initial windows.
    fn send_limit(&self) -> u64 {
        let window = (self.engine.window_state().cwnd * f64::from(self.path.device())) as u64;
        let soon = match self.is_unproven() {
            true => window.max(UNPROVEN_SHARE),
            false => window.saturating_mul(2).max(PROVEN_SHARE),
        };
        self.limit.min(soon)
    }

    /// True if the peer has acknowledged no data, so that nothing shows that it is a real receiver.
    pub fn is_unproven(&self) -> bool {
        self.engine.acknowledged_bytes() == 0
    }

    /// Lets `fill` write data into pieces of memory in order; `fill` returns the number of bytes. `None` if there is no room.
    pub fn fill(
        &mut self,
        now: Instant,
        bound: FillBound,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> usize,
    ) -> Option<usize> {
        let room = self.send_room(bound.memory);
        if room == 0 {
            // Requests a WRITABLE event from this limit and from the engine.
            self.blocked = true;
            if self.engine.send_room() == 0 {
                self.engine.write(now, 1);
            }
            return None;
        }
        let filled = self.sending.fill(bound.bytes.min(room), fill);
        self.written += filled as u64;
        let taken = self.engine.write(now, filled as u64);
        debug_assert_eq!(taken, filled as u64, "there was room");
        Some(filled)
    }

    /// Passes up to `most` received in-order bytes to `take` in pieces; `take` returns the number of bytes consumed.
    pub fn drain(&mut self, now: Instant, most: usize, take: impl FnOnce(&[IoSlice<'_>]) -> usize) -> usize {
        self.blank_missing();
        let len = self.engine.readable().min(most as u64) as usize;
        let taken = take(&self.receiving.get(self.read_to, len)).min(len);
        self.take(now, taken as u64);
        taken
    }

    /// Notifies a blocked writer once a quarter of the limit is free, not at each acknowledgement.
    fn tell_writer(&mut self) {
        let limit = self.send_limit();
        if self.blocked && self.unacknowledged() as u64 <= limit - limit / 4 {
            self.blocked = false;
            self.wake_writer();
        }
    }

    /// Notifies the writer to try again.
    pub fn wake_writer(&mut self) {
        self.noticed |= Events::WRITABLE;
    }

    /// Returns the bytes written but not yet sent.
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.engine.next_to_send().max(1))
    }

    /// Returns a RST acceptable to the peer, without the engine.
    pub fn reset(&self) -> Header {
        let segment = Segment {
            seq: self.engine.next_to_send(),
            ack: self.engine.next_expected(),
            flags: Flags::RST | Flags::ACK,
            ..Segment::default()
        };
        self.conversation.clone().header(&segment)
    }

    /// Returns the first wire sequence number above all that were sent.
    pub fn numbers_end(&self) -> u32 {
        self.conversation.initial.wrapping_add(self.engine.next_to_send() as u32)
    }

    /// Returns the bytes written but not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        (self.written - self.engine.oldest_unacknowledged().clamp(1, self.written)) as usize
    }

    /// Fills data skipped by best effort with zeros, so that the reader sees no old memory content.
    fn blank_missing(&mut self) {
        while let Some(missing) = self.engine.next_missing() {
            self.receiving.blank(missing.start, missing.end);
        }
    }

    pub fn read(&mut self, now: Instant, into: &mut [u8]) -> usize {
        self.blank_missing();
        let len = self.engine.readable().min(into.len() as u64) as usize;
        self.receiving.read(self.read_to, &mut into[..len]);
        self.take(now, len as u64);
        len
    }

    pub fn discard(&mut self, now: Instant) -> u64 {
        let len = self.engine.readable();
        self.take(now, len);
        len
    }

    fn take(&mut self, now: Instant, len: u64) {
        self.engine.read(now, len);
        self.read_to += len;
        self.receiving.release(self.read_to);
    }

    /// Returns the stream positions near which 32-bit numbers of arriving headers are interpreted.
    pub fn near(&self) -> Near {
        Near { peer: self.engine.next_expected(), own: self.engine.oldest_unacknowledged() }
    }

    /// Translates a packet into stream positions of this connection.
    pub fn incoming(&self, header: &Header, arrived: Arrived) -> Incoming {
        let near = self.near();
        let is_syn = header.flags.contains(Flags::SYN);
        let opens = is_syn && matches!(self.engine.state(), State::Listen | State::SynSent);
        let mut conversation = self.conversation;
        if opens {
            conversation.hear_syn(header);
        }
        let segment = conversation.segment(header, arrived, near);
        // A SYN uses the sequence number before its data.
        let start = segment.seq.saturating_add(u64::from(is_syn));
        let end = start.saturating_add(u64::from(segment.len));
        let last = if opens { u64::from(u16::MAX) } else { self.engine.window_edge().max(near.peer + 1) };
        let wanted = start.max(near.peer)..end.min(last);
        Incoming { segment, opening: opens.then_some(conversation), start, wanted }
    }

    /// Returns the bytes by which the memory would grow for a packet's payload.
    pub fn growth(&self, incoming: &Incoming) -> usize {
        self.receiving.growth(incoming.wanted.start, incoming.wanted.end)
    }

    /// Handles a packet.
    pub fn receive(&mut self, now: Instant, incoming: &Incoming, payload: &[u8]) {
        let Incoming { segment, opening, start, wanted } = incoming;
        let state = self.engine.state();
        let taken_before = self.engine.stats().received_segments;
        self.engine.handle_segment(now, segment);
        let opened = opening.filter(|_| self.engine.state() != state);
        if let Some(conversation) = opened {
            self.conversation = conversation;
            self.knows_probes = segment.syn_options.is_some_and(|options| options.probes_permitted);
        }
        let taken = opened.is_some() || self.engine.stats().received_segments > taken_before;
        if taken && !wanted.is_empty() {
            let (from, end) = (wanted.start - start, wanted.end - start);
            self.receiving.put(wanted.start, &payload[from as usize..end as usize]);
        }
        self.sending.release(self.engine.oldest_unacknowledged().clamp(1, self.written));
        self.tell_writer();
        self.path.note_progress(now, self.engine.oldest_unacknowledged());
    }

    /// Handles a router's report that packets above `mtu` bytes do not pass. Returns the path MTU, if it decreased.
    pub fn learn_mtu(&mut self, now: Instant, mtu: u32) -> Option<u16> {
        let smaller = self.path.learn(now, mtu, self.ends.remote.is_ipv6());
        smaller.then(|| {
            let headers = self.ends.ip_header_len() + LEAST_TCP_HEADER;
            self.engine.handle_packet_too_big(now, self.path.room(headers));
            self.path.mtu()
        })
    }

    /// Begins with the path MTU that an earlier connection learnt.
    pub fn recall_mtu(&mut self, now: Instant, mtu: u16) {
        self.path.learn(now, mtu.into(), self.ends.remote.is_ipv6());
    }

    /// Handles expired timers of the engine.
    pub fn handle_timeout(&mut self, now: Instant) {
        let before = self.engine.stats().timeouts;
        self.engine.handle_timeout(now);
        if self.engine.stats().timeouts > before {
            self.path.note_timeout(now, self.ends.remote.is_ipv6());
        }
    }

    /// Returns the memory of the stream buffers in bytes.
    pub fn buffer_bytes(&self) -> usize {
        self.sending.capacity() + self.receiving.capacity()
    }

    /// Returns the memory in bytes: total, buffers, and data for a peer without any acknowledgement.
    pub fn cost(&self) -> Charge {
        let structures = size_of::<Self>() - size_of::<Connection>() + TABLES + self.engine.memory_bytes();
        let buffers = self.buffer_bytes();
        let unproven = if self.is_unproven() { self.sending.capacity().saturating_sub(CHUNK) } else { 0 };
        Charge { all: structures + buffers, buffers, unproven }
    }

    /// Frees the memory of empty stream buffers.
    pub fn trim(&mut self) {
        if self.engine.oldest_unacknowledged() >= self.written {
            self.sending.trim();
        }
        if self.engine.readable() == 0 && self.engine.next_expected() == self.read_to {
            self.receiving.trim();
        }
    }
}
