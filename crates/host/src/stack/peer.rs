//! One connection: its engine, its numbers on the wire and the bytes of its two streams.

use bentpipe_base::{Flags, Instant, Segment};
use bentpipe_tcp::{Connection, Events, State};
use bentpipe_wire::{Arrived, Conversation, Ends, Header, Near};

use super::path::PathLimit;
use super::ring::Ring;

/// Who opened a connection, and how far that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// We did.
    Opened,
    /// The peer did; its handshake is not complete.
    HalfOpen,
    /// The peer did.
    Accepted,
}

/// A connection of a stack.
pub(super) struct Peer {
    pub ends: Ends,
    pub engine: Connection,
    pub conversation: Conversation,
    pub role: Role,
    /// Somebody has its [`Id`](super::Id) and may ask for it.
    pub owned: bool,
    /// In the queue of those that may have something to send.
    pub queued: bool,
    /// The deadline in the list of timers.
    pub armed: Instant,
    /// Not yet told.
    pub events: Events,
    /// What happened beside the engine.
    pub noticed: Events,
    /// A segment that did not fit the last packet.
    pub held: Option<Segment>,
    /// The peer's SYN offered to answer probes.
    pub knows_probes: bool,
    pub path: PathLimit,
    /// Of IPv4 packets.
    pub identification: u16,
    /// Of all packets but those of lower effort.
    pub dscp: u8,
    /// Bytes that may be written and not yet acknowledged, beside the limit of the engine.
    pub send_limit: u64,
    /// The writer had more than the limit allowed.
    blocked: bool,
    pub sending: Ring,
    receiving: Ring,
    /// Position after the last byte written, and of the next to be read.
    written: u64,
    read_to: u64,
}

impl Peer {
    /// A connection whose own sequence numbers and timestamps begin at `numbers`.
    pub fn new(ends: Ends, engine: Connection, (initial, clock): (u32, u32), mtu: u16) -> Self {
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
            send_limit: u64::MAX,
            blocked: false,
            sending: Ring::at(1),
            receiving: Ring::at(1),
            written: 1,
            read_to: 1,
        }
    }

    /// Returns how many bytes were taken, and by how many the memory grew; no more than `spare`.
    pub fn write(&mut self, now: Instant, bytes: &[u8], spare: usize) -> (usize, usize) {
        let before = self.sending.capacity();
        let room = self.send_limit.saturating_sub(self.unacknowledged() as u64);
        let mut wanted = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.blocked = wanted < bytes.len();
        if self.sending.capacity_for(self.written + wanted as u64) > before + spare {
            // Whatever still fits without another ring of twice the size.
            wanted = wanted.min(before - self.unacknowledged().min(before));
        }
        let taken = self.engine.write(now, wanted as u64) as usize;
        self.sending.put(self.written, &bytes[..taken]);
        self.written += taken as u64;
        (taken, self.sending.capacity() - before)
    }

    /// Lets `fill` write up to `most` bytes to be sent into two pieces of memory, one after the other; it says how many it wrote. Returns that,
    /// and by how many bytes the memory grew; no more than `spare`. `None` if there was no room.
    pub fn fill(
        &mut self,
        now: Instant,
        (most, spare): (usize, usize),
        fill: impl FnOnce(&mut [u8], &mut [u8]) -> usize,
    ) -> (Option<usize>, usize) {
        let before = self.sending.capacity();
        let room = self.send_limit.saturating_sub(self.unacknowledged() as u64).min(self.engine.send_room());
        let mut wanted = most.min(usize::try_from(room).unwrap_or(usize::MAX));
        if self.sending.capacity_for(self.written + wanted as u64) > before + spare {
            wanted = wanted.min(before - self.unacknowledged().min(before));
        }
        if wanted == 0 {
            // Both say when there is room again.
            self.blocked = true;
            self.engine.write(now, 1 + self.engine.send_room());
            return (None, 0);
        }
        let (first, second) = self.sending.space(self.written, wanted);
        let filled = fill(first, second).min(wanted);
        self.written += filled as u64;
        self.sending.filled(self.written);
        let taken = self.engine.write(now, filled as u64);
        debug_assert_eq!(taken, filled as u64, "there was room");
        (Some(filled), self.sending.capacity() - before)
    }

    /// Lets `take` have up to `most` bytes that arrived in order, in two pieces; it says how many it took.
    pub fn drain(&mut self, now: Instant, most: usize, take: impl FnOnce(&[u8], &[u8]) -> usize) -> usize {
        self.blank_missing();
        let len = self.engine.readable().min(most as u64) as usize;
        let (first, second) = self.receiving.get(self.read_to, len);
        let taken = take(first, second).min(len);
        self.take(now, taken as u64);
        taken
    }

    /// A writer that the limit held back hears of it when a quarter is free: one event for many acknowledgements.
    fn tell_writer(&mut self) {
        if self.blocked && self.unacknowledged() as u64 <= self.send_limit - self.send_limit / 4 {
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

    /// First sequence number on the wire above all that were sent.
    pub fn numbers_end(&self) -> u32 {
        self.conversation.initial.wrapping_add(self.engine.next_to_send() as u32)
    }

    /// Bytes that were written and have not been acknowledged.
    pub fn unacknowledged(&self) -> usize {
        (self.written - self.engine.oldest_unacknowledged().clamp(1, self.written)) as usize
    }

    /// What best effort left out reads as zeros, not as what stood in this memory before.
    fn blank_missing(&mut self) {
        while let Some(missing) = self.engine.next_missing() {
            self.receiving.put(missing.start, &vec![0; (missing.end - missing.start) as usize]);
        }
    }

    pub fn read(&mut self, now: Instant, into: &mut [u8]) -> usize {
        self.blank_missing();
        let len = self.engine.readable().min(into.len() as u64) as usize;
        let (first, second) = self.receiving.get(self.read_to, len);
        into[..first.len()].copy_from_slice(first);
        into[first.len()..len].copy_from_slice(second);
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

    /// Where the numbers of arriving headers are looked for.
    pub fn near(&self) -> Near {
        Near { peer: self.engine.next_expected(), own: self.engine.oldest_unacknowledged() }
    }

    /// Takes a packet; returns by how many bytes the memory grew, or `None` if it was dropped because that would be more
    /// than `spare`.
    pub fn receive(
        &mut self,
        now: Instant,
        (header, arrived): (&Header, Arrived),
        payload: &[u8],
        spare: usize,
    ) -> Option<usize> {
        let near = self.near();
        let opens = header.flags.contains(Flags::SYN) && self.engine.state() == State::SynSent;
        let mut conversation = self.conversation;
        if opens {
            conversation.hear_syn(header);
        }
        if header.flags.contains(Flags::SYN) {
            self.knows_probes = header.options.permitted.is_some_and(|(probes, _)| probes);
        }
        let segment = conversation.segment(header, arrived, near);
        let from = segment.seq.max(near.peer);
        let end = (segment.seq + u64::from(segment.len)).min(self.engine.window_edge().max(near.peer + 1));
        let before = self.receiving.capacity();
        let brings = from < end;
        if brings && self.receiving.capacity_for(end) > before + spare {
            return None;
        }
        let taken_before = self.engine.stats().received_segments;
        self.engine.handle_segment(now, &segment);
        if opens && self.engine.state() != State::SynSent {
            self.conversation = conversation;
        }
        if brings && self.engine.stats().received_segments > taken_before {
            let skip = (from - segment.seq) as usize;
            self.receiving.put(from, &payload[skip..(end - segment.seq) as usize]);
        }
        self.sending.release(self.engine.oldest_unacknowledged().clamp(1, self.written));
        self.tell_writer();
        self.path.note_progress(now, self.engine.oldest_unacknowledged());
        Some(self.receiving.capacity() - before)
    }

    /// A deadline of the engine has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        let before = self.engine.stats().timeouts;
        self.engine.handle_timeout(now);
        if self.engine.stats().timeouts > before {
            self.path.note_timeout(now, self.ends.remote.is_ipv6());
        }
    }

    /// Bytes of memory that the streams hold.
    pub fn ring_bytes(&self) -> usize {
        self.sending.capacity() + self.receiving.capacity()
    }

    /// Gives back the memory of empty rings; returns how much.
    pub fn trim(&mut self) -> usize {
        let before = self.ring_bytes();
        if self.engine.oldest_unacknowledged() >= self.written {
            self.sending.trim();
        }
        if self.engine.readable() == 0 && self.engine.next_expected() == self.read_to {
            self.receiving.trim();
        }
        before - self.ring_bytes()
    }
}
