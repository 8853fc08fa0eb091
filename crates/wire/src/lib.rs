//! IP and TCP as bytes: conversion of packets to and from [`Segment`](bentpipe_base::Segment).
//!
//! [`Datagram`] reads the fields visible to every node on the path: addresses, size, priority, congestion mark and flow.
//! [`Header`] reads and writes TCP with its options. A [`Conversation`] translates between a connection's 32-bit wire numbers and
//! the 64-bit positions of the engine. Payload is never touched: a packet is these headers followed by bytes of the driver.
//!
//! Reading allocates no memory, and no input causes a panic.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod checksum;
mod conversation;
mod datagram;
mod emit;
mod icmp;
mod offload;
mod option;
mod sequence;
mod tcp;

pub use checksum::Sum;
pub use conversation::{Arrived, Conversation, Near};
pub use datagram::{Datagram, LOWER_EFFORT, Malformed, mark_congestion};
pub use emit::{Ends, IpFields, Packet, Payload, complete_checksum};
pub use icmp::{IcmpError, IcmpErrorKind};
pub use offload::{Offload, Segmentation, VIRTIO_HEADER_LEN};
pub use option::{Options, Scps};
pub use sequence::{unwrapped, wrapped};
pub use tcp::Header;
