use std::net::IpAddr;

use bentpipe_base::EcnField;
use bentpipe_net::Packet;
use bentpipe_wire::{Datagram, mark_congestion};

/// Protocol number of TCP (IANA).
const TCP: u8 = 6;

/// An IP packet.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The packet, then unused space.
    buffer: Vec<u8>,
    /// Length of the packet in bytes.
    len: u32,
    traits: Traits,
}

/// Properties of a packet that links use, besides its size.
#[derive(Clone, Copy, Debug)]
struct Traits {
    flow: u32,
    hosts: [u64; 2],
    low_priority: bool,
    is_data: bool,
    of_link_scope: bool,
    ecn: EcnField,
}

impl Frame {
    /// Makes a buffer for packets of up to `mtu` bytes.
    pub fn buffer(mtu: u16) -> Vec<u8> {
        vec![0; usize::from(mtu)]
    }

    /// Makes a frame of the first `len` bytes of `buffer`. The packet may be of another protocol than IP.
    pub fn new(buffer: Vec<u8>, len: usize) -> Self {
        let traits = Traits::of(&buffer[..len]);
        Self { buffer, len: len as u32, traits }
    }

    /// Returns the packet.
    pub fn packet(&self) -> &[u8] {
        &self.buffer[..self.len as usize]
    }

    /// True for a multicast that no router forwards: in IPv4 to 224.0.0.0/24 (RFC 5771, section 4), in IPv6 of link scope or less
    /// (RFC 4291, section 2.7). The kernel of a forwarding host sends such packets by itself.
    pub fn is_of_link_scope(&self) -> bool {
        self.traits.of_link_scope
    }

    /// Returns the buffer for the next packet.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

impl Traits {
    fn of(bytes: &[u8]) -> Self {
        let unknown = Self {
            flow: 0,
            hosts: [0; 2],
            low_priority: false,
            is_data: true,
            of_link_scope: false,
            ecn: EcnField::NotCapable,
        };
        let Ok(packet) = Datagram::read(bytes) else { return unknown };
        Self {
            flow: packet.flow_hash(0),
            hosts: [packet.source, packet.destination].map(number_of),
            low_priority: packet.is_low_priority(),
            is_data: is_data(&packet),
            of_link_scope: is_of_link_scope(packet.destination),
            ecn: packet.ecn,
        }
    }
}

/// Returns an IPv4 address, or both halves of an IPv6 address combined.
fn number_of(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() as u64 ^ (address.to_bits() >> 64) as u64,
    }
}

fn is_of_link_scope(destination: IpAddr) -> bool {
    match destination {
        IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
        // The scope is the last half of the second byte; 1 is this interface, 2 is the link.
        IpAddr::V6(address) => address.is_multicast() && address.octets()[1] & 15 <= 2,
    }
}

/// True unless the packet is a whole TCP segment without payload.
fn is_data(packet: &Datagram<'_>) -> bool {
    let header_len = packet.payload.get(12).map_or(0, |words| usize::from(words >> 4) * 4);
    packet.protocol != TCP || packet.fragment || packet.payload.len() > header_len
}

impl Packet for Frame {
    fn size(&self) -> u32 {
        self.len
    }

    fn low_priority(&self) -> bool {
        self.traits.low_priority
    }

    fn flow(&self) -> u64 {
        u64::from(self.traits.flow)
    }

    fn hosts(&self) -> [u64; 2] {
        self.traits.hosts
    }

    fn is_data(&self) -> bool {
        self.traits.is_data
    }

    fn ecn_capable(&self) -> bool {
        self.traits.ecn != EcnField::NotCapable
    }

    fn is_l4s(&self) -> bool {
        matches!(self.traits.ecn, EcnField::L4s | EcnField::Congested)
    }

    fn flip_bit(&mut self, number: u64) -> bool {
        let packet = &mut self.buffer[..self.len as usize];
        let bits = 8 * packet.len() as u64;
        let Some(bit) = number.checked_rem(bits) else { return false };
        packet[(bit / 8) as usize] ^= 1 << (bit % 8);
        true
    }

    fn mark_congested(&mut self) {
        mark_congestion(&mut self.buffer[..self.len as usize]);
        self.traits.ecn = EcnField::Congested;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpDscp, IpEcn, Ipv4Header, PacketBuilder, PacketBuilderStep};

    fn frame(packet: &[u8]) -> Frame {
        let mut buffer = Frame::buffer(1500);
        buffer[..packet.len()].copy_from_slice(packet);
        Frame::new(buffer, packet.len())
    }

    fn tcp(ip: PacketBuilderStep<etherparse::IpHeaders>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        ip.tcp(5000, 80, 1, 1000).ack(7).write(&mut bytes, payload).unwrap();
        bytes
    }

    fn ip_v4(dscp: u8, ecn: u8) -> PacketBuilderStep<etherparse::IpHeaders> {
        let mut header =
            Ipv4Header { source: [10, 0, 0, 1], destination: [10, 0, 0, 2], ..Ipv4Header::default() };
        header.time_to_live = 64;
        header.dscp = IpDscp::try_new(dscp).unwrap();
        header.ecn = IpEcn::try_new(ecn).unwrap();
        PacketBuilder::ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
    }

    #[test]
    fn a_segment_is_data_if_it_carries_some() {
        assert!(!frame(&tcp(ip_v4(0, 0), &[])).is_data());
        assert!(frame(&tcp(ip_v4(0, 0), &[1])).is_data());
        let mut ping = Vec::new();
        PacketBuilder::ipv4([1; 4], [2; 4], 9).icmpv4_echo_request(1, 2).write(&mut ping, &[]).unwrap();
        assert!(frame(&ping).is_data());
        assert_eq!(frame(&ping).size(), 28);
    }

    #[test]
    fn lower_effort_is_low_priority() {
        assert!(frame(&tcp(ip_v4(1, 0), &[])).low_priority());
        assert!(!frame(&tcp(ip_v4(8, 0), &[])).low_priority());
    }

    #[test]
    fn multicasts_of_the_link_are_told_apart() {
        let to = |address: &str| is_of_link_scope(address.parse().unwrap());
        assert!(["224.0.0.22", "ff02::2", "ff01::1", "ff12::8"].into_iter().all(to));
        assert!(
            !["224.0.1.1", "239.1.2.3", "192.0.0.1", "ff05::2", "ff0e::2", "fe80::2"].into_iter().any(to)
        );
    }

    #[test]
    fn directions_and_ports_are_flows_of_their_own() {
        let there = frame(&tcp(ip_v4(0, 0), &[1]));
        assert_eq!(there.flow(), frame(&tcp(ip_v4(0, 0), &[2; 900])).flow());
        let mut back = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
            .tcp(80, 5000, 1, 9)
            .write(&mut back, &[])
            .unwrap();
        let back = frame(&back);
        assert_ne!(there.flow(), back.flow());
        assert_eq!(there.hosts(), [0x0a00_0001, 0x0a00_0002]);
        assert_eq!(back.hosts(), [0x0a00_0002, 0x0a00_0001]);
    }

    #[test]
    fn a_mark_keeps_the_checksum_good() {
        let mut marked = frame(&tcp(ip_v4(0, 2), &[1, 2, 3]));
        assert!(marked.ecn_capable());
        marked.mark_congested();
        let (header, _) = Ipv4Header::from_slice(marked.packet()).unwrap();
        assert_eq!(header.ecn.value(), 3);
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert!(!frame(&tcp(ip_v4(0, 0), &[])).ecn_capable());
    }

    #[test]
    fn ect_1_and_marks_are_l4s() {
        let is_l4s = [0, 1, 2, 3].map(|ecn| frame(&tcp(ip_v4(0, ecn), &[])).is_l4s());
        assert_eq!(is_l4s, [false, true, false, true]);
    }

    #[test]
    fn a_mark_on_ipv6_leaves_the_rest() {
        let mut bytes = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2).write(&mut bytes, &[9; 10]).unwrap();
        bytes[1] |= 0b0001_0000;
        let mut marked = frame(&bytes);
        marked.mark_congested();
        bytes[1] |= 0b0011_0000;
        assert_eq!(marked.packet(), bytes);
    }

    #[test]
    fn a_flipped_bit_is_one_bit() {
        let bytes = tcp(ip_v4(0, 0), &[1, 2, 3]);
        for number in [0, 77, 8 * bytes.len() as u64 + 5, u64::MAX] {
            let mut wrong = frame(&bytes);
            assert!(wrong.flip_bit(number));
            let bits = wrong.packet().iter().zip(&bytes).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
            assert_eq!(bits, 1);
        }
        assert!(!frame(&[]).flip_bit(3));
    }

    #[test]
    fn what_is_no_ip_goes_as_it_is() {
        for bytes in [&[][..], &[0xff; 3], &[0x45; 12], &[0x60; 39]] {
            let frame = frame(bytes);
            assert_eq!((frame.packet(), frame.is_data(), frame.ecn_capable()), (bytes, true, false));
        }
    }
}
