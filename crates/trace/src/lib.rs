//! The events of simulations and live connections. All drivers record them, and all reports and traces use them.
//!
//! [`Record`]s go into a [`Sink`]. [`JsonLines`] writes them for notebooks; [`PacketLog`] writes segments for packet
//! analysers.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod datagram;
mod event;
mod frame;
mod json_lines;
mod packet_log;
mod pcapng;

pub use datagram::Protocol;
pub use event::{DropCause, Event, Record, Sink};
pub use frame::{Endpoint, Framer, From};
pub use json_lines::JsonLines;
pub use packet_log::{PacketLog, Seen};
pub use pcapng::{Capture, Captured};
