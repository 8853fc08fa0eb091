//! Inputs of unit tests.

use bentpipe_base::{Duration, Instant, Rate, Segment};

use crate::{Connection, Direction, Passing, Port};

/// Returns the time `millis` ms after the start.
pub fn at_ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Returns a port of 1 Mbit/s and 10 ms with `waiting_packets` packets of 1000 bytes
/// queued.
pub fn port(waiting_packets: u32) -> Port {
    Port {
        link: 7,
        rate: Rate::from_mbps(1),
        delay_one_way: Duration::from_millis(10),
        waiting_bytes: 1000 * u64::from(waiting_packets),
        waiting_packets,
        out_until: None,
    }
}

/// Returns a segment of connection 1 on its way to [`port`].
pub fn pass(segment: &mut Segment, direction: Direction, waiting_packets: u32) -> Passing<'_> {
    let size = 40 + segment.len;
    Passing { connection: Some(Connection(1)), direction, segment, size, port: port(waiting_packets) }
}
