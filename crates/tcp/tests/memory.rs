//! State passed from one connection to the next through the driver's memory.

mod common;

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{Algorithm, PathMemory, Saved, Windows};
use bentpipe_tcp::{Config, ReceiveWindow};
use common::Pair;

fn config(cc: &str, memory: Option<&PathMemory>) -> Config {
    Config {
        cc: Algorithm::from_name(cc).expect("it is registered"),
        mss: 1000,
        receive_window: ReceiveWindow::Fixed(200_000),
        memory: memory.cloned(),
        ..Config::default()
    }
}

/// Sends a file and closes. Returns the time at which the receiver has all data.
fn transfer(cc: &str, memory: Option<&PathMemory>) -> Duration {
    let pair = Pair::new(config(cc, memory), config("reno", None));
    run(pair).0
}

fn run(mut pair: Pair) -> (Duration, Pair) {
    pair.write(0, 100_000);
    pair.close(0);
    pair.run(Duration::from_secs(20));
    let all = pair.log.iter().find(|(_, end, segment)| *end == 1 && segment.ack > 100_000);
    (all.expect("the file arrives").0.since(Instant::ZERO), pair)
}

#[test]
fn a_connection_begins_where_the_last_one_ended() {
    let memory = PathMemory::new();
    let first = transfer("sharing", Some(&memory));
    let saved = memory.saved().expect("the connection closed").windows.cwnd;
    assert!(saved > 40.0, "{saved}");
    assert_eq!(memory.members(), 0, "it has left");
    let second = transfer("sharing", Some(&memory));
    assert!(
        second + Duration::from_millis(150) <= first,
        "a round trip and a half less: {second} against {first}"
    );
}

fn remembering(cwnd: f64) -> PathMemory {
    let memory = PathMemory::new();
    let windows = Windows { cwnd, ssthresh: cwnd };
    memory.save(Saved { windows, srtt: Duration::from_millis(100), at: Instant::ZERO });
    memory
}

#[test]
fn fast_start_marks_the_window_of_the_past_and_nothing_else() {
    let memory = remembering(80.0);
    let (fast, pair) = run(Pair::new(config("fast-start", Some(&memory)), config("reno", None)));
    let low = pair.log.iter().filter(|(_, _, segment)| segment.low_priority);
    let low: Vec<u64> = low.map(|(_, _, segment)| segment.seq).collect();
    assert_eq!(low, (0..80).map(|i| 1 + 1000 * i).collect::<Vec<_>>());
    assert!(fast + Duration::from_millis(100) <= transfer("reno", None), "a round trip less");
}

#[test]
fn a_fast_start_that_meets_a_wall_gives_up_without_a_timeout() {
    let memory = remembering(40.0);
    let mut pair = Pair::new(config("fast-start", Some(&memory)), config("reno", None));
    pair.fate[0] = Box::new(|_, segment| !segment.low_priority);
    let (fast, pair) = run(pair);
    assert_eq!(pair.ends[0].stats().timeouts, 0);
    let reno = transfer("reno", None);
    assert!(fast <= reno + Duration::from_millis(400), "{fast} against {reno}: RTT + 4 RTTVAR more");
}
