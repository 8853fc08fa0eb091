//! Written packets are read correctly by this crate and by another implementation.

use core::net::{IpAddr, SocketAddr};

use bentpipe_base::{
    EcnField, Extension, Flags, Notice, Probe, ProbeTag, Rate, SackBlocks, SackRange, Segment, Snack,
    SynOptions,
};
use bentpipe_wire::{
    Arrived, Conversation, Datagram, Ends, Header, IpFields, Near, Packet, Payload, Sum, complete_checksum,
    mark_congestion,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn ends(v6: bool) -> Ends {
    let address = |host: u8| -> IpAddr {
        if v6 { [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)].into() } else { [192, 0, 2, host].into() }
    };
    Ends { local: SocketAddr::new(address(1), 49_152), remote: SocketAddr::new(address(2), 5_001) }
}

fn extension() -> impl Strategy<Value = Extension> {
    prop_oneof![
        4 => Just(Extension::None),
        1 => (0.0..10_f32, 0.0..1_f32, -1e9..1e9_f32, any::<bool>()).prop_map(
            |(rtt_s, spacing_s, delta_bytes_per_s, limited)| Extension::Xcp { rtt_s, spacing_s, delta_bytes_per_s, limited }
        ),
        1 => any::<(u16, u16, u16, bool)>()
            .prop_map(|(id, size, index, limited)| Extension::Wave { id, size, index, limited }),
        1 => any::<(u16, u64, bool)>()
            .prop_map(|(id, bps, valid)| Extension::ReceiveRate { id, rate: Rate::from_bps(bps), valid }),
        1 => any::<u64>().prop_map(Extension::Value),
        1 => prop_oneof![
            Just(Notice::Corruption),
            any::<u64>().prop_map(Notice::Spoilt),
            Just(Notice::Outage),
            Just(Notice::Restored),
        ]
        .prop_map(Extension::Notice),
    ]
}

fn probe() -> impl Strategy<Value = Probe> {
    prop_oneof![
        2 => Just(Probe::No),
        1 => any::<u16>().prop_map(|tag| Probe::Probe(ProbeTag(tag))),
        1 => any::<u16>().prop_map(|tag| Probe::Reply(ProbeTag(tag))),
    ]
}

/// A data segment or an ACK with positions near `base`.
fn segment(base: u64) -> impl Strategy<Value = Segment> {
    let positions = (base..base + 100_000, base..base + 100_000, 0..1400_u32);
    let fields = (0..1_u32 << 16, option::of(any::<(u32, u32)>()), any::<bool>(), 0..4_u8);
    let blocks = vec((base..base + 1_000_000, 1..100_000_u64), 0..=4);
    (positions, fields, blocks, probe(), extension()).prop_map(
        |((seq, ack, len), (window, timestamps, low_priority, ecn), blocks, probe, extension)| {
            let mut sack = SackBlocks::EMPTY;
            for (start, len) in blocks {
                sack.push(SackRange { start, end: start + len });
            }
            let ecn = [EcnField::NotCapable, EcnField::L4s, EcnField::Capable, EcnField::Congested]
                [usize::from(ecn)];
            let flags = Flags::ACK | Flags::PSH | Flags::of_ace(seq as u8);
            Segment {
                seq,
                ack,
                len,
                window: window << 7,
                flags,
                ecn,
                probe,
                low_priority,
                timestamps,
                sack,
                extension,
                ..Segment::default()
            }
        },
    )
}

fn syn() -> impl Strategy<Value = Segment> {
    let flags = any::<[bool; 4]>();
    let options = (option::of(any::<u16>()), option::of(0..=14_u8), flags, 0..20_u8);
    (options, option::of(any::<u32>()), any::<u16>()).prop_map(|(options, timestamp, window)| {
        let (mss, window_scale, [sack_permitted, snack_permitted, best_effort, probes_permitted], feedback) =
            options;
        let options = SynOptions {
            mss,
            window_scale,
            sack_permitted,
            snack_permitted,
            best_effort,
            probes_permitted,
            feedback,
        };
        Segment {
            flags: Flags::SYN,
            window: window.into(),
            timestamps: timestamp.map(|value| (value, 0)),
            syn_options: Some(options),
            ..Segment::default()
        }
    })
}

/// Both ends of a connection whose SYNs announced a shift of 7.
fn agreed(initial: u32, peer: u32, clock_offset: u32) -> (Conversation, Conversation) {
    let (mut a, mut b) = (Conversation::new(initial, clock_offset), Conversation::new(peer, 99));
    let syn = SynOptions { window_scale: Some(7), ..SynOptions::default() };
    let syn = Segment { flags: Flags::SYN, syn_options: Some(syn), ..Segment::default() };
    b.hear_syn(&a.header(&syn));
    a.hear_syn(&b.header(&syn));
    (a, b)
}

/// Writes the packet and reads it.
fn travel(
    (sender, receiver): (&mut Conversation, &Conversation),
    v6: bool,
    sent: &Segment,
    near: Near,
) -> Segment {
    let bytes = packet_of(sender, v6, sent);
    let datagram = Datagram::read(&bytes).unwrap();
    let sum = Sum::pseudo_header((datagram.source, datagram.destination), 6, datagram.payload.len());
    assert!(Header::checksum_holds(sum, datagram.payload));
    let (header, payload) = Header::read(datagram.payload).unwrap();
    assert_eq!((header.source_port, header.destination_port), (49_152, 5_001));
    receiver.segment(&header, Arrived::of(&datagram, payload.len()), near)
}

fn packet_of(sender: &mut Conversation, v6: bool, sent: &Segment) -> Vec<u8> {
    let payload: Vec<u8> = (0..sent.len).map(|n| n as u8).collect();
    let ip = IpFields::of(sent, 5);
    let tcp = sender.header(sent);
    let mut bytes = Vec::new();
    Packet { ends: ends(v6), ip, tcp, payload: Payload::Bytes(&payload) }.write_headers(&mut bytes);
    bytes.extend_from_slice(&payload);
    bytes
}

/// SNACK instead of SACK blocks.
#[test]
fn holes_reach_the_other_end() {
    let (mut a, b) = agreed(3, 4, 0);
    let sack = SackBlocks::Missing(Snack::new(0, 2, &[0xdc]));
    let sent = Segment { seq: 1, ack: 12_000, flags: Flags::ACK, sack, ..Segment::default() };
    for v6 in [false, true] {
        assert_eq!(travel((&mut a, &b), v6, &sent, Near { peer: 1, own: 12_000 }).sack, sack);
    }
}

proptest! {
    #[test]
    fn a_segment_survives_the_wire(
        sent in segment((5 << 32) - 50_000),
        numbers: (u32, u32, u32),
        v6: bool,
    ) {
        let (mut a, mut b) = agreed(numbers.0, numbers.1, numbers.2);
        let base = 5 << 32;
        let mut got = travel((&mut a, &b), v6, &sent, Near { peer: base, own: base });
        // The receiver of `a`'s timestamps sees and echoes its offset clock; the echo returns as `a`'s own
        // value.
        let wanted = sent.timestamps.map(|(value, echo)| (value.wrapping_add(numbers.2), echo.wrapping_sub(99)));
        prop_assert_eq!(got.timestamps, wanted);
        let back = Segment { timestamps: Some((1, got.timestamps.unwrap_or_default().0)), probe: Probe::No, ..sent };
        let echoed = travel((&mut b, &a), v6, &back, Near { peer: base, own: base });
        if let Some((value, _)) = sent.timestamps {
            prop_assert_eq!(echoed.timestamps, Some((100, value)));
        }
        // As many blocks as fit.
        prop_assert!(sent.sack.as_slice().starts_with(got.sack.as_slice()));
        got.timestamps = sent.timestamps;
        got.sack = sent.sack;
        prop_assert_eq!(got, sent);
    }

    #[test]
    fn a_syn_survives_the_wire(sent in syn(), initial: u32, v6: bool) {
        let mut a = Conversation::new(initial, 0);
        let mut b = Conversation::new(77, 0);
        b.hear_syn(&a.header(&sent));
        prop_assert_eq!(travel((&mut a, &b), v6, &sent, Near::default()), sent);
    }

    #[test]
    fn another_implementation_reads_the_same(sent in segment(1 << 33), v6: bool) {
        let (mut a, _) = agreed(3, 4, 0);
        let bytes = packet_of(&mut a, v6, &sent);
        let sliced = etherparse::SlicedPacket::from_ip(&bytes).unwrap();
        let Some(etherparse::TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("no TCP") };
        let header = tcp.to_header();
        let checksum = match sliced.net.as_ref().unwrap() {
            etherparse::NetSlice::Ipv4(ip) => {
                let ip = ip.header().to_header();
                prop_assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                prop_assert_eq!(ip.dscp.value(), u8::from(sent.low_priority));
                header.calc_checksum_ipv4(&ip, tcp.payload())
            }
            etherparse::NetSlice::Ipv6(ip) => header.calc_checksum_ipv6(&ip.header().to_header(), tcp.payload()),
            etherparse::NetSlice::Arp(_) => panic!("no IP"),
        };
        prop_assert_eq!(header.checksum, checksum.unwrap());
        prop_assert_eq!(header.sequence_number, 3_u32.wrapping_add(sent.seq as u32));
        prop_assert_eq!(header.acknowledgment_number, 4_u32.wrapping_add(sent.ack as u32));
        prop_assert_eq!(u32::from(header.window_size), sent.window >> 7);
        prop_assert_eq!(tcp.payload().len() as u32, sent.len);
    }

    #[test]
    fn a_mark_leaves_a_valid_packet(sent in segment(1), v6: bool) {
        let (mut a, b) = agreed(1, 2, 3);
        let mut bytes = packet_of(&mut a, v6, &sent);
        let capable = sent.ecn != EcnField::NotCapable;
        prop_assert_eq!(mark_congestion(&mut bytes), capable);
        let datagram = Datagram::read(&bytes).unwrap();
        prop_assert_eq!(datagram.ecn == EcnField::Congested, capable);
        prop_assert_eq!(datagram.is_low_priority(), sent.low_priority);
        let (header, payload) = Header::read(datagram.payload).unwrap();
        let got = b.segment(&header, Arrived::of(&datagram, payload.len()), Near { peer: 1, own: 1 });
        prop_assert_eq!(got.seq, sent.seq);
    }

    #[test]
    fn flows_differ_and_packets_of_one_flow_do_not(one in segment(1), other in segment(1), v6: bool) {
        let (mut a, _) = agreed(1, 2, 3);
        let (one, other) = (packet_of(&mut a, v6, &one), packet_of(&mut a, v6, &other));
        let [one, other] = [&one, &other].map(|bytes| Datagram::read(bytes).unwrap());
        prop_assert_eq!(one.flow_hash(9), other.flow_hash(9));
        let elsewhere = Datagram { source: [10, 0, 0, 1].into(), ..one };
        prop_assert_ne!(one.flow_hash(9), elsewhere.flow_hash(9));
        prop_assert_ne!(one.flow_hash(9), one.flow_hash(10));
    }
}

#[test]
fn offloaded_checksums_hold_the_pseudo_header_only() {
    for v6 in [false, true] {
        let (mut a, _) = agreed(1, 2, 3);
        let tcp = a.header(&Segment { flags: Flags::ACK, seq: 1, ..Segment::default() });
        let mut bytes = Vec::new();
        let packet =
            Packet { ends: ends(v6), ip: IpFields::default(), tcp, payload: Payload::Offloaded(60_000) };
        let len = packet.write_headers(&mut bytes);
        bytes.resize(len + 60_000, 7);
        let datagram = Datagram::read(&bytes).unwrap();
        let ends = (datagram.source, datagram.destination);
        let sum = Sum::pseudo_header(ends, 6, datagram.payload.len());
        assert_eq!(datagram.payload[16..18], sum.partial().to_be_bytes());
        // The device sums the whole packet including the partial sum, and takes the complement.
        let mut whole = datagram.payload.to_vec();
        complete_checksum(&mut whole);
        assert!(Header::checksum_holds(sum, &whole));
    }
}

#[test]
fn windows_are_scaled_only_if_both_ends_offer_it() {
    let syn = |window_scale| Segment {
        flags: Flags::SYN,
        window: 65_535,
        syn_options: Some(SynOptions { window_scale, ..SynOptions::default() }),
        ..Segment::default()
    };
    let ack = Segment { flags: Flags::ACK, window: 1 << 20, ..Segment::default() };
    for (theirs, on_wire) in [(Some(3), 1 << 10), (None, u16::MAX)] {
        let (mut a, mut b) = (Conversation::new(1, 0), Conversation::new(2, 0));
        let opening = a.header(&syn(Some(10)));
        assert_eq!(opening.window, u16::MAX, "the window of a SYN is never scaled");
        b.hear_syn(&opening);
        a.hear_syn(&b.header(&syn(theirs)));
        let header = a.header(&ack);
        assert_eq!(header.window, on_wire);
        let got = b.segment(&header, Arrived::default(), Near::default());
        assert_eq!(got.window, if theirs.is_some() { 1 << 20 } else { 65_535 });
    }
}

#[test]
fn fragments_and_extension_headers_are_seen() {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 0, 0, 64];
    for host in [1, 2] {
        bytes.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    // Hop-by-hop options, then a fragment header with a non-zero offset.
    bytes.extend_from_slice(&[44, 0, 1, 4, 0, 0, 0, 0]);
    bytes.extend_from_slice(&[6, 0, 0, 8, 0, 0, 0, 1]);
    bytes.extend_from_slice(&[0; 30]);
    bytes[5] = 46;
    let datagram = Datagram::read(&bytes).unwrap();
    assert_eq!((datagram.protocol, datagram.fragment, datagram.payload.len()), (6, true, 30));
    let unfragmented = {
        let mut bytes = bytes.clone();
        bytes[51] = 0;
        bytes
    };
    assert!(!Datagram::read(&unfragmented).unwrap().fragment, "an atomic fragment is whole (RFC 6946)");
}
