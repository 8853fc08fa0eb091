//! QUIC (RFC 9000) for simulated time, and Bentpipe's congestion control for the stacks `noq` and `quinn`.
//!
//! A [`Factory`] makes the controllers of `noq`, or of `noq-proto`: give it to
//! [`TransportConfig::congestion_controller_factory`](noq_proto::TransportConfig::congestion_controller_factory). A program with its
//! own loop over `noq-proto` also serves the algorithm's timer by [`Factory::timeout`].
//!
//! # Simulated time
//!
//! [`End`] is one end of a connection of the stack `noq-proto`, with the interface of the agents in `bentpipe-transports`. The stack
//! has no socket here. The caller passes the time and the datagrams, and the world's seed decides all random numbers. The same calls
//! give the same datagrams.
//!
//! Packets are not encrypted. The module `crypto` replaces TLS: it has TLS's messages, sizes and round trips, and no keys. Packets therefore
//! have their real sizes, and no time is spent on ciphers.
//!
//! The stack's own time type has no value without a clock. This crate reads the clock once as the origin of time. All other times are
//! this origin plus the simulated time.

mod clock;
mod config;
mod control;
mod crypto;
mod driver;
mod end;
#[cfg(feature = "quinn")]
pub mod quinn;
mod random;
mod streams;
mod watched;

pub use config::{Config, Control, Side};
pub use control::Factory;
pub use end::End;
pub use random::LEAST_PAYLOAD;
