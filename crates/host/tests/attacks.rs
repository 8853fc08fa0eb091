//! Hostile packets, and the required reactions.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use bentpipe_base::{Duration, Flags, Probe};
use bentpipe_cc::Algorithm;
use bentpipe_host::{Id, Limits, StackConfig};
use bentpipe_tcp::{Config, EcnMode, Events, State};
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

/// Makes a world whose end 1 listens during a SYN flood from addresses that do not exist.
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
    let client = Config { ecn: EcnMode::Accurate, ..config() };
    let server = Config { ecn: EcnMode::Accurate, ..config() };
    let ids = world.connected([client, server], false);
    assert_eq!(world.stacks[1].counters().cookies_redeemed, 1);
    let mut syn_ack = world.seen.iter().filter(|(end, _)| *end == 1).map(|(_, packet)| read(packet).0);
    let syn_ack = syn_ack.rfind(|header| header.flags.contains(Flags::SYN)).unwrap();
    assert!(syn_ack.options.sack_permitted && syn_ack.options.window_scale.is_some());
    assert_eq!(syn_ack.flags.ace(), 0b001, "a cookie has no bit for Accurate ECN: classic ECN");
    let rtt = world.stacks[1].connection(ids[1]).unwrap().srtt().unwrap();
    assert!((0.5..1.0).contains(&rtt.as_secs_f64()), "{rtt}");
    let data = [pattern(1, 400_000), pattern(2, 200_000)];
    let got = world.exchange(ids, [&data[0], &data[1]], Duration::from_secs(600));
    assert!(got[1] == data[0] && got[0] == data[1]);
    let reports =
        world.seen.iter().any(|(end, packet)| *end == 1 && !read(packet).0.options.sack().is_empty());
    assert!(reports, "SACK was permitted by the SYN, which nobody remembered");
}

#[test]
fn a_cookie_without_timestamps_holds_the_segment_size() {
    let mut world = flooded(101);
    let client = Config { timestamps: false, mss: 1300, ..config() };
    world.keep_seen = true;
    let ids = world.connected([client, config()], false);
    assert_eq!(world.stacks[1].counters().cookies_redeemed, 1);
    let data = pattern(1, 100_000);
    let got = world.exchange(ids, [&data, &data], Duration::from_secs(60));
    assert!(got[0] == data && got[1] == data);
    let largest = world.seen.iter().filter(|(end, _)| *end == 1).map(|(_, packet)| read(packet).1).max();
    assert!(largest.is_some_and(|largest| (1200..=1312).contains(&largest)), "{largest:?}");
}

/// PEACH sends probes only to peers whose SYN permitted them.
#[test]
fn probes_that_a_syn_permitted_are_sent_after_a_cookie_too() {
    let probes = |permitted: bool| {
        let mut world = flooded(101);
        world.keep_seen = true;
        let cc = Algorithm::from_name("peach").expect("it is registered");
        let client = config().with(|config| config.receiver.probe_replies = permitted);
        let ids = world.connected([client, config().with(|config| config.sender.cc = cc)], false);
        assert_eq!(world.stacks[1].counters().cookies_redeemed, 1);
        let data = pattern(1, 100_000);
        world.exchange(ids, [&[], &data], Duration::from_secs(60));
        let sent = world.seen.iter().filter(|(end, _)| *end == 1).map(|(_, packet)| read(packet).0);
        sent.filter(|header| matches!(header.options.probe, Probe::Probe(_))).count()
    };
    assert!(probes(true) > 0);
    assert_eq!(probes(false), 0);
}

/// Packets without a connection are counted by their treatment.
#[test]
fn what_reaches_no_connection_is_counted() {
    let counters = |bytes: &[u8]| {
        let mut world = World::plain();
        world.inject(1, bytes);
        let counters = *world.stacks[1].counters();
        (counters.ignored, counters.corrupt, counters.refused)
    };
    let whole = packet(from(1, 1), syn(1), &[]);
    assert_eq!(counters(&whole), (0, 0, 1), "no port listens");
    assert_eq!(counters(&whole[..10]), (1, 0, 0), "no IP packet");
    let mut flipped = whole.clone();
    flipped[26] ^= 1;
    assert_eq!(counters(&flipped), (0, 1, 0), "the checksum notices");
    // A data offset of one word instead of at least five, with the matching checksum.
    let mut short = whole.clone();
    let offset = short[32];
    short[32] = 0x10 | offset & 15;
    let sum =
        u32::from(u16::from_be_bytes([short[36], short[37]])) + (u32::from(offset & 0xf0) << 8) - 0x1000;
    short[36..38].copy_from_slice(&((sum + (sum >> 16)) as u16).to_be_bytes());
    assert_eq!(counters(&short), (1, 0, 0), "no TCP header");
}

/// A cookie opens no connection beyond the limit, and the ACK that returns it is counted.
#[test]
fn a_cookie_that_comes_back_too_late_for_a_place_is_counted() {
    let limits = Limits { half_open: 0, connections: 1, ..Limits::default() };
    let mut world = listening(limits);
    let late = from(1, 1000);
    world.keep_seen = true;
    world.inject(1, &packet(late, syn(99), &[]));
    let (cookie, _) = *sent_to(&mut world, late).last().unwrap();
    open(&mut world, from(2, 1000));
    assert_eq!((world.stacks[1].connections(), world.stacks[1].counters().over_limit), (1, 0));
    world.inject(1, &packet(late, ack_of(cookie.seq, 0), &[]));
    assert_eq!((world.stacks[1].connections(), world.stacks[1].counters().over_limit), (1, 1));
    assert_eq!(world.stacks[1].counters().cookies_redeemed, 1);
}

/// The last chunk of memory is usable: a connection whose remaining memory exactly equals the need of a packet accepts
/// it.
#[test]
fn memory_can_be_used_up_exactly() {
    const CHUNK: usize = 4096;
    let world = |bytes| {
        let mut world = listening(Limits { bytes, ..Limits::default() });
        let ends = from(1, 1000);
        let number = open(&mut world, ends);
        (world, ends, number)
    };
    let (idle, ..) = world(1 << 30);
    let cost = idle.stacks[1].memory_bytes();
    let taken = |bytes: usize| {
        let (mut world, ends, number) = world(bytes);
        let id = world.stacks[1].accept(PORT).unwrap();
        world.inject(1, &packet(ends, ack_of(number, 0), &[1; 100]));
        let mut into = [0; 200];
        let now = world.now;
        (world.stacks[1].read(now, id, &mut into), world.stacks[1].counters().over_limit)
    };
    assert_eq!(taken(cost + CHUNK), (100, 0));
    assert_eq!(taken(cost + CHUNK - 1), (0, 1));
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

/// Makes an established connection that carried data. Returns the ends seen from the listener, and its next expected
/// numbers.
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

/// Returns the answers of end 1 to a packet that claims to come from end 0.
fn answers(world: &mut World, ends: Ends, tcp: Header, payload: &[u8]) -> Vec<Header> {
    world.seen.clear();
    world.now += Duration::from_secs(1);
    world.inject(1, &packet(ends, tcp, payload));
    world.seen.iter().filter(|(end, _)| *end == 1).map(|(_, packet)| read(packet).0).collect()
}

/// RFC 5961 section 3: only the exact number resets. Other numbers in the window cause a challenge ACK, all others
/// nothing.
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

/// RFC 5961 section 5: in-window data with an impossible acknowledgement is dropped.
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

/// Unread data is not replaced by later copies.
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
    // A hole at the front keeps all later data in memory.
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
    assert_eq!(world.stacks[0].counters().ignored, 0);
    world.inject(0, &report(next.wrapping_sub(1)));
    assert_eq!(largest(&mut world), 1500, "nothing is under way");
    assert_eq!(world.stacks[0].counters().ignored, 1);
    world.seen.clear();
    world.inject(0, &report(next.wrapping_add(1448)));
    assert_eq!(world.stacks[0].counters().ignored, 1, "a report that is believed is not ignored");
    let again = world.seen.iter().filter(|(end, packet)| *end == 0 && packet.len() <= 1024);
    assert!(again.count() > 10, "what was too large leaves again at once");
    world.run(Duration::from_secs(2));
    assert_eq!(largest(&mut world), 1024);
}

/// Returns the packets that end 1 sends to a scripted peer at these ends.
fn sent_to(world: &mut World, ends: Ends) -> Vec<(Header, usize)> {
    let to = |packet: &[u8]| {
        let (header, len) = read(packet);
        (header.destination_port == ends.local.port()).then_some((header, len))
    };
    world.seen.drain(..).filter(|(end, _)| *end == 1).filter_map(|(_, packet)| to(&packet)).collect()
}

/// Opens a connection from a scripted peer to end 1. Returns the initial sequence number of end 1, if it answers.
fn try_open(world: &mut World, ends: Ends) -> Option<u32> {
    world.keep_seen = true;
    world.seen.clear();
    world.inject(1, &packet(ends, syn(99), &[]));
    let (syn_ack, _) = *sent_to(world, ends).last()?;
    assert!(syn_ack.flags.contains(Flags::SYN | Flags::ACK));
    world.inject(1, &packet(ends, ack_of(syn_ack.seq, 0), &[]));
    Some(syn_ack.seq)
}

fn open(world: &mut World, ends: Ends) -> u32 {
    try_open(world, ends).expect("there is room")
}

fn listening(limits: Limits) -> World {
    let mut world = World::new([stack_config(0), StackConfig { limits, ..stack_config(1) }], 1);
    world.stacks[1].listen(PORT, Arc::new(config()));
    world
}

/// Returns an ACK of a scripted peer that acknowledges `bytes` bytes.
fn ack_of(initial: u32, bytes: u32) -> Header {
    let ack = initial.wrapping_add(1 + bytes);
    Header { seq: 100, ack, flags: Flags::ACK, window: 65_535, ..Header::default() }
}

/// Peers that accept one byte, acknowledge the FIN and then are silent.
#[test]
fn orphans_are_gone_after_a_minute() {
    let mut world = listening(Limits::default());
    for port in 1..=2000 {
        let ends = from(9, port);
        let initial = open(&mut world, ends);
        let id = world.stacks[1].accept(PORT).unwrap();
        assert_eq!(world.stacks[1].write(world.now, id, &[1]), 1);
        world.stacks[1].close(world.now, id);
        if port % 2 == 0 {
            world.stacks[1].release(id);
        }
        world.drain();
        world.inject(1, &packet(ends, ack_of(initial, 2), &[]));
        assert_eq!(world.state(1, id), State::FinWait2);
    }
    world.stacks[1].trim();
    let each = world.stacks[1].memory_bytes() / 2000;
    assert!(each < 5000, "{each} bytes each");
    world.run(Duration::from_secs(61));
    let left = world.stacks[1].connections();
    assert_eq!(left, 1000, "what was not released is closed and still owned");
    assert!(world.stacks[1].memory_bytes() < 5000 * 1000);
}

/// Peers that request much data and acknowledge nothing.
#[test]
fn what_nobody_acknowledges_takes_little() {
    let mut world = listening(Limits::default());
    let data = vec![1; 1 << 20];
    for port in 1..=200 {
        open(&mut world, from(9, port));
        let id = world.stacks[1].accept(PORT).unwrap();
        assert!(world.stacks[1].write(world.now, id, &data) <= 32 << 10);
        world.drain();
    }
    let all = world.stacks[1].memory_bytes();
    assert!(all < 200 * (48 << 10), "{all}");
    assert!(world.stacks[1].held_bytes() <= 200 * (36 << 10));
    // One of the remote hosts acknowledges data, and receives more.
    let ends = from(9, 300);
    let initial = open(&mut world, ends);
    let id = world.stacks[1].accept(PORT).unwrap();
    let first = world.stacks[1].write(world.now, id, &data);
    world.drain();
    while world.stacks[1].poll_event().is_some() {}
    world.inject(1, &packet(ends, ack_of(initial, 14_480), &[]));
    let woken = std::iter::from_fn(|| world.stacks[1].poll_event())
        .any(|(of, events)| of == id && events.contains(Events::WRITABLE));
    assert!(woken, "the writer is told");
    let second = world.stacks[1].write(world.now, id, &data);
    assert!(second > 4 * first, "{first} and {second}");
}

/// RFC 6191 section 2: a SYN with a later timestamp, or with an equal one and a higher number, opens the next connection.
#[test]
fn a_connection_in_time_wait_gives_way_to_a_newer_syn_only() {
    for (ahead, later_ms, opens) in [(-5000, 1, true), (5000, -1, false), (5000, 0, true), (-5000, 0, false)]
    {
        let mut world = World::plain();
        world.keep_seen = true;
        let ids = world.connected([config(), config()], false);
        let ends = world.stacks[0].ends(ids[0]).unwrap();
        for end in [1, 0] {
            world.stacks[end].close(world.now, ids[end]);
            world.run(millis(100));
        }
        assert_eq!(world.state(1, ids[1]), State::TimeWait);
        let last = world.seen.iter().rfind(|(end, _)| *end == 0).map(|(_, packet)| read(packet).0).unwrap();
        let (clock, _) = last.options.timestamps.expect("both ends use timestamps");
        let mut next = syn(last.seq.wrapping_add_signed(ahead));
        next.options.timestamps = Some((clock.wrapping_add_signed(later_ms), 0));
        world.inject(1, &packet(ends, next, &[]));
        assert_eq!(world.state(1, ids[1]) == State::Closed, opens, "{ahead} bytes and {later_ms} ms ahead");
    }
}

/// All attackers together leave the memory that an honest peer needs.
#[test]
fn many_silent_peers_leave_room_for_others() {
    let limits = Limits { bytes: 32 << 20, ..Limits::default() };
    let mut world = listening(limits);
    let data = vec![1; 1 << 20];
    for host in 0..2000 {
        open(&mut world, from(9 + host, 1));
        let id = world.stacks[1].accept(PORT).unwrap();
        world.stacks[1].write(world.now, id, &data);
        world.drain();
    }
    let all = world.stacks[1].memory_bytes();
    assert!(all <= 32 << 20, "{all}");
    let held = world.stacks[1].held_bytes();
    assert!(held <= (8 << 20) + 2000 * 4096, "{held}: a quarter, and a chunk for each");
    world.keep_seen = false;
    let ids = world.connected([config(), config()], false);
    let data = [pattern(1, 400_000), pattern(2, 200_000)];
    let begin = world.now;
    let got = world.exchange(ids, [&data[0], &data[1]], Duration::from_secs(60));
    assert!(got[1] == data[0] && got[0] == data[1]);
    assert!(world.now.since(begin) < Duration::from_secs(5));
}

/// One remote host cannot use all memory by any strategy.
#[test]
fn one_host_leaves_a_fifth_of_the_memory_to_others() {
    let limits = Limits { bytes: 4 << 20, ..Limits::default() };
    let mut world = listening(limits);
    let mut opened = 0;
    while let Some(initial) = try_open(&mut world, from(9, opened + 1)) {
        opened += 1;
        let ends = from(9, opened);
        // All data except the first byte, so that it cannot be read.
        for n in 0..40 {
            let data = Header { seq: 101 + n * 1400, ..ack_of(initial, 0) };
            world.inject(1, &packet(ends, data, &[7; 1400]));
        }
    }
    let taken = world.stacks[1].memory_bytes();
    assert!(((3 << 20)..=(4 << 20) * 4 / 5 + 8192).contains(&taken), "{taken}");
    assert!((50..100).contains(&opened), "{opened}: nor can it open more connections");
    assert!(world.stacks[1].counters().over_limit > 0);
    let ids = world.connected([config(), config()], false);
    let data = pattern(1, 400_000);
    let got = world.exchange(ids, [&data, &[]], Duration::from_secs(60));
    assert!(got[1] == data);
}

#[test]
fn a_byte_at_the_end_of_a_wide_window_takes_a_chunk() {
    let mut world = World::plain();
    let wide = config().with(|config| {
        config.receiver.receive_window = bentpipe_tcp::ReceiveWindow::Fixed(1 << 30);
        config.timestamps = false;
    });
    world.stacks[1].listen(PORT, Arc::new(wide));
    let options =
        Options { mss: Some(1460), window_scale: Some(14), sack_permitted: true, ..Options::default() };
    let ends = from(9, 9);
    world.keep_seen = true;
    world.inject(1, &packet(ends, Header { options, ..syn(99) }, &[]));
    let initial = sent_to(&mut world, ends)[0].0.seq;
    world.inject(1, &packet(ends, ack_of(initial, 0), &[]));
    // The window of the SYN-ACK is not scaled: the first ACK grants the full window.
    world.inject(1, &packet(ends, ack_of(initial, 0), b"x"));
    let before = world.stacks[1].memory_bytes();
    let far = Header { seq: 100 + (1 << 30) - 100_000, ..ack_of(initial, 0) };
    world.inject(1, &packet(ends, far, b"y"));
    let sack = sent_to(&mut world, ends).last().unwrap().0.options.sack_len;
    assert_eq!(sack, 1, "it was taken");
    let grown = world.stacks[1].memory_bytes() - before;
    assert!(grown < 8192, "{grown}");
}

/// The acknowledgement of a packet counts even if there is no room for its payload.
#[test]
fn acknowledgements_count_beyond_the_limit() {
    let limits = Limits { bytes: 60_000, ..Limits::default() };
    let mut world = listening(limits);
    let ends = from(9, 9);
    let initial = open(&mut world, ends);
    let id = world.stacks[1].accept(PORT).unwrap();
    world.stacks[1].write(world.now, id, &[1; 2000]);
    world.drain();
    for n in 0..40 {
        let data = Header { seq: 101 + n * 1400, ..ack_of(initial, 0) };
        world.inject(1, &packet(ends, data, &[7; 1400]));
    }
    let dropped = world.stacks[1].counters().over_limit;
    assert!(dropped > 0);
    let data = Header { seq: 101 + 44 * 1400, ..ack_of(initial, 2000) };
    world.inject(1, &packet(ends, data, &[7; 1400]));
    assert_eq!(world.stacks[1].counters().over_limit, dropped + 1);
    assert_eq!(world.stacks[1].connection(id).unwrap().acknowledged_bytes(), 2000);
}

#[test]
fn the_queue_of_those_who_wait_to_be_accepted_is_bounded() {
    let mut world = listening(Limits { accept_queue: 5, ..Limits::default() });
    for port in 1..=5 {
        open(&mut world, from(9, port));
    }
    assert!(answers(&mut world, from(9, 6), syn(99), &[]).is_empty());
    assert_eq!(world.stacks[1].counters().over_limit, 1);
    assert!(world.stacks[1].accept(PORT).is_some());
    assert_eq!(answers(&mut world, from(9, 6), syn(99), &[]).len(), 1);
}

/// Without room the oldest released connection is reset.
#[test]
fn released_connections_make_room() {
    for (limits, opened) in [
        (Limits { connections: 10, ..Limits::default() }, 10),
        (Limits { orphans: 4, ..Limits::default() }, 5),
    ] {
        let mut world = listening(limits);
        let ids: Vec<Id> = (1..=opened)
            .map(|port| {
                open(&mut world, from(9 + u32::from(port), port));
                let id = world.stacks[1].accept(PORT).unwrap();
                world.stacks[1].release(id);
                world.drain();
                id
            })
            .collect();
        world.seen.clear();
        open(&mut world, from(90, 90));
        assert_eq!(world.stacks[1].counters().evicted, 1);
        assert!(world.stacks[1].connection(ids[0]).is_none() && world.stacks[1].connection(ids[1]).is_some());
    }
}

/// RFC 9293 section 3.10.7.2.
#[test]
fn a_listening_port_drops_what_neither_asks_nor_answers() {
    let mut world = listening(Limits::default());
    world.keep_seen = true;
    for flags in [Flags::empty(), Flags::FIN, Flags::PSH | Flags::URG] {
        assert!(
            answers(&mut world, from(9, 9), Header { seq: 5, flags, ..Header::default() }, b"x").is_empty()
        );
    }
    let ack = Header { seq: 5, ack: 77, flags: Flags::ACK, ..Header::default() };
    assert!(answers(&mut world, from(9, 9), ack, &[])[0].flags.contains(Flags::RST));
}

/// RFC 4987: a cookie cannot be guessed while none is being sent.
#[test]
fn a_cookie_is_taken_only_while_cookies_are_sent() {
    let mut world = flooded(101);
    world.keep_seen = true;
    let ends = from(500, 9);
    let cookie = answers(&mut world, ends, syn(99), &[])[0].seq;
    world.run(Duration::from_secs(129));
    let before = world.stacks[1].counters().cookies_redeemed;
    world.inject(1, &packet(ends, ack_of(cookie, 0), &[]));
    assert_eq!(world.stacks[1].counters().cookies_redeemed, before);
}

/// RFC 9293 section 3.7.1 (MUST-15): the default MSS applies.
#[test]
fn a_peer_that_says_nothing_takes_what_every_host_must() {
    for (v6, options, wanted) in [(false, None, 536), (true, None, 1220), (true, Some((7, 0)), 1208)] {
        let mut world = listening(Limits::default());
        world.keep_seen = true;
        let remote = SocketAddr::new(address(1, v6), PORT);
        let ends = Ends { local: SocketAddr::new(address(7, v6), 9), remote };
        let options = Options { timestamps: options, ..Options::default() };
        let syn = Header { seq: 99, flags: Flags::SYN, window: 65_535, options, ..Header::default() };
        world.inject(1, &packet(ends, syn, &[]));
        let (syn_ack, _) = sent_to(&mut world, ends)[0];
        let echo = syn_ack.options.timestamps.map(|(value, _)| (8, value));
        let options = Options { timestamps: echo, ..Options::default() };
        world.inject(1, &packet(ends, Header { options, ..ack_of(syn_ack.seq, 0) }, &[]));
        let id = world.stacks[1].accept(PORT).unwrap();
        world.stacks[1].write(world.now, id, &[1; 5000]);
        world.drain();
        let largest = sent_to(&mut world, ends).iter().map(|(_, len)| *len).max();
        assert_eq!(largest, Some(wanted));
    }
}

/// RFC 9293 section 3.10.7.3: data is not delivered before the connection is established.
#[test]
fn data_of_a_syn_is_read_once_the_connection_is_established() {
    let mut world = listening(Limits::default());
    world.keep_seen = true;
    let ends = from(9, 9);
    world.inject(1, &packet(ends, syn(99), b"early"));
    let initial = sent_to(&mut world, ends)[0].0.seq;
    assert!(world.stacks[1].accept(PORT).is_none());
    world.inject(1, &packet(ends, Header { seq: 105, ..ack_of(initial, 0) }, b" and late"));
    let id = world.stacks[1].accept(PORT).unwrap();
    let mut into = [0; 100];
    let len = world.stacks[1].read(world.now, id, &mut into);
    assert_eq!(&into[..len], b"early and late");
}

/// A blind SYN does not change negotiated options.
#[test]
fn a_blind_syn_does_not_switch_probes_on() {
    let mut world = World::plain();
    world.keep_seen = true;
    let silent = config().with(|config| config.receiver.probe_replies = false);
    let sender =
        config().with(|config| config.sender.cc = bentpipe_cc::Algorithm::from_name("star").unwrap());
    let ids = world.connected([silent, sender], false);
    let ends = world.stacks[0].ends(ids[0]).unwrap();
    let options = Options { permitted: Some((true, 0)), ..Options::default() };
    answers(&mut world, ends, Header { options, ..syn(5) }, &[]);
    world.seen.clear();
    world.stacks[1].write(world.now, ids[1], &[1; 30_000]);
    world.run(Duration::from_secs(5));
    let probes =
        world.seen.iter().filter(|(_, packet)| read(packet).0.options.probe != bentpipe_base::Probe::No);
    assert_eq!(probes.count(), 0);
}
