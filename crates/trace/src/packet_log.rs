//! Capture file of the packets of many connections, for packet analysers.

use std::collections::BTreeMap;
use std::io::{self, Write};

use bentpipe_base::{Flags, Instant, Segment};

use crate::{Capture, Captured, Endpoint, Framer, From, Protocol};

/// Place where a packet was captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Index of the capture's interface.
    pub interface: u32,
    /// Number of the connection.
    pub connection: u32,
    /// The end that sent the packet.
    pub from: From,
}

/// Writes segments as packets into a [`Capture`]. Each host has an address. Connections between the same two hosts differ in
/// their ports.
///
/// Packet analysers expect each packet once. The caller should therefore capture at one place of the network, or at one end of
/// each connection.
#[derive(Debug)]
pub struct PacketLog<W> {
    capture: Capture<W>,
    /// Hosts of each connection. Connections beyond this list use new hosts, numbered from `strangers` on.
    places: Vec<Pair>,
    strangers: u32,
    connections: BTreeMap<u32, Followed>,
    packet: Vec<u8>,
    /// Number of packets without TCP.
    datagrams: u16,
    failed: Option<io::Error>,
}

/// Two hosts, the opener's first, and the number of earlier connections between them.
#[derive(Clone, Copy, Debug)]
struct Pair {
    hosts: [u32; 2],
    ordinal: u16,
}

impl Pair {
    /// Makes the framer of a connection.
    fn framer(self, earlier: u16) -> Framer {
        let [opener, listener] = self.endpoints(earlier);
        Framer::new(opener, listener)
    }

    /// Returns the ends of a connection. Host `n` has the address 10.0.0.0 + n + 1. Openers use ports from 49152 upwards. Listeners
    /// use port 5001 for the first connection between two hosts, 5002 for the next.
    fn endpoints(self, earlier: u16) -> [Endpoint; 2] {
        let [opener, listener] =
            self.hosts.map(|host| (0x0a00_0000 | (host.wrapping_add(1) & 0x00ff_ffff)).to_be_bytes());
        let opener = Endpoint { address: opener, port: 49_152 + earlier % 16_384 };
        [opener, Endpoint { address: listener, port: 5_001 + self.ordinal }]
    }
}

/// State of a connection, or of several successive ones between the same ends.
#[derive(Debug)]
struct Followed {
    framer: Framer,
    /// True after any segment other than the opening SYN.
    under_way: bool,
    /// Number of earlier connections between these ends.
    earlier: u16,
}

impl<W: Write> PacketLog<W> {
    /// Makes a log to `capture`; `hosts` are the host numbers of each connection, the opener's first.
    pub fn new(capture: Capture<W>, hosts: Vec<[u32; 2]>) -> Self {
        let strangers = hosts.iter().flatten().max().map_or(0, |host| host + 1);
        let mut alike: BTreeMap<[u32; 2], u16> = BTreeMap::new();
        let pair = |hosts: [u32; 2]| {
            let ordinal = alike.entry(hosts).or_default();
            let pair = Pair { hosts, ordinal: *ordinal };
            *ordinal = (*ordinal + 1) % 44_000;
            pair
        };
        let places = hosts.into_iter().map(pair).collect();
        Self {
            capture,
            places,
            strangers,
            connections: BTreeMap::new(),
            packet: Vec::new(),
            datagrams: 0,
            failed: None,
        }
    }

    /// Writes a segment as a packet. After an error nothing more is written; [`PacketLog::finish`] returns the error.
    pub fn packet(&mut self, at: Instant, seen: Seen, segment: &Segment) {
        if self.failed.is_none() {
            self.failed = self.write(at, seen, segment).err();
        }
    }

    /// Writes a packet of `bytes` bytes without TCP. After an error nothing more is written; [`PacketLog::finish`] returns the
    /// error.
    pub fn datagram(&mut self, at: Instant, seen: Seen, (protocol, bytes): (Protocol, u32)) {
        if self.failed.is_some() {
            return;
        }
        let pair = self.pair(seen.connection);
        let [opener, listener] = pair.endpoints(0);
        let ends = if seen.from == From::Opener { [opener, listener] } else { [listener, opener] };
        self.packet.clear();
        self.datagrams = self.datagrams.wrapping_add(1);
        protocol.headers(ends, (self.datagrams, bytes), &mut self.packet);
        let omitted = bytes.saturating_sub(self.packet.len() as u32);
        let packet = Captured { bytes: &self.packet, omitted, comment: protocol.comment() };
        self.failed = self.capture.packet(at, seen.interface, packet).err();
    }

    /// Returns the flushed writer.
    ///
    /// # Errors
    /// The first error of the writer; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.failed.map_or(Ok(()), Err)?;
        self.capture.finish()
    }

    fn pair(&self, number: u32) -> Pair {
        let own = Pair { hosts: [0, 1].map(|end| self.strangers + 2 * number + end), ordinal: 0 };
        self.places.get(number as usize).copied().unwrap_or(own)
    }

    fn write(&mut self, at: Instant, seen: Seen, segment: &Segment) -> io::Result<()> {
        let (number, pair) = (seen.connection, self.pair(seen.connection));
        let first = || Followed { framer: pair.framer(0), under_way: false, earlier: 0 };
        let connection = self.connections.entry(number).or_insert_with(first);
        let opens = segment.flags.contains(Flags::SYN) && seen.from == From::Opener;
        if opens && connection.under_way {
            let earlier = connection.earlier.wrapping_add(1);
            *connection = Followed { framer: pair.framer(earlier), under_way: false, earlier };
        }
        connection.under_way |= !opens;
        self.packet.clear();
        let omitted = connection.framer.headers(seen.from, segment, &mut self.packet);
        self.capture.packet(at, seen.interface, Captured { bytes: &self.packet, omitted, comment: "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_without_tcp_have_the_headers_of_their_protocols() {
        let capture = || Capture::new(Vec::new(), "us", ["place"]).unwrap();
        let empty = capture().finish().unwrap().len();
        for (protocol, number, written) in
            [(Protocol::Udp, 17, 28), (Protocol::Sctp, 132, 32), (Protocol::Other("stp"), 253, 20)]
        {
            let mut log = PacketLog::new(capture(), vec![[0, 7]]);
            let seen = Seen { interface: 0, connection: 0, from: From::Listener };
            log.datagram(Instant::ZERO, seen, (protocol, 1_028));
            let bytes = log.finish().unwrap();
            let word = |at: usize| u32::from_le_bytes(bytes[empty + at..][..4].try_into().unwrap());
            assert_eq!([word(20), word(24)], [written, 1_028], "{protocol:?}");
            let packet = &bytes[empty + 28..][..written as usize];
            assert_eq!((packet[9], &packet[2..4]), (number, &1_028_u16.to_be_bytes()[..]));
            assert_eq!(packet[12..20], [10, 0, 0, 8, 10, 0, 0, 1]);
            let header = etherparse::Ipv4HeaderSlice::from_slice(packet).unwrap().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            if number == 17 {
                let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
                assert_eq!([port(20), port(22), port(24)], [5_001, 49_152, 1_008]);
            }
            let text = String::from_utf8_lossy(&bytes[empty..]).into_owned();
            assert_eq!(text.contains("stp"), number == 253);
        }
    }

    #[test]
    fn hosts_have_addresses_and_connections_ports() {
        let empty = Capture::new(Vec::new(), "us", ["place"]).unwrap().finish().unwrap().len();
        let mut log =
            PacketLog::new(Capture::new(Vec::new(), "us", ["place"]).unwrap(), vec![[0, 7], [0, 7]]);
        let segment = Segment { flags: Flags::ACK, len: 100, ..Segment::default() };
        let syn = Segment { flags: Flags::SYN, len: 100, ..Segment::default() };
        let mut see = |connection, from, segment| {
            log.packet(Instant::ZERO, Seen { interface: 0, connection, from }, segment);
        };
        see(0, From::Opener, &syn);
        see(0, From::Opener, &syn);
        see(1, From::Listener, &segment);
        see(0, From::Listener, &segment);
        see(0, From::Opener, &syn);
        let bytes = log.finish().unwrap();
        assert_eq!(bytes.len(), empty + 5 * 72);
        let packet = |n: usize| &bytes[empty + n * 72 + 28..][..24];
        let addresses = |n| (packet(n)[12..16].to_vec(), packet(n)[16..20].to_vec());
        assert_eq!(addresses(0), (vec![10, 0, 0, 1], vec![10, 0, 0, 8]));
        assert_eq!(addresses(2), (vec![10, 0, 0, 8], vec![10, 0, 0, 1]));
        let port = |n: usize| u16::from_be_bytes(packet(n)[20..22].try_into().unwrap());
        assert_eq!(port(2), 5_002, "a second connection between the same hosts");
        assert_eq!(
            [0, 1, 4].map(port),
            [49_152, 49_152, 49_153],
            "a SYN sent again opens no fresh connection"
        );
    }
}
