//! IPv4 packets generated from segments: complete headers for packet analysers, and a payload of zeros.

use core::net::SocketAddr;

use bentpipe_base::Segment;
use bentpipe_wire::{Conversation, Ends, IpFields, Packet, Payload};

/// Address and port of one end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// IPv4 address of the host.
    pub address: [u8; 4],
    /// TCP port of the connection's end.
    pub port: u16,
}

/// The end of a connection that sent a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    /// The end that opened the connection.
    Opener,
    /// The end that accepted the connection.
    Listener,
}

/// Converts the segments of one connection into packets.
///
/// It stores the window scales that the two SYNs negotiated, so it must process the connection from its beginning.
#[derive(Clone, Debug)]
pub struct Framer {
    ends: Ends,
    /// State of the opener and of the listener.
    conversations: [Conversation; 2],
    packets: u16,
}

/// Largest payload of an IPv4 packet with the largest headers.
const LARGEST_PAYLOAD: u32 = 65_535 - 20 - 60;

impl Framer {
    /// Makes a converter for a connection between `opener` and `listener`. The initial sequence numbers follow from
    /// the addresses.
    pub fn new(opener: Endpoint, listener: Endpoint) -> Self {
        let number =
            |end: Endpoint| u32::from_be_bytes(end.address).wrapping_mul(2_654_435_761) ^ u32::from(end.port);
        let socket = |end: Endpoint| SocketAddr::from((end.address, end.port));
        let [a, b] = [opener, listener].map(number);
        let conversation = |own, peer| {
            let mut conversation = Conversation::new(own, 0);
            conversation.peer_initial = peer;
            conversation
        };
        Self {
            ends: Ends { local: socket(opener), remote: socket(listener) },
            conversations: [conversation(a, b), conversation(b, a)],
            packets: 0,
        }
    }

    /// Appends IPv4 and TCP headers of `segment` to `out`. Returns the length of the payload of zeros that follows.
    pub fn headers(&mut self, from: From, segment: &Segment, out: &mut Vec<u8>) -> u32 {
        let (here, ends) = match from {
            From::Opener => (0, self.ends),
            From::Listener => (1, self.ends.swapped()),
        };
        let len = segment.len.min(LARGEST_PAYLOAD);
        let tcp = self.conversations[here].header(segment);
        if segment.syn_options.is_some() {
            self.conversations[1 - here].hear_syn(&tcp);
        }
        let ip = IpFields::of(segment, self.packets);
        self.packets = self.packets.wrapping_add(1);
        Packet { ends, ip, tcp, payload: Payload::Zeros(len as usize) }.write_headers(out);
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{
        EcnField, Extension, Flags, Notice, Probe, ProbeTag, SackBlocks, SackRange, SynOptions,
    };
    use etherparse::{SlicedPacket, TcpHeader, TcpOptionElement, TransportSlice};

    const OPENER: Endpoint = Endpoint { address: [10, 0, 0, 1], port: 49152 };
    /// Kind of the no-operation option.
    const NOTHING: u8 = 1;
    const LISTENER: Endpoint = Endpoint { address: [10, 128, 0, 1], port: 5001 };

    fn packet(framer: &mut Framer, from: From, segment: &Segment) -> Vec<u8> {
        let mut bytes = Vec::new();
        let payload = framer.headers(from, segment, &mut bytes);
        bytes.resize(bytes.len() + payload as usize, 0);
        bytes
    }

    /// Parses the header and its options with another implementation (etherparse).
    fn read(bytes: &[u8]) -> (TcpHeader, Vec<TcpOptionElement>) {
        let sliced = SlicedPacket::from_ip(bytes).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP") };
        let ip = sliced.net.as_ref().unwrap().ipv4_ref().unwrap().header().to_header();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(tcp.checksum(), tcp.to_header().calc_checksum_ipv4(&ip, tcp.payload()).unwrap());
        (tcp.to_header(), tcp.options_iterator().map_while(Result::ok).collect())
    }

    fn syn(scale: u8) -> Segment {
        let syn_options = SynOptions {
            mss: Some(1448),
            window_scale: Some(scale),
            sack_permitted: true,
            ..SynOptions::default()
        };
        let flags = Flags::SYN;
        Segment {
            flags,
            window: 65_535,
            timestamps: Some((7, 0)),
            syn_options: Some(syn_options),
            ..Segment::default()
        }
    }

    #[test]
    fn the_handshake_agrees_on_a_window_scale() {
        let mut framer = Framer::new(OPENER, LISTENER);
        let (header, options) = read(&packet(&mut framer, From::Opener, &syn(3)));
        assert!(header.syn && !header.ack);
        assert_eq!(header.window_size, 65_535);
        let wanted = [
            TcpOptionElement::MaximumSegmentSize(1448),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(3),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::Timestamp(7, 0),
        ];
        assert_eq!(options, wanted);
        let answer = Segment { flags: Flags::SYN | Flags::ACK, ack: 1, ..syn(7) };
        let (answer, _) = read(&packet(&mut framer, From::Listener, &answer));
        assert_eq!(answer.acknowledgment_number, header.sequence_number.wrapping_add(1));
        let ack = Segment { flags: Flags::ACK, seq: 1, ack: 1, window: 80_000, ..Segment::default() };
        assert_eq!(read(&packet(&mut framer, From::Opener, &ack)).0.window_size, 10_000);
        assert_eq!(read(&packet(&mut framer, From::Listener, &ack)).0.window_size, 625);
    }

    #[test]
    fn data_has_its_length_and_numbers_wrap() {
        let mut framer = Framer::new(OPENER, LISTENER);
        let data = Segment { seq: 1 + (3 << 32), len: 1000, flags: Flags::ACK, ack: 1, ..Segment::default() };
        let bytes = packet(&mut framer, From::Opener, &data);
        assert_eq!(bytes.len(), 1040);
        assert_eq!(read(&bytes).0.sequence_number, framer.conversations[0].initial.wrapping_add(1));
    }

    #[test]
    fn as_many_sack_blocks_as_fit() {
        let mut sack = SackBlocks::EMPTY;
        for n in 1..=4 {
            sack.push(SackRange { start: 1000 * n, end: 1000 * n + 500 });
        }
        let plain = Segment { flags: Flags::ACK, ack: 1, sack, ..Segment::default() };
        let crowded = Segment { timestamps: Some((1, 2)), probe: Probe::Reply(ProbeTag(9)), ..plain };
        let mut framer = Framer::new(OPENER, LISTENER);
        let mut blocks = |segment: &Segment| {
            let bytes = packet(&mut framer, From::Listener, segment);
            read(&bytes);
            let mut options = &bytes[40..];
            while options[0] != 5 {
                let len = if options[0] == NOTHING { 1 } else { options[1] };
                options = &options[usize::from(len)..];
            }
            (options[1] - 2) / 8
        };
        assert_eq!(blocks(&plain), 4);
        assert_eq!(blocks(&Segment { timestamps: Some((1, 2)), ..plain }), 3);
        assert_eq!(blocks(&crowded), 2);
    }

    #[test]
    fn probes_are_lower_effort_and_marked() {
        let probe = Segment {
            probe: Probe::Probe(ProbeTag(0x0102)),
            low_priority: true,
            ecn: EcnField::Congested,
            len: 100,
            flags: Flags::ACK,
            ..Segment::default()
        };
        let bytes = packet(&mut Framer::new(OPENER, LISTENER), From::Opener, &probe);
        assert_eq!(bytes[1], 0b0000_0111);
        assert_eq!(bytes[40..48], [253, 7, 0x42, 0x50, 2, 1, 2, NOTHING]);
    }

    #[test]
    fn every_extension_fits() {
        let rate = bentpipe_base::Rate::from_mbps(1);
        // Options of this project use the experimental option (RFC 6994). SCPS-TP has an option number for
        // corruption.
        for (extension, kind) in [
            (Extension::Xcp { rtt_s: 0.5, spacing_s: 0.1, delta_bytes_per_s: -3.0, limited: true }, 253),
            (Extension::Wave { id: 1, size: 2, index: 3, limited: true }, 253),
            (Extension::ReceiveRate { id: 1, rate, valid: true }, 253),
            (Extension::Value(u64::MAX), 253),
            (Extension::Notice(Notice::Spoilt(5)), 253),
            (Extension::Notice(Notice::Corruption), 23),
        ] {
            let segment =
                Segment { extension, timestamps: Some((1, 1)), flags: Flags::ACK, ..Segment::default() };
            let bytes = packet(&mut Framer::new(OPENER, LISTENER), From::Opener, &segment);
            assert_eq!(bytes[52], kind, "{extension:?}");
            read(&bytes);
        }
    }
}
