//! IP and TCP as bytes: what packets say, to and from [`Segment`](bentpipe_base::Segment).
//!
//! [`Datagram`] reads what every box on the path may know of a packet: its addresses, size, priority, congestion mark and flow.
//! [`Header`] reads and writes TCP with its options; a [`Conversation`] translates between the 32-bit numbers of one
//! connection on the wire and the 64-bit positions of the engine. Payload is never touched: a packet is these headers and, behind
//! them, bytes that belong to the driver.
//!
//! Nothing here allocates for what it reads, and no bytes make it panic.

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
