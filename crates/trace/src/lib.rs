//! The one vocabulary of what happens: every driver writes it, every face reads it.

mod event;

pub use event::{DropCause, Event, Record, Sink};
