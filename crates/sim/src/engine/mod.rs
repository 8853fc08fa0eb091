//! How a world is executed: event by event, or as logical processes in windows of time.

pub(crate) mod key;
pub(crate) mod message;
pub(crate) mod partition;
pub(crate) mod queue;
mod shared_link;
pub(crate) mod targets;
pub(crate) mod windows;
