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
    /// A permanent error: the host does not speak TCP, the port is closed, the destination is unknown, or access is prohibited.
    /// These are the "hard" errors of RFC 1122 section 4.2.3.9 and RFC 5461 section 2, and as in Linux all later codes.
    Unreachable,
    /// A temporary or "soft" error: no route at the moment, too many hops, or a header that a router rejects (RFC 9293, SHLD-25).
    Temporary,
}

/// Returns the kind of a message from its type, code and the word after its checksum.
fn kind(is_v6: bool, head: &[u8; 8]) -> Option<IcmpErrorKind> {
    let word = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    match (is_v6, head[0], head[1]) {
        (false, 3, 4) => Some(IcmpErrorKind::TooBig { mtu: word & 0xffff }),
        (true, 2, 0) => Some(IcmpErrorKind::TooBig { mtu: word }),
        // RFC 1122 calls network, host and source route temporary, and RFC 4443 has the first two as 0, 2 and 3.
        (false, 3, 0 | 1 | 5) | (true, 1, 0 | 2 | 3) => Some(IcmpErrorKind::Temporary),
        (false, 3, 2..=15) | (true, 1, 1..=7) => Some(IcmpErrorKind::Unreachable),
        (false, 11 | 12, _) | (true, 3 | 4, _) => Some(IcmpErrorKind::Temporary),
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

    /// Type, code and the word after the checksum.
    #[derive(Clone, Copy)]
    struct Message(u8, u8, u32);

    /// Reads a message about a packet between these ends. `change` may corrupt it after its checksum is made.
    fn read(
        (local, remote): (&str, &str),
        Message(kind, code, word): Message,
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
        for (of, message, shortest) in
            [(V4_ENDS, Message(3, 4, 1280), 36), (V6_ENDS, Message(2, 0, 1280), 56)]
        {
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
    fn permanent_errors_are_told_from_temporary_ones() {
        let kind_of =
            |of, kind, code| read(of, Message(kind, code, 0), |_| {}).unwrap().map(|found| found.kind);
        let codes = |of, kind, wanted| {
            (0..=20).filter(|code| kind_of(of, kind, *code) == Some(wanted)).collect::<Vec<_>>()
        };
        let [permanent, temporary] = [IcmpErrorKind::Unreachable, IcmpErrorKind::Temporary];
        assert_eq!(codes(V4_ENDS, 3, permanent), [2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(codes(V4_ENDS, 3, temporary), [0, 1, 5]);
        assert_eq!(codes(V6_ENDS, 1, permanent), [1, 4, 5, 6, 7]);
        assert_eq!(codes(V6_ENDS, 1, temporary), [0, 2, 3]);
        assert_eq!(
            (kind_of(V4_ENDS, 11, 0), kind_of(V6_ENDS, 3, 0)),
            (Some(temporary), Some(temporary)),
            "time exceeded"
        );
        assert_eq!((kind_of(V4_ENDS, 1, 4), kind_of(V6_ENDS, 0, 4)), (None, None), "of no version");
    }
}
