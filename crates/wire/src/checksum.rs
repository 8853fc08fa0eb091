//! The Internet checksum (RFC 1071): a one's-complement sum of 16-bit words.

use core::net::IpAddr;

/// One's-complement sum over words in network byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes from an even offset. An odd last byte is padded with zero, so only the last piece may have odd length.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        // The sum is independent of the byte order of its computation (RFC 1071 section 2 B). It uses wide machine words, and
        // swaps once at the end.
        let mut sum = 0_u64;
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            sum += u64::from(u32::from_ne_bytes(*word));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        sum += u64::from(u32::from_ne_bytes(last));
        Self(self.0 + u64::from(u16::from_be(fold(sum))))
    }

    /// Adds one word.
    #[must_use]
    pub const fn word(self, word: u16) -> Self {
        Self(self.0 + word as u64)
    }

    /// Returns the sum of the pseudo header of IPv4 (RFC 9293 section 3.1) or IPv6 (RFC 8200 section 8.1) for `len` bytes of
    /// `protocol`. Both have the same sum.
    pub fn pseudo_header((source, destination): (IpAddr, IpAddr), protocol: u8, len: usize) -> Self {
        let add = |sum: Self, address| match address {
            IpAddr::V4(address) => sum.bytes(&address.octets()),
            IpAddr::V6(address) => sum.bytes(&address.octets()),
        };
        let len = len as u32;
        let sum = add(add(Self::default(), source), destination).word(u16::from(protocol));
        sum.word((len >> 16) as u16).word(len as u16)
    }

    /// Returns the checksum: the complement of the sum. It is zero over data with its own checksum.
    pub fn checksum(self) -> u16 {
        !fold(self.0)
    }

    /// Returns the sum itself, which is the checksum field's value for checksum offload.
    pub fn partial(self) -> u16 {
        fold(self.0)
    }
}

/// Folds the sum to 16 bits with end-around carry.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of RFC 1071 section 3.
    #[test]
    fn the_example_of_the_rfc() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().bytes(&bytes).partial(), 0xddf2);
        assert_eq!(Sum::default().bytes(&bytes[..4]).bytes(&bytes[4..]).checksum(), !0xddf2);
        assert_eq!(Sum::default().bytes(&[0xab]).partial(), 0xab00);
    }

    #[test]
    fn large_data_does_not_overflow() {
        let sum = Sum::default().bytes(&[0xff; 70_000]);
        assert_eq!(sum.partial(), 0xffff);
        assert_eq!(sum.word(1).partial(), 1);
    }
}
