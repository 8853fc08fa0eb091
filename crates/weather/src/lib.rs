//! What the weather does to a satellite link, and what a modem makes of it.
//!
//! Rain weakens the signal ([`SlantPath`], [`Weather`]); the modem has a table of modulations and codes, each good from some
//! signal-to-noise ratio on ([`Modcod`]); adaptive coding picks one as the signal changes ([`Acm`]). All of it is known before a packet
//! is sent: [`Modem::plan`] turns it into a rate and a frame loss over time, which any link can follow.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod modcod;
mod modem;
mod plan;
mod rain;
mod sky;

pub use modcod::{DVB_S2, DVB_S2X, Modcod};
pub use modem::{Acm, Coding, Modem, Standard};
pub use plan::{Plan, Span};
pub use rain::{RainLaw, SlantPath};
pub use sky::Weather;
