//! Coalescing of segments of one stream that are due at the same time into one large packet, as by a network card
//! with receive offload. Several packets are due at once only on a path that is fast for this machine.

use std::ops::Range;

use bentpipe_wire::{Datagram, Header, Offload, Segmentation, Sum, VIRTIO_HEADER_LEN};

/// Protocol number of TCP (IANA).
const TCP: u8 = 6;
/// Largest IPv4 packet; the same for both versions.
const LARGEST: usize = 65_535;
/// Offsets of flags and checksum in a TCP header.
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// Coalesces one or more packets into one.
#[derive(Debug, Default)]
pub(crate) struct Coalescer {
    /// Virtio header and the packet so far; empty without a packet.
    bytes: Vec<u8>,
    packets: u64,
    head: Option<Head>,
}

/// Properties that the next packet must have to be appended.
#[derive(Clone, Copy, Debug)]
struct Head {
    ip_len: usize,
    tcp_len: usize,
    /// Payload of each packet except the last.
    unit: usize,
    next_seq: u32,
    /// True if no packet can be appended.
    complete: bool,
    /// True if the checksum was verified. Coalesced packets get a new one, which must not hide an error.
    verified: bool,
}

impl Coalescer {
    /// Appends a packet if it continues the stream and differs from the last packet in nothing else.
    pub fn append(&mut self, packet: &[u8]) -> bool {
        let Some(mut head) = self.head.filter(|head| !head.complete) else { return false };
        let Some(next) = Head::of(packet) else { return false };
        let whole = &self.bytes[VIRTIO_HEADER_LEN..];
        let fits = whole.len() + next.unit <= LARGEST;
        if !fits || !head.is_continued_by(&next, whole, packet) || !checksum_holds(packet) {
            return false;
        }
        head.verified = head.verified || checksum_holds(whole);
        if !head.verified {
            head.complete = true;
            self.head = Some(head);
            return false;
        }
        self.bytes[VIRTIO_HEADER_LEN + head.ip_len + FLAGS_AT] |= packet[next.ip_len + FLAGS_AT] & PSH;
        self.bytes.extend_from_slice(&packet[next.ip_len + next.tcp_len..]);
        self.packets += 1;
        head.complete = next.complete || next.unit < head.unit;
        head.next_seq = next.next_seq;
        self.head = Some(head);
        true
    }

    /// Drops the held packets and begins with this one.
    pub fn begin(&mut self, packet: &[u8]) {
        self.bytes.clear();
        self.bytes.resize(VIRTIO_HEADER_LEN, 0);
        self.bytes.extend_from_slice(packet);
        self.packets = 1;
        self.head = Head::of(packet);
    }

    /// Returns the number of held packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the packet to write, after a virtio header. A single packet is unchanged.
    pub fn finish(&mut self) -> &[u8] {
        if let Some(head) = self.head.filter(|_| self.packets > 1) {
            head.seal(&mut self.bytes);
        }
        &self.bytes
    }

    /// Drops the held packets.
    pub fn clear(&mut self) {
        (self.packets, self.head) = (0, None);
    }
}

impl Head {
    /// Parses a packet that can be coalesced: a plain TCP segment with payload.
    fn of(packet: &[u8]) -> Option<Self> {
        let is_v4 = packet.first()? >> 4 == 4;
        let ip_len = if is_v4 { 20 } else { 40 };
        let (protocol, plain) = match is_v4 {
            // No options, no fragment.
            true => (packet.get(9)?, packet[0] == 0x45 && packet[6] & 0x3f == 0 && packet[7] == 0),
            false => (packet.get(6)?, true),
        };
        let tcp = packet.get(ip_len..).filter(|_| plain && *protocol == TCP)?;
        let tcp_len = usize::from(tcp.get(12)? >> 4) * 4;
        let flags = tcp.get(FLAGS_AT)?;
        let unit = tcp.len().checked_sub(tcp_len).filter(|len| *len > 0 && tcp_len >= 20)?;
        if flags & !PSH != ACK {
            return None;
        }
        let seq = u32::from_be_bytes(tcp[4..8].try_into().ok()?);
        let next_seq = seq.wrapping_add(unit as u32);
        Some(Self { ip_len, tcp_len, unit, next_seq, complete: flags & PSH != 0, verified: false })
    }

    /// True if `packet`, parsed as `next`, continues the stream at the end of `whole`, with the headers that the
    /// kernel's segmentation of both would give it.
    fn is_continued_by(&self, next: &Self, whole: &[u8], packet: &[u8]) -> bool {
        let same = |range: Range<usize>| whole[range.clone()] == packet[range];
        let ip = if self.ip_len == 20 {
            // Compares all except length, identification and checksum.
            same(0..2) && same(6..10) && same(12..20)
        } else {
            same(0..4) && same(6..40)
        };
        let at = self.ip_len;
        let seq = next.next_seq.wrapping_sub(next.unit as u32);
        (self.ip_len, self.tcp_len) == (next.ip_len, next.tcp_len)
            && next.unit <= self.unit
            && seq == self.next_seq
            && ip
            && same(at..at + 4)
            && same(at + 8..at + FLAGS_AT)
            && same(at + 14..at + CHECKSUM_AT)
            && same(at + 18..at + self.tcp_len)
    }

    /// Writes lengths, checksums and the segment size into the headers.
    fn seal(&self, bytes: &mut [u8]) {
        let is_v4 = self.ip_len == 20;
        let unit = self.unit as u16;
        let segmentation = if is_v4 { Segmentation::TcpV4(unit) } else { Segmentation::TcpV6(unit) };
        let offload = Offload::tcp(self.ip_len, segmentation).to_bytes(self.ip_len + self.tcp_len);
        let (virtio, packet) = bytes.split_at_mut(VIRTIO_HEADER_LEN);
        virtio.copy_from_slice(&offload);
        let len = packet.len();
        if is_v4 {
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            packet[10..12].fill(0);
            let checksum = Sum::default().bytes(&packet[..20]).checksum();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            packet[4..6].copy_from_slice(&((len - self.ip_len) as u16).to_be_bytes());
        }
        if let Ok(datagram) = Datagram::read(packet) {
            let addresses = (datagram.source, datagram.destination);
            let partial = Sum::pseudo_header(addresses, TCP, len - self.ip_len).partial();
            let at = self.ip_len + CHECKSUM_AT;
            packet[at..at + 2].copy_from_slice(&partial.to_be_bytes());
        }
    }
}

fn checksum_holds(packet: &[u8]) -> bool {
    Datagram::read(packet).is_ok_and(|datagram| {
        let addresses = (datagram.source, datagram.destination);
        datagram.len == packet.len()
            && Header::checksum_holds(
                Sum::pseudo_header(addresses, TCP, datagram.payload.len()),
                datagram.payload,
            )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};

    /// Makes a segment of `len` bytes at `seq` with another implementation.
    fn segment(v6: bool, seq: u32, len: usize, change: impl Fn(&mut etherparse::TcpHeader)) -> Vec<u8> {
        let ip = match v6 {
            true => PacketBuilder::ipv6([1; 16], [2; 16], 60),
            false => PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 60),
        };
        let mut tcp = etherparse::TcpHeader::new(80, 5000, seq, 7000);
        (tcp.ack, tcp.acknowledgment_number) = (true, 9);
        change(&mut tcp);
        let payload: Vec<u8> = (0..len).map(|at| (seq as usize + at) as u8).collect();
        let mut bytes = Vec::new();
        ip.tcp_header(tcp).write(&mut bytes, &payload).unwrap();
        bytes
    }

    fn plain(v6: bool, seq: u32, len: usize) -> Vec<u8> {
        segment(v6, seq, len, |_| {})
    }

    /// Returns the number of these packets that coalesce with the first.
    fn appended(packets: &[Vec<u8>]) -> usize {
        let mut coalescer = Coalescer::default();
        coalescer.begin(&packets[0]);
        packets[1..].iter().take_while(|packet| coalescer.append(packet)).count()
    }

    #[test]
    fn segments_in_sequence_leave_as_one_that_others_read_as_such() {
        for v6 in [false, true] {
            let mut coalescer = Coalescer::default();
            coalescer.begin(&plain(v6, u32::MAX - 999, 1000));
            assert!(coalescer.append(&plain(v6, 0, 1000)) && coalescer.append(&plain(v6, 1000, 300)));
            assert!(!coalescer.append(&plain(v6, 1300, 300)), "a short segment is the last");
            assert_eq!(coalescer.packets(), 3);
            let (offload, whole) = Offload::read(coalescer.finish()).unwrap();
            let kind = if v6 { Segmentation::TcpV6(1000) } else { Segmentation::TcpV4(1000) };
            assert_eq!((offload.segmentation, offload.is_trusted()), (kind, true));
            let sliced = SlicedPacket::from_ip(whole).unwrap();
            let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("{sliced:?}") };
            assert_eq!(tcp.sequence_number(), u32::MAX - 999);
            let wanted: Vec<u8> = (0..2300_u32).map(|at| (u32::MAX - 999).wrapping_add(at) as u8).collect();
            assert_eq!(tcp.payload(), wanted);
        }
    }

    #[test]
    fn a_single_packet_stays_as_it_is() {
        let mut coalescer = Coalescer::default();
        let packet = plain(false, 1, 1000);
        coalescer.begin(&packet);
        assert_eq!(coalescer.finish(), [&[0; VIRTIO_HEADER_LEN][..], &packet].concat());
    }

    #[test]
    fn whatever_differs_in_more_than_its_place_leaves_alone() {
        let first = || plain(false, 1, 1000);
        assert_eq!(appended(&[first(), plain(false, 1001, 1000), plain(false, 2001, 1000)]), 2);
        for (name, other) in [
            ("a gap", plain(false, 2001, 1000)),
            ("before it", plain(false, 1, 1000)),
            ("larger", plain(false, 1001, 1001)),
            ("no payload", plain(false, 1001, 0)),
            ("another version", plain(true, 1001, 1000)),
            ("FIN", segment(false, 1001, 1000, |tcp| tcp.fin = true)),
            ("an echo of congestion", segment(false, 1001, 1000, |tcp| tcp.ece = true)),
            ("another acknowledgement", segment(false, 1001, 1000, |tcp| tcp.acknowledgment_number = 10)),
            ("another window", segment(false, 1001, 1000, |tcp| tcp.window_size = 1)),
            ("another port", segment(false, 1001, 1000, |tcp| tcp.source_port = 81)),
            (
                "options",
                segment(false, 1001, 1000, |tcp| {
                    tcp.set_options(&[etherparse::TcpOptionElement::Timestamp(1, 2)]).unwrap();
                }),
            ),
        ] {
            assert_eq!(appended(&[first(), other]), 0, "{name}");
        }
        let mut marked = plain(false, 1001, 1000);
        marked[1] = 2;
        bentpipe_wire::mark_congestion(&mut marked);
        assert_eq!(appended(&[first(), marked]), 0, "a congestion mark");
        let pushed = segment(false, 1001, 1000, |tcp| tcp.psh = true);
        assert_eq!(appended(&[first(), pushed, plain(false, 2001, 1000)]), 1, "PSH is the last");
    }

    /// The receiver must detect the error, so the packet cannot get a new checksum.
    #[test]
    fn a_flipped_bit_stays_a_wrong_checksum() {
        let (first, second) = (plain(false, 1, 1000), plain(false, 1001, 1000));
        for at in [60, 1000] {
            let mut broken = second.clone();
            broken[at] ^= 4;
            assert_eq!(appended(&[first.clone(), broken]), 0);
            let mut broken = first.clone();
            broken[at] ^= 4;
            assert_eq!(appended(&[broken, second.clone(), plain(false, 2001, 1000)]), 0);
        }
    }

    #[test]
    fn nothing_is_longer_than_a_packet_can_be() {
        let packets: Vec<_> = (0..60).map(|n| plain(true, n * 1400, 1400)).collect();
        let mut coalescer = Coalescer::default();
        coalescer.begin(&packets[0]);
        let behind = packets[1..].iter().take_while(|packet| coalescer.append(packet)).count();
        assert_eq!(behind, 45);
        assert!(coalescer.finish().len() <= VIRTIO_HEADER_LEN + LARGEST);
    }
}
