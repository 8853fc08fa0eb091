//! Measurement of a real path with UDP probes, and a scenario that replays it.
//!
//! `message` defines probes and replies. `stamped` is a socket with arrival times of the kernel. `server` and
//! `client` are the two ends; `analysis` makes a scenario of the samples.

mod analysis;
mod client;
mod message;
mod server;
mod stamped;

pub use analysis::{Clocks, Recording};
pub use client::{Plan, record};
pub use server::serve;

/// Default address of the server.
pub const PORT: u16 = 4748;

/// Nanoseconds since 1970.
fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
