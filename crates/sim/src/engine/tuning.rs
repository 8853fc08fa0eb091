//! Numbers that decide how quickly a world is executed, and never what happens in it.
//!
//! Their effect shows in `cargo run --release -p bentpipe-sim --example throughput`: runs with two values in turn tell which is quicker.

/// Events between two looks at the stop flag, the event budget and the progress report.
pub(crate) const EVENTS_PER_CHECK: u64 = 1 << 14;

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

/// Packets that are let through a shared link as soon as it has another event, while they are still in the cache.
pub(crate) const MANY_AT_SHARED_LINK: usize = 256;

/// From so many on, a radix sort is quicker than comparisons.
pub(crate) const MANY_TO_SORT: usize = 300;

/// Places from the end of a nearly sorted queue at which a packet may still be put in; one that goes further forward waits in a heap.
pub(crate) const INSERTION_REACH: usize = 32;

/// A process with more flows would have to search long for its next event. A link that more of them use belongs to no process. On
/// `geo-dumbbell`, hosts of 100 flows each without losses take 0.8 of the time that they take event by event, hosts of 125 with a loss of 1e-3
/// as much, hosts of 250 1.3 times as much.
pub(crate) const MOST_FLOWS: usize = 128;

/// With fewer packets for a flow in a window, its memory is fetched for too little, and it is quicker to execute the world event by event.
pub(crate) const LEAST_PACKETS: u64 = 8;
