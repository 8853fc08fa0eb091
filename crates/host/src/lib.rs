//! The engine on real wires: a TCP stack of our own beside the kernel's.
//!
//! [`Stack`] is many connections of [`bentpipe_tcp`] behind one address, with their bytes: packets in, packets out, no clock
//! and no device. [`Driver`] gives it both: a TUN device with segmentation offload, and real time.

mod device;
mod driver;
mod stack;

pub use device::{Device, DeviceConfig, Network, NoDevice, NoNetwork, Unreachable};
pub use driver::{Driver, Interest, Outlet, Ready};
pub use stack::{Counters, Id, Limits, Request, Stack, StackConfig, TIMESTAMPS_LEN, Unopened};
