//! The few packets that the proxy reads and writes itself: SYNs of clients, and RSTs that refuse them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const TCP: u8 = 6;
const TCP_HEADER: usize = 20;
/// Length of a segment without data and options.
const SEGMENT_LENGTH: u16 = TCP_HEADER as u16;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// Bytes of a packet that an error about it quotes at most (RFC 1812 section 4.3.2.3, RFC 4443 section 2.4).
const QUOTED_V4: usize = 548;
const QUOTED_V6: usize = 1232;
const FLAG_SYN: u8 = 0x02;
const FLAG_RST: u8 = 0x04;
const FLAG_ACK: u8 = 0x10;
/// Extension headers of IPv6 that are passed over (RFC 8200 section 4): hop-by-hop options, routing, destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];

/// Addresses and ports of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tuple {
    pub client: SocketAddr,
    pub server: SocketAddr,
}

/// A SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Syn {
    pub tuple: Tuple,
    pub sequence: u32,
    /// Differentiated-services code point.
    pub dscp: u8,
    /// Maximum segment size that it announces.
    pub mss: Option<u16>,
    /// Offset of the TCP header.
    tcp_at: usize,
}

impl Syn {
    /// Reads an IP packet; `None` if it is anything but a whole, unfragmented SYN without ACK.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let (source, destination, traffic_class, tcp) = match packet.first()? >> 4 {
            4 => read_v4(packet)?,
            6 => read_v6(packet)?,
            _ => return None,
        };
        let whole_tcp = tcp;
        let tcp = whole_tcp.get(..TCP_HEADER)?;
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let flags = tcp[13];
        if flags & (FLAG_SYN | FLAG_ACK | FLAG_RST) != FLAG_SYN {
            return None;
        }
        Some(Self {
            tcp_at: packet.len() - whole_tcp.len(),
            tuple: Tuple { client: (source, port(0)).into(), server: (destination, port(2)).into() },
            sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            dscp: traffic_class >> 2,
            mss: mss(whole_tcp),
        })
    }

    /// Writes the checksum into the packet, where it may be missing, because senders on the same machine leave it to a network card.
    pub fn complete_checksum(&self, packet: &mut [u8]) {
        let tcp = &mut packet[self.tcp_at..];
        tcp[16..18].fill(0);
        let checksum = checksum(self.tuple.client.ip(), self.tuple.server.ip(), tcp);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The RST that answers the SYN in the server's name (RFC 9293 section 3.5.2, group 1).
    pub fn refusal(&self) -> Vec<u8> {
        let (from, to) = (self.tuple.server, self.tuple.client);
        let mut tcp = [0; TCP_HEADER];
        tcp[..2].copy_from_slice(&from.port().to_be_bytes());
        tcp[2..4].copy_from_slice(&to.port().to_be_bytes());
        tcp[8..12].copy_from_slice(&self.sequence.wrapping_add(1).to_be_bytes());
        tcp[12] = (TCP_HEADER as u8 / 4) << 4;
        tcp[13] = FLAG_RST | FLAG_ACK;
        let checksum = checksum(from.ip(), to.ip(), &tcp);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        let mut packet = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => header_v4(from, to, TCP, SEGMENT_LENGTH).to_vec(),
            (IpAddr::V6(from), IpAddr::V6(to)) => header_v6(from, to, TCP, SEGMENT_LENGTH).to_vec(),
            _ => unreachable!("both addresses of a packet are of one IP version"),
        };
        packet.extend_from_slice(&tcp);
        packet
    }
}

/// The maximum segment size in the options of a TCP header (RFC 9293 section 3.2).
fn mss(tcp: &[u8]) -> Option<u16> {
    let mut options = tcp.get(TCP_HEADER..usize::from(tcp[12] >> 4) * 4)?;
    loop {
        match *options {
            [1, ref rest @ ..] => options = rest,
            [2, 4, high, low, ..] => return Some(u16::from_be_bytes([high, low])),
            [2..=255, length, ..] if length >= 2 => options = options.get(usize::from(length)..)?,
            _ => return None,
        }
    }
}

/// Reason why a packet cannot be forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unreachable {
    /// There is no route.
    Network,
    /// No host answers at the end of the route.
    Host,
    /// The administrator forbids it.
    Forbidden,
}

impl Unreachable {
    /// Returns the reason for an error of sending, if it is one of these.
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.raw_os_error()? {
            libc::ENETUNREACH => Some(Self::Network),
            libc::EHOSTUNREACH => Some(Self::Host),
            libc::EACCES => Some(Self::Forbidden),
            _ => None,
        }
    }

    /// Codes of "destination unreachable" (RFC 792 and RFC 1812, RFC 4443).
    fn code(self, is_v4: bool) -> u8 {
        match (self, is_v4) {
            (Self::Network, _) => 0,
            (Self::Host, true) => 1,
            (Self::Host, false) => 3,
            (Self::Forbidden, true) => 13,
            (Self::Forbidden, false) => 1,
        }
    }
}

/// Returns the ICMP error of a router at `router` for a packet that it cannot forward; `None` if the packet is too short.
pub(crate) fn unreachable(packet: &[u8], router: IpAddr, why: Unreachable) -> Option<Vec<u8>> {
    let is_v4 = packet.first()? >> 4 == 4;
    let (client, _, _, _) = if is_v4 { read_v4(packet)? } else { read_v6(packet)? };
    let (kind, protocol, most) = if is_v4 { (3, ICMP, QUOTED_V4) } else { (1, ICMP_V6, QUOTED_V6) };
    let mut message = vec![kind, why.code(is_v4), 0, 0, 0, 0, 0, 0];
    message.extend_from_slice(&packet[..packet.len().min(most)]);
    let length = message.len() as u16;
    let (mut whole, checksum) = match (router, client) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            (header_v4(from, to, protocol, length).to_vec(), folded(sum(&message)))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let pseudo = sum(&from.octets()) + sum(&to.octets()) + u32::from(length) + u32::from(protocol);
            (header_v6(from, to, protocol, length).to_vec(), folded(pseudo + sum(&message)))
        }
        _ => return None,
    };
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    whole.extend_from_slice(&message);
    Some(whole)
}

type Parts<'a> = (IpAddr, IpAddr, u8, &'a [u8]);

fn read_v4(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.get(..20)?;
    let length = usize::from(header[0] & 0xf) * 4;
    // A later fragment has no TCP header, and a first one may lack the end of it.
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if header[9] != TCP || is_fragment || length < 20 {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    Some((address(12).into(), address(16).into(), header[1], packet.get(length..)?))
}

fn read_v6(packet: &[u8]) -> Option<Parts<'_>> {
    let header = packet.get(..40)?;
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("a range of sixteen");
        Ipv6Addr::from(octets)
    };
    let class = (header[0] << 4) | (header[1] >> 4);
    let (mut next, mut rest) = (header[6], packet.get(40..)?);
    while EXTENSIONS.contains(&next) {
        let length = 8 + usize::from(*rest.get(1)?) * 8;
        next = rest[0];
        rest = rest.get(length..)?;
    }
    (next == TCP).then_some((address(8).into(), address(24).into(), class, rest))
}

fn header_v4(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, length: u16) -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&(20 + length).to_be_bytes());
    header[6] = 0x40;
    header[8] = 64;
    header[9] = protocol;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let sum = folded(sum(&header));
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

fn header_v6(from: Ipv6Addr, to: Ipv6Addr, protocol: u8, length: u16) -> [u8; 40] {
    let mut header = [0; 40];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&length.to_be_bytes());
    header[6] = protocol;
    header[7] = 64;
    header[8..24].copy_from_slice(&from.octets());
    header[24..40].copy_from_slice(&to.octets());
    header
}

/// The checksum of a TCP segment without data, with its pseudo-header.
fn checksum(from: IpAddr, to: IpAddr, tcp: &[u8]) -> u16 {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let pseudo = u32::from(TCP) + tcp.len() as u32;
    folded(sum(&octets(from)) + sum(&octets(to)) + pseudo + sum(tcp))
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn_v4() -> Vec<u8> {
        let mut packet =
            header_v4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 0, 2, 7), TCP, SEGMENT_LENGTH).to_vec();
        packet[1] = 0xb8;
        let mut tcp = [0; TCP_HEADER];
        tcp[..2].copy_from_slice(&40_000u16.to_be_bytes());
        tcp[2..4].copy_from_slice(&443u16.to_be_bytes());
        tcp[4..8].copy_from_slice(&0xffff_ffffu32.to_be_bytes());
        tcp[12] = 0x50;
        tcp[13] = FLAG_SYN;
        packet.extend_from_slice(&tcp);
        packet
    }

    #[test]
    fn a_syn_says_who_wants_whom() {
        let syn = Syn::read(&syn_v4()).unwrap();
        assert_eq!(syn.tuple.client, "10.0.0.1:40000".parse().unwrap());
        assert_eq!(syn.tuple.server, "192.0.2.7:443".parse().unwrap());
        assert_eq!(syn.dscp, 46);
    }

    #[test]
    fn the_segment_size_is_found_among_other_options() {
        let mut syn = syn_v4();
        assert_eq!(Syn::read(&syn).unwrap().mss, None);
        syn[32] = 0x80;
        syn.extend_from_slice(&[1, 3, 3, 7, 2, 4, 0x05, 0x14, 1, 1, 4, 2]);
        assert_eq!(Syn::read(&syn).unwrap().mss, Some(1300));
        for length in 40..syn.len() {
            assert_eq!(Syn::read(&syn[..length]).unwrap().mss, None, "a header that is cut");
        }
        for length in [0, 1, 200] {
            syn[42] = length;
            assert_eq!(Syn::read(&syn).unwrap().mss, None, "an option of {length} bytes");
        }
    }

    #[test]
    fn a_missing_checksum_is_completed() {
        let mut packet = syn_v4();
        packet[36..38].copy_from_slice(&[0xab, 0xcd]);
        Syn::read(&packet).unwrap().complete_checksum(&mut packet);
        let (from, to) = ("10.0.0.1".parse().unwrap(), "192.0.2.7".parse().unwrap());
        assert_eq!(checksum(from, to, &packet[20..]), 0);
    }

    #[test]
    fn a_refusal_acknowledges_the_syn_and_has_right_checksums() {
        let refusal = Syn::read(&syn_v4()).unwrap().refusal();
        assert_eq!(refusal[28..32], 0u32.to_be_bytes(), "the sequence number after 0xffffffff");
        assert_eq!(refusal[33], FLAG_RST | FLAG_ACK);
        assert_eq!(folded(sum(&refusal[..20])), 0);
        let (from, to) = ("192.0.2.7".parse().unwrap(), "10.0.0.1".parse().unwrap());
        assert_eq!(checksum(from, to, &refusal[20..]), 0);
    }

    #[test]
    fn an_error_quotes_the_packet_and_has_right_checksums() {
        let syn = syn_v4();
        let error = unreachable(&syn, "10.0.0.254".parse().unwrap(), Unreachable::Host).unwrap();
        assert_eq!((error[9], error[20], error[21]), (ICMP, 3, 1));
        assert_eq!(error[12..20], [10, 0, 0, 254, 10, 0, 0, 1]);
        assert_eq!(error[28..], syn);
        assert_eq!((folded(sum(&error[..20])), folded(sum(&error[20..]))), (0, 0));
        assert_eq!(unreachable(&syn, "fd00::1".parse().unwrap(), Unreachable::Host), None);
        for length in 0..syn.len() {
            let _ = unreachable(&syn[..length], "10.0.0.254".parse().unwrap(), Unreachable::Network);
        }
    }

    #[test]
    fn whatever_is_no_syn_is_none_and_nothing_panics() {
        let whole = syn_v4();
        for length in 0..whole.len() {
            assert_eq!(Syn::read(&whole[..length]), None, "{length} bytes");
        }
        for at in 0..whole.len() {
            for value in 0..=255 {
                let mut changed = whole.clone();
                changed[at] = value;
                let _ = Syn::read(&changed);
            }
        }
        let mut answer = whole;
        answer[33] |= FLAG_ACK;
        assert_eq!(Syn::read(&answer), None);
    }

    #[test]
    fn extension_headers_are_passed_over() {
        let (from, to) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let mut packet = header_v6(from, to, TCP, SEGMENT_LENGTH).to_vec();
        packet[6] = 60;
        packet.extend_from_slice(&[TCP, 0, 1, 4, 0, 0, 0, 0]);
        packet.extend_from_slice(&syn_v4()[20..]);
        assert_eq!(Syn::read(&packet).unwrap().tuple.server, "[2001:db8::2]:443".parse().unwrap());
        for length in 0..packet.len() {
            assert_eq!(Syn::read(&packet[..length]), None, "{length} bytes");
        }
    }
}
