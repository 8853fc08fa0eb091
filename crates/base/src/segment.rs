use crate::Rate;
use crate::snack::{SackRange, Snack};

bitflags::bitflags! {
    /// TCP header flags (RFC 9293 section 3.1, RFC 3168, RFC 9768).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Flags: u16 {
        /// FIN: the sender has no more data.
        const FIN = 0x001;
        /// Synchronise sequence numbers.
        const SYN = 0x002;
        /// Reset the connection.
        const RST = 0x004;
        /// PSH: asks the receiver to deliver the data at once.
        const PSH = 0x008;
        /// The acknowledgement field is valid.
        const ACK = 0x010;
        /// Urgent (carried, but without effect).
        const URG = 0x020;
        /// ECN echo (RFC 3168).
        const ECE = 0x040;
        /// Congestion window reduced (RFC 3168).
        const CWR = 0x080;
        /// Accurate ECN (RFC 9768).
        const AE = 0x100;
    }
}

impl Flags {
    /// The three flags of the ACE field (RFC 9768 section 3.2.2).
    pub const ACE: Self = Self::AE.union(Self::CWR).union(Self::ECE);
    const ACE_SHIFT: u32 = Self::ECE.bits().trailing_zeros();

    /// Returns the flags of an ACE field; only its three low bits count.
    pub const fn of_ace(ace: u8) -> Self {
        Self::from_bits_truncate((ace as u16 & 7) << Self::ACE_SHIFT)
    }

    /// Returns the ACE field, from 0 to 7: AE is its high bit, ECE its low one.
    pub const fn ace(self) -> u8 {
        (self.intersection(Self::ACE).bits() >> Self::ACE_SHIFT) as u8
    }
}

/// The ECN field of the IP header (RFC 3168 section 5, RFC 9331). The values are those of its two bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum EcnField {
    /// Not ECN-capable: a congested queue drops the packet instead of marking it.
    #[default]
    NotCapable = 0,
    /// ECN-capable transport that reacts to each mark: ECT(1), the identifier of L4S (RFC 9331).
    L4s = 1,
    /// ECN-capable transport: ECT(0).
    Capable = 2,
    /// Congestion experienced (CE).
    Congested = 3,
}

impl EcnField {
    /// Returns the field with these two low bits; the others are ignored.
    #[inline]
    pub const fn of_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::L4s,
            2 => Self::Capable,
            _ => Self::Congested,
        }
    }

    /// Returns the two bits.
    #[inline]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Returns the name in traces; `None` for a packet that is not capable.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::NotCapable => None,
            Self::L4s => Some("l4s"),
            Self::Capable => Some("capable"),
            Self::Congested => Some("congested"),
        }
    }
}

/// Receiver's report above its cumulative ACK: up to four SACK blocks, most recent first, or the holes of a SNACK. A first block
/// at or below the cumulative ACK, or inside the second, is a D-SACK (RFC 2883).
// Tag and count come first in memory, because they are read more often than the rest.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum SackBlocks {
    /// Received ranges; the first `len` are valid.
    Held {
        /// Number of blocks.
        len: u8,
        /// Received ranges of sequence numbers.
        blocks: [SackRange; 4],
    },
    /// Missing ranges of sequence numbers.
    Missing(Snack),
}

impl SackBlocks {
    /// An empty report, without blocks.
    pub const EMPTY: Self = Self::Held { len: 0, blocks: [SackRange { start: 0, end: 0 }; 4] };

    /// Appends a block. A fifth is silently dropped because it would not fit the TCP header, and so is any block in a SNACK.
    pub fn push(&mut self, block: SackRange) {
        if let Self::Held { len, blocks } = self
            && let Some(slot) = blocks.get_mut(usize::from(*len))
        {
            *slot = block;
            *len += 1;
        }
    }

    /// Removes all blocks without touching their memory.
    pub fn clear(&mut self) {
        match self {
            Self::Held { len, .. } => *len = 0,
            Self::Missing(_) => *self = Self::EMPTY,
        }
    }

    /// Returns the blocks, most recent first.
    pub fn as_slice(&self) -> &[SackRange] {
        match self {
            Self::Held { len, blocks } => &blocks[..usize::from(*len)],
            Self::Missing(_) => &[],
        }
    }

    /// Returns the holes, if this is a SNACK.
    pub const fn snack(&self) -> Option<&Snack> {
        match self {
            Self::Held { .. } => None,
            Self::Missing(snack) => Some(snack),
        }
    }

    /// True if nothing is reported.
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::Held { len: 0, .. })
    }

    /// Returns the number of blocks.
    pub const fn len(&self) -> usize {
        match self {
            Self::Held { len, .. } => *len as usize,
            Self::Missing(_) => 0,
        }
    }
}

impl Default for SackBlocks {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        (self.as_slice(), self.snack()) == (other.as_slice(), other.snack())
    }
}

impl Eq for SackBlocks {}

impl core::fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Held { .. } => f.debug_list().entries(self.as_slice()).finish(),
            Self::Missing(snack) => snack.fmt(f),
        }
    }
}

/// Options that only a SYN carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SynOptions {
    /// Largest payload the sender of this SYN accepts, in bytes.
    pub mss: Option<u16>,
    /// Window scale shift, 0 to 14 (RFC 7323).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// The sender of this SYN sends and understands SNACK reports (CCSDS 714.0).
    pub snack_permitted: bool,
    /// The application of the sender of this SYN can skip data that is missing for long (CCSDS 714.0: best-effort transport
    /// service).
    pub best_effort: bool,
    /// The sender of this SYN replies to probes as Bentpipe's receivers do.
    pub probes_permitted: bool,
    /// Registry number of the algorithm whose receiver half the sender of this SYN has; 0 for none.
    pub feedback: u8,
}

/// Generation of a probe, echoed in the reply so that a sender can distinguish episodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProbeTag(pub u16);

/// Probe status of a segment: a low-priority probe, the reply to one, or neither.
///
/// Receivers answer every probe at once with one pure ACK that is a `Reply`; a reply never counts as a duplicate ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Probe {
    /// Ordinary segment, neither a probe nor a reply.
    #[default]
    No,
    /// A probe (dummy, NIL or outstanding segment).
    Probe(ProbeTag),
    /// The acknowledgement that a probe elicited.
    Reply(ProbeTag),
}

/// Notice of a link, or of its ground station, to an end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Segments of this connection are lost by transmission errors (CCSDS 714.0: corruption experienced).
    Corruption,
    /// The segment with this sequence number was lost by a transmission error; its header was readable.
    Spoilt(u64),
    /// The link is in outage.
    Outage,
    /// The outage has ended.
    Restored,
}

/// Fields that algorithms exchange with the peer or with routers on the path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Extension {
    /// No algorithm-specific fields.
    #[default]
    None,
    /// XCP congestion header on data: sender's RTT and packet interval in seconds, requested change in bytes/s (routers lower
    /// it).
    Xcp {
        /// Smoothed round-trip time of the sender in seconds, 0 while unknown.
        rtt_s: f32,
        /// Idealised inter-packet time in seconds.
        spacing_s: f32,
        /// Throughput change in bytes per second: requested by the sender, reduced by routers, returned by the receiver.
        delta_bytes_per_s: f32,
        /// True if the sender cannot use more, because its application or its receiver limits it (P-XCP).
        limited: bool,
    },
    /// Position of a data segment in its wave (TCP Real).
    Wave {
        /// Number of the wave.
        id: u16,
        /// Segments in the wave.
        size: u16,
        /// Index of this segment within the wave.
        index: u16,
        /// True if the window limited the sender during the wave.
        limited: bool,
    },
    /// Data-receiving rate that the receiver measured for a wave (TCP Real), or for the last round trip.
    ReceiveRate {
        /// Wave number of the rate.
        id: u16,
        /// Rate at which the receiver received the wave.
        rate: Rate,
        /// True if enough segments arrived for a valid rate.
        valid: bool,
    },
    /// Value from routers or the receiver, whose meaning the algorithm defines (BA-TCP, DVegas).
    Value(u64),
    /// Notice of a link (SCPS-TP, TCP PBS), in a segment of the connection or in a segment without any flag. The latter has no
    /// other content and acknowledges nothing.
    Notice(Notice),
}

/// TCP segment without its payload: `wire` reads and writes it, and the simulator carries it.
///
/// Sequence numbers are 64 bits and do not wrap. The SYN is 0, the first data byte is 1, and the FIN follows the last byte.
/// 32-bit wrap-around exists only in `wire`.
// Fields of every segment come first in memory, rare ones last: simulations touch millions of segments. The flags do not precede
// the two adjacent bytes: a compiler would read all of these at once. A processor that has just written them one by one would
// stall before that read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[repr(C)]
pub struct Segment {
    /// Sequence number of the SYN, the first payload byte, or the FIN.
    pub seq: u64,
    /// Next sequence number expected, valid with [`Flags::ACK`].
    pub ack: u64,
    /// Payload length in bytes.
    pub len: u32,
    /// Receive window in bytes, already scaled.
    pub window: u32,
    /// ECN field of the IP header.
    pub ecn: EcnField,
    /// Low drop priority (DSCP LE, RFC 8622).
    pub low_priority: bool,
    /// Header flags.
    pub flags: Flags,
    /// Probe, reply to a probe, or neither.
    pub probe: Probe,
    /// Timestamps option: value and echo (RFC 7323), in milliseconds of the senders' clocks.
    pub timestamps: Option<(u32, u32)>,
    /// Options of a SYN; `None` on all other segments.
    pub syn_options: Option<SynOptions>,
    /// Fields that the congestion-control algorithm adds.
    pub extension: Extension,
    /// SACK blocks, or a SNACK.
    pub sack: SackBlocks,
}

impl Segment {
    /// Returns the sequence numbers occupied by this segment: payload, plus one for SYN and one for FIN.
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len)
            + u64::from(self.flags.contains(Flags::SYN))
            + u64::from(self.flags.contains(Flags::FIN))
    }

    /// Returns the first sequence number after this segment.
    pub fn seq_end(&self) -> u64 {
        self.seq + self.seq_len()
    }
}
