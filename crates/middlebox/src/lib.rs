//! Helpers inside the network: state machines at a node through which the packets of others pass.
//!
//! A middlebox sees both directions of the connections that pass its node. It may change a segment, let it pass, take it
//! out, and send segments of its own towards either end; it is told the state of the link that a packet leaves by, because
//! explicit-rate routers need it. Everything here is pure: the driver brings the time and the packets, so that the
//! simulator and an emulator run the same helper.
//!
//! Reading order: `passing` (what a middlebox is told), `config`, `middlebox`, then one file for each kind.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod ack;
mod ack_decimator;
mod ack_filter;
mod ba_tcp;
mod config;
mod dvegas;
#[cfg(test)]
mod fixture;
mod fuzzy;
mod hop;
mod link_notices;
mod middlebox;
mod passing;
mod satpep;
mod snoop;
mod spoofing;
mod table;
mod wtcp;
mod xcp;

pub use config::{
    AckDecimatorConfig, BaTcpConfig, DVegasConfig, FuzzyConfig, LinkNoticesConfig, MIDDLEBOXES,
    MiddleboxConfig, SatPepConfig, SnoopConfig, SpoofingConfig, Tells, Told, WtcpConfig, XcpConfig,
};
pub use middlebox::Middlebox;
pub use passing::{Connection, Direction, Emission, Passing, Port, Spoilt, Verdict};
