//! The engine on real wires: a TCP stack of our own beside the kernel's.
//!
//! [`Stack`] is many connections of [`bentpipe_tcp`] behind one address, with their bytes: packets in, packets out, no clock
//! and no device.

mod stack;

pub use stack::{Counters, Id, Limits, Stack, StackConfig, Unopened};
