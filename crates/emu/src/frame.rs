use bentpipe_net::Packet;
use etherparse::{IpNumber, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use tun_rs::VIRTIO_NET_HDR_LEN;

/// Differentiated-services code point of lower effort (RFC 8622 section 4).
const LOWER_EFFORT: u8 = 1;

/// An IP packet on its way, with room for the virtio header that goes with it into the kernel.
///
/// That header stays zero: the packet is whole and its checksums are good (virtio 1.2, section 5.1.6).
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Virtio header, then the packet, then unused room.
    buffer: Vec<u8>,
    /// Bytes of the packet.
    len: u32,
    traits: Traits,
}

/// What links want to know of a packet besides its size.
#[derive(Clone, Copy, Debug)]
struct Traits {
    flow: u64,
    low_priority: bool,
    is_data: bool,
    ecn: Ecn,
}

/// Where the ECN field stands, if the packet may be marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ecn {
    Incapable,
    CapableV4,
    CapableV6,
}

impl Frame {
    /// Bytes in front of a packet in its buffer.
    pub const HEADROOM: usize = VIRTIO_NET_HDR_LEN;

    /// A buffer for packets up to `mtu` bytes.
    pub fn buffer(mtu: u16) -> Vec<u8> {
        vec![0; Self::HEADROOM + usize::from(mtu)]
    }

    /// The packet of `len` bytes that stands in `buffer` behind the headroom. What is no IP goes as it is.
    pub fn new(buffer: Vec<u8>, len: usize) -> Self {
        let traits = Traits::of(&buffer[Self::HEADROOM..Self::HEADROOM + len]);
        Self { buffer, len: len as u32, traits }
    }

    /// The packet.
    pub fn packet(&self) -> &[u8] {
        &self.buffer[Self::HEADROOM..Self::HEADROOM + self.len as usize]
    }

    /// The packet with its virtio header, as the kernel takes it.
    pub fn with_header(&self) -> &[u8] {
        &self.buffer[..Self::HEADROOM + self.len as usize]
    }

    /// The buffer for the next packet.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn packet_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[Self::HEADROOM..Self::HEADROOM + self.len as usize]
    }
}

impl Traits {
    fn of(bytes: &[u8]) -> Self {
        let unknown = Self { flow: 0, low_priority: false, is_data: true, ecn: Ecn::Incapable };
        let Ok(packet) = LaxSlicedPacket::from_ip(bytes) else { return unknown };
        let (dscp, congestion, ecn) = match &packet.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                (ip.header().dcp().value(), ip.header().ecn().value(), Ecn::CapableV4)
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                (ip.header().dscp().value(), ip.header().ecn().value(), Ecn::CapableV6)
            }
            _ => return unknown,
        };
        Self {
            flow: flow(&packet),
            low_priority: dscp == LOWER_EFFORT,
            is_data: is_data(&packet),
            ecn: if congestion == 0 { Ecn::Incapable } else { ecn },
        }
    }
}

impl Packet for Frame {
    fn size(&self) -> u32 {
        self.len
    }

    fn low_priority(&self) -> bool {
        self.traits.low_priority
    }

    fn flow(&self) -> u64 {
        self.traits.flow
    }

    fn is_data(&self) -> bool {
        self.traits.is_data
    }

    fn ecn_capable(&self) -> bool {
        self.traits.ecn != Ecn::Incapable
    }

    fn mark_congested(&mut self) {
        let ecn = self.traits.ecn;
        let bytes = self.packet_mut();
        match ecn {
            Ecn::Incapable => {}
            Ecn::CapableV6 => bytes[1] |= 0b0011_0000,
            Ecn::CapableV4 => {
                let before = u16::from_be_bytes([bytes[0], bytes[1]]);
                bytes[1] |= 0b11;
                let after = u16::from_be_bytes([bytes[0], bytes[1]]);
                let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
                bytes[10..12].copy_from_slice(&updated(checksum, before, after).to_be_bytes());
            }
        }
    }
}

/// A checksum after one of the words it covers has changed (RFC 1624, equation 3).
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Addresses, protocol and ports, spread (FNV-1a). Fragments have no ports.
fn flow(packet: &LaxSlicedPacket<'_>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            mix(&ip.header().source());
            mix(&ip.header().destination());
            mix(&[ip.payload().ip_number.0]);
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            mix(&ip.header().source());
            mix(&ip.header().destination());
            mix(&[ip.payload().ip_number.0]);
        }
        _ => {}
    }
    let ports = match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => (tcp.source_port(), tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port()),
        _ => (0, 0),
    };
    mix(&ports.0.to_be_bytes());
    mix(&ports.1.to_be_bytes());
    hash
}

/// True unless it is a TCP segment without payload. Fragments count as data.
fn is_data(packet: &LaxSlicedPacket<'_>) -> bool {
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => !tcp.payload().is_empty(),
        _ => packet
            .net
            .as_ref()
            .and_then(|net| net.ip_payload_ref())
            .is_none_or(|payload| payload.ip_number != IpNumber::TCP || !payload.payload.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpDscp, IpEcn, Ipv4Header, PacketBuilder, PacketBuilderStep};

    fn frame(packet: &[u8]) -> Frame {
        let mut buffer = Frame::buffer(1500);
        buffer[Frame::HEADROOM..Frame::HEADROOM + packet.len()].copy_from_slice(packet);
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
    fn directions_and_ports_are_flows_of_their_own() {
        let there = frame(&tcp(ip_v4(0, 0), &[1]));
        assert_eq!(there.flow(), frame(&tcp(ip_v4(0, 0), &[2; 900])).flow());
        let mut back = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
            .tcp(80, 5000, 1, 9)
            .write(&mut back, &[])
            .unwrap();
        assert_ne!(there.flow(), frame(&back).flow());
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
    fn what_is_no_ip_goes_as_it_is() {
        for bytes in [&[][..], &[0xff; 3], &[0x45; 12], &[0x60; 39]] {
            let frame = frame(bytes);
            assert_eq!((frame.packet(), frame.is_data(), frame.ecn_capable()), (bytes, true, false));
        }
    }
}
