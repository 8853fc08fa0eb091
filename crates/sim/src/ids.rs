//! Numbers of the parts of a world.

/// Index of a connection end. The ends of a connection are neighbours; the even one sends.
pub(crate) type EndId = u32;

/// Index of a flow.
pub(crate) type FlowId = u32;

/// Place of a packet in the [`PacketPool`](crate::packet::pool::PacketPool).
pub(crate) type PacketIndex = u32;

/// Number of a phase group of logical processes.
pub(crate) type GroupId = u8;
