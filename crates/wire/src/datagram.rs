//! Reader of IP headers.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_base::EcnField;

use crate::Sum;

/// Reason why bytes are not a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// The version is neither 4 nor 6.
    #[error("IP version {0}")]
    Version(u8),
    /// Fewer bytes than the headers or their length fields claim.
    #[error("cut off")]
    Truncated,
    /// A length field is impossible.
    #[error("impossible length")]
    Length,
    /// The checksum of the header is wrong.
    #[error("wrong checksum")]
    Checksum,
}

/// IPv4 (RFC 791) or IPv6 (RFC 8200) packet: parsed header and payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol of the payload after IPv6 extension headers: 6 is TCP, 17 UDP, 1 and 58 ICMP.
    pub protocol: u8,
    /// Differentiated services code point (RFC 2474): 1 is lower effort (RFC 8622).
    pub dscp: u8,
    /// Congestion mark (RFC 3168).
    pub ecn: EcnField,
    /// Remaining hop limit.
    pub hop_limit: u8,
    /// True for a fragment of a larger packet. Only the first fragment begins with the header of its protocol.
    pub fragment: bool,
    /// Size on the wire in bytes, IP header included; later bytes are padding.
    pub len: usize,
    /// Payload of the IP headers.
    pub payload: &'a [u8],
}

/// Protocol numbers (IANA).
pub(crate) mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ICMP: u8 = 1;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const ICMP_V6: u8 = 58;
    pub const DESTINATION_OPTIONS: u8 = 60;
}

/// Code point of lower effort (RFC 8622).
pub const LOWER_EFFORT: u8 = 1;

/// Maximum number of IPv6 extension headers before a packet counts as malformed.
const MOST_EXTENSIONS: usize = 8;

impl<'a> Datagram<'a> {
    /// Reads the IP headers.
    ///
    /// # Errors
    /// If the bytes are not a packet.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match bytes.first().ok_or(Malformed::Truncated)? >> 4 {
            4 => Self::read_v4(bytes),
            6 => Self::read_v6(bytes),
            other => Err(Malformed::Version(other)),
        }
    }

    fn read_v4(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; 20] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        let header_len = usize::from(fixed[0] & 15) * 4;
        let len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if header_len < 20 || len < header_len {
            return Err(Malformed::Length);
        }
        let bytes = bytes.get(..len).ok_or(Malformed::Truncated)?;
        let (header, payload) = bytes.split_at(header_len);
        if Sum::default().bytes(header).checksum() != 0 {
            return Err(Malformed::Checksum);
        }
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        let address =
            |at: usize| IpAddr::V4(Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]));
        Ok(Self {
            source: address(12),
            destination: address(16),
            protocol: fixed[9],
            dscp: fixed[1] >> 2,
            ecn: EcnField::of_bits(fixed[1]),
            hop_limit: fixed[8],
            // More fragments, or an offset.
            fragment: fragment & 0x3fff != 0,
            len,
            payload,
        })
    }

    fn read_v6(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let fixed: &[u8; 40] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        let len = 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let payload = bytes.get(40..len).ok_or(Malformed::Truncated)?;
        let class = fixed[0] << 4 | fixed[1] >> 4;
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&fixed[at..at + 16]);
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        let mut datagram = Self {
            source: address(8),
            destination: address(24),
            protocol: fixed[6],
            dscp: class >> 2,
            ecn: EcnField::of_bits(class),
            hop_limit: fixed[7],
            fragment: false,
            len,
            payload,
        };
        datagram.skip_extensions()?;
        Ok(datagram)
    }

    fn skip_extensions(&mut self) -> Result<(), Malformed> {
        for _ in 0..MOST_EXTENSIONS {
            let header_len = match self.protocol {
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS => {
                    8 + 8 * usize::from(*self.payload.get(1).ok_or(Malformed::Truncated)?)
                }
                protocol::FRAGMENT => {
                    let field = self.payload.get(2..4).ok_or(Malformed::Truncated)?;
                    // An offset or more fragments: all bits but the two reserved ones.
                    self.fragment |= field[0] != 0 || field[1] & !6 != 0;
                    8
                }
                _ => return Ok(()),
            };
            let rest = self.payload.get(header_len..).ok_or(Malformed::Truncated)?;
            self.protocol = self.payload[0];
            self.payload = rest;
            if self.fragment {
                return Ok(());
            }
        }
        Err(Malformed::Length)
    }

    /// True if the packet may be dropped before others (DSCP LE, RFC 8622).
    pub const fn is_low_priority(&self) -> bool {
        self.dscp == LOWER_EFFORT
    }

    /// Returns a hash that is equal for all packets of a flow: addresses, protocol and, for TCP and UDP, ports, mixed with
    /// `key`.
    pub fn flow_hash(&self, key: u64) -> u32 {
        let mut hash = mix(key ^ u64::from(self.protocol));
        for address in [self.source, self.destination] {
            let bits = match address {
                IpAddr::V4(address) => u128::from(address.to_bits()),
                IpAddr::V6(address) => address.to_bits(),
            };
            hash = mix(mix(hash ^ bits as u64) ^ (bits >> 64) as u64);
        }
        let has_ports = matches!(self.protocol, protocol::TCP | protocol::UDP) && !self.fragment;
        if let Some(ports) = self.payload.first_chunk::<4>().filter(|_| has_ports) {
            hash = mix(hash ^ u64::from(u32::from_be_bytes(*ports)));
        }
        (hash >> 32) as u32
    }
}

/// Finaliser of SplitMix64.
const fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Marks an ECN-capable packet with congestion experienced (RFC 3168) and updates its checksum. Returns false without a change
/// if it is not capable or not a packet.
pub fn mark_congestion(packet: &mut [u8]) -> bool {
    let Ok(datagram) = Datagram::read(packet) else { return false };
    if datagram.ecn == EcnField::NotCapable {
        return false;
    }
    if datagram.source.is_ipv6() {
        packet[1] |= 3 << 4;
        return true;
    }
    let header_len = usize::from(packet[0] & 15) * 4;
    packet[1] |= 3;
    packet[10..12].fill(0);
    let checksum = Sum::default().bytes(&packet[..header_len]).checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First two numbers of SplitMix64 from the seed 1234567, by its reference implementation.
    #[test]
    fn mixing_is_splitmix64() {
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
        assert_eq!(mix(1_234_567_u64.wrapping_add(0x9e37_79b9_7f4a_7c15)), 3_203_168_211_198_807_973);
    }
}
