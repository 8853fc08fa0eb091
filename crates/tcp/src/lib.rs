//! The TCP engine: one connection end as a pure state machine, without clock, socket or payload.
//!
//! A driver calls one `handle_*` method (or `write`, `read`, `close`), then drains [`Connection::poll_transmit`] until it
//! returns `None`, takes the [`Events`], and reads [`Connection::next_timeout`]. See [`Connection`].
//!
//! `examples/transfer.rs` transfers 100 kB between two connections.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod accurate_ecn;
mod arrival;
mod closing;
mod config;
mod connection;
mod context;
mod departure;
mod events;
mod fast_path;
mod handshake;
mod opening;
mod prediction;
mod receiver;
mod sender;
mod state;
mod stats;
mod timers;
mod timestamp;

pub use config::{
    AckCounting, AckDelay, AckPace, Config, DelayedAck, EcnMode, InitialWindow, KeepAlive, LifetimeConfig,
    Pacing, ReceiveWindow, ReceiverConfig, Recovery, Reflection, Restore, RtoBounds, SenderConfig,
    SpuriousTimeout, WindowValidation,
};
pub use connection::Connection;
pub use events::{Events, Transmit};
pub use prediction::Exchange;
pub use state::State;
pub use stats::Stats;
