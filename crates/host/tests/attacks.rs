//! What strangers send, and what must not come of it.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use bentpipe_base::{Duration, Flags};
use bentpipe_host::{Id, Limits, StackConfig};
use bentpipe_tcp::{Config, State};
use bentpipe_wire::{Ends, Header, IpFields, Options, Packet, Payload};
use common::{PORT, Weather, World, address, config, millis, pattern, read, stack_config};

fn packet(ends: Ends, tcp: Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Packet { ends, ip: IpFields::default(), tcp, payload: Payload::Bytes(payload) }.write_headers(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn from(host: u32, port: u16) -> Ends {
    let remote = SocketAddr::new(address(1, false), PORT);
    Ends { local: SocketAddr::new((0x0a00_0000 + host).to_be_bytes().into(), port), remote }
}

fn syn(seq: u32) -> Header {
    let options = Options { mss: Some(1460), ..Options::default() };
    Header { seq, flags: Flags::SYN, window: 65_535, options, ..Header::default() }
}

/// A world whose end 1 listens under a flood of SYNs from addresses that do not exist.
fn flooded(syns: u32) -> World {
    let limits = Limits { half_open: 100, ..Limits::default() };
    let mut world = World::new([stack_config(0), StackConfig { limits, ..stack_config(1) }], 1);
    world.stacks[1].listen(PORT, Arc::new(config()));
    for host in 0..syns {
        world.inject(1, &packet(from(host, 1000), syn(host), &[]));
    }
    world
}

#[test]
fn a_flood_of_syns_is_answered_without_being_remembered() {
    let world = flooded(20_000);
    let stack = &world.stacks[1];
    assert_eq!(stack.connections(), 100);
    assert_eq!(stack.counters().cookies, 19_900);
    assert_eq!(stack.held_bytes(), 0);
}

#[test]
fn a_handshake_completes_under_a_flood_with_all_its_options() {
    let mut world = flooded(1000);
    world.weather = Weather { loss: 0.02, delay: millis(275), ..Weather::default() };
    world.keep_seen = true;
    let client = Config { ecn: true, ..config() };
    let server = Config { ecn: true, ..config() };
    let ids = world.connected([client, server], false);
    assert_eq!(world.stacks[1].counters().cookies_redeemed, 1);
    let mut syn_ack = world.seen.iter().filter(|(end, _)| *end == 1).map(|(_, packet)| read(packet).0);
    let syn_ack = syn_ack.rfind(|header| header.flags.contains(Flags::SYN)).unwrap();
    assert!(syn_ack.options.sack_permitted && syn_ack.options.window_scale.is_some());
    assert!(syn_ack.flags.contains(Flags::ECE));
    let rtt = world.stacks[1].connection(ids[1]).unwrap().srtt().unwrap();
    assert!((0.5..1.0).contains(&rtt.as_secs_f64()), "{rtt}");
    let data = [pattern(1, 400_000), pattern(2, 200_000)];
    let got = world.exchange(ids, [&data[0], &data[1]], Duration::from_secs(600));
    assert!(got[1] == data[0] && got[0] == data[1]);
}

#[test]
fn a_cookie_without_timestamps_holds_the_segment_size() {
    let mut world = flooded(101);
    let client = Config { timestamps: false, mss: 1300, ..config() };
    let ids = world.connected([client, config()], false);
    assert_eq!(world.stacks[1].counters().cookies_redeemed, 1);
    let data = pattern(1, 100_000);
    let got = world.exchange(ids, [&data, &data], Duration::from_secs(60));
    assert!(got[0] == data && got[1] == data);
}

#[test]
fn a_guessed_cookie_is_refused() {
    let mut world = flooded(101);
    world.keep_seen = true;
    for guess in 0..2000_u32 {
        let ack =
            Header { seq: 1, ack: guess.wrapping_mul(2_654_435_761), flags: Flags::ACK, ..Header::default() };
        world.inject(1, &packet(from(9, 9), ack, &[]));
    }
    assert_eq!((world.stacks[1].counters().cookies_redeemed, world.stacks[1].connections()), (0, 100));
    assert!(world.seen.iter().all(|(_, packet)| read(packet).0.flags.contains(Flags::RST)));
}

/// An established connection that carried something, the ends seen from the listener, and the numbers it expects next.
fn established() -> (World, [Id; 2], Ends, (u32, u32)) {
    let mut world = World::plain();
    world.keep_seen = true;
    let ids = world.connected([config(), config()], false);
    for (end, id) in ids.into_iter().enumerate() {
        world.stacks[end].write(world.now, id, &[7; 5000]);
    }
    world.run(Duration::from_secs(2));
    let ends = world.stacks[0].ends(ids[0]).unwrap();
    let last = world.seen.iter().rfind(|(end, _)| *end == 1).unwrap();
    let header = read(&last.1).0;
    world.seen.clear();
    (world, ids, ends, (header.ack, header.seq))
}

/// What end 1 answers to a packet that claims to come from end 0.
fn answers(world: &mut World, ends: Ends, tcp: Header, payload: &[u8]) -> Vec<Header> {
    world.seen.clear();
    world.now += Duration::from_secs(1);
    world.inject(1, &packet(ends, tcp, payload));
    world.seen.iter().filter(|(end, _)| *end == 1).map(|(_, packet)| read(packet).0).collect()
}

/// RFC 5961 section 3: only the exact number resets, others in the window are challenged, the rest is silence.
#[test]
fn blind_resets_are_challenged_or_ignored() {
    let (mut world, ids, ends, (next, ack)) = established();
    let reset = |seq: u32| Header { seq, flags: Flags::RST, ..Header::default() };
    let challenge = answers(&mut world, ends, reset(next.wrapping_add(1000)), &[]);
    assert_eq!(challenge.len(), 1);
    assert_eq!((challenge[0].flags, challenge[0].ack), (Flags::ACK, next));
    for far in [next.wrapping_sub(1), next.wrapping_add(1 << 30), next.wrapping_add(1 << 31)] {
        assert!(answers(&mut world, ends, reset(far), &[]).is_empty());
    }
    assert_eq!(world.state(1, ids[1]), State::Established);
    let _ = ack;
    answers(&mut world, ends, reset(next), &[]);
    assert_eq!(world.state(1, ids[1]), State::Closed);
}

/// RFC 5961 section 4: a SYN never ends a connection.
#[test]
fn a_blind_syn_is_challenged() {
    let (mut world, ids, ends, (next, _)) = established();
    for seq in [next, next.wrapping_sub(1 << 20), next.wrapping_add(1 << 31)] {
        let challenge = answers(&mut world, ends, syn(seq), &[]);
        assert_eq!(challenge.len(), 1, "{seq}");
        assert_eq!((challenge[0].flags, challenge[0].ack), (Flags::ACK, next));
    }
    assert_eq!(world.state(1, ids[1]), State::Established);
}

/// RFC 5961 section 5: data in the window with an acknowledgement that cannot be is not taken.
#[test]
fn blind_data_is_not_taken() {
    let (mut world, ids, ends, (next, ack)) = established();
    let mut into = [0; 8000];
    assert_eq!(world.stacks[1].read(world.now, ids[1], &mut into), 5000);
    for wrong in [ack.wrapping_add(1), ack.wrapping_add(1 << 31), ack.wrapping_sub(1 << 30)] {
        let data = Header { seq: next, ack: wrong, flags: Flags::ACK, window: 100, ..Header::default() };
        answers(&mut world, ends, data, b"evil");
    }
    assert_eq!(world.stacks[1].read(world.now, ids[1], &mut into), 0);
    assert_eq!(world.state(1, ids[1]), State::Established);
    assert_eq!(world.stacks[0].write(world.now, ids[0], b"good"), 4);
    world.run(Duration::from_secs(2));
    assert_eq!(world.stacks[1].read(world.now, ids[1], &mut into), 4);
    assert_eq!(&into[..4], b"good");
}

/// Bytes that wait to be read are not replaced by later copies of them.
#[test]
fn what_has_arrived_stays_as_it_is() {
    let (mut world, ids, ends, (next, ack)) = established();
    let stamp = Some((u32::MAX / 4, 0));
    let options = Options { timestamps: stamp, ..Options::default() };
    let data = Header {
        seq: next.wrapping_sub(5000),
        ack,
        flags: Flags::ACK,
        window: 100,
        options,
        ..Header::default()
    };
    answers(&mut world, ends, data, &[9; 1000]);
    let mut into = [0; 8000];
    assert_eq!(world.stacks[1].read(world.now, ids[1], &mut into), 5000);
    assert!(into[..5000].iter().all(|byte| *byte == 7));
}

#[test]
fn segments_for_nobody_are_refused() {
    let mut world = World::plain();
    world.keep_seen = true;
    let refused =
        |world: &mut World, tcp: Header, payload: &[u8]| answers(world, from(1, 1), tcp, payload).pop();
    let to_syn = refused(&mut world, syn(100), &[]).unwrap();
    assert_eq!((to_syn.flags, to_syn.seq, to_syn.ack), (Flags::RST | Flags::ACK, 0, 101));
    let data = Header { seq: 5, ack: 77, flags: Flags::ACK, ..Header::default() };
    let to_data = refused(&mut world, data, b"x").unwrap();
    assert_eq!((to_data.flags, to_data.seq), (Flags::RST, 77));
    let reset = Header { seq: 5, flags: Flags::RST, ..Header::default() };
    assert_eq!(refused(&mut world, reset, &[]), None, "resets never answer each other");
    assert_eq!(world.stacks[1].connections(), 0);
}

#[test]
fn memory_has_a_bound_and_the_streams_survive_it() {
    let limits = Limits { bytes: 200_000, ..Limits::default() };
    let mut world = World::new([stack_config(0), StackConfig { limits, ..stack_config(1) }], 1);
    let ids = world.connected([config(), config()], false);
    // A hole at the front keeps everything behind it in memory.
    let data = pattern(1, 2_000_000);
    world.weather = Weather { loss: 0.05, ..Weather::default() };
    let mut peak = 0;
    let (mut written, mut got) = (0, Vec::new());
    let mut buffer = vec![0; 1 << 16];
    world.run_until(Duration::from_secs(600), |world| {
        peak = peak.max(world.stacks[1].held_bytes());
        written += world.stacks[0].write(world.now, ids[0], &data[written..]);
        let len = world.stacks[1].read(world.now, ids[1], &mut buffer);
        got.extend_from_slice(&buffer[..len]);
        got.len() == data.len()
    });
    assert!(got == data, "{} of {}", got.len(), data.len());
    assert!(peak <= 200_000, "{peak}");
    let full = Limits { connections: 1, ..Limits::default() };
    let mut world = World::new([stack_config(0), StackConfig { limits: full, ..stack_config(1) }], 1);
    world.connected([config(), config()], false);
    world.inject(1, &packet(from(1, 1), syn(1), &[]));
    assert_eq!(world.stacks[1].connections(), 1);
}

#[test]
fn a_router_can_make_packets_smaller_only_if_it_shows_one_that_is_under_way() {
    let (mut world, ids, ends, (next, _)) = established();
    let report = |seq: u32| {
        let mut quoted = Vec::new();
        let tcp = Header { seq, ..Header::default() };
        Packet { ends, ip: IpFields::default(), tcp, payload: Payload::Zeros(1448) }
            .write_headers(&mut quoted);
        let mut icmp = vec![3, 4, 0, 0, 0, 0, 4, 0];
        icmp.extend_from_slice(&quoted[..28]);
        let checksum = bentpipe_wire::Sum::default().bytes(&icmp).checksum();
        icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
        let len = 20 + icmp.len() as u16;
        let mut ip = vec![0x45, 0, 0, len as u8, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 99, 192, 0, 2, 1];
        let checksum = bentpipe_wire::Sum::default().bytes(&ip).checksum();
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        ip.extend_from_slice(&icmp);
        ip
    };
    let largest = |world: &mut World| {
        world.seen.clear();
        world.stacks[0].write(world.now, ids[0], &[1; 20_000]);
        world.drain();
        world.seen.iter().filter(|(end, _)| *end == 0).map(|(_, packet)| packet.len()).max().unwrap()
    };
    world.inject(0, &report(next.wrapping_sub(1)));
    assert_eq!(largest(&mut world), 1500, "nothing is under way");
    world.inject(0, &report(next.wrapping_add(1448)));
    world.run(Duration::from_secs(2));
    assert_eq!(largest(&mut world), 1024);
}
