//! The TCP engine on real networks: a user-space TCP stack in addition to the kernel's.
//!
//! A [`Stack`] holds many connections of [`bentpipe_tcp`] with their data, behind one address. It exchanges packets with its
//! caller, and has neither clock nor device. A [`Driver`] adds a TUN device with segmentation offload and real time.
//!
//! `examples/throughput.rs` connects two stacks.

mod device;
mod driver;
mod stack;

pub use device::{Device, DeviceConfig, Network, NoDevice, NoNetwork, Unreachable};
pub use driver::{Driver, Interest, Outlet, Ready};
pub use stack::{Counters, Id, Limits, Request, Stack, StackConfig, TIMESTAMPS_LEN, Unopened};
