//! Logical processes: the partition of a world, the channels and shared links between its parts, and the share of a thread.

pub(crate) mod batch;
pub(crate) mod channel;
pub(crate) mod partition;
pub(crate) mod process;
pub(crate) mod share;
pub(crate) mod shared_link;
