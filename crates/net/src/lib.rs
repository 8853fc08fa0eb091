//! Links: a queue, a transmitter and a path.
//!
//! All types are pure state machines, generic over the packet; the driver supplies the time. Simulator and real-time emulator
//! thus run the same link. [`Link`] is one direction; a duplex link is two.
//!
//! A packet passes in this order: the queue ([`QueueConfig`]), the transmitter (rate or recorded opportunities, outages),
//! transmission errors ([`LossConfig`]), the path (one-way delay, jitter, reordering, duplication). Parity packets ([`FecConfig`]) bypass
//! the queue. Reading order: `link`, `line`, `queue`, `loss`, `fec`.
//!
//! `examples/queue.rs` sends packets through a link.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod config;
mod error;
mod fec;
mod flight;
mod gaps;
mod jitter;
mod ledger;
mod line;
mod link;
mod loss;
mod opportunity;
mod outage;
mod packet;
mod path;
mod queue;
mod schedule;
mod size_cache;

pub use config::{ArqConfig, FecConfig, LinkConfig, Reordering};
pub use error::{ConfigError, check_probability};
pub use gaps::Gaps;
pub use jitter::{Jitter, JitterDistribution};
pub use ledger::{Dropped, LinkStats, Verdict};
pub use line::Draws;
pub use link::{Arrival, Link, Passing};
pub use loss::{
    FrameSpan, HandoverLoss, LOSSES, LooConfig, Loss, LossConfig, LossModel, LutzConfig, Sending,
};
pub use opportunity::Opportunities;
pub use outage::{Outage, OutageEffect, Outages};
pub use packet::Packet;
pub use queue::backlog::{Backlog, Limit};
pub use queue::{
    CoDelConfig, DualPi2Config, FairBy, FqCoDelConfig, PieConfig, QUEUES, QueueConfig, RedConfig, RedUnit,
};
pub use schedule::{Interpolation, Quantity, Schedule};
