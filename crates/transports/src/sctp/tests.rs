use bentpipe_base::{Duration, Instant};

use super::path::Path;
use super::sender::Fate;
use super::*;
use crate::Config;
use crate::outbox::Message;

const CONFIG: Config = Config { packet_bytes: 1000, initial_window: 4, window: 100 };

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Makes both ends, with data of two streams sent alternately after the cookie at 500 ms.
fn begun() -> (Sender, Receiver, Vec<(u8, Chunk)>) {
    let (mut sender, mut receiver) = (Sender::new(CONFIG, Options::default(), 2), Receiver::new(CONFIG));
    for number in 0..40 {
        sender.write(at(0), Message { number, stream: (number % 2) as u8, bytes: 1000 });
    }
    sender.handle_timeout(at(0));
    let (port, init) = sender.poll_transmit(at(0)).unwrap();
    receiver.handle(at(250), port, &init);
    let (port, answer) = receiver.poll_transmit().unwrap();
    sender.handle(at(500), port, &answer);
    let chunks: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(at(500))).collect();
    let (port, echo) = &chunks[0];
    assert_eq!(*echo, Chunk::CookieEcho);
    receiver.handle(at(750), *port, echo);
    let (port, answer) = receiver.poll_transmit().unwrap();
    sender.handle(at(1000), port, &answer);
    assert_eq!(std::iter::from_fn(|| sender.poll_transmit(at(1000))).count(), 2, "heartbeats");
    let data = chunks.into_iter().filter(|(_, chunk)| matches!(chunk, Chunk::Data { .. }));
    (sender, receiver, data.collect())
}

#[test]
fn a_loss_in_one_stream_does_not_hold_up_the_other() {
    let (_, mut receiver, data) = begun();
    assert_eq!(data.len(), 4);
    for (port, chunk) in &data[1..] {
        receiver.handle(at(1300), *port, chunk);
    }
    let delivered: Vec<_> = std::iter::from_fn(|| receiver.poll_delivery()).collect();
    assert_eq!(delivered.iter().map(|fragment| fragment.message).collect::<Vec<_>>(), [1, 3]);
    receiver.handle(at(1900), data[0].0, &data[0].1);
    let delivered: Vec<_> = std::iter::from_fn(|| receiver.poll_delivery()).collect();
    assert_eq!(delivered.iter().map(|fragment| fragment.message).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn windows_grow_as_the_standard_works_out() {
    let mut path = Path::new(&CONFIG);
    assert_eq!(path.cwnd, 4000);
    path.ssthresh = 64_000;
    path.grow(2000, 1000);
    assert_eq!(path.cwnd, 5000);
    (path.cwnd, path.ssthresh, path.partial) = (8000, 4000, 3000);
    path.grow(6000, 1000);
    assert_eq!((path.partial, path.cwnd), (1000, 9000));
}

#[test]
fn three_misses_repeat_a_chunk_and_halve_once() {
    let (mut sender, mut receiver, data) = begun();
    sender.paths[0].cwnd = 20_000;
    let more = std::iter::from_fn(|| sender.poll_transmit(at(1000)));
    let data: Vec<_> = data.into_iter().chain(more).collect();
    for (port, chunk) in data[1..5].iter() {
        receiver.handle(at(1300), *port, chunk);
    }
    let sacks: Vec<_> = std::iter::from_fn(|| receiver.poll_transmit()).collect();
    assert_eq!(sacks.len(), 4, "a gap is reported at once");
    for (port, chunk) in &sacks[..2] {
        sender.handle(at(1600), *port, chunk);
    }
    assert_eq!(sender.sent[0].state, Fate::InFlight);
    for (port, chunk) in &sacks[2..] {
        sender.handle(at(1600), *port, chunk);
    }
    assert_eq!((sender.sent[0].state, sender.paths[0].cwnd), (Fate::Lost, 10_000));
    sender.paths[0].in_flight = 0;
    let (_, chunk) = sender.poll_transmit(at(1600)).unwrap();
    assert!(matches!(chunk, Chunk::Data { tsn: 0, .. }), "{chunk:?}");
}

#[test]
fn a_chunk_may_be_missed_any_number_of_times() {
    let (mut sender, ..) = begun();
    sender.sent[0].repeated = true;
    for _ in 0..1000 {
        sender.count_misses(3);
    }
    assert_eq!(sender.sent[0].state, Fate::InFlight, "only the timer repeats it once more");
}

#[test]
fn a_timeout_sends_data_over_the_other_path_and_a_heartbeat_brings_it_back() {
    let (mut sender, mut receiver, data) = begun();
    assert!(data.iter().all(|(path, _)| *path == 0));
    sender.handle_timeout(at(1500));
    let repeated: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(at(1500))).collect();
    let data: Vec<_> = repeated.iter().filter(|(_, chunk)| matches!(chunk, Chunk::Data { .. })).collect();
    assert!(data.len() == 4 && data.iter().all(|(path, _)| *path == 1), "{repeated:?}");
    // After its doubled timeout the first path gets a heartbeat, answers it, and carries
    // data again.
    assert_eq!(sender.paths[0].heartbeat_at, at(3500));
    sender.handle_timeout(at(3500));
    let mut beats = std::iter::from_fn(|| sender.poll_transmit(at(3500)));
    let (port, beat) = beats.find(|(_, chunk)| matches!(chunk, Chunk::Heartbeat { .. })).unwrap();
    assert_eq!(port, 0);
    receiver.handle(at(3800), port, &beat);
    let (port, answer) = receiver.poll_transmit().unwrap();
    sender.handle(at(4100), port, &answer);
    assert_eq!((sender.path(), sender.paths[0].errors), (0, 0));
}

#[test]
fn what_is_unordered_does_not_wait() {
    let mut receiver = Receiver::new(CONFIG);
    receiver.handle(at(0), 0, &Chunk::CookieEcho);
    let part = |message| crate::Fragment { message, stream: 0, bytes: 1000 };
    for (tsn, place) in [(1, None), (2, Some(1)), (3, Some(0))] {
        receiver.handle(at(1), 0, &Chunk::Data { tsn, place, fragment: part(tsn) });
    }
    let delivered: Vec<_> = std::iter::from_fn(|| receiver.poll_delivery()).collect();
    assert_eq!(delivered.iter().map(|fragment| fragment.message).collect::<Vec<_>>(), [1, 3, 2]);
}

#[test]
fn no_more_than_four_packets_leave_at_once() {
    let (mut sender, mut receiver, data) = begun();
    sender.paths[0].cwnd = 40_000;
    let sent = std::iter::from_fn(|| sender.poll_transmit(at(1000))).count();
    assert_eq!(sent, 4, "cookie and heartbeats have left");
    for (port, chunk) in &data {
        receiver.handle(at(1300), *port, chunk);
    }
    let (port, sack) = receiver.poll_transmit().unwrap();
    sender.handle(at(1600), port, &sack);
    let sent = std::iter::from_fn(|| sender.poll_transmit(at(1600)));
    assert_eq!(sent.filter(|(_, chunk)| matches!(chunk, Chunk::Data { .. })).count(), 4);
}
