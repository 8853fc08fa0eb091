//! A channel shared by several terminals: access schemes and collisions.
//!
//! A [`Medium`] is the counterpart of a [`Link`](bentpipe_net::Link) for several senders: a pure state machine, generic over
//! the packet. Its driver supplies the time. Terminals queue packets, and the access scheme ([`Access`]) selects the sender of
//! each slot. Successful packets arrive at the single receiver (the hub of a star) after the one-way delay.
//!
//! Reading order: `config`, `medium`, `terminal`, `grid`, then the schemes: `tdma`, `dama`, `scheduler` and `cf_dama`, `aloha`,
//! `slotted`, `crdsa`.
//!
//! `examples/access.rs` measures the access schemes.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod air;
mod aloha;
mod backoff;
mod cf_dama;
mod config;
mod crdsa;
mod dama;
mod grid;
mod medium;
mod scheduler;
mod slotted;
mod stats;
mod tdma;
mod terminal;
mod ticks;

pub use config::{
    Access, AlohaConfig, CfDamaConfig, CrdsaConfig, DamaConfig, Frame, MEDIA, MediumConfig, RequestStrategy,
    SchedulerPlace, SlottedAlohaConfig, TerminalConfig,
};
pub use medium::Medium;
pub use scheduler::{Grant, Scheduler};
pub use stats::MediumStats;
