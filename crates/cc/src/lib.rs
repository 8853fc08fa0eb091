//! Congestion control: the inputs and outputs of an algorithm, and the registry of all algorithms.
//!
//! An algorithm is a pure state machine without access to connection, clock or socket. The engine counts flight,
//! round-trip time, delivery rate and recovery episodes, and passes them in small structs. Windows are real numbers of
//! full-sized segments, as in the papers. The engine sends while `in flight < floor(min(window, receive window))`.
//!
//! Reading order: [`CongestionControl`], [`Classic`], [`reno`]; then any other algorithm together with its paper.
//!
//! `examples/windows.rs` builds every algorithm; `examples/own-algorithm` at the root defines one.

#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate alloc;

#[macro_use]
mod registry;

mod classic;
mod control;
pub mod delivery_rate;
#[cfg(test)]
mod fixture;
pub mod hystart;
mod memory;
mod pacer;
mod parameters;
mod parts;
pub mod rounds;
mod windows;

pub use bentpipe_base::WindowState;
pub use classic::{Classic, Rule};
pub use control::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Detector, EarlyRetransmit, Feedback,
    Loss, Path, PeerProbes, Phase, Priority, ProbeKind, ProbeMoment, ProbeReply, ProbeRequest, Prober,
    RateSample, Reflector, Requirements, Sent, Sleeper, Spacing, Start, Timeout, TimeoutProbe, TimeoutProber,
    Undo, Wake, state,
};
pub use memory::{PathMemory, Saved, Seat};
pub use pacer::Pacer;
pub use registry::{Custom, Entry, Family, ReceiverHalf, SENDER_ONLY};
pub use windows::Windows;

registry! {
    Reno, reno;
    Cubic, cubic;
    Bbr, bbr;
    Bbr3, bbr3;
    Copa, copa;
    Zenith, zenith;
    Real, real;
    Tfrc, tfrc;
    Probing, probing;
    Hybla, hybla;
    Gaimd, gaimd;
    HighSpeed, highspeed;
    Scalable, scalable;
    Veno, veno;
    Westwood, westwood;
    WestwoodPlus, westwood_plus;
    WestwoodBr, westwood_br;
    TcpJ, tcp_j;
    Jersey, jersey;
    Star, star;
    Astart, astart;
    Vegas, vegas;
    NewVegas, new_vegas;
    DVegas, dvegas;
    Peach, peach;
    PeachPlus, peach_plus;
    Swift, swift;
    Xcp, xcp;
    PXcp, p_xcp;
    Rcs, rcs;
    Pbs, pbs;
    Sharing, sharing;
    FastStart, fast_start;
    BaTcp, ba_tcp;
    ScpsTp, scps_tp;
    LedbatPlusPlus, ledbat_plus_plus;
    Prague, prague;
}
