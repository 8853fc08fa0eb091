//! Sequence numbers of a connection: 32 bits on the wire, 64 in the engine.

use bentpipe_base::{EcnField, Flags, SackBlocks, SackRange, Segment, SynOptions};

use crate::sequence::{unwrapped, wrapped};
use crate::{Datagram, Header, Options, Scps};

/// Wire number state of one end of a connection: initial sequence numbers, window scales, and the offset between
/// timestamps and its clock. RFC 7323 section 5.4 requires an unpredictable offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conversation {
    /// Initial sequence number of this end.
    pub initial: u32,
    /// Initial sequence number of the peer; zero before its SYN.
    pub peer_initial: u32,
    /// Offset added to the timestamps of this end.
    pub clock_offset: u32,
    scale: Option<u8>,
    peer_scale: Option<u8>,
}

/// Positions near which the numbers of an arriving header are interpreted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Near {
    /// Next position expected from the peer.
    pub peer: u64,
    /// First position of this end that the peer has not acknowledged.
    pub own: u64,
}

/// Properties of an arriving packet outside its TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrived {
    /// Payload bytes.
    pub len: u32,
    /// Congestion mark.
    pub ecn: EcnField,
    /// True for lower effort.
    pub low_priority: bool,
}

impl Arrived {
    /// Returns the properties of a packet with `len` bytes after its TCP header.
    pub const fn of(datagram: &Datagram, len: usize) -> Self {
        Self { len: len as u32, ecn: datagram.ecn, low_priority: datagram.is_low_priority() }
    }
}

/// Returns the SCPS-TP capabilities offered by a SYN, if any.
fn capabilities(syn: &SynOptions) -> Option<Scps> {
    let mut scps = Scps::empty();
    scps.set(Scps::SNACK_SHORT | Scps::SNACK_LONG, syn.snack_permitted);
    scps.set(Scps::BEST_EFFORT, syn.best_effort);
    (!scps.is_empty()).then_some(scps)
}

impl Conversation {
    /// Makes an end whose own numbers begin at `initial`.
    pub const fn new(initial: u32, clock_offset: u32) -> Self {
        Self { initial, peer_initial: 0, clock_offset, scale: None, peer_scale: None }
    }

    /// Learns the peer's initial number and window scale from its SYN.
    pub fn hear_syn(&mut self, header: &Header) {
        self.peer_initial = header.seq;
        self.peer_scale = header.options.window_scale;
    }

    /// Sets both window scales if the SYNs are not seen (a handshake completed without state).
    pub fn agree_on_scales(&mut self, scales: Option<(u8, u8)>) {
        (self.scale, self.peer_scale) = scales.unzip();
    }

    /// Returns the header of a segment that this end sends, without ports. Records the scale that a SYN announces.
    pub fn header(&mut self, segment: &Segment) -> Header {
        if let Some(syn) = &segment.syn_options {
            self.scale = syn.window_scale;
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        let acks = segment.flags.contains(Flags::ACK);
        let shift = self.shift(is_syn, self.scale);
        Header {
            source_port: 0,
            destination_port: 0,
            seq: wrapped(self.initial, segment.seq),
            ack: if acks { wrapped(self.peer_initial, segment.ack) } else { 0 },
            flags: segment.flags,
            window: u16::try_from(segment.window >> shift).unwrap_or(u16::MAX),
            options: self.options(segment),
        }
    }

    fn options(&self, segment: &Segment) -> Options {
        let syn = segment.syn_options.unwrap_or_default();
        let mut options = Options {
            mss: syn.mss,
            window_scale: syn.window_scale,
            sack_permitted: syn.sack_permitted,
            scps: capabilities(&syn),
            snack: segment.sack.snack().copied(),
            permitted: (syn.probes_permitted || syn.feedback != 0)
                .then_some((syn.probes_permitted, syn.feedback)),
            timestamps: segment.timestamps.map(|(value, echo)| (value.wrapping_add(self.clock_offset), echo)),
            probe: segment.probe,
            extension: segment.extension,
            ..Options::default()
        };
        options.sack_len = segment.sack.len();
        for (slot, block) in options.sack.iter_mut().zip(segment.sack.as_slice()) {
            *slot = (wrapped(self.peer_initial, block.start), wrapped(self.peer_initial, block.end));
        }
        options
    }

    /// Returns the window shift. Windows of SYNs are never scaled, others only if both ends offered it (RFC 7323 section
    /// 2.2).
    fn shift(&self, is_syn: bool, scale: Option<u8>) -> u8 {
        match (is_syn, self.scale, self.peer_scale) {
            (false, Some(_), Some(_)) => scale.unwrap_or(0).min(14),
            _ => 0,
        }
    }

    /// Translates a header of the peer into positions near the given ones.
    pub fn segment(&self, header: &Header, arrived: Arrived, near: Near) -> Segment {
        let options = &header.options;
        let is_syn = header.flags.contains(Flags::SYN);
        let acks = header.flags.contains(Flags::ACK);
        let mut sack = SackBlocks::EMPTY;
        if let Some(snack) = options.snack {
            sack = SackBlocks::Missing(snack);
        }
        for (start, end) in options.sack() {
            let start = unwrapped(self.initial, *start, near.own);
            sack.push(SackRange { start, end: unwrapped(self.initial, *end, start) });
        }
        let (probes_permitted, feedback) = options.permitted.unwrap_or_default();
        let scps = options.scps.unwrap_or_default();
        Segment {
            seq: unwrapped(self.peer_initial, header.seq, near.peer),
            ack: if acks { unwrapped(self.initial, header.ack, near.own) } else { 0 },
            len: arrived.len,
            window: u32::from(header.window) << self.shift(is_syn, self.peer_scale),
            flags: header.flags,
            ecn: arrived.ecn,
            probe: options.probe,
            low_priority: arrived.low_priority,
            // Without an ACK the echo is invalid (RFC 7323 section 3.2), and zero means none.
            timestamps: options
                .timestamps
                .map(|(value, echo)| (value, if acks { echo.wrapping_sub(self.clock_offset) } else { 0 })),
            syn_options: is_syn.then_some(SynOptions {
                mss: options.mss,
                window_scale: options.window_scale,
                sack_permitted: options.sack_permitted,
                snack_permitted: scps.contains(Scps::SNACK_LONG),
                best_effort: scps.contains(Scps::BEST_EFFORT),
                probes_permitted,
                feedback,
            }),
            sack,
            extension: options.extension,
        }
    }
}
