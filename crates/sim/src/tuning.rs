//! Numbers that change the speed of execution, and never the results.
//!
//! `cargo run --release -p bentpipe-sim --example throughput` shows their effect: run it alternately with two values.

/// Events between two looks at the stop flag, the event budget and the progress report.
pub(crate) const EVENTS_PER_CHECK: u64 = 1 << 14;

/// With fewer events from one meeting of the shares of a world to the next, one thread is quicker than several: two take 1.5
/// times as long for `geo-dumbbell`, which has 3,600 events in a window, and 0.65 of the time with 2,000 flows, which has 380,000.
pub(crate) const MANY_EVENTS: u64 = 1 << 13;

/// The first shared link, which carries the data in most worlds, needs additional work, equal to that of one in this number of flows.
/// With 2,000 flows divided equally, the second of two threads would wait 11 % of the time.
pub(crate) const FLOWS_OF_FIRST_LINK: u64 = 18;

/// Nanoseconds in a slot of the lowest level of the event queue, as a power of two: 16 us.
pub(crate) const SLOT_BITS: u32 = 14;

/// Slots in a level of the event queue, as a power of two.
pub(crate) const LEVEL_BITS: u32 = 12;

/// Places of a chunk of the packet pool: about the packets that some flows send in succession.
pub(crate) const CHUNK: usize = 256;

/// Places in a sorted batch of the packet whose contents are prefetched, and of the one whose channel is.
pub(crate) const BATCH_FAR: usize = 24;
pub(crate) const BATCH_NEAR: usize = 8;

/// Number of items from which on a radix sort is faster than comparisons.
pub(crate) const MANY_TO_SORT: usize = 300;

/// Maximum number of flows of a process: with more, the search for its next event takes too long. A link that more flows use belongs to
/// no process. On `geo-dumbbell`, hosts of 100 flows each without losses take 0.8 of the time of execution event by event. Hosts of 125
/// flows with a loss of 1e-3 take the same time, hosts of 250 flows 1.3 times as much.
pub(crate) const MOST_FLOWS: usize = 128;

/// Minimum number of packets per flow within the lookahead: with fewer, a window has too few events, and execution event by event is
/// faster. `geo-dumbbell` with a delay of 20 ms (1.25 packets) and 20 flows takes 0.75 of the time of execution event by event, and so
/// do 200 flows with 1 Mbit/s each at 10 ms. 200 flows on 10 Mbit/s at 2 ms (0.01 packets) take 1.6 times as long.
pub(crate) const LEAST_PACKETS: u64 = 1;
