//! State of one segment.

use bentpipe_base::Instant;

bitflags::bitflags! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Mark: u8 {
        /// Reported by SACK.
        const SACKED = 0x01;
        /// Considered lost. The flag stays set while its retransmission is in flight.
        const LOST = 0x02;
        /// A retransmission is in flight.
        const RETRANSMITTED = 0x04;
        /// Sent more than once, so that it yields no round-trip sample (Karn's rule).
        const REPEATED = 0x08;
        /// Carries the FIN.
        const FIN = 0x10;
        /// Copied by a probe. It also yields no round-trip sample, but its age still shows a loss.
        const COPIED = 0x20;
        /// The transmission that arrived is unknown.
        const AMBIGUOUS = Self::REPEATED.bits() | Self::COPIED.bits();
    }
}

/// One segment in the ring. 32 bytes: half a cache line.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// First sequence number.
    pub start: u64,
    /// Time of the last transmission.
    pub sent_at: Instant,
    /// Sequence numbers occupied, the FIN's included.
    pub seq_len: u32,
    /// In a SACKed record: number of records to skip to reach one that may not be SACKed.
    pub(super) skip: u32,
    /// Number of its last transmission, modulo 2^32. Later ones of the connection have greater numbers.
    pub order: u32,
    pub marks: Mark,
}

const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.seq_len)
    }

    pub fn has(&self, mark: Mark) -> bool {
        self.marks.contains(mark)
    }
}
