//! Congestion control: the inputs and outputs of an algorithm, and the registry of all algorithms.
//!
//! An algorithm is a pure state machine without access to connection, clock or socket. The engine counts flight,
//! round-trip time, delivery rate and recovery episodes, and passes them in small structs. Windows are real numbers of
//! full-sized segments, as in the papers. The engine sends while `in flight < floor(min(window, receive window))`.
//!
//! Reading order: [`CongestionControl`], [`Classic`], [`reno`]; then any other algorithm together with its paper.
//!
//! The [`Family`] of an algorithm is its folder in `algorithms/`:
//!
//! | folder | signal that sets window or rate | algorithms |
//! |---|---|---|
//! | `loss` | losses only | [`reno`], [`cubic`], [`hybla`], [`gaimd`], [`highspeed`], [`scalable`], [`satcp`] |
//! | `delay` | queueing delay | [`vegas`], [`new_vegas`], [`dvegas`], [`veno`], [`illinois`], [`copa`], [`ledbat_plus_plus`] |
//! | `bandwidth` | bandwidth measured from ACKs | [`westwood`], [`westwood_plus`], [`westwood_br`], [`tcp_j`], [`jersey`], [`star`], [`astart`] |
//! | `model` | a model of the path | [`bbr`], [`bbr3`], [`leocc`], [`zenith`] |
//! | `probes` | probes of low priority | [`peach`], [`peach_plus`], [`swift`], [`rcs`], [`pbs`], [`fast_start`] |
//! | `receiver` | measurements of the receiver | [`real`], [`tfrc`], [`probing`] |
//! | `network` | reports of routers or links | [`xcp`], [`p_xcp`], [`ba_tcp`], [`scps_tp`], [`prague`] |
//! | `memory` | state of other connections | [`sharing`] |
//!
//! `contract/` has the types between engine and algorithm, `parts/` what several algorithms share.
//!
//! `examples/windows.rs` builds every algorithm; `examples/own-algorithm` at the root defines one.

#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate alloc;

#[macro_use]
mod registry;

pub(crate) mod algorithms;
mod classic;
mod contract;
pub mod delivery_rate;
#[cfg(test)]
mod fixture;
pub mod hystart;
mod memory;
mod pacer;
pub mod packets;
mod parameters;
mod parts;
pub mod prr;
pub mod rounds;
mod windows;

pub use bentpipe_base::WindowState;
pub use classic::{Classic, Rule};
pub use contract::{
    Accounting, Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Detector, EarlyRetransmit, Feedback,
    Loss, Path, PeerProbes, Phase, Priority, ProbeKind, ProbeMoment, ProbeReply, ProbeRequest, Prober,
    RateSample, Reflector, Requirements, Sent, Sleeper, Spacing, Start, Timeout, TimeoutProbe, Undo, Wake,
    state,
};
pub use memory::{PathMemory, Saved, Seat};
pub use pacer::{PACING_GAINS, Pacer, window_rate};
pub use registry::{Custom, Entry, Family, ReceiverHalf, SENDER_ONLY};
pub use windows::Windows;

registry! {
    Reno, loss::reno;
    Cubic, loss::cubic;
    Bbr, model::bbr;
    Bbr3, model::bbr3;
    Copa, delay::copa;
    Zenith, model::zenith;
    Real, receiver::real;
    Tfrc, receiver::tfrc;
    Probing, receiver::probing;
    Hybla, loss::hybla;
    Gaimd, loss::gaimd;
    HighSpeed, loss::highspeed;
    Scalable, loss::scalable;
    Veno, delay::veno;
    Westwood, bandwidth::westwood;
    WestwoodPlus, bandwidth::westwood_plus;
    WestwoodBr, bandwidth::westwood_br;
    TcpJ, bandwidth::tcp_j;
    Jersey, bandwidth::jersey;
    Star, bandwidth::star;
    Astart, bandwidth::astart;
    Vegas, delay::vegas;
    NewVegas, delay::new_vegas;
    DVegas, delay::dvegas;
    Peach, probes::peach;
    PeachPlus, probes::peach_plus;
    Swift, probes::swift;
    Xcp, network::xcp;
    PXcp, network::p_xcp;
    Rcs, probes::rcs;
    Pbs, probes::pbs;
    Sharing, memory::sharing;
    FastStart, probes::fast_start;
    BaTcp, network::ba_tcp;
    ScpsTp, network::scps_tp;
    LedbatPlusPlus, delay::ledbat_plus_plus;
    Prague, network::prague;
    Illinois, delay::illinois;
    SaTcp, loss::satcp;
    LeoCc, model::leocc;
}
