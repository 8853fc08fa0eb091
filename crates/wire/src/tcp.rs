//! The TCP header (RFC 9293 section 3.1).

use bentpipe_base::Flags;

use crate::option::Options;
use crate::{Malformed, Sum};

/// Bytes of a header without options.
pub(crate) const FIXED_LEN: usize = 20;
/// Offset of the checksum in bytes.
pub(crate) const CHECKSUM_AT: usize = 16;

/// TCP header with wire numbers.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number, valid with [`Flags::ACK`].
    pub ack: u32,
    /// Header flags.
    pub flags: Flags,
    /// Receive window, unscaled.
    pub window: u16,
    /// TCP options of the segment.
    pub options: Options,
}

impl Header {
    /// Reads the header at the start of an IP payload; returns it with the payload after it. The checksum is not verified: see
    /// [`checksum_holds`](Self::checksum_holds).
    ///
    /// # Errors
    /// If the bytes end within the header, or its length is impossible.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let fixed: &[u8; FIXED_LEN] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        let len = usize::from(fixed[12] >> 4) * 4;
        if len < FIXED_LEN {
            return Err(Malformed::Length);
        }
        let options = bytes.get(FIXED_LEN..len).ok_or(Malformed::Truncated)?;
        let short = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let long = |at: usize| u32::from(short(at)) << 16 | u32::from(short(at + 2));
        let header = Self {
            source_port: short(0),
            destination_port: short(2),
            seq: long(4),
            ack: long(8),
            flags: Flags::from_bits_truncate(short(12) & 0x1ff),
            window: short(14),
            options: Options::read(options),
        };
        Ok((header, &bytes[len..]))
    }

    /// Returns the length of the header in bytes, options included.
    #[expect(clippy::len_without_is_empty, reason = "no header is empty")]
    pub fn len(&self) -> usize {
        FIXED_LEN + self.options.lay_out().as_slice().len()
    }

    /// True if the checksum of an IP payload matches its addresses.
    pub fn checksum_holds(pseudo_header: Sum, bytes: &[u8]) -> bool {
        pseudo_header.bytes(bytes).checksum() == 0
    }

    /// Appends the header with a zero checksum; returns its length.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> usize {
        let options = self.options.lay_out();
        let len = FIXED_LEN + options.as_slice().len();
        let mut fixed = [0; FIXED_LEN];
        fixed[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.seq.to_be_bytes());
        fixed[8..12].copy_from_slice(&self.ack.to_be_bytes());
        let [ae, flags] = self.flags.bits().to_be_bytes();
        fixed[12] = (len as u8 / 4) << 4 | ae;
        fixed[13] = flags;
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&fixed);
        out.extend_from_slice(options.as_slice());
        len
    }
}
