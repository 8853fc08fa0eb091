//! The ends of connections.

mod endpoint;
pub(crate) mod proxy;
mod relay;
mod split;
