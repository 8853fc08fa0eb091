//! Transfers 100 kB between two connections over a path of 250 ms per direction, without sockets and without waiting.
//!
//! `cargo run --package bentpipe-tcp --example transfer`

use std::collections::VecDeque;
use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Segment};
use bentpipe_tcp::{Config, Connection, Events};

const DELAY: Duration = Duration::from_millis(250);
const BYTES: u64 = 100_000;

fn main() {
    let config = Arc::new(Config::default());
    let mut now = Instant::ZERO;
    let mut ends = [Connection::connect(config.clone(), 1, now), Connection::listen(config, 2)];
    let mut flying: [VecDeque<(Instant, Segment)>; 2] = [VecDeque::new(), VecDeque::new()];
    let (mut written, mut read) = (0, 0);
    while read < BYTES {
        for end in 0..2 {
            let events = ends[end].take_events();
            if end == 0 && written < BYTES && events.intersects(Events::ESTABLISHED | Events::WRITABLE) {
                written += ends[end].write(now, BYTES - written);
            }
            read += ends[1].read(now, u64::MAX);
            while let Some(segment) = ends[end].poll_transmit(now) {
                flying[end].push_back((now + DELAY, segment));
            }
        }
        // The next event: an arrival, or a timer.
        let arrival = |end: usize| flying[end].front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        let times = [arrival(0), arrival(1), ends[0].next_timeout(), ends[1].next_timeout()];
        let (what, at) = times.into_iter().enumerate().min_by_key(|(_, at)| *at).expect("four times");
        now = at;
        if what < 2 {
            let (_, segment) = flying[what].pop_front().expect("it has an arrival time");
            ends[1 - what].handle_segment(now, &segment);
        } else {
            ends[what - 2].handle_timeout(now);
        }
    }
    println!("{read} bytes were read after {}", now.since(Instant::ZERO));
}
