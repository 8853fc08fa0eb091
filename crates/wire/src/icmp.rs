//! Routers that say how large a packet may be (RFC 792 and 1191, RFC 4443).

use core::net::{IpAddr, SocketAddr};

use crate::datagram::protocol;
use crate::{Datagram, Ends, Malformed, Sum};

/// A router could not forward a TCP packet of ours because it was too large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooBig {
    /// Largest packet that fits, in bytes with IP header.
    pub mtu: u32,
    /// The ends of the packet, seen from us.
    pub ends: Ends,
    /// Its sequence number: who does not see the packets cannot know it (RFC 5927 section 4.1).
    pub seq: u32,
}

/// Type and code of "fragmentation needed" and of "packet too big".
const V4: (u8, u8) = (3, 4);
const V6: (u8, u8) = (2, 0);

impl TooBig {
    /// Reads such a message; `Ok(None)` if the datagram is another one.
    ///
    /// # Errors
    /// If it claims to be such a message and is none.
    pub fn read(datagram: &Datagram) -> Result<Option<Self>, Malformed> {
        let is_v6 = datagram.protocol == protocol::ICMP_V6;
        if !is_v6 && datagram.protocol != protocol::ICMP || datagram.fragment {
            return Ok(None);
        }
        let (head, quoted) = datagram.payload.split_first_chunk::<8>().ok_or(Malformed::Truncated)?;
        if (head[0], head[1]) != if is_v6 { V6 } else { V4 } {
            return Ok(None);
        }
        let (source, destination) = (datagram.source, datagram.destination);
        let sum = match is_v6 {
            true => Sum::pseudo_header((source, destination), protocol::ICMP_V6, datagram.payload.len()),
            false => Sum::default(),
        };
        if sum.bytes(datagram.payload).checksum() != 0 {
            return Err(Malformed::Checksum);
        }
        let mtu = match is_v6 {
            true => u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            false => u32::from(u16::from_be_bytes([head[6], head[7]])),
        };
        let quoted = if is_v6 { Self::quoted_v6(quoted) } else { Self::quoted_v4(quoted) };
        Ok(quoted?.map(|(ends, seq)| Self { mtu, ends, seq }))
    }

    /// The beginning of our packet: addresses from its IP header, ports and sequence number from the eight bytes behind it.
    fn quoted_v4(quoted: &[u8]) -> Result<Option<(Ends, u32)>, Malformed> {
        let header: &[u8; 20] = quoted.first_chunk().ok_or(Malformed::Truncated)?;
        let address =
            |at: usize| -> IpAddr { [header[at], header[at + 1], header[at + 2], header[at + 3]].into() };
        let tcp = quoted.get(usize::from(header[0] & 15) * 4..).ok_or(Malformed::Truncated)?;
        Self::ends((address(12), address(16)), header[9], tcp)
    }

    fn quoted_v6(quoted: &[u8]) -> Result<Option<(Ends, u32)>, Malformed> {
        let (header, tcp) = quoted.split_first_chunk::<40>().ok_or(Malformed::Truncated)?;
        let address = |at: usize| -> IpAddr {
            let mut octets = [0; 16];
            octets.copy_from_slice(&header[at..at + 16]);
            octets.into()
        };
        Self::ends((address(8), address(24)), header[6], tcp)
    }

    fn ends(
        (source, destination): (IpAddr, IpAddr),
        protocol: u8,
        tcp: &[u8],
    ) -> Result<Option<(Ends, u32)>, Malformed> {
        if protocol != protocol::TCP {
            return Ok(None);
        }
        let tcp: &[u8; 8] = tcp.first_chunk().ok_or(Malformed::Truncated)?;
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let ends =
            Ends { local: SocketAddr::new(source, port(0)), remote: SocketAddr::new(destination, port(2)) };
        Ok(Some((ends, u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, IpFields, Packet, Payload};

    #[test]
    fn the_packet_that_was_too_big_is_recognised() {
        for (local, remote) in [("192.0.2.1:5", "192.0.2.2:6"), ("[2001:db8::1]:5", "[2001:db8::2]:6")] {
            let ends = Ends { local: local.parse().unwrap(), remote: remote.parse().unwrap() };
            let tcp = Header { seq: 0x0102_0304, ..Header::default() };
            let mut quoted = Vec::new();
            Packet { ends, ip: IpFields::default(), tcp, payload: Payload::Zeros(1400) }
                .write_headers(&mut quoted);
            let is_v6 = ends.local.is_ipv6();
            let mut message = if is_v6 { vec![2, 0, 0, 0, 0, 0, 5, 0] } else { vec![3, 4, 0, 0, 0, 0, 5, 0] };
            message.extend_from_slice(&quoted);
            let router: IpAddr = if is_v6 { "2001:db8::9" } else { "192.0.2.9" }.parse().unwrap();
            let protocol = if is_v6 { protocol::ICMP_V6 } else { protocol::ICMP };
            let sum = match is_v6 {
                true => Sum::pseudo_header((router, ends.local.ip()), protocol, message.len()),
                false => Sum::default(),
            };
            let checksum = sum.bytes(&message).checksum();
            message[2..4].copy_from_slice(&checksum.to_be_bytes());
            let datagram = Datagram {
                source: router,
                destination: ends.local.ip(),
                protocol,
                dscp: 0,
                ecn: bentpipe_base::EcnField::NotCapable,
                hop_limit: 64,
                fragment: false,
                len: 0,
                payload: &message,
            };
            let wanted = TooBig { mtu: 1280, ends, seq: 0x0102_0304 };
            assert_eq!(TooBig::read(&datagram), Ok(Some(wanted)));
            for end in 0..if is_v6 { 56 } else { 36 } {
                let cut = Datagram { payload: &message[..end], ..datagram };
                assert!(TooBig::read(&cut).is_err(), "{end}");
            }
            let mut corrupt = message.clone();
            corrupt[4] ^= 1;
            let corrupt = Datagram { payload: &corrupt, ..datagram };
            assert_eq!(TooBig::read(&corrupt), Err(Malformed::Checksum));
        }
    }
}
