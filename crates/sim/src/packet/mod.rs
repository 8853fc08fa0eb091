//! Packets in the network: a handle moves from link to link, the contents are in a pool.

pub(crate) mod agent;
pub(crate) mod handle;
pub(crate) mod pool;
mod slab;
