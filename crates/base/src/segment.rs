use crate::Rate;
use crate::snack::{SackRange, Snack};

bitflags::bitflags! {
    /// TCP header flags (RFC 9293 section 3.1, RFC 3168).
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Flags: u16 {
        /// No more data from the sender.
        const FIN = 0x001;
        /// Synchronise sequence numbers.
        const SYN = 0x002;
        /// Reset the connection.
        const RST = 0x004;
        /// Push.
        const PSH = 0x008;
        /// The acknowledgement field is valid.
        const ACK = 0x010;
        /// Urgent (carried, never acted upon).
        const URG = 0x020;
        /// ECN echo (RFC 3168).
        const ECE = 0x040;
        /// Congestion window reduced (RFC 3168).
        const CWR = 0x080;
    }
}

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnField {
    /// Not ECN-capable: a queue that wants to mark drops instead.
    #[default]
    NotCapable,
    /// ECN-capable transport.
    Capable,
    /// Congestion experienced.
    Congested,
}

/// What a receiver reports above its cumulative ACK: up to four SACK blocks, most recent first, or the holes of a SNACK. A first
/// block at or below the cumulative ACK, or inside the second, is a D-SACK (RFC 2883).
// Tag and count stand in front: they are looked at more often than the rest.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum SackBlocks {
    /// The first `len` are valid.
    Held {
        /// Number of blocks.
        len: u8,
        /// What is held.
        blocks: [SackRange; 4],
    },
    /// What is missing.
    Missing(Snack),
}

impl SackBlocks {
    /// No blocks.
    pub const EMPTY: Self = Self::Held { len: 0, blocks: [SackRange { start: 0, end: 0 }; 4] };

    /// Appends a block; a fifth is dropped silently because it would not fit the TCP header, and so is one beside a SNACK.
    pub fn push(&mut self, block: SackRange) {
        if let Self::Held { len, blocks } = self
            && let Some(slot) = blocks.get_mut(usize::from(*len))
        {
            *slot = block;
            *len += 1;
        }
    }

    /// Forgets all blocks, without touching their memory.
    pub fn clear(&mut self) {
        match self {
            Self::Held { len, .. } => *len = 0,
            Self::Missing(_) => *self = Self::EMPTY,
        }
    }

    /// The blocks, most recent first.
    pub fn as_slice(&self) -> &[SackRange] {
        match self {
            Self::Held { len, blocks } => &blocks[..usize::from(*len)],
            Self::Missing(_) => &[],
        }
    }

    /// The holes, if they are what is reported.
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

    /// Number of blocks.
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
    /// The sender of this SYN reports holes by SNACK and understands such reports (CCSDS 714.0).
    pub snack_permitted: bool,
    /// The application of the sender of this SYN can do without what is missing for long (CCSDS 714.0: best-effort transport service).
    pub best_effort: bool,
    /// The sender of this SYN replies to probes as Bentpipe's receivers do.
    pub probes_permitted: bool,
    /// The sender of this SYN has the receiver half (the reflector) of this algorithm's feedback, by registry number; 0 is none.
    pub feedback: u8,
}

/// Generation of a probe, echoed in the reply so that a sender can tell episodes apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProbeTag(pub u16);

/// Whether a segment is a low-priority probe, the reply to one, or neither.
///
/// Receivers answer every probe at once with one pure ACK that is a `Reply`; a reply never counts as a duplicate ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Probe {
    /// Ordinary segment.
    #[default]
    No,
    /// A probe (dummy, NIL or outstanding segment).
    Probe(ProbeTag),
    /// The acknowledgement that a probe elicited.
    Reply(ProbeTag),
}

/// What a link, or the ground station beside it, says to an end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Segments of this connection are lost to transmission errors (CCSDS 714.0: corruption experienced).
    Corruption,
    /// The segment that begins here was lost to a transmission error, and its header could be read.
    Spoilt(u64),
    /// The link is out.
    Outage,
    /// The link is there again.
    Restored,
}

/// Fields that some algorithms exchange with the peer or with routers on the path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Extension {
    /// Nothing.
    #[default]
    None,
    /// XCP congestion header on data: sender's RTT and inter-packet time in seconds, requested change in bytes/s (routers lower it).
    Xcp {
        /// Smoothed round-trip time of the sender in seconds, 0 while unknown.
        rtt_s: f32,
        /// Idealised inter-packet time in seconds.
        spacing_s: f32,
        /// Throughput change in bytes per second: requested by the sender, reduced by routers, returned by the receiver.
        delta_bytes_per_s: f32,
        /// The sender could not use more: its application or its receiver limits it (P-XCP).
        limited: bool,
    },
    /// Position of a data segment in its wave (TCP Real).
    Wave {
        /// Wave number.
        id: u16,
        /// Segments in the wave.
        size: u16,
        /// Index of this segment within the wave.
        index: u16,
        /// The sender was limited by its window during the wave.
        limited: bool,
    },
    /// Data-receiving rate that the receiver measured for a wave (TCP Real), or for the last round trip.
    ReceiveRate {
        /// Wave number the rate belongs to.
        id: u16,
        /// Measured rate.
        rate: Rate,
        /// Enough arrivals to trust it.
        valid: bool,
    },
    /// A bare value from routers or the receiver whose meaning the algorithm defines (BA-TCP, DVegas).
    Value(u64),
    /// What a link says (SCPS-TP, TCP PBS): in a segment of the connection, or in one without any flag, which holds nothing
    /// else and acknowledges nothing.
    Notice(Notice),
}

/// A TCP segment without its payload: what `wire` reads and writes and what the simulator carries.
///
/// Sequence numbers are 64 bits and do not wrap: the SYN is 0, the first byte of data is 1, the FIN follows the last
/// byte. 32-bit wrap-around exists only in `wire`.
// What every segment carries lies together in front, and what few carry behind: simulations touch millions of segments.
// The flags are not in front of the two bytes beside them: a compiler would read all of these at once, and a processor that has just
// written them one by one waits before it reads them as a whole.
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
    /// Timestamps option: value and echo in milliseconds of the sender's clocks (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// Options of a SYN; `None` on all other segments.
    pub syn_options: Option<SynOptions>,
    /// Algorithm fields.
    pub extension: Extension,
    /// SACK blocks, or a SNACK.
    pub sack: SackBlocks,
}

impl Segment {
    /// Sequence numbers this segment occupies: payload plus one for SYN and one for FIN.
    pub fn seq_len(&self) -> u64 {
        u64::from(self.len)
            + u64::from(self.flags.contains(Flags::SYN))
            + u64::from(self.flags.contains(Flags::FIN))
    }

    /// First sequence number after this segment.
    pub fn seq_end(&self) -> u64 {
        self.seq + self.seq_len()
    }
}
