//! The one vocabulary of what happens: every driver writes it, every face reads it.
//!
//! [`Record`]s go into a [`Sink`]. [`JsonLines`] is one, for notebooks; [`PacketLog`] writes segments for packet analysers.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod event;
mod frame;
mod json_lines;
mod packet_log;
mod pcapng;

pub use event::{DropCause, Event, Record, Sink};
pub use frame::{Endpoint, Framer, From};
pub use json_lines::JsonLines;
pub use packet_log::{PacketLog, Seen};
pub use pcapng::Capture;
