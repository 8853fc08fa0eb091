//! The TCP engine: one connection end as a pure state machine, without clock, socket or payload.
//!
//! A driver calls one `handle_*` method (or `write`, `read`, `close`), then drains [`Connection::poll_transmit`] until it
//! returns `None`, takes the [`Events`], and reads [`Connection::next_timeout`]. See [`Connection`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod arrival;
mod config;
mod connection;
mod context;
mod fast_path;
mod handshake;
mod life;
mod receiver;
mod sender;
mod stats;
mod timers;

pub use config::{
    AckCounting, AckDelay, AckPace, Config, DelayedAck, InitialWindow, KeepAlive, Pacing, ReceiveWindow,
    Recovery, Reflection, Restore, RtoBounds, SpuriousTimeout, WindowValidation,
};
pub use connection::{Connection, Events, State, Transmit};
pub use fast_path::Exchange;
pub use stats::Stats;
