//! ICMP reports of routers and hosts about a packet of this stack (RFC 792 and 1191, RFC 4443).

use core::net::{IpAddr, SocketAddr};

use crate::datagram::protocol;
use crate::{Datagram, Ends, Malformed, Sum};

/// Report about a TCP packet of this stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpError {
    /// Kind of report.
    pub kind: IcmpErrorKind,
    /// Ends of the packet, seen from this stack.
    pub ends: Ends,
    /// Sequence number of the packet, unknown to hosts that cannot see it (RFC 5927 section 4.1).
    pub seq: u32,
}

/// Kind of report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpErrorKind {
    /// A router could not forward it because it was too large.
    TooBig {
        /// Maximum packet size that fits, in bytes with IP header.
        mtu: u32,
    },
    /// The host does not speak TCP, the port is closed, or access is prohibited: the "hard" errors of RFC 1122 section 4.2.3.9
    /// and RFC 5461 section 2. Temporary errors such as a missing route are not included.
    Unreachable,
}

/// Returns the kind of a message from its type, code and the word after its checksum.
fn kind(is_v6: bool, head: &[u8; 8]) -> Option<IcmpErrorKind> {
    let word = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    match (is_v6, head[0], head[1]) {
        (false, 3, 4) => Some(IcmpErrorKind::TooBig { mtu: word & 0xffff }),
        (true, 2, 0) => Some(IcmpErrorKind::TooBig { mtu: word }),
        // Protocol and port; with IPv6 administratively prohibited and port.
        (false, 3, 2 | 3) | (true, 1, 1 | 4) => Some(IcmpErrorKind::Unreachable),
        _ => None,
    }
}

impl IcmpError {
    /// Reads such a message; `Ok(None)` for any other datagram.
    ///
    /// # Errors
    /// If the message is malformed.
    pub fn read(datagram: &Datagram) -> Result<Option<Self>, Malformed> {
        let is_v6 = datagram.protocol == protocol::ICMP_V6;
        if !is_v6 && datagram.protocol != protocol::ICMP || datagram.fragment {
            return Ok(None);
        }
        let (head, quoted) = datagram.payload.split_first_chunk::<8>().ok_or(Malformed::Truncated)?;
        let Some(kind) = kind(is_v6, head) else { return Ok(None) };
        let (source, destination) = (datagram.source, datagram.destination);
        let sum = match is_v6 {
            true => Sum::pseudo_header((source, destination), protocol::ICMP_V6, datagram.payload.len()),
            false => Sum::default(),
        };
        if sum.bytes(datagram.payload).checksum() != 0 {
            return Err(Malformed::Checksum);
        }
        let quoted = if is_v6 { Self::quoted_v6(quoted) } else { Self::quoted_v4(quoted) };
        Ok(quoted?.map(|(ends, seq)| Self { kind, ends, seq }))
    }

    /// Reads the quoted start of the packet: addresses from its IP header, ports and sequence number from the next eight bytes.
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

    const V4_ENDS: (&str, &str) = ("192.0.2.1:5", "192.0.2.2:6");
    const V6_ENDS: (&str, &str) = ("[2001:db8::1]:5", "[2001:db8::2]:6");

    /// Reads a message with this type, code and word about a packet between these ends. `change` may corrupt it after its
    /// checksum is made.
    fn read(
        (local, remote): (&str, &str),
        (kind, code, word): (u8, u8, u32),
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Option<IcmpError>, Malformed> {
        let ends = Ends { local: local.parse().unwrap(), remote: remote.parse().unwrap() };
        let tcp = Header { seq: 0x0102_0304, ..Header::default() };
        let mut message = vec![kind, code, 0, 0];
        message.extend_from_slice(&word.to_be_bytes());
        Packet { ends, ip: IpFields::default(), tcp, payload: Payload::Zeros(1400) }
            .write_headers(&mut message);
        let is_v6 = ends.local.is_ipv6();
        let router: IpAddr = if is_v6 { "2001:db8::9" } else { "192.0.2.9" }.parse().unwrap();
        let protocol = if is_v6 { protocol::ICMP_V6 } else { protocol::ICMP };
        let sum = match is_v6 {
            true => Sum::pseudo_header((router, ends.local.ip()), protocol, message.len()),
            false => Sum::default(),
        };
        let checksum = sum.bytes(&message).checksum();
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        change(&mut message);
        IcmpError::read(&Datagram {
            source: router,
            destination: ends.local.ip(),
            protocol,
            dscp: 0,
            ecn: bentpipe_base::EcnField::NotCapable,
            hop_limit: 64,
            fragment: false,
            len: 0,
            payload: &message,
        })
    }

    /// UDP is not ICMP, however short it is; nor is a fragment.
    #[test]
    fn other_datagrams_are_left_to_others() {
        for (protocol, fragment) in [(17, false), (17, true), (protocol::ICMP, true)] {
            let datagram = Datagram {
                source: IpAddr::from([192, 0, 2, 9]),
                destination: IpAddr::from([192, 0, 2, 1]),
                protocol,
                dscp: 0,
                ecn: bentpipe_base::EcnField::NotCapable,
                hop_limit: 64,
                fragment,
                len: 24,
                payload: &[3, 4, 0, 0],
            };
            assert_eq!(IcmpError::read(&datagram), Ok(None), "{protocol} {fragment}");
        }
    }

    #[test]
    fn the_packet_that_was_too_big_is_recognised() {
        for (of, message, shortest) in [(V4_ENDS, (3, 4, 1280), 36), (V6_ENDS, (2, 0, 1280), 56)] {
            let found = read(of, message, |_| {}).unwrap().unwrap();
            let ends = Ends { local: of.0.parse().unwrap(), remote: of.1.parse().unwrap() };
            let wanted = IcmpError { kind: IcmpErrorKind::TooBig { mtu: 1280 }, ends, seq: 0x0102_0304 };
            assert_eq!(found, wanted);
            for end in 0..shortest {
                assert!(read(of, message, |bytes| bytes.truncate(end)).is_err(), "{end}");
            }
            assert_eq!(read(of, message, |bytes| bytes[4] ^= 1), Err(Malformed::Checksum));
        }
    }

    /// RFC 1122 section 4.2.3.9 and RFC 5461 section 2.
    #[test]
    fn hard_errors_are_told_from_those_that_pass() {
        let hard = |of, kind, code| {
            let found = read(of, (kind, code, 0), |_| {}).unwrap();
            found.map(|found| found.kind) == Some(IcmpErrorKind::Unreachable)
        };
        assert_eq!((0..16).filter(|code| hard(V4_ENDS, 3, *code)).collect::<Vec<_>>(), [2, 3]);
        assert_eq!((0..8).filter(|code| hard(V6_ENDS, 1, *code)).collect::<Vec<_>>(), [1, 4]);
        assert!(!hard(V4_ENDS, 11, 0) && !hard(V6_ENDS, 3, 0), "time exceeded");
        assert!(!hard(V4_ENDS, 1, 4) && !hard(V6_ENDS, 3, 4), "of the other version");
    }
}
