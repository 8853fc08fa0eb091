//! Execution of a world: the event queue, the partition into logical processes, and the channels between them.

pub(crate) mod batch;
pub(crate) mod channel;
mod executor;
mod follow;
pub(crate) mod key;
pub(crate) mod partition;
mod prefetch;
pub(crate) mod process;
mod routed;
pub(crate) mod share;
pub(crate) mod shared_link;
pub(crate) mod shares;
pub(crate) mod targets;
pub(crate) mod tuning;
pub(crate) mod wheel;
