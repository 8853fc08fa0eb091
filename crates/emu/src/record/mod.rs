//! Measures a real path with UDP probes, into a scenario that replays it.
//!
//! `message` is what goes over the wire, `ear` how it is heard, `server` and `client` are its two ends, `analysis` makes a scenario of what they saw.

mod analysis;
mod client;
mod ear;
mod message;
mod server;

pub use analysis::{Clocks, Recording};
pub use client::{Plan, record};
pub use server::serve;

/// Where the server listens unless told otherwise.
pub const PORT: u16 = 4748;

/// Nanoseconds since 1970.
fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
