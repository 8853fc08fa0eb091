//! Packets as bytes, through `etherparse`.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use bentpipe_base::{Flags, Instant};
use etherparse::{
    IpEcn, IpHeaders, IpNumber, Ipv4Header, Ipv6Header, NetHeaders, PacketBuilder, PacketHeaders, TcpHeader,
    TransportHeader,
};

use crate::script::{IcmpKind, TcpOption};

/// Time to live of arriving packets.
const HOP_LIMIT: u8 = 64;

/// Returns the stream byte at this sequence number; it depends on the position.
pub fn pattern(seq: u32) -> u8 {
    (seq.wrapping_mul(2_654_435_761) >> 24) as u8
}

/// Returns the stream bytes from a sequence number on.
pub fn stream(seq: u32, len: u32) -> Vec<u8> {
    (0..len).map(|at| pattern(seq.wrapping_add(at))).collect()
}

fn ip(source: IpAddr, destination: IpAddr, number: IpNumber, ecn: u8) -> IpHeaders {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = Ipv4Header::new(0, HOP_LIMIT, number, source.octets(), destination.octets())
                .expect("an empty payload fits");
            header.ecn = IpEcn::try_new(ecn).expect("two bits");
            IpHeaders::Ipv4(header, Default::default())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = Ipv6Header {
                traffic_class: ecn,
                hop_limit: HOP_LIMIT,
                next_header: number,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            };
            IpHeaders::Ipv6(header, Default::default())
        }
        _ => unreachable!("both ends of a script are of one IP version"),
    }
}

/// Builds a TCP packet with checksums.
pub fn tcp(
    addresses: (IpAddr, IpAddr),
    ecn: u8,
    header: TcpHeader,
    payload: &[u8],
) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    PacketBuilder::ip(ip(addresses.0, addresses.1, IpNumber::TCP, ecn))
        .tcp_header(header)
        .write(&mut bytes, payload)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Builds an ICMP message that quotes the start of this end's packet.
pub fn icmp(addresses: (IpAddr, IpAddr), kind: &IcmpKind, quoted: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let is_v6 = addresses.0.is_ipv6();
    let number = if is_v6 { IpNumber::IPV6_ICMP } else { IpNumber::ICMP };
    let builder = PacketBuilder::ip(ip(addresses.0, addresses.1, number, 0));
    let written = if is_v6 {
        let (kind_number, code) = kind.v6;
        builder.icmpv6_raw(kind_number, code, kind.mtu.to_be_bytes()).write(&mut bytes, quoted)
    } else {
        let (kind_number, code) = kind.v4;
        builder.icmpv4_raw(kind_number, code, kind.mtu.min(65_535).to_be_bytes()).write(&mut bytes, quoted)
    };
    written.map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Encodes TCP options as bytes.
pub fn option_bytes(options: &[TcpOption]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for option in options {
        match option {
            TcpOption::Nop => bytes.push(1),
            TcpOption::Eol => bytes.push(0),
            TcpOption::Mss(size) => {
                bytes.extend([2, 4]);
                bytes.extend(known(*size)?.to_be_bytes());
            }
            TcpOption::WindowScale(shift) => bytes.extend([3, 3, known(*shift)?]),
            TcpOption::SackPermitted => bytes.extend([4, 2]),
            TcpOption::Sack(blocks) => {
                bytes.extend([5, 2 + 8 * blocks.len().min(31) as u8]);
                for (from, to) in blocks {
                    bytes.extend(from.to_be_bytes());
                    bytes.extend(to.to_be_bytes());
                }
            }
            TcpOption::Timestamps(value, echo) => {
                bytes.extend([8, 10]);
                bytes.extend(known(*value)?.to_be_bytes());
                bytes.extend(known(*echo)?.to_be_bytes());
            }
            TcpOption::Other(kind, rest) => {
                bytes.push(*kind);
                bytes.extend(rest);
            }
        }
    }
    match bytes.len() {
        0..=40 => Ok(bytes),
        len => Err(format!("found {len} bytes of options, accepted: at most 40")),
    }
}

fn known<T>(value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| "found * in a packet that arrives, accepted: a number".to_owned())
}

/// Decodes options, padding included.
fn options(mut bytes: &[u8]) -> Result<Vec<TcpOption>, String> {
    let mut options = Vec::new();
    while let [kind, rest @ ..] = bytes {
        if *kind <= 1 {
            options.push(if *kind == 1 { TcpOption::Nop } else { TcpOption::Eol });
            bytes = rest;
            continue;
        }
        let len = rest.first().map_or(0, |len| usize::from(*len));
        let value = bytes.get(2..len).ok_or_else(|| format!("option {kind} with a length of {len}"))?;
        let word = |at: usize| {
            value.get(at..at + 4).map_or(0, |word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
        };
        options.push(match (*kind, value) {
            (2, [high, low]) => TcpOption::Mss(Some(u16::from_be_bytes([*high, *low]))),
            (3, [shift]) => TcpOption::WindowScale(Some(*shift)),
            (4, []) => TcpOption::SackPermitted,
            (5, _) if value.len().is_multiple_of(8) => {
                TcpOption::Sack((0..value.len() / 8).map(|at| (word(8 * at), word(8 * at + 4))).collect())
            }
            (8, _) if value.len() == 8 => TcpOption::Timestamps(Some(word(0)), Some(word(4))),
            _ => TcpOption::Other(*kind, value.to_vec()),
        });
        bytes = &bytes[len..];
    }
    Ok(options)
}

/// A packet sent by the stack under test.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Time when the packet was sent.
    pub at: Instant,
    /// Source address.
    pub source: SocketAddr,
    /// Destination address.
    pub destination: SocketAddr,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// TCP header of the packet.
    pub tcp: TcpHeader,
    /// TCP options of the packet.
    pub options: Vec<TcpOption>,
    /// Payload of the packet.
    pub payload: Vec<u8>,
}

impl Seen {
    /// Reads a packet and verifies its checksums.
    pub fn read(at: Instant, bytes: &[u8]) -> Result<Self, String> {
        let headers = PacketHeaders::from_ip_slice(bytes).map_err(|error| error.to_string())?;
        let Some(TransportHeader::Tcp(tcp)) = headers.transport else { return Err("no TCP header".into()) };
        let payload = headers.payload.slice();
        let (source, destination, ecn, sum): (IpAddr, IpAddr, u8, _) = match &headers.net {
            Some(NetHeaders::Ipv4(header, _)) => {
                if header.calc_header_checksum() != header.header_checksum {
                    return Err("a wrong IP checksum".into());
                }
                let sum = tcp.calc_checksum_ipv4(header, payload);
                (header.source.into(), header.destination.into(), header.ecn.value(), sum)
            }
            Some(NetHeaders::Ipv6(header, _)) => {
                let sum = tcp.calc_checksum_ipv6(header, payload);
                (header.source.into(), header.destination.into(), header.traffic_class & 3, sum)
            }
            _ => return Err("no IP header".into()),
        };
        if sum != Ok(tcp.checksum) {
            return Err("a wrong TCP checksum".into());
        }
        let options = options(tcp.options.as_slice())?;
        Ok(Self {
            at,
            source: SocketAddr::new(source, tcp.source_port),
            destination: SocketAddr::new(destination, tcp.destination_port),
            ecn,
            options,
            payload: payload.to_vec(),
            tcp,
        })
    }

    /// Returns the packet's TCP flags.
    pub fn flags(&self) -> Flags {
        let tcp = &self.tcp;
        let all = [
            (tcp.fin, Flags::FIN),
            (tcp.syn, Flags::SYN),
            (tcp.rst, Flags::RST),
            (tcp.psh, Flags::PSH),
            (tcp.ack, Flags::ACK),
            (tcp.urg, Flags::URG),
            (tcp.ece, Flags::ECE),
            (tcp.cwr, Flags::CWR),
            (tcp.ns, Flags::AE),
        ];
        all.iter().filter(|(set, _)| *set).fold(Flags::empty(), |flags, (_, flag)| flags | *flag)
    }
}

/// Formats flags in script notation.
pub fn flag_letters(flags: Flags) -> String {
    let letters = [
        (Flags::FIN, 'F'),
        (Flags::SYN, 'S'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::AE, 'A'),
        (Flags::ACK, '.'),
    ];
    let text: String =
        letters.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| letter).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Formats options in script notation.
pub fn option_words(options: &[TcpOption]) -> String {
    fn or_any<T: ToString>(value: Option<T>) -> String {
        value.map_or("*".to_owned(), |value| value.to_string())
    }
    let words: Vec<String> = options
        .iter()
        .map(|option| match option {
            TcpOption::Nop => "nop".to_owned(),
            TcpOption::Eol => "eol".to_owned(),
            TcpOption::Mss(size) => format!("mss {}", or_any(*size)),
            TcpOption::WindowScale(shift) => format!("wscale {}", or_any(*shift)),
            TcpOption::SackPermitted => "sackOK".to_owned(),
            TcpOption::Sack(blocks) => blocks.iter().fold("sack".to_owned(), |mut text, (from, to)| {
                write!(text, " {from}:{to}").expect("a string takes all");
                text
            }),
            TcpOption::Timestamps(value, echo) => format!("TS val {} ecr {}", or_any(*value), or_any(*echo)),
            TcpOption::Other(kind, bytes) => bytes.iter().fold(format!("option {kind}"), |mut text, byte| {
                write!(text, " {byte}").expect("a string takes all");
                text
            }),
        })
        .collect();
    words.join(",")
}
