//! IPv4 packets synthesised from segments: headers with everything a packet analyser wants to see, payload of zeros.

use bentpipe_base::{EcnField, Extension, Flags, Probe, Segment, SynOptions};
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, TcpHeader};

/// An end of a connection on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// IPv4 address.
    pub address: [u8; 4],
    /// TCP port.
    pub port: u16,
}

/// Which end of a connection sent a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    /// The end that opened the connection.
    Opener,
    /// The other one.
    Listener,
}

/// Turns the segments of one connection into packets.
///
/// It remembers the window scales that the two SYNs agreed upon, so it must see the connection from its beginning.
#[derive(Clone, Debug)]
pub struct Framer {
    ends: [Endpoint; 2],
    initial: [u32; 2],
    scale: [Option<u8>; 2],
    packets: u16,
}

/// Largest payload of an IPv4 packet with the largest headers.
const LARGEST_PAYLOAD: u32 = 65_535 - 20 - 60;
static ZEROS: [u8; LARGEST_PAYLOAD as usize] = [0; LARGEST_PAYLOAD as usize];

/// Differentiated-services code point of lower effort (RFC 8622).
const LOWER_EFFORT: u8 = 1;

/// Experiment identifier of our options (RFC 6994): "BP".
const EXPERIMENT: u16 = 0x4250;

/// What an experimental option carries: its first byte after the identifier.
mod kind {
    pub const PERMITTED: u8 = 1;
    pub const PROBE: u8 = 2;
    pub const REPLY: u8 = 3;
    pub const XCP: u8 = 4;
    pub const WAVE: u8 = 5;
    pub const RECEIVE_RATE: u8 = 6;
    pub const VALUE: u8 = 7;
}

impl Framer {
    /// A connection between `opener` and `listener`, with initial sequence numbers that follow from the addresses.
    pub fn new(opener: Endpoint, listener: Endpoint) -> Self {
        let number =
            |end: Endpoint| u32::from_be_bytes(end.address).wrapping_mul(2_654_435_761) ^ u32::from(end.port);
        Self {
            ends: [opener, listener],
            initial: [number(opener), number(listener)],
            scale: [None; 2],
            packets: 0,
        }
    }

    /// Appends IPv4 and TCP headers of `segment` to `out` and returns the length of the payload of zeros behind them.
    pub fn headers(&mut self, from: From, segment: &Segment, out: &mut Vec<u8>) -> u32 {
        let (here, there) = match from {
            From::Opener => (0, 1),
            From::Listener => (1, 0),
        };
        if let Some(syn) = &segment.syn_options {
            self.scale[here] = syn.window_scale;
        }
        let len = segment.len.min(LARGEST_PAYLOAD);
        let mut tcp =
            TcpHeader::new(self.ends[here].port, self.ends[there].port, self.wrapped(here, segment.seq), 0);
        set_flags(&mut tcp, segment.flags);
        tcp.window_size = self.window(here, segment);
        if tcp.ack {
            tcp.acknowledgment_number = self.wrapped(there, segment.ack);
        }
        let options = self.options(there, segment);
        tcp.set_options_raw(&options).expect("options are cut to what fits");
        self.write(here, (tcp, segment, &ZEROS[..len as usize]), out);
        len
    }

    fn write(
        &mut self,
        here: usize,
        (mut tcp, segment, payload): (TcpHeader, &Segment, &[u8]),
        out: &mut Vec<u8>,
    ) {
        let (source, destination) = (self.ends[here].address, self.ends[1 - here].address);
        let total = tcp.header_len() + payload.len();
        let mut ip = Ipv4Header::new(total as u16, 64, IpNumber::TCP, source, destination)
            .expect("the payload is cut to what fits");
        ip.identification = self.packets;
        ip.dont_fragment = true;
        ip.dscp = IpDscp::try_new(if segment.low_priority { LOWER_EFFORT } else { 0 }).expect("six bits");
        ip.ecn = match segment.ecn {
            EcnField::NotCapable => IpEcn::ZERO,
            EcnField::Capable => IpEcn::TWO,
            EcnField::Congested => IpEcn::THREE,
        };
        ip.header_checksum = ip.calc_header_checksum();
        tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload).expect("the payload is cut to what fits");
        self.packets = self.packets.wrapping_add(1);
        out.extend_from_slice(&ip.to_bytes());
        out.extend_from_slice(&tcp.to_bytes());
    }

    /// The low 32 bits on the wire of a sequence number of end `of`.
    fn wrapped(&self, of: usize, number: u64) -> u32 {
        self.initial[of].wrapping_add(number as u32)
    }

    fn window(&self, here: usize, segment: &Segment) -> u16 {
        let scale = match (segment.flags.contains(Flags::SYN), self.scale) {
            (false, [Some(opener), Some(listener)]) => [opener, listener][here],
            _ => 0,
        };
        u16::try_from(segment.window >> scale.min(14)).unwrap_or(u16::MAX)
    }

    fn options(&self, there: usize, segment: &Segment) -> Vec<u8> {
        let mut options = Options::default();
        if let Some(syn) = &segment.syn_options {
            options.syn(syn);
        }
        if let Some((value, echo)) = segment.timestamps {
            options.timestamps(value, echo);
        }
        match segment.probe {
            Probe::No => {}
            Probe::Probe(tag) => options.experiment(kind::PROBE, &tag.0.to_be_bytes()),
            Probe::Reply(tag) => options.experiment(kind::REPLY, &tag.0.to_be_bytes()),
        }
        options.extension(&segment.extension);
        // Blocks acknowledge what the other end sent. As many as still fit, most recent first.
        let room = (Options::LARGEST - options.aligned_len()).saturating_sub(4) / 8;
        let blocks = segment.sack.as_slice().iter().take(room);
        let blocks: Vec<[u32; 2]> =
            blocks.map(|block| [self.wrapped(there, block.start), self.wrapped(there, block.end)]).collect();
        options.sack(&blocks);
        options.finish()
    }
}

fn set_flags(tcp: &mut TcpHeader, flags: Flags) {
    tcp.fin = flags.contains(Flags::FIN);
    tcp.syn = flags.contains(Flags::SYN);
    tcp.rst = flags.contains(Flags::RST);
    tcp.psh = flags.contains(Flags::PSH);
    tcp.ack = flags.contains(Flags::ACK);
    tcp.ece = flags.contains(Flags::ECE);
    tcp.cwr = flags.contains(Flags::CWR);
}

/// The options of one header, as they are put together.
#[derive(Default)]
struct Options(Vec<u8>);

impl Options {
    const LARGEST: usize = 40;
    const NOTHING: u8 = 1;

    fn aligned_len(&self) -> usize {
        self.0.len().next_multiple_of(4)
    }

    fn syn(&mut self, syn: &SynOptions) {
        if let Some(mss) = syn.mss {
            self.0.extend_from_slice(&[2, 4]);
            self.0.extend_from_slice(&mss.to_be_bytes());
        }
        if let Some(scale) = syn.window_scale {
            self.0.extend_from_slice(&[Self::NOTHING, 3, 3, scale]);
        }
        if syn.sack_permitted {
            self.0.extend_from_slice(&[4, 2]);
        }
        if syn.probes_permitted || syn.feedback != 0 {
            self.experiment(kind::PERMITTED, &[u8::from(syn.probes_permitted), syn.feedback]);
        }
    }

    fn timestamps(&mut self, value: u32, echo: u32) {
        self.0.extend_from_slice(&[8, 10]);
        self.0.extend_from_slice(&value.to_be_bytes());
        self.0.extend_from_slice(&echo.to_be_bytes());
    }

    fn extension(&mut self, extension: &Extension) {
        match extension {
            Extension::None => {}
            Extension::Xcp { rtt_s, spacing_s, delta_bytes_per_s, limited } => {
                let numbers = [rtt_s, spacing_s, delta_bytes_per_s].map(|field| field.to_be_bytes());
                let mut fields = numbers.as_flattened().to_vec();
                fields.push(u8::from(*limited));
                self.experiment(kind::XCP, &fields);
            }
            Extension::Wave { id, size, index, limited } => {
                let fields = [*id, *size, *index, u16::from(*limited)].map(u16::to_be_bytes);
                self.experiment(kind::WAVE, fields.as_flattened());
            }
            Extension::ReceiveRate { id, rate, valid } => {
                let mut fields = id.to_be_bytes().to_vec();
                fields.extend_from_slice(&rate.bps().to_be_bytes());
                fields.push(u8::from(*valid));
                self.experiment(kind::RECEIVE_RATE, &fields);
            }
            Extension::Value(value) => self.experiment(kind::VALUE, &value.to_be_bytes()),
        }
    }

    /// An option of kind 253 with our experiment identifier; left out if it does not fit.
    fn experiment(&mut self, kind: u8, fields: &[u8]) {
        let len = 5 + fields.len();
        if self.0.len() + len <= Self::LARGEST {
            self.0.extend_from_slice(&[253, len as u8]);
            self.0.extend_from_slice(&EXPERIMENT.to_be_bytes());
            self.0.push(kind);
            self.0.extend_from_slice(fields);
        }
    }

    fn sack(&mut self, blocks: &[[u32; 2]]) {
        if blocks.is_empty() {
            return;
        }
        let padding = (2 - self.0.len() as isize).rem_euclid(4) as usize;
        self.0.extend(std::iter::repeat_n(Self::NOTHING, padding));
        self.0.extend_from_slice(&[5, 2 + 8 * blocks.len() as u8]);
        for number in blocks.as_flattened() {
            self.0.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.aligned_len(), Self::NOTHING);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::{ProbeTag, SackBlocks, SackRange};
    use etherparse::{SlicedPacket, TcpOptionElement, TransportSlice};

    const OPENER: Endpoint = Endpoint { address: [10, 0, 0, 1], port: 49152 };
    const LISTENER: Endpoint = Endpoint { address: [10, 128, 0, 1], port: 5001 };

    fn packet(framer: &mut Framer, from: From, segment: &Segment) -> Vec<u8> {
        let mut bytes = Vec::new();
        let payload = framer.headers(from, segment, &mut bytes);
        bytes.resize(bytes.len() + payload as usize, 0);
        bytes
    }

    /// What another implementation reads: the header and its options.
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
        assert_eq!(read(&bytes).0.sequence_number, framer.initial[0].wrapping_add(1));
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
                let len = if options[0] == Options::NOTHING { 1 } else { options[1] };
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
        assert_eq!(bytes[40..48], [253, 7, 0x42, 0x50, kind::PROBE, 1, 2, 1]);
    }

    #[test]
    fn every_extension_fits() {
        let rate = bentpipe_base::Rate::from_mbps(1);
        for extension in [
            Extension::Xcp { rtt_s: 0.5, spacing_s: 0.1, delta_bytes_per_s: -3.0, limited: true },
            Extension::Wave { id: 1, size: 2, index: 3, limited: true },
            Extension::ReceiveRate { id: 1, rate, valid: true },
            Extension::Value(u64::MAX),
        ] {
            let segment =
                Segment { extension, timestamps: Some((1, 1)), flags: Flags::ACK, ..Segment::default() };
            let bytes = packet(&mut Framer::new(OPENER, LISTENER), From::Opener, &segment);
            assert_eq!(bytes[50], 253, "{extension:?}");
            read(&bytes);
        }
    }
}
