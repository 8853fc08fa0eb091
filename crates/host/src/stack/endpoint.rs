//! One end of a connection: its engine, its numbers on the wire and the bytes of its two streams.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;

use bentpipe_base::{Flags, Instant, Segment};
use bentpipe_tcp::{Connection, Events, State};
use bentpipe_wire::{Arrived, Conversation, Ends, Header, Near};

use super::path::PathLimit;
use super::stream_buffer::{CHUNK, StreamBuffer};

/// Which end opened a connection, and how far its handshake is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// This stack opened it.
    Opened,
    /// The peer opened it, and the handshake is not complete.
    HalfOpen,
    /// The peer opened it, and it waits to be accepted.
    Waiting,
    /// The peer opened it, and it was accepted or has failed.
    Accepted,
}

/// Memory of a connection or of several, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Charge {
    /// All memory.
    pub all: usize,
    /// The part of the stream buffers.
    pub buffers: usize,
    /// The part of data that wait to be sent to peers that have acknowledged nothing yet, except for the first chunk of each.
    pub unproven: usize,
}

impl Charge {
    /// Counts `new` instead of `old`.
    pub fn exchange(&mut self, old: Self, new: Self) {
        self.all = self.all + new.all - old.all;
        self.buffers = self.buffers + new.buffers - old.buffers;
        self.unproven = self.unproven + new.unproven - old.unproven;
    }
}

/// A packet as a connection sees it.
pub(super) struct Incoming {
    segment: Segment,
    /// The numbers of the peer as its SYN tells them, if this is the one that the connection waits for.
    opening: Option<Conversation>,
    /// Position of the first byte of the payload.
    start: u64,
    /// The part of the stream that is to be kept of it.
    wanted: Range<u64>,
}

impl Incoming {
    /// Drops the payload, for which there is no memory. False if the whole segment is to be dropped: if it acknowledges nothing new, it would be
    /// taken for a duplicate ACK without its data.
    pub fn drop_payload(&mut self, una: u64) -> bool {
        self.segment.len = 0;
        self.segment.flags -= Flags::FIN | Flags::PSH;
        self.wanted = 0..0;
        self.opening.is_some() || self.segment.ack > una || !self.segment.sack.is_empty()
    }
}

/// Bytes that may wait to be sent to a peer that has acknowledged nothing yet, however small its congestion window is (chosen: about two
/// initial windows).
const UNPROVEN_SHARE: u64 = 32 << 10;
/// The same to other peers (chosen).
const PROVEN_SHARE: u64 = 256 << 10;
/// A TCP header without options.
const LEAST_TCP_HEADER: usize = 20;
/// Estimated memory of a connection in the tables of the stack, in bytes: for its ends, its timer and its entries in queues.
const TABLES: usize = 256;

/// One end of a connection of a stack.
pub(super) struct Endpoint {
    pub ends: Ends,
    pub engine: Connection,
    pub conversation: Conversation,
    pub role: Role,
    /// The application has its [`Id`](super::Id) and may still use it.
    pub owned: bool,
    /// It is in the queue of connections that may have something to send.
    pub queued: bool,
    /// Its deadline in the list of timers.
    pub armed: Instant,
    /// Events that the application has not been told of.
    pub events: Events,
    /// Events that did not come from the engine.
    pub noticed: Events,
    /// A segment that did not fit the last packet.
    pub held: Option<Segment>,
    /// The peer's SYN offered to answer probes.
    pub knows_probes: bool,
    pub path: PathLimit,
    /// Identification field of the last IPv4 packet.
    pub identification: u16,
    /// Differentiated services code point of all packets except those of low priority.
    pub dscp: u8,
    /// Most unacknowledged bytes, as set by the application, in addition to the limits of the engine and of memory.
    pub limit: u64,
    /// The writer had more than the limits allowed.
    blocked: bool,
    /// The writer is to be told when memory may be free again.
    pub starved: bool,
    /// The application has released it.
    pub orphan: bool,
    /// Its memory as it is contained in the totals of the stack.
    pub charge: Charge,
    pub sending: StreamBuffer,
    receiving: StreamBuffer,
    /// Stream position after the last byte written. `read_to` is that of the next byte to be read.
    written: u64,
    read_to: u64,
}

/// What [`Endpoint::fill`] may take at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct FillBound {
    /// Bytes of the stream.
    pub bytes: usize,
    /// Bytes of memory that are taken in addition to those in use.
    pub memory: usize,
}

/// Where the numbers of this end begin on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Initial sequence number.
    pub initial: u32,
    /// Offset of the clock of the timestamps option.
    pub clock: u32,
}

impl Endpoint {
    /// A connection whose own sequence numbers and timestamps begin at `numbers`.
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

    /// Takes as many bytes from the application as fit into `spare` bytes of further memory. Returns how many.
    pub fn write(&mut self, now: Instant, bytes: &[u8], spare: usize) -> usize {
        let room = self.room(spare);
        self.blocked = room < bytes.len();
        let taken = self.engine.write(now, bytes.len().min(room) as u64) as usize;
        self.sending.put(self.written, &bytes[..taken]);
        self.written += taken as u64;
        taken
    }

    /// Bytes that may be written now, as far as they fit into `spare` bytes of further memory.
    fn room(&self, spare: usize) -> usize {
        let room = self.send_limit().saturating_sub(self.unacknowledged() as u64);
        usize::try_from(room).unwrap_or(usize::MAX).min(self.sending.room(self.written, spare))
    }

    /// Bytes that may be written now, and for which the engine has room.
    pub fn send_room(&self, spare: usize) -> usize {
        usize::try_from(self.engine.send_room()).unwrap_or(usize::MAX).min(self.room(spare))
    }

    /// Most unacknowledged bytes: about as many as will leave soon. For a peer that has acknowledged nothing yet, these are the initial window and
    /// little more.
    fn send_limit(&self) -> u64 {
        let window = (self.engine.window_state().cwnd * f64::from(self.path.device())) as u64;
        let soon = match self.is_unproven() {
            true => window.max(UNPROVEN_SHARE),
            false => window.saturating_mul(2).max(PROVEN_SHARE),
        };
        self.limit.min(soon)
    }

    /// The peer has acknowledged no data, so nothing shows that it takes any.
    pub fn is_unproven(&self) -> bool {
        self.engine.acknowledged_bytes() == 0
    }

    /// Lets `fill` write bytes to be sent into pieces of memory, one after the other; it returns how many it wrote. `None` if there was no room.
    pub fn fill(
        &mut self,
        now: Instant,
        bound: FillBound,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> usize,
    ) -> Option<usize> {
        let room = self.send_room(bound.memory);
        if room == 0 {
            // Asks for a WRITABLE event, from this limit and from the engine.
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

    /// Passes up to `most` bytes that arrived in order to `take`, in pieces; it returns how many it took.
    pub fn drain(&mut self, now: Instant, most: usize, take: impl FnOnce(&[IoSlice<'_>]) -> usize) -> usize {
        self.blank_missing();
        let len = self.engine.readable().min(most as u64) as usize;
        let taken = take(&self.receiving.get(self.read_to, len)).min(len);
        self.take(now, taken as u64);
        taken
    }

    /// Wakes a writer that the limit held back, as soon as a quarter of the limit is free and not at each acknowledgement.
    fn tell_writer(&mut self) {
        let limit = self.send_limit();
        if self.blocked && self.unacknowledged() as u64 <= limit - limit / 4 {
            self.blocked = false;
            self.wake_writer();
        }
    }

    /// Tells the writer to try again.
    pub fn wake_writer(&mut self) {
        self.noticed |= Events::WRITABLE;
    }

    /// Bytes that were written and have not left yet.
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.engine.next_to_send().max(1))
    }

    /// An acceptable RST for the peer, made without the engine.
    pub fn reset(&self) -> Header {
        let segment = Segment {
            seq: self.engine.next_to_send(),
            ack: self.engine.next_expected(),
            flags: Flags::RST | Flags::ACK,
            ..Segment::default()
        };
        self.conversation.clone().header(&segment)
    }

    /// First sequence number on the wire above all that were sent.
    pub fn numbers_end(&self) -> u32 {
        self.conversation.initial.wrapping_add(self.engine.next_to_send() as u32)
    }

    /// Bytes that were written and have not been acknowledged.
    pub fn unacknowledged(&self) -> usize {
        (self.written - self.engine.oldest_unacknowledged().clamp(1, self.written)) as usize
    }

    /// Fills with zeros what best effort skipped, so that the reader does not get old bytes of this memory.
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

    /// Stream positions near which the 32-bit numbers of arriving headers are interpreted.
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
        // A SYN takes the number before its data.
        let start = segment.seq.saturating_add(u64::from(is_syn));
        let end = start.saturating_add(u64::from(segment.len));
        let last = if opens { u64::from(u16::MAX) } else { self.engine.window_edge().max(near.peer + 1) };
        let wanted = start.max(near.peer)..end.min(last);
        Incoming { segment, opening: opens.then_some(conversation), start, wanted }
    }

    /// Bytes by which the memory would grow for the payload of a packet.
    pub fn growth(&self, incoming: &Incoming) -> usize {
        self.receiving.growth(incoming.wanted.start, incoming.wanted.end)
    }

    /// Takes a packet.
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

    /// A router reports that packets of more than `mtu` bytes do not get through.
    pub fn learn_mtu(&mut self, now: Instant, mtu: u32) {
        if self.path.learn(now, mtu, self.ends.remote.is_ipv6()) {
            let headers = self.ends.ip_header_len() + LEAST_TCP_HEADER;
            self.engine.handle_packet_too_big(now, self.path.room(headers));
        }
    }

    /// Handles the timers of the engine that have expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        let before = self.engine.stats().timeouts;
        self.engine.handle_timeout(now);
        if self.engine.stats().timeouts > before {
            self.path.note_timeout(now, self.ends.remote.is_ipv6());
        }
    }

    /// Bytes of memory of the stream buffers.
    pub fn buffer_bytes(&self) -> usize {
        self.sending.capacity() + self.receiving.capacity()
    }

    /// Memory in bytes: all of it, and the part that waits for a peer that has acknowledged nothing.
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
