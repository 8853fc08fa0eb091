//! State passed from one connection to the next through the driver's memory.

mod common;

use bentpipe_base::{Duration, Instant, Segment};
use bentpipe_cc::{Algorithm, PathMemory, Saved, Windows, careful_resume};
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

/// Sends a file of 1,000 segments by Careful Resume. Returns the time at which the receiver has all data.
fn resumed(cc: &str, memory: &PathMemory, fate: impl Fn(&Segment) -> bool + 'static) -> (Duration, Pair) {
    let sender = Config {
        careful_resume: Some(careful_resume::Config::default()),
        receive_window: ReceiveWindow::Fixed(4 << 20),
        ..config(cc, Some(memory))
    };
    let receiver = Config { receive_window: ReceiveWindow::Fixed(4 << 20), ..config("reno", None) };
    let mut pair = Pair::new(sender, receiver);
    pair.fate[0] = Box::new(move |_, segment| fate(segment));
    pair.write(0, 1_000_000);
    pair.close(0);
    pair.run(Duration::from_secs(20));
    let all = pair.log.iter().find(|(_, end, segment)| *end == 1 && segment.ack > 1_000_000);
    (all.expect("the file arrives").0.since(Instant::ZERO), pair)
}

/// Slow start needs flights of 10, 20, 40, 80, 160, 320 and 370. The second connection jumps from 10 to half of 320 at least.
#[test]
fn the_second_connection_resumes_whatever_the_algorithm() {
    for cc in ["reno", "cubic", "vegas", "copa", "westwood-plus", "bbr", "bbr3", "zenith"] {
        let memory = PathMemory::new();
        let (first, _) = resumed(cc, &memory, |_| true);
        let saved = memory.capacity().unwrap_or_else(|| panic!("{cc} saves"));
        assert!((160_000..=1_000_000).contains(&saved.bytes), "{cc}: {saved:?}");
        let (second, _) = resumed(cc, &memory, |_| true);
        assert!(second + Duration::from_millis(100) <= first, "{cc}: {second} after {first}");
    }
}

/// The path carries a quarter of what it did: of the jump, only every fourth segment arrives at once.
#[test]
fn a_jump_into_a_smaller_path_retreats_and_the_next_connection_starts_anew() {
    let memory = PathMemory::new();
    resumed("cubic", &memory, |_| true);
    let jump = 11_000..100_000;
    let first_time = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let (_, pair) = resumed("cubic", &memory, move |segment| {
        let new = segment.len > 0 && first_time.borrow_mut().insert(segment.seq);
        !(new && jump.contains(&segment.seq) && segment.seq / 1000 % 4 != 0)
    });
    assert_eq!(pair.ends[0].stats().timeouts, 0);
    // At most half of the jump of 160 is proved, and half of that becomes the threshold.
    let state = pair.ends[0].window_state();
    assert!(state.ssthresh < 80.0, "{state:?}");
}
