//! Header that virtual devices put before each packet (`struct virtio_net_hdr`, virtio 1.2 section 5.1.6). It describes checksums
//! to complete and packets to segment.

use crate::Malformed;
use crate::tcp::CHECKSUM_AT;

/// Bytes of that header.
pub const VIRTIO_HEADER_LEN: usize = 10;

/// Segmentation of an oversized packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Segmentation {
    /// None.
    #[default]
    None,
    /// TCP over IPv4, cut into payloads of this many bytes.
    TcpV4(u16),
    /// TCP over IPv6, cut into payloads of this many bytes.
    TcpV6(u16),
    /// UDP of either version, cut into payloads of this many bytes.
    Udp(u16),
}

/// Work that the device has done or must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The checksum holds only the sum of the pseudo header. The values are the offset from which it must be completed, and the
    /// offset of its field from there.
    pub partial_checksum: Option<(u16, u16)>,
    /// True if the device has verified the checksum.
    pub checksum_verified: bool,
    /// Segmentation of sent packets, or coalescing of received ones.
    pub segmentation: Segmentation,
}

/// Values of the fields.
mod value {
    pub const NEEDS_CHECKSUM: u8 = 1;
    pub const DATA_VALID: u8 = 2;
    pub const NONE: u8 = 0;
    pub const TCP_V4: u8 = 1;
    pub const TCP_V6: u8 = 4;
    pub const UDP: u8 = 5;
    /// Some of the packets set CWR, which has no effect here.
    pub const ECN: u8 = 0x80;
}

impl Offload {
    /// Returns the offload of a TCP packet whose IP header has `ip_len` bytes.
    pub const fn tcp(ip_len: usize, segmentation: Segmentation) -> Self {
        Self {
            partial_checksum: Some((ip_len as u16, CHECKSUM_AT as u16)),
            checksum_verified: false,
            segmentation,
        }
    }

    /// True if the checksum need not be verified: the device did it, or the packet never was on a wire.
    pub const fn is_trusted(&self) -> bool {
        self.checksum_verified || self.partial_checksum.is_some()
    }

    /// Reads the header; returns it with the packet after it. Numbers have the machine's byte order, as TUN devices use.
    ///
    /// # Errors
    /// If the bytes end within the header, or the segmentation is unknown.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (fixed, packet) = bytes.split_first_chunk::<VIRTIO_HEADER_LEN>().ok_or(Malformed::Truncated)?;
        let short = |at: usize| u16::from_ne_bytes([fixed[at], fixed[at + 1]]);
        let size = short(4);
        let segmentation = match fixed[1] & !value::ECN {
            value::NONE => Segmentation::None,
            value::TCP_V4 => Segmentation::TcpV4(size),
            value::TCP_V6 => Segmentation::TcpV6(size),
            value::UDP => Segmentation::Udp(size),
            _ => return Err(Malformed::Length),
        };
        let offload = Self {
            partial_checksum: (fixed[0] & value::NEEDS_CHECKSUM != 0).then(|| (short(6), short(8))),
            checksum_verified: fixed[0] & value::DATA_VALID != 0,
            segmentation,
        };
        Ok((offload, packet))
    }

    /// Returns the header of a packet whose headers have `headers_len` bytes.
    pub fn to_bytes(&self, headers_len: usize) -> [u8; VIRTIO_HEADER_LEN] {
        let mut bytes = [0; VIRTIO_HEADER_LEN];
        let mut put = |at: usize, value: u16| bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        put(2, headers_len as u16);
        if let Some((start, offset)) = self.partial_checksum {
            put(6, start);
            put(8, offset);
        }
        let (kind, size) = match self.segmentation {
            Segmentation::None => (value::NONE, 0),
            Segmentation::TcpV4(size) => (value::TCP_V4, size),
            Segmentation::TcpV6(size) => (value::TCP_V6, size),
            Segmentation::Udp(size) => (value::UDP, size),
        };
        put(4, size);
        bytes[1] = kind;
        bytes[0] = if self.partial_checksum.is_some() { value::NEEDS_CHECKSUM } else { 0 };
        bytes[0] |= if self.checksum_verified { value::DATA_VALID } else { 0 };
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for offload in [
            Offload::default(),
            Offload::tcp(20, Segmentation::TcpV4(1448)),
            Offload::tcp(40, Segmentation::TcpV6(1428)),
            Offload { checksum_verified: true, segmentation: Segmentation::Udp(1200), ..Offload::default() },
        ] {
            let mut bytes = offload.to_bytes(60).to_vec();
            bytes.push(0x45);
            assert_eq!(Offload::read(&bytes), Ok((offload, &[0x45][..])));
        }
        assert_eq!(Offload::read(&[0; 9]), Err(Malformed::Truncated));
        assert_eq!(Offload::read(&[0, 9, 0, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::Length));
    }

    /// A checksum is verified unless the device did it, or the packet never was on a wire.
    #[test]
    fn only_what_the_device_vouches_for_is_trusted() {
        assert!(!Offload::default().is_trusted());
        assert!(Offload { checksum_verified: true, ..Offload::default() }.is_trusted());
        assert!(Offload::tcp(20, Segmentation::None).is_trusted());
    }
}
