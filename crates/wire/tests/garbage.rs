//! Robustness of the readers against arbitrary bytes.

use bentpipe_wire::{
    Arrived, Conversation, Datagram, Header, IcmpError, Near, Offload, Options, mark_congestion,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Calls every reader of unverified packets.
fn read_all(bytes: &[u8]) -> Option<()> {
    Options::read(bytes);
    let mut copy = bytes.to_vec();
    mark_congestion(&mut copy);
    let _ = Offload::read(bytes);
    let datagram = Datagram::read(bytes).ok()?;
    datagram.flow_hash(1);
    let _ = IcmpError::read(&datagram);
    assert!(datagram.len <= bytes.len() && datagram.payload.len() < datagram.len);
    let (header, payload) = Header::read(datagram.payload).ok()?;
    let mut conversation = Conversation::new(7, 11);
    conversation.hear_syn(&header);
    let near = Near { peer: 1 << 40, own: 1 };
    let segment = conversation.segment(&header, Arrived::of(&datagram, payload.len()), near);
    assert!(segment.sack.len() <= 4);
    Some(())
}

/// Bytes that begin like packets, so that later checks are also reached.
fn nearly_packets() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![Just(0x45_u8), Just(0x46), Just(0x60), any::<u8>()];
    (first, vec(any::<u8>(), 0..200), any::<bool>()).prop_map(|(first, mut bytes, plausible)| {
        bytes.insert(0, first);
        if plausible && bytes.len() > 60 {
            let len = bytes.len() as u16;
            if first == 0x60 {
                bytes[4..6].copy_from_slice(&(len - 40).to_be_bytes());
                bytes[6] = [6, 0, 43, 44, 60][usize::from(bytes[6]) % 5];
            } else if first & 0xf0 == 0x40 {
                bytes[2..4].copy_from_slice(&len.to_be_bytes());
                bytes[10..12].fill(0);
                let header_len = usize::from(first & 15) * 4;
                let checksum = bentpipe_wire::Sum::default().bytes(&bytes[..header_len]).checksum();
                bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    #[test]
    fn nothing_that_looks_like_a_packet_makes_a_reader_panic(bytes in nearly_packets()) {
        read_all(&bytes);
    }

    #[test]
    fn every_prefix_of_options_is_options(bytes in vec(any::<u8>(), 0..40)) {
        for end in 0..bytes.len() {
            Options::read(&bytes[..end]);
        }
    }
}

/// Packets of Linux, captured by `bentpipe emulate --pcap`. TCP with and without timestamps, with ECN, over a path with loss and
/// bit errors; UDP, ICMP of both versions, fragments, a refused connection.
fn captured() -> Vec<Vec<u8>> {
    let file = include_bytes!("corpus/linux.pcapng");
    let long = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut packets) = (0, Vec::new());
    while at < file.len() {
        const ENHANCED_PACKET: usize = 6;
        if long(at) == ENHANCED_PACKET {
            packets.push(file[at + 28..at + 28 + long(at + 20)].to_vec());
        }
        at += long(at + 4);
    }
    packets
}

#[test]
fn captured_packets_are_read_and_so_is_every_beginning_of_them() {
    let packets = captured();
    let read = packets.iter().filter(|packet| read_all(packet).is_some()).count();
    assert!(packets.len() == 108 && read >= 76, "{read}: 76 of them are TCP");
    for packet in &packets {
        for len in 0..packet.len() {
            read_all(&packet[..len]);
        }
    }
}

proptest! {
    /// Fuzzing from real packets: some bytes are changed, and the header checksum is sometimes corrected.
    #[test]
    fn nothing_that_was_a_packet_makes_a_reader_panic(
        which: prop::sample::Index,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        near_the_front: bool,
        repair: bool,
    ) {
        let mut packet = which.get(&captured()).clone();
        let reach = if near_the_front { packet.len().min(80) } else { packet.len() };
        for (at, value) in changes {
            packet[at.index(reach)] = value;
        }
        if repair && packet[0] >> 4 == 4 && packet.len() >= 20 {
            packet[10..12].fill(0);
            let header_len = (usize::from(packet[0] & 15) * 4).min(packet.len());
            let checksum = bentpipe_wire::Sum::default().bytes(&packet[..header_len]).checksum();
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        read_all(&packet);
    }
}

/// Packets known to have broken other stacks: each with a name and the required result.
#[test]
fn the_corpus_of_hostile_packets() {
    let v4 = |body: &[u8]| {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend_from_slice(body);
        let len = packet.len() as u16;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        let checksum = bentpipe_wire::Sum::default().bytes(&packet[..20]).checksum();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    };
    let tcp = |offset: u8, options: &[u8]| {
        let mut header = [0; 20].to_vec();
        header[12] = offset << 4;
        header.extend_from_slice(options);
        v4(&header)
    };
    for (name, packet, is_tcp) in [
        ("no options", tcp(5, &[]), true),
        ("offset below the fixed header", tcp(4, &[]), false),
        ("offset beyond the packet", tcp(15, &[]), false),
        ("option of length zero", tcp(6, &[8, 0, 0, 0]), true),
        ("option of length one", tcp(6, &[8, 1, 1, 1]), true),
        ("option beyond the header", tcp(6, &[5, 40, 0, 0]), true),
        ("kind without length", tcp(6, &[1, 1, 1, 8]), true),
        ("a SACK block and a half", tcp(9, &[1, 1, 5, 14, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]), true),
        ("experiment without identifier", tcp(6, &[253, 3, 0x42, 1]), true),
        ("cut in the header", tcp(5, &[])[..30].to_vec(), false),
        ("nothing at all", Vec::new(), false),
    ] {
        assert_eq!(read_all(&packet).is_some(), is_tcp, "{name}");
    }
}

#[test]
fn options_are_read_whatever_stands_beside_them() {
    let bytes = [1, 30, 4, 9, 9, 3, 3, 99, 2, 4, 5, 180, 8, 9, 1, 1, 1, 1, 1, 1, 1, 4, 2, 0, 2, 4, 0, 1];
    let options = Options::read(&bytes);
    assert_eq!((options.mss, options.window_scale), (Some(1460), Some(14)), "a shift above 14 is 14");
    assert!(options.sack_permitted);
    assert_eq!(options.timestamps, None, "a timestamps option of nine bytes is none");
}
