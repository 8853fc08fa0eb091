//! Packets on their way: a handle travels from link to link, the contents lie in a pool.

pub(crate) mod handle;
pub(crate) mod pool;
