//! Congestion control: what an algorithm is told, what it decides, and the registry of all of them.
//!
//! An algorithm is a pure state machine. It never sees a connection, a clock or a socket: the engine counts everything
//! once (flight, round-trip time, delivery rate, recovery episodes) and hands over small structs. Windows are real
//! numbers counted in full-sized segments, as in the papers; the engine sends while
//! `in flight < floor(min(window, receive window))`.
//!
//! Reading order: [`CongestionControl`], then [`Classic`] with [`reno`], then any other algorithm beside its paper.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod astart;
pub mod ba_tcp;
pub mod bbr;
pub mod bbr3;
mod classic;
mod control;
pub mod copa;
pub mod cubic;
pub mod dvegas;
pub mod fast_start;
#[cfg(test)]
mod fixture;
pub mod gaimd;
pub mod highspeed;
pub mod hybla;
pub mod hystart;
pub mod jersey;
mod memory;
pub mod new_vegas;
pub mod p_xcp;
mod parameters;
mod parts;
pub mod pbs;
pub mod peach;
pub mod peach_plus;
pub mod probing;
pub mod rcs;
pub mod real;
mod registry;
pub mod reno;
pub mod scalable;
pub mod scps_tp;
pub mod sharing;
pub mod star;
pub mod swift;
pub mod tcp_j;
pub mod tfrc;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod westwood_br;
pub mod westwood_plus;
pub mod xcp;
pub mod zenith;

pub use classic::{Classic, Rule, Windows};
pub use control::{
    Accounting, Ack, Cause, CongestionControl, Doubt, Loss, Path, PeerProbes, Phase, ProbeKind, ProbeMoment,
    ProbeReply, ProbeRequest, RateSample, Reflector, RtoAction, Sent, Start, Timeout, Wants,
};
pub use memory::{PathMemory, Saved, Seat};
pub use registry::{Algorithm, Custom, Entry, REGISTRY, ReceiverHalf, SENDER_ONLY};
