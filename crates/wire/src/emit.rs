//! Writer of packets: IP header, TCP header, and a checksum over a payload that may be elsewhere.

use core::net::{IpAddr, SocketAddr};

use bentpipe_base::{EcnField, Segment};

use crate::datagram::{LOWER_EFFORT, protocol};
use crate::tcp::CHECKSUM_AT;
use crate::{Header, Sum};

/// Both ends of packets, of the same IP version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ends {
    /// Address and port of the sending end.
    pub local: SocketAddr,
    /// Address and port of the receiving end.
    pub remote: SocketAddr,
}

impl Ends {
    /// Returns both ends seen from the other side.
    #[must_use]
    pub const fn swapped(self) -> Self {
        Self { local: self.remote, remote: self.local }
    }

    /// Returns the bytes of the IP header.
    pub const fn ip_header_len(&self) -> usize {
        if self.remote.is_ipv4() { 20 } else { 40 }
    }
}

/// Fields of the IP header besides addresses and lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IpFields {
    /// ECN field of the IP header.
    pub ecn: EcnField,
    /// Differentiated services code point (RFC 2474), below 64.
    pub dscp: u8,
    /// Identification of an IPv4 packet. It has no effect, since packets are never fragmented.
    pub identification: u16,
}

impl IpFields {
    /// Returns the fields of a segment in the default class, or in lower effort if it has low priority.
    pub const fn of(segment: &Segment, identification: u16) -> Self {
        Self { ecn: segment.ecn, dscp: if segment.low_priority { LOWER_EFFORT } else { 0 }, identification }
    }
}

/// Payload, as far as the headers depend on it.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// The payload is these bytes: the checksum is complete.
    Bytes(&'a [u8]),
    /// The payload is this many zero bytes: the checksum is complete.
    Zeros(usize),
    /// This many bytes whose sum the device adds: the checksum field holds the sum of the pseudo header.
    Offloaded(usize),
}

impl Payload<'_> {
    const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Zeros(len) | Self::Offloaded(len) => *len,
        }
    }
}

/// Headers of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Source and destination.
    pub ends: Ends,
    /// Fields of the IP header.
    pub ip: IpFields,
    /// TCP header; its ports are those of `ends`.
    pub tcp: Header,
    /// Payload after the headers.
    pub payload: Payload<'a>,
}

/// Time to live of sent packets (RFC 1700).
const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u8 = 0x40;

impl Packet<'_> {
    /// Appends the headers without payload; returns the number of bytes appended. The payload must fit the length field of the IP
    /// header.
    pub fn write_headers(&self, out: &mut Vec<u8>) -> usize {
        let begin = out.len();
        let ip_len = self.ends.ip_header_len();
        out.resize(begin + ip_len, 0);
        let tcp = Header {
            source_port: self.ends.local.port(),
            destination_port: self.ends.remote.port(),
            ..self.tcp
        };
        let tcp_len = tcp.write(out);
        let len = tcp_len + self.payload.len();
        debug_assert!(ip_len + len <= 65_575, "{len} bytes do not fit");
        self.write_ip(&mut out[begin..begin + ip_len], len);
        let (local, remote) = (self.ends.local.ip(), self.ends.remote.ip());
        let sum = Sum::pseudo_header((local, remote), protocol::TCP, len);
        let segment = begin + ip_len;
        let field = match self.payload {
            Payload::Offloaded(_) => sum.partial(),
            Payload::Zeros(_) => sum.bytes(&out[segment..]).checksum(),
            Payload::Bytes(bytes) => sum.bytes(&out[segment..]).bytes(bytes).checksum(),
        };
        out[segment + CHECKSUM_AT..][..2].copy_from_slice(&field.to_be_bytes());
        ip_len + tcp_len
    }

    fn write_ip(&self, out: &mut [u8], len: usize) {
        let class = self.ip.dscp << 2 | self.ip.ecn.bits();
        match (self.ends.local.ip(), self.ends.remote.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let total = (20 + len) as u16;
                out[0] = 0x45;
                out[1] = class;
                out[2..4].copy_from_slice(&total.to_be_bytes());
                out[4..6].copy_from_slice(&self.ip.identification.to_be_bytes());
                out[6] = DONT_FRAGMENT;
                out[8] = HOP_LIMIT;
                out[9] = protocol::TCP;
                out[12..16].copy_from_slice(&source.octets());
                out[16..20].copy_from_slice(&destination.octets());
                let checksum = Sum::default().bytes(out).checksum();
                out[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                out[0] = 0x60 | class >> 4;
                out[1] = class << 4;
                out[4..6].copy_from_slice(&(len as u16).to_be_bytes());
                out[6] = protocol::TCP;
                out[7] = HOP_LIMIT;
                out[8..24].copy_from_slice(&source.octets());
                out[24..40].copy_from_slice(&destination.octets());
            }
            (local, remote) => unreachable!("{local} and {remote} are of different versions"),
        }
    }
}

/// Completes the checksum of a TCP packet written with [`Payload::Offloaded`], as a device would. `packet` is the IP payload.
pub fn complete_checksum(packet: &mut [u8]) {
    let checksum = Sum::default().bytes(packet).checksum();
    packet[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
}
