//! What one connection tells the next through the memory of the driver.

mod common;

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{Algorithm, PathMemory};
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

/// Sends a file and closes. The time at which the receiver has it all.
fn transfer(cc: &str, memory: Option<&PathMemory>) -> Duration {
    let mut pair = Pair::new(config(cc, memory), config("reno", None));
    pair.write(0, 100_000);
    pair.close(0);
    pair.run(Duration::from_secs(20));
    let all = pair.log.iter().find(|(_, end, segment)| *end == 1 && segment.ack > 100_000);
    all.expect("the file arrives").0.since(Instant::ZERO)
}

#[test]
fn a_connection_begins_where_the_last_one_ended() {
    let memory = PathMemory::new();
    let first = transfer("sharing", Some(&memory));
    let saved = memory.saved().expect("the connection closed").windows.cwnd;
    assert!(saved > 40.0, "{saved}");
    assert_eq!(memory.members(), 0, "it has left");
    let second = transfer("sharing", Some(&memory));
    assert!(second + Duration::from_millis(150) <= first, "a round trip and a half less: {second} against {first}");
}
