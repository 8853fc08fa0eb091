//! Comparison of this project's packet parser with tshark, a packet analyser.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use bentpipe_base::{
    EcnField, Flags, Instant, Probe, ProbeTag, Rng, SackBlocks, SackRange, Segment, SynOptions,
};
use bentpipe_trace::{Capture, Captured};
use bentpipe_wire::{Conversation, Datagram, Ends, Header, IpFields, Packet, Payload, Sum};

const FIELDS: [&str; 12] = [
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.len",
    "tcp.checksum.status",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.timestamp.tsval",
    "tcp.options.sack_le",
    "tcp.options.experimental.exid",
    "ip.dsfield",
];

/// ECN fields, by their bits in the IP header.
const ALL_ECN: [EcnField; 4] = [EcnField::NotCapable, EcnField::L4s, EcnField::Capable, EcnField::Congested];

fn segments(rng: &mut Rng) -> Vec<Segment> {
    let mut number = |limit: u64| rng.below(limit);
    let syn =
        SynOptions { mss: Some(1448), window_scale: Some(7), sack_permitted: true, ..SynOptions::default() };
    let mut all = vec![Segment {
        flags: Flags::SYN,
        window: 65_535,
        timestamps: Some((5, 0)),
        syn_options: Some(SynOptions { probes_permitted: true, ..syn }),
        ..Segment::default()
    }];
    for _ in 0..300 {
        let seq = 1 + number(1 << 40);
        let mut sack = SackBlocks::EMPTY;
        for _ in 0..number(5) {
            let start = 1 + number(1 << 34);
            sack.push(SackRange { start, end: start + 1 + number(1 << 20) });
        }
        all.push(Segment {
            seq,
            ack: 1 + number(1 << 40),
            len: number(1400) as u32,
            window: number(1 << 23) as u32,
            flags: Flags::ACK | Flags::from_bits_truncate(number(256) as u16 & !2),
            ecn: ALL_ECN[number(4) as usize],
            probe: if number(4) == 0 { Probe::Probe(ProbeTag(9)) } else { Probe::No },
            low_priority: number(2) == 0,
            timestamps: (number(3) > 0).then(|| (number(1 << 32) as u32, number(1 << 32) as u32)),
            sack,
            ..Segment::default()
        });
    }
    all
}

/// Returns the fields read by this project's parser, formatted like tshark's output.
fn described(bytes: &[u8]) -> Vec<String> {
    let datagram = Datagram::read(bytes).unwrap();
    let (header, payload) = Header::read(datagram.payload).unwrap();
    let options = &header.options;
    let addresses = (datagram.source, datagram.destination);
    let holds =
        Header::checksum_holds(Sum::pseudo_header(addresses, 6, datagram.payload.len()), datagram.payload);
    let ecn = ALL_ECN.iter().position(|ecn| *ecn == datagram.ecn).unwrap();
    let show = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
    let marked = options.probe != Probe::No || options.permitted.is_some();
    vec![
        header.seq.to_string(),
        header.ack.to_string(),
        format!("0x{:04x}", header.flags.bits()),
        header.window.to_string(),
        payload.len().to_string(),
        u8::from(holds).to_string(),
        show(options.mss.map(u32::from)),
        show(options.window_scale.map(u32::from)),
        show(options.timestamps.map(|(value, _)| value)),
        options.sack().iter().map(|block| block.0.to_string()).collect::<Vec<_>>().join(","),
        if marked { "0x4250".to_owned() } else { String::new() },
        if datagram.source.is_ipv4() {
            format!("0x{:02x}", datagram.dscp << 2 | ecn as u8)
        } else {
            String::new()
        },
    ]
}

fn has_tshark() -> bool {
    let has = Command::new("tshark").arg("--version").output().is_ok();
    if !has {
        println!("skipped: tshark is not installed (Debian package tshark)");
    }
    has
}

/// Returns the [`FIELDS`] of each packet of a capture.
fn read_by_tshark(file: &Path) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    // Fragments are not reassembled, and each packet is analysed separately.
    for preference in [
        "tcp.relative_sequence_numbers:FALSE",
        "tcp.check_checksum:TRUE",
        "ip.defragment:FALSE",
        "ipv6.defragment:FALSE",
    ] {
        command.args(["-o", preference]);
    }
    command.args(["-n", "-T", "fields", "-r"]).arg(file);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Packets of Linux over a path with losses and flipped bits (recorded by
/// `crates/wire/tests/garbage.rs`).
#[test]
fn tshark_reads_captured_packets_as_we_do() {
    if !has_tshark() {
        return;
    }
    let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/corpus/linux.pcapng"));
    let bytes = std::fs::read(file).unwrap();
    let long = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        const ENHANCED_PACKET: usize = 6;
        if long(at) == ENHANCED_PACKET {
            packets.push(&bytes[at + 28..at + 28 + long(at + 20)]);
        }
        at += long(at + 4);
    }
    let got = read_by_tshark(file);
    assert_eq!(got.len(), packets.len());
    let (mut compared, mut corrupt) = (0, 0);
    for (number, (packet, got)) in packets.iter().zip(got).enumerate() {
        let tcp = Datagram::read(packet).is_ok_and(|datagram| datagram.protocol == 6 && !datagram.fragment);
        if !tcp {
            assert!(got[0].is_empty() || Datagram::read(packet).is_err(), "packet {}: {got:?}", number + 1);
            continue;
        }
        assert_eq!(got, described(packet), "packet {}: {FIELDS:?}", number + 1);
        compared += 1;
        corrupt += usize::from(got[5] == "0");
    }
    assert!(compared > 70 && corrupt > 0, "{compared} compared, {corrupt} of them corrupt");
}

#[test]
fn tshark_reads_every_header_as_we_do() {
    if !has_tshark() {
        return;
    }
    let ends = |v6: bool| {
        let local: SocketAddr = if v6 { "[2001:db8::1]:49152" } else { "192.0.2.1:49152" }.parse().unwrap();
        let remote: SocketAddr = if v6 { "[2001:db8::2]:5001" } else { "192.0.2.2:5001" }.parse().unwrap();
        Ends { local, remote }
    };
    let mut capture = Capture::new(Vec::new(), "us", ["wire"]).unwrap();
    let mut wanted = Vec::new();
    for v6 in [false, true] {
        let mut conversation = Conversation::new(0xffff_fff0, 77);
        conversation.agree_on_scales(Some((7, 7)));
        for segment in segments(&mut Rng::stream(1, "segments")) {
            let ip = IpFields::of(&segment, 1);
            let tcp = conversation.header(&segment);
            conversation.agree_on_scales(Some((7, 7)));
            let payload: Vec<u8> = (0..segment.len).map(|n| (n * 7) as u8).collect();
            let mut bytes = Vec::new();
            Packet { ends: ends(v6), ip, tcp, payload: Payload::Bytes(&payload) }.write_headers(&mut bytes);
            bytes.extend_from_slice(&payload);
            capture
                .packet(
                    Instant::from_nanos(wanted.len() as u64),
                    0,
                    Captured { bytes: &bytes, omitted: 0, comment: "" },
                )
                .unwrap();
            wanted.push(described(&bytes));
        }
    }
    let file = std::env::temp_dir().join(format!("bentpipe-tshark-{}.pcapng", std::process::id()));
    std::fs::write(&file, capture.finish().unwrap()).unwrap();
    let got = read_by_tshark(&file);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(got.len(), wanted.len());
    for (number, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
        assert_eq!(got, wanted, "packet {}: {FIELDS:?}", number + 1);
    }
}
