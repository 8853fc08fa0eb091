//! Transparent stacks at both ends of a link: connections between addresses of other hosts.

mod common;

use std::net::SocketAddr;
use std::sync::Arc;

use bentpipe_base::{Duration, Flags};
use bentpipe_host::{Id, Limits, Request, StackConfig, Unopened};
use bentpipe_tcp::{Config, EcnMode, Events, State};
use bentpipe_wire::{Datagram, Ends};
use common::{World, config, millis, pattern, read, stack_config};

fn transparent(end: usize) -> StackConfig {
    StackConfig { transparent: true, ..stack_config(end) }
}

fn world() -> World {
    World::new([transparent(0), transparent(1)], 1)
}

fn ends(port: u16, v6: bool) -> Ends {
    let (local, remote) = if v6 { ("2001:db8:1::7", "2001:db8:2::9") } else { ("198.18.0.7", "203.0.113.9") };
    Ends {
        local: SocketAddr::new(local.parse().unwrap(), port),
        remote: SocketAddr::new(remote.parse().unwrap(), 80),
    }
}

/// Opens a connection between `ends`. Returns it with the request at the other stack.
fn ask(world: &mut World, ends: Ends, config: &Config) -> (Id, Request) {
    let id = world.stacks[0].connect_from(world.now, ends, &Arc::new(config.clone())).unwrap();
    let mut request = None;
    world.run_until(Duration::from_secs(10), |world| {
        request = request.take().or_else(|| world.stacks[1].poll_request());
        request.is_some()
    });
    (id, request.expect("the SYN arrives"))
}

fn connected(world: &mut World, ends: Ends, configs: [Config; 2]) -> [Id; 2] {
    let (ours, request) = ask(world, ends, &configs[0]);
    assert_eq!(request.ends, ends.swapped());
    let theirs = world.stacks[1].grant(world.now, &request, &Arc::new(configs[1].clone())).unwrap();
    let both = |world: &World| {
        world.state(0, ours) == State::Established && world.state(1, theirs) == State::Established
    };
    assert!(world.run_until(Duration::from_secs(10), |world| both(world)));
    [ours, theirs]
}

fn events(world: &mut World, end: usize) -> Events {
    let seen = std::iter::from_fn(|| world.stacks[end].poll_event());
    seen.fold(Events::empty(), |all, (_, events)| all | events)
}

#[test]
fn a_connection_has_the_addresses_and_ports_that_were_chosen_for_it() {
    for v6 in [false, true] {
        let mut world = world();
        world.keep_seen = true;
        let ids = connected(&mut world, ends(4242, v6), [config(), config()]);
        let data = [pattern(1, 300_000), pattern(2, 100_000)];
        let got = world.exchange(ids, [&data[0], &data[1]], Duration::from_secs(60));
        assert!(got[1] == data[0] && got[0] == data[1]);
        for (end, packet) in &world.seen {
            let datagram = Datagram::read(packet).unwrap();
            let wanted = if *end == 0 { ends(4242, v6) } else { ends(4242, v6).swapped() };
            assert_eq!((datagram.source, datagram.destination), (wanted.local.ip(), wanted.remote.ip()));
            let (header, _) = read(packet);
            assert_eq!(
                (header.source_port, header.destination_port),
                (wanted.local.port(), wanted.remote.port())
            );
        }
    }
}

#[test]
fn a_request_says_whether_its_syn_offers_ecn() {
    for ecn in [EcnMode::Off, EcnMode::Classic, EcnMode::Accurate] {
        let (_, request) = ask(&mut world(), ends(4242, false), &Config { ecn, ..config() });
        assert_eq!(request.offers_ecn(), ecn != EcnMode::Off);
    }
}

#[test]
fn nothing_is_answered_before_the_caller_has_decided() {
    let mut world = world();
    world.keep_seen = true;
    let (id, request) = ask(&mut world, ends(1, false), &config());
    world.run(Duration::from_secs(8));
    assert!(world.seen.len() > 2, "the SYN is repeated");
    assert!(world.seen.iter().all(|(end, _)| *end == 0));
    assert!(world.stacks[1].poll_request().is_none(), "once is enough");
    // The packet is unchanged.
    assert_eq!(*request.packet, *world.seen[0].1);
    world.stacks[1].deny(&request);
    world.run(millis(100));
    assert!(events(&mut world, 0).contains(Events::RESET));
    assert_eq!(world.state(0, id), State::Closed);
    assert_eq!(world.stacks[1].connections(), 0);
}

#[test]
fn a_question_that_was_ignored_is_asked_again() {
    let mut world = world();
    let (id, first) = ask(&mut world, ends(1, true), &config());
    world.stacks[1].ignore(&first);
    let mut second = None;
    world.run_until(Duration::from_secs(10), |world| {
        second = second.take().or_else(|| world.stacks[1].poll_request());
        second.is_some()
    });
    let theirs = world.stacks[1].grant(world.now, &second.unwrap(), &Arc::new(config())).unwrap();
    world.run(millis(100));
    assert_eq!([world.state(0, id), world.state(1, theirs)], [State::Established; 2]);
}

#[test]
fn questions_and_connections_are_bounded() {
    let limits = Limits { connections: 3, half_open: 2, ..Limits::default() };
    let mut world = World::new([transparent(0), StackConfig { limits, ..transparent(1) }], 1);
    for port in 1..=4 {
        world.stacks[0].connect_from(world.now, ends(port, false), &Arc::new(config())).unwrap();
    }
    world.run(millis(50));
    let requests: Vec<_> = std::iter::from_fn(|| world.stacks[1].poll_request()).collect();
    assert_eq!((requests.len(), world.stacks[1].counters().over_limit), (2, 2));
    let config = Arc::new(config());
    let now = world.now;
    for request in &requests {
        world.stacks[1].grant(now, request, &config).unwrap();
    }
    assert_eq!(world.stacks[1].connect_from(now, ends(1, false).swapped(), &config), Err(Unopened::Exists));
    assert!(world.stacks[1].connect_from(now, ends(9, false), &config).is_ok());
    assert_eq!(world.stacks[1].connect_from(now, ends(8, false), &config), Err(Unopened::Full));
    assert_eq!(world.stacks[1].grant(now, &requests[0], &config), Err(Unopened::Full));
}

/// A client reuses a port while its last connection is in TIME-WAIT here: the new sequence numbers are above all old
/// ones.
#[test]
fn the_same_four_numbers_are_used_again() {
    let mut world = world();
    let data = pattern(3, 2_000_000);
    for _ in 0..3 {
        let ids = connected(&mut world, ends(77, false), [config(), config()]);
        let got = world.exchange(ids, [&data, b"yes"], Duration::from_secs(60));
        assert!(got[1] == data && got[0] == b"yes");
        assert!((0..2).any(|end| world.state(end, ids[end]) == State::TimeWait));
        (0..2).for_each(|end| world.stacks[end].release(ids[end]));
    }
}

/// A client that has forgotten its connection reuses the port while the connection still waits here for the other end.
#[test]
fn what_was_released_gives_way_with_a_reset() {
    let mut world = world();
    let old = connected(&mut world, ends(78, true), [config(), config()]);
    let config = Arc::new(config());
    let again = |world: &mut World| world.stacks[0].connect_from(world.now, ends(78, true), &config);
    assert_eq!(again(&mut world), Err(Unopened::Exists), "somebody still uses it");
    world.stacks[0].close(world.now, old[0]);
    world.stacks[0].release(old[0]);
    world.run(millis(500));
    assert_eq!(world.state(0, old[0]), State::FinWait2);
    world.keep_seen = true;
    again(&mut world).unwrap();
    world.run(millis(20));
    assert!(events(&mut world, 1).contains(Events::RESET));
    let [reset, syn] = [0, 1].map(|nth| read(&world.seen[nth].1).0);
    assert_eq!((reset.flags, syn.flags), (Flags::RST | Flags::ACK, Flags::SYN));
    assert!((1..1 << 30).contains(&syn.seq.wrapping_sub(reset.seq)), "its numbers lie above");
}

#[test]
fn a_writer_is_held_back_by_its_limit_and_told_when_a_quarter_is_free() {
    let mut world = world();
    let ids = connected(&mut world, ends(1, false), [config(), config()]);
    world.stacks[0].set_send_limit(ids[0], 40_000);
    events(&mut world, 0);
    let data = pattern(4, 400_000);
    let (mut written, mut most, mut woken) = (0, 0, 1);
    world.run_until(Duration::from_secs(60), |world| {
        if written == 0 || events(world, 0).contains(Events::WRITABLE) {
            woken += 1;
            written += world.stacks[0].write(world.now, ids[0], &data[written..]);
        }
        let acknowledged = world.stacks[0].connection(ids[0]).unwrap().acknowledged_bytes();
        most = most.max(written as u64 - acknowledged);
        world.stacks[1].discard(world.now, ids[1]);
        written == data.len()
    });
    assert_eq!((written, most), (data.len(), 40_000));
    assert!(woken < 50, "{woken}");
}

/// Two streams share memory for one: the second continues when the first is finished.
#[test]
fn a_writer_without_memory_is_told_when_there_is_some() {
    let limits = Limits { bytes: 10 << 10, ..Limits::default() };
    let mut world = World::new([StackConfig { limits, ..transparent(0) }, transparent(1)], 1);
    let first = connected(&mut world, ends(1, false), [config(), config()]);
    let second = connected(&mut world, ends(2, false), [config(), config()]);
    let data = pattern(5, 2000);
    assert_eq!(world.stacks[0].write(world.now, first[0], &data), data.len());
    assert_eq!(world.stacks[0].write(world.now, second[0], &data), 0);
    world.run(Duration::from_secs(1));
    events(&mut world, 0);
    world.stacks[0].trim();
    let woken = std::iter::from_fn(|| world.stacks[0].poll_event())
        .any(|(id, events)| id == second[0] && events.contains(Events::WRITABLE));
    assert!(woken);
    assert_eq!(world.stacks[0].write(world.now, second[0], &data), data.len());
}

#[test]
fn packets_carry_the_code_point_that_was_chosen() {
    let mut world = world();
    world.keep_seen = true;
    let id = world.stacks[0].connect_from(world.now, ends(1, true), &Arc::new(config())).unwrap();
    world.stacks[0].set_dscp(id, 46);
    world.run(millis(50));
    let request = world.stacks[1].poll_request().unwrap();
    assert_eq!(request.dscp, 46);
    assert!(world.seen.iter().all(|(_, packet)| Datagram::read(packet).unwrap().dscp == 46));
}

/// Data written directly into the connection's memory, and read from it in pieces of any size, equals the stream.
#[test]
fn streams_need_no_copy() {
    // Limits of the writer: the send buffer of the connection, or a smaller limit.
    for (send_buffer, limit) in [(50_000, u64::MAX), (1 << 20, 50_000)] {
        stream_without_copy(send_buffer, limit);
    }
}

fn stream_without_copy(send_buffer: u64, limit: u64) {
    let mut world = world();
    let ids = connected(
        &mut world,
        ends(1, false),
        [config().with(|config| config.sender.send_buffer = send_buffer), config()],
    );
    world.stacks[0].set_send_limit(ids[0], limit);
    let data = pattern(6, 1_000_000);
    let (mut rest, mut got, mut step) = (&data[..], Vec::new(), 0_usize);
    world.run_until(Duration::from_secs(60), |world| {
        let [ours, theirs] = &mut world.stacks;
        step += 1;
        while !rest.is_empty() {
            let put = ours.fill(world.now, ids[0], step * 977 % 30_000 + 1, |pieces| {
                let most = rest.len().min(step * 613 % 20_000 + 1);
                let mut put = 0;
                for piece in pieces {
                    let len = piece.len().min(most - put);
                    piece[..len].copy_from_slice(&rest[..len]);
                    rest = &rest[len..];
                    put += len;
                }
                put
            });
            if put.is_none() {
                break;
            }
            step += 1;
        }
        let mut taken = 1;
        while taken > 0 {
            step += 1;
            taken = theirs.drain(world.now, ids[1], step * 331 % 40_000 + 1, |pieces| {
                let most = step * 613 % 7000 + 1;
                let before = got.len();
                for piece in pieces {
                    let len = piece.len().min(most - (got.len() - before));
                    got.extend_from_slice(&piece[..len]);
                }
                got.len() - before
            });
        }
        got.len() == data.len()
    });
    assert!(got == data, "{}", got.len());
}

/// The packet filter that directs packets here is informed when they are no longer wanted.
#[test]
fn the_ends_of_what_is_over_are_told() {
    let brief = config().with(|config| config.lifetime.time_wait = millis(500));
    let mut world = world();
    let ids = connected(&mut world, ends(5, true), [brief.clone(), brief]);
    let _ = world.exchange(ids, [b"question", b"answer"], Duration::from_secs(5));
    for (stack, id) in world.stacks.iter_mut().zip(ids) {
        stack.release(id);
    }
    world.run(Duration::from_secs(2));
    let forgotten = [0, 1].map(|end| world.stacks[end].poll_forgotten());
    assert_eq!(forgotten, [Some(ends(5, true)), Some(ends(5, true).swapped())]);
}
