//! Congestion control: what an algorithm is told, what it decides, and the registry of all of them.
//!
//! An algorithm is a pure state machine. It never sees a connection, a clock or a socket: the engine counts everything
//! once (flight, round-trip time, delivery rate, recovery episodes) and hands over small structs. Windows are real
//! numbers counted in full-sized segments, as in the papers; the engine sends while
//! `in flight < floor(min(window, receive window))`.
//!
//! Reading order: [`CongestionControl`], then [`Classic`] with [`reno`], then any other algorithm beside its paper.

#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate alloc;

pub mod astart;
pub mod ba_tcp;
pub mod bbr;
pub mod bbr3;
mod classic;
mod control;
pub mod copa;
pub mod cubic;
pub mod delivery_rate;
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
mod pacer;
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
pub mod rounds;
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
mod windows;
pub mod xcp;
pub mod zenith;

pub use bentpipe_base::WindowState;
pub use classic::{Classic, Rule};
pub use control::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Detector, Doubt, Feedback, Loss,
    Path, PeerProbes, Phase, Priority, ProbeKind, ProbeMoment, ProbeReply, ProbeRequest, Prober, Questioner,
    RateSample, Reflector, Sent, Sleeper, Spacing, Start, Timeout, TimeoutProbe, Undo, Wake, Wants, state,
};
pub use memory::{PathMemory, Saved, Seat};
pub use pacer::Pacer;
pub use registry::{Algorithm, Custom, Entry, REGISTRY, ReceiverHalf, SENDER_ONLY};
pub use windows::Windows;
