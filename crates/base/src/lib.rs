//! Basic types of all crates: time, sizes, rates, random numbers and the segment.
//!
//! Nothing here reads a clock, uses unseeded random numbers or touches the machine.

#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate alloc;

mod components;
mod prefetch;
mod rate;
mod rng;
mod segment;
mod serial;
mod snack;
mod time;
mod window;

pub use components::Components;
pub use prefetch::{prefetch, prefetch_item};
pub use rate::Rate;
pub use rng::Rng;
pub use segment::{EcnField, Extension, Flags, Notice, Probe, ProbeTag, SackBlocks, Segment, SynOptions};
pub use serial::precedes;
pub use snack::{SackRange, Snack};
pub use time::{Duration, Instant};
pub use window::WindowState;
