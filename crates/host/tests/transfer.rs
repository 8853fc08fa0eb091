//! Data transfers over hostile networks.

mod common;

use bentpipe_base::{Duration, Instant};
use bentpipe_host::{Id, StackConfig};
use bentpipe_tcp::{Config, EcnMode, InitialWindow, ReceiveWindow, Recovery};
use common::{PORT, Weather, World, config, millis, pattern, read, stack_config};

/// Both ends send, and each receives the other's data.
fn exchanges(mut world: World, configs: [Config; 2], v6: bool) -> World {
    let ids = world.connected(configs, v6);
    let data = [pattern(1, 700_000), pattern(2, 300_000)];
    let got = world.exchange(ids, [&data[0], &data[1]], Duration::from_secs(600));
    assert!(got[1] == data[0], "{} of {} bytes from the opener", got[1].len(), data[0].len());
    assert!(got[0] == data[1], "{} of {} bytes from the listener", got[0].len(), data[1].len());
    world
}

fn storm() -> Weather {
    Weather { loss: 0.03, duplication: 0.02, reordering: 0.1, corruption: 0.02, ..Weather::default() }
}

#[test]
fn streams_arrive_whole_over_a_hostile_network() {
    for seed in 0..6 {
        let mut world = World::new([stack_config(0), stack_config(1)], seed);
        world.weather = storm();
        let world = exchanges(world, [config(), config()], seed % 2 == 1);
        let corrupt: u64 = world.stacks.iter().map(|stack| stack.counters().corrupt).sum();
        assert!(corrupt > 0, "the checksum caught something");
    }
}

#[test]
fn streams_arrive_whole_whatever_options_there_are() {
    let all = config();
    for ours in [
        Config { timestamps: false, ..all.clone() },
        Config { window_scaling: false, ..all.clone() },
        all.clone().with(|config| config.sender.recovery = Recovery::NewReno),
        Config { ecn: EcnMode::Classic, mss: 500, ..all.clone() },
        Config { ecn: EcnMode::Accurate, ..all.clone() },
        all.clone().with(|config| config.receiver.receive_window = ReceiveWindow::Fixed(3000)),
    ] {
        let mut world = World::plain();
        world.weather = Weather { loss: 0.01, ..Weather::default() };
        exchanges(world, [ours.clone(), all.clone()], false);
        exchanges(World::plain(), [all.clone(), ours], true);
    }
}

#[test]
fn large_packets_that_a_device_cuts_carry_the_same_bytes() {
    for loss in [0.0, 0.02] {
        let offload = |end| StackConfig { offload: true, ..stack_config(end) };
        let mut world = World::new([offload(0), offload(1)], 3);
        world.weather = Weather { loss, reordering: 0.05, ..Weather::default() };
        world.keep_seen = true;
        let world = exchanges(world, [config(), config()], loss > 0.0);
        let largest = world.seen.iter().map(|(_, packet)| packet.len()).max().unwrap();
        assert!(largest > 20_000, "{largest}");
    }
}

/// RFC 6691: an option reduces the payload only where it is sent. Headers are 40 bytes over IPv4 and 60 over IPv6, timestamps
/// 12.
#[test]
fn full_segments_fill_the_packets_of_the_device_whatever_is_agreed_on() {
    let largest = |mtu, timestamps, v6| {
        let mut world = World::new([0, 1].map(|end| StackConfig { mtu, ..stack_config(end) }), 1);
        world.keep_seen = true;
        let ids = world.connected([Config { timestamps, ..config() }, config()], v6);
        let now = world.now;
        world.stacks[0].write(now, ids[0], &pattern(1, 30_000));
        world.run(Duration::from_secs(2));
        let data =
            world.seen.iter().filter(|(end, _)| *end == 0).map(|(_, packet)| (packet.len(), read(packet).1));
        data.clone()
            .filter(|(len, _)| *len == usize::from(mtu))
            .for_each(|(_, payload)| assert!(payload > 0));
        data.max().unwrap()
    };
    assert_eq!(largest(1500, true, false), (1500, 1448));
    assert_eq!(largest(1500, false, false), (1500, 1460));
    assert_eq!(largest(1500, true, true), (1500, 1428));
    assert_eq!(largest(1500, false, true), (1500, 1440));
    assert_eq!(largest(576, true, false), (576, 524));
    assert_eq!(largest(576, false, false), (576, 536));
}

/// Segments above the packet size would be split by the stack, with a small second part.
#[test]
fn segments_are_as_large_as_the_device_takes_and_not_cut_in_two() {
    let mut world = World::new([0, 1].map(|end| StackConfig { mtu: 576, ..stack_config(end) }), 1);
    world.keep_seen = true;
    let ids = world.connected([config(), config()], false);
    let now = world.now;
    world.stacks[0].write(now, ids[0], &pattern(1, 5240));
    world.run(Duration::from_secs(2));
    let payloads = world.seen.iter().filter(|(end, _)| *end == 0).map(|(_, packet)| read(packet).1);
    assert_eq!(payloads.filter(|len| *len > 0).collect::<Vec<_>>(), [524; 10]);
}

/// A closed window is announced as open once the application has discarded its data.
#[test]
fn what_is_discarded_opens_the_window_at_once() {
    let mut world = World::plain();
    world.keep_seen = true;
    let narrow = config().with(|config| config.receiver.receive_window = ReceiveWindow::Fixed(2 * 1448));
    let ids = world.connected([config(), narrow], false);
    let now = world.now;
    world.stacks[0].write(now, ids[0], &pattern(1, 10_000));
    world.run(millis(100));
    world.seen.clear();
    let now = world.now;
    assert_eq!(world.stacks[1].discard(now, ids[1]), 2 * 1448);
    world.drain();
    let update = world.seen.iter().filter(|(end, _)| *end == 1).map(|(_, packet)| read(packet).0.window);
    assert_eq!(update.count(), 1, "a window update leaves without waiting for a timer");
}

/// The length field of IPv4 ends at 65,535, headers of 52 bytes included: 45 segments and 323 bytes fit.
#[test]
fn a_packet_for_a_device_that_cuts_is_as_long_as_ip_can_say() {
    for (rest, packets) in
        [(323, vec![45 * 1448 + 323]), (324, vec![45 * 1448, 324]), (400, vec![45 * 1448, 400])]
    {
        let offload = |end| StackConfig { offload: true, ..stack_config(end) };
        let mut world = World::new([offload(0), offload(1)], 1);
        world.keep_seen = true;
        let ours = config().with(|config| config.sender.initial_window = InitialWindow::Segments(100));
        let ids = world.connected([ours, config()], false);
        let data = pattern(1, 45 * 1448 + rest);
        let got = world.exchange(ids, [&data, &[]], Duration::from_secs(10));
        assert!(got[1] == data);
        let payloads = world.seen.iter().filter(|(end, _)| *end == 0).map(|(_, packet)| read(packet).1);
        assert_eq!(payloads.filter(|len| *len > 0).collect::<Vec<_>>(), packets);
    }
}

#[test]
fn an_outage_is_survived() {
    let mut world = World::plain();
    let begin = world.now + millis(150);
    world.weather = Weather { outage: (begin, begin + Duration::from_secs(12)), ..Weather::default() };
    exchanges(world, [config(), config()], false);
}

/// Wire sequence numbers wrap around within the stream.
#[test]
fn sequence_numbers_wrap() {
    let first_seq = |now: Instant| {
        let mut world = World::plain();
        world.now = now;
        world.keep_seen = true;
        world.connected([config(), config()], false);
        (read(&world.seen[0].1).0.seq, world)
    };
    let now = World::plain().now;
    let (seq, _) = first_seq(now);
    // The clock of RFC 6528 ticks every 4 us: wait until it is just below the wrap.
    let ticks = (u32::MAX - 100_000).wrapping_sub(seq);
    let (seq, _) = first_seq(now + Duration::from_micros(4) * u64::from(ticks));
    assert!(seq > u32::MAX - 100_001, "{seq}");
    let mut world = World::plain();
    world.now = now + Duration::from_micros(4) * u64::from(ticks);
    world.weather = storm();
    exchanges(world, [config(), config()], false);
}

#[test]
fn a_path_that_swallows_large_packets_is_found_out() {
    for (largest, v6) in [(1300, false), (1280, true), (576, false)] {
        let mut world = World::plain();
        world.weather = Weather { largest, ..Weather::default() };
        world.keep_seen = true;
        let world = exchanges(world, [config(), config()], v6);
        let through = world.seen.iter().filter(|(_, packet)| packet.len() <= largest).count();
        assert!(through * 10 > world.seen.len() * 8, "{through} of {}", world.seen.len());
    }
}

/// Runs a connection that sends 20 kB per second for `seconds`. Returns the largest packet of the last second.
fn trickle(world: &mut World, [ours, theirs]: [Id; 2], seconds: u64) -> usize {
    let bytes = pattern(7, 20_000);
    for _ in 0..seconds {
        world.seen.clear();
        let now = world.now;
        world.stacks[0].write(now, ours, &bytes);
        world.run(Duration::from_secs(1));
        let now = world.now;
        world.stacks[1].discard(now, theirs);
    }
    world.seen.iter().map(|(_, packet)| packet.len()).max().unwrap_or(0)
}

#[test]
fn packets_grow_again_to_what_the_path_takes() {
    let mut world = World::plain();
    world.keep_seen = true;
    let ids = world.connected([config(), config()], false);
    world.weather.largest = 1400;
    trickle(&mut world, ids, 10);
    let found = trickle(&mut world, ids, 120);
    assert!((1368..=1400).contains(&found), "{found}");
    world.weather.largest = usize::MAX;
    assert_eq!(trickle(&mut world, ids, 700), 1500, "ten minutes later it is tried again");
    assert_eq!(world.stacks[0].connection(ids[0]).unwrap().acknowledged_bytes(), 830 * 20_000);
}

#[test]
fn a_thousand_connections_at_once() {
    let mut world = World::plain();
    let mut ids = vec![world.connected([config(), config()], false)];
    for _ in 1..1000 {
        let remote = std::net::SocketAddr::new(common::address(1, false), PORT);
        let id = world.stacks[0].connect(world.now, remote, config()).unwrap();
        let mut accepted = None;
        world.run_until(Duration::from_secs(5), |world| {
            accepted = accepted.or_else(|| world.stacks[1].accept(PORT));
            accepted.is_some()
        });
        ids.push([id, accepted.unwrap()]);
    }
    for (n, [ours, _]) in ids.iter().enumerate() {
        let bytes = pattern(n as u64, 5000);
        assert_eq!(world.stacks[0].write(world.now, *ours, &bytes), 5000);
    }
    world.run(Duration::from_secs(5));
    for (n, [_, theirs]) in ids.iter().enumerate() {
        let mut bytes = vec![0; 6000];
        assert_eq!(world.stacks[1].read(world.now, *theirs, &mut bytes), 5000);
        assert_eq!(bytes[..5000], pattern(n as u64, 5000));
    }
    world.run(Duration::from_secs(5));
    world.stacks.iter_mut().for_each(|stack| stack.trim());
    assert_eq!(world.stacks.iter().map(|stack| stack.held_bytes()).sum::<usize>(), 0);
    for stack in &world.stacks {
        let memory: usize =
            ids.iter().flatten().filter_map(|id| stack.connection(*id)).map(|c| c.memory_bytes()).sum();
        assert!(memory / 1000 < 8_000, "{} bytes for each idle connection", memory / 1000);
    }
}
