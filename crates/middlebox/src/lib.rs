//! Middleboxes inside the network: state machines at a node that forwards packets.
//!
//! A middlebox sees both directions of the connections through its node. It may change, forward or absorb a segment, and
//! send segments to either end. It receives the state of the outgoing link, which explicit-rate routers need. All code is
//! pure: the driver supplies time and packets, so that simulator and emulator run the same middlebox.
//!
//! Reading order: `passing` (inputs and outputs), `config`, `middlebox`, then one file per kind.

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
