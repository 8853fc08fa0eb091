//! Hosts: ends of connections, and the proxies that relay from one to another.

pub(crate) mod chain;
pub(crate) mod end;
pub(crate) mod proxy;
pub(crate) mod state;
