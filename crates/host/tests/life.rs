//! Start, idle time and end of connections.

mod common;

use std::net::SocketAddr;

use bentpipe_base::Duration;
use bentpipe_host::Unopened;
use bentpipe_tcp::{Config, Events, ReceiveWindow, State};
use common::{PORT, Weather, World, address, config, millis, pattern, read};

fn events(world: &mut World, end: usize) -> Events {
    std::iter::from_fn(|| world.stacks[end].poll_event())
        .fold(Events::empty(), |all, (_, events)| all | events)
}

#[test]
fn a_half_closed_connection_still_carries_the_other_direction() {
    let mut world = World::plain();
    let ids = world.connected([config(), config()], false);
    world.stacks[0].close(world.now, ids[0]);
    world.run(Duration::from_secs(1));
    assert_eq!(world.state(1, ids[1]), State::CloseWait);
    assert!(events(&mut world, 1).contains(Events::PEER_CLOSED));
    let data = pattern(1, 200_000);
    let got = world.exchange(ids, [&[], &data], Duration::from_secs(60));
    assert!(got[0] == data);
}

#[test]
fn a_refused_connection_is_reset() {
    let mut world = World::plain();
    let remote = SocketAddr::new(address(1, false), 9);
    let id = world.stacks[0].connect(world.now, remote, config()).unwrap();
    world.run(Duration::from_secs(1));
    assert!(events(&mut world, 0).contains(Events::RESET));
    assert_eq!(world.state(0, id), State::Closed);
    world.stacks[0].release(id);
    world.drain();
    assert_eq!(world.stacks[0].connections(), 0);
}

#[test]
fn an_aborted_connection_resets_its_peer() {
    let mut world = World::plain();
    let ids = world.connected([config(), config()], true);
    world.stacks[1].abort(world.now, ids[1]);
    world.run(Duration::from_secs(1));
    assert!(events(&mut world, 0).contains(Events::RESET));
}

#[test]
fn a_peer_that_vanished_is_given_up() {
    let patient = Config { user_timeout: Some(Duration::from_secs(20)), ..config() };
    let mut world = World::plain();
    let ids = world.connected([patient, config()], false);
    world.weather = Weather { loss: 1.0, ..Weather::default() };
    world.stacks[0].write(world.now, ids[0], &[1; 5000]);
    let begin = world.now;
    assert!(world.run_until(Duration::from_secs(100), |world| world.state(0, ids[0]) == State::Closed));
    assert!(events(&mut world, 0).contains(Events::TIMED_OUT));
    let waited = world.now.since(begin).as_secs_f64();
    assert!((20.0..41.0).contains(&waited), "{waited}");
}

#[test]
fn a_window_that_stays_closed_for_a_minute_is_waited_for() {
    let narrow = Config { receive_window: ReceiveWindow::Fixed(20_000), ..config() };
    let mut world = World::plain();
    let ids = world.connected([config(), narrow], false);
    let data = pattern(1, 100_000);
    let mut written = world.stacks[0].write(world.now, ids[0], &data);
    world.run(Duration::from_secs(60));
    assert_eq!(world.stacks[1].connection(ids[1]).unwrap().readable(), 20_000);
    let mut got = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    world.run_until(Duration::from_secs(60), |world| {
        written += world.stacks[0].write(world.now, ids[0], &data[written..]);
        let len = world.stacks[1].read(world.now, ids[1], &mut buffer);
        got.extend_from_slice(&buffer[..len]);
        got.len() == data.len()
    });
    assert!(got == data, "{}", got.len());
}

#[test]
fn ports_are_free_again_and_time_wait_gives_way() {
    let brief = Config { time_wait: millis(500), ..config() };
    let mut world = World::plain();
    for _ in 0..3 {
        let ids = world.connected([brief.clone(), brief.clone()], false);
        let got = world.exchange(ids, [b"question", b"answer"], Duration::from_secs(5));
        assert_eq!((got[1].as_slice(), got[0].as_slice()), (&b"question"[..], &b"answer"[..]));
        for (stack, id) in world.stacks.iter_mut().zip(ids) {
            stack.release(id);
        }
        world.run(Duration::from_secs(2));
        assert_eq!([0, 1].map(|end| world.stacks[end].connections()), [0, 0]);
    }
    let nowhere = "[2001:db8::5]:1".parse().unwrap();
    let only_v4 =
        bentpipe_host::StackConfig { addresses: vec![address(0, false)], ..common::stack_config(0) };
    let mut stack = bentpipe_host::Stack::new(only_v4);
    assert_eq!(stack.connect(world.now, nowhere, config()), Err(Unopened::NoAddress));
}

/// A finished connection that is still owned, or not yet accepted, does not block the next one.
#[test]
fn ends_are_free_for_another_connection_when_one_is_over() {
    let mut world = World::plain();
    for how in 0..3 {
        let ids = world.connected([config(), config()], false);
        let ends = world.stacks[0].ends(ids[0]).unwrap();
        match how {
            // Closed by a reset, and still owned.
            0 => world.stacks[0].abort(world.now, ids[0]),
            // In TIME-WAIT, and still owned by the listener.
            _ => {
                world.stacks[1].close(world.now, ids[1]);
                world.run(millis(100));
                world.stacks[0].close(world.now, ids[0]);
            }
        }
        world.run(millis(100));
        let over = world.state(1, ids[1]);
        assert!(matches!((how, over), (0, State::Closed) | (1.., State::TimeWait)), "{over:?}");
        world.stacks[0].release(ids[0]);
        world.run(millis(100));
        let again = world.stacks[0].connect_from(world.now, ends, &config().into()).unwrap();
        world.run(millis(100));
        assert_eq!(world.state(0, again), State::Established, "{how}");
        let accepted = world.stacks[1].accept(PORT).unwrap();
        assert_eq!(world.state(1, accepted), State::Established);
        assert_eq!(world.state(1, ids[1]), State::Closed, "its owner may still ask for it");
        assert_eq!(world.stacks[1].connection(ids[1]).unwrap().stats().timeouts, 0);
        world.stacks[1].release(ids[1]);
        world.stacks[1].abort(world.now, accepted);
        world.stacks[1].release(accepted);
        world.run(millis(100));
        world.stacks[0].release(again);
        world.drain();
    }
    assert_eq!(world.stacks[1].connections(), 0);
}

/// RFC 1122 section 4.2.2.13: a fast transfer overtakes the clock of initial numbers.
#[test]
fn numbers_of_the_next_connection_lie_above_those_of_a_fast_one() {
    let mut world = World::plain();
    world.weather = Weather { delay: millis(1), ..Weather::default() };
    let wide = Config { receive_window: ReceiveWindow::Fixed(1 << 20), ..config() };
    let ids = world.connected([wide.clone(), wide], false);
    let ends = world.stacks[0].ends(ids[0]).unwrap();
    let mut written = 0;
    world.keep_seen = true;
    while written < 4 << 20 {
        written += world.stacks[1].write(world.now, ids[1], &[7; 1 << 16]);
        world.run(millis(2));
        world.stacks[0].discard(world.now, ids[0]);
    }
    world.stacks[1].close(world.now, ids[1]);
    world.run(millis(100));
    world.stacks[0].discard(world.now, ids[0]);
    world.stacks[0].close(world.now, ids[0]);
    world.run(millis(100));
    assert_eq!(world.state(1, ids[1]), State::TimeWait);
    let numbers = |world: &World| -> Vec<u32> {
        let ours = world.seen.iter().filter(|(end, _)| *end == 1);
        ours.map(|(_, packet)| read(packet).0.seq).collect()
    };
    let last = numbers(&world).into_iter().max_by_key(|seq| seq.wrapping_sub(numbers(&world)[0])).unwrap();
    (0..2).for_each(|end| world.stacks[end].release(ids[end]));
    world.drain();
    world.seen.clear();
    let again = world.stacks[0].connect_from(world.now, ends, &config().into());
    assert!(again.is_ok());
    world.run(millis(10));
    let first = numbers(&world)[0];
    assert!((first.wrapping_sub(last) as i32) > 0, "{first} after {last}");
}

/// RFC 9293 section 3.9.2.2 (SHLD-26) and RFC 5927 section 5.2.
#[test]
fn a_port_that_is_reported_unreachable_ends_an_attempt() {
    let mut world = World::plain();
    world.keep_seen = true;
    world.weather = Weather { loss: 1.0, ..Weather::default() };
    let remote = SocketAddr::new(address(1, false), PORT);
    let id = world.stacks[0].connect(world.now, remote, config()).unwrap();
    world.drain();
    let mut quoted = world.seen[0].1[..28].to_vec();
    let report = |quoted: &[u8], code: u8| {
        let mut icmp = vec![3, code, 0, 0, 0, 0, 0, 0];
        icmp.extend_from_slice(quoted);
        let checksum = bentpipe_wire::Sum::default().bytes(&icmp).checksum();
        icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
        let len = 20 + icmp.len() as u8;
        let mut ip = vec![0x45, 0, 0, len, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 99, 192, 0, 2, 1];
        let checksum = bentpipe_wire::Sum::default().bytes(&ip).checksum();
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        ip.extend_from_slice(&icmp);
        ip
    };
    world.inject(0, &report(&quoted, 1));
    assert_eq!(world.state(0, id), State::SynSent, "an unknown host may become known");
    quoted[24] ^= 1;
    world.inject(0, &report(&quoted, 3));
    assert_eq!(world.state(0, id), State::SynSent, "somebody who has not seen our SYN");
    quoted[24] ^= 1;
    world.inject(0, &report(&quoted, 3));
    assert_eq!(world.state(0, id), State::Closed);
    assert!(events(&mut world, 0).contains(Events::RESET));
}

/// RFC 9293 section 3.6.1 (SHLD-3).
#[test]
fn data_for_a_released_connection_resets_it() {
    let mut world = World::plain();
    let ids = world.connected([config(), config()], false);
    world.stacks[1].release(ids[1]);
    world.run(millis(100));
    assert_eq!(world.state(0, ids[0]), State::CloseWait);
    world.stacks[0].write(world.now, ids[0], b"nobody reads this");
    world.run(millis(100));
    assert!(events(&mut world, 0).contains(Events::RESET));
    assert_eq!(world.stacks[1].connections(), 0);
}

/// Careful Resume (RFC 9959): the stack keeps what a connection found, for the next connection to that host.
#[test]
fn a_later_connection_to_a_host_resumes_from_what_an_earlier_one_found() {
    let window = ReceiveWindow::Fixed(1 << 20);
    let resuming = Config { careful_resume: Some(Default::default()), receive_window: window, ..config() };
    let receiving = Config { receive_window: window, ..config() };
    let mut world = World::plain();
    let data = pattern(1, 2_000_000);
    let times = [0, 1].map(|_| {
        let ids = world.connected([resuming.clone(), receiving.clone()], false);
        let begin = world.now;
        let got = world.exchange(ids, [&data, &[]], Duration::from_secs(60));
        assert!(got[1] == data);
        let time = world.now.since(begin);
        world.run(Duration::from_secs(1));
        time
    });
    // Ten segments are 1/140 of the file: seven doublings, of which the second connection needs three.
    assert!(times[1] + millis(3 * 20) <= times[0], "{times:?}");
}
