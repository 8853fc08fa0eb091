//! The one vocabulary of what happens: every driver writes it, every face reads it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod event;

pub use event::{DropCause, Event, Record, Sink};
