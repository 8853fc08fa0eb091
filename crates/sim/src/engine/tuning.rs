//! Numbers that decide how quickly a world is executed, and never what happens in it.
//!
//! Their effect shows in `cargo run --release -p bentpipe-sim --example throughput`: runs with two values in turn tell which is quicker.

/// Events between two looks at the stop flag, the event budget and the progress report.
pub(crate) const EVENTS_PER_CHECK: u64 = 1 << 14;

/// With fewer events from one meeting of the shares of a world to the next, one thread is quicker than several: two take 1.5
/// times as long for `geo-dumbbell`, which has 3,600 events in a window, and 0.65 of the time with 2,000 flows, which has 380,000.
pub(crate) const MANY_EVENTS: u64 = 1 << 13;

/// The first shared link, by which the data go in most worlds, takes as much more work than the next as one in so many flows does. With
/// 2,000 flows the second of two threads waits for 0.11 of the time if both have as many flows.
pub(crate) const FLOWS_OF_FIRST_LINK: u64 = 18;

/// Nanoseconds in a slot of the lowest level of the event queue, as a power of two: 16 us. Wide enough that a busy world sees several
/// events ahead, which it can prefetch.
pub(crate) const SLOT_BITS: u32 = 14;

/// Slots in a level of the event queue, as a power of two.
pub(crate) const LEVEL_BITS: u32 = 12;

/// As many connection ends, with the links to them, fit into the caches close to a processor, so that prefetching does not pay.
pub(crate) const FEW_ENDS: usize = 256;

/// As many packets do.
pub(crate) const FEW_PACKETS: usize = 16 * CHUNK;

/// Places of a chunk of the packet pool, about what some flows send in a row.
pub(crate) const CHUNK: usize = 256;

/// Places in a long queue of packets of the one whose goal is prefetched, and of the one whose contents are.
pub(crate) const NEAR: usize = 3;
pub(crate) const FAR: usize = 8;

/// The memory of so many packets of a channel is prefetched before they leave it.
pub(crate) const CHANNEL_AHEAD: u32 = 12;

/// Places in a sorted batch of the packet whose contents are prefetched, and of the one whose channel is.
pub(crate) const BATCH_FAR: usize = 24;
pub(crate) const BATCH_NEAR: usize = 8;

/// From so many on, a radix sort is quicker than comparisons.
pub(crate) const MANY_TO_SORT: usize = 300;

/// A process with more flows would have to search long for its next event. A link that more of them use belongs to no process. On
/// `geo-dumbbell`, hosts of 100 flows each without losses take 0.8 of the time that they take event by event, hosts of 125 with a loss of 1e-3
/// as much, hosts of 250 1.3 times as much.
pub(crate) const MOST_FLOWS: usize = 128;

/// With fewer packets for a flow within the lookahead, too little is to be done in a window, and it is quicker to execute the world event by event:
/// `geo-dumbbell` with a delay of 20 ms, which is 1.25 packets, takes 0.75 of that time with 20 flows, and 200 flows with 1 Mbit/s each at 10 ms as well;
/// 200 flows on 10 Mbit/s at 2 ms, 0.01 packets, take 1.6 of it.
pub(crate) const LEAST_PACKETS: u64 = 1;
