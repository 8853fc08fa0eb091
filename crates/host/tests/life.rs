//! How connections begin, rest and end.

mod common;

use std::net::SocketAddr;

use bentpipe_base::Duration;
use bentpipe_host::Unopened;
use bentpipe_tcp::{Config, Events, ReceiveWindow, State};
use common::{Weather, World, address, config, millis, pattern};

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
