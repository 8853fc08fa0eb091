//! A channel that several terminals share: who sends when, and what becomes of those who send at once.
//!
//! A [`Medium`] is what a [`Link`](bentpipe_net::Link) is for one sender: a pure state machine, generic over the packet and
//! told the time by its driver. Terminals queue packets; the access scheme ([`Access`]) decides which of them sends in which
//! slot; what gets through arrives at the one receiver (the hub of a star) after the one-way delay.
//!
//! Reading order: `config`, `medium`, `terminal`, `grid`, then the schemes: `tdma`, `dama`, `scheduler` and `cf_dama`, `aloha`,
//! `slotted`, `crdsa`.

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
