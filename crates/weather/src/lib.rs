//! Effect of weather on a satellite link, and the modem's reaction.
//!
//! Rain attenuates the signal ([`SlantPath`], [`Weather`]). The modem has a table of modulations and codes with their required
//! signal-to-noise ratios ([`Modcod`]). Adaptive coding selects one as the signal changes ([`Acm`]). All of it is computed before
//! the run: [`Modem::plan`] yields rate and frame loss over time, for any link.
//!
//! `examples/rain.rs` prints the attenuation of a downlink for several rain rates.

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
