//! Traffic of applications, and measures of their quality of service.
//!
//! All types are pure state machines: the driver supplies the time, and each has its own random streams. There are two kinds of
//! applications. A [`Source`] decides when it sends and how much: video, voice, bursts. A [`Client`] sends requests to a server
//! and reacts to arrivals: a browser, a player of adaptive video, a file client. The driver carries the bytes over any transport.
//!
//! An [`Application`] is the application of a flow: one of these, or a file, pages, or packets at a constant rate. [`SourceApp`]
//! and [`ClientApp`] add the bookkeeping that a driver needs.
//!
//! Quality measures are [`Timeliness`] of packets, [`Playout`] of frames, and the [`voice`] quality of a call. [`gap`] is the
//! closed-form model of the limits of a TCP window over an asymmetric link.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod act;
pub mod adaptive;
mod application;
pub mod browser;
mod client;
mod client_app;
mod emission;
pub mod fetch;
pub mod frames;
mod gamma;
pub mod gap;
mod law;
pub mod mpeg;
pub mod on_off;
mod outcome;
mod playout;
mod source;
mod source_app;
mod tes;
mod timeliness;
mod transfers;
pub mod voice;
pub mod web;

pub use act::Act;
pub use application::{Application, Carried, Cbr, Interest, Pages, Rest};
pub use client::Client;
pub use client_app::{ClientApp, ClientConnection};
pub use emission::Emission;
pub use law::Law;
pub use outcome::{CallOutcome, PlayerOutcome, ServiceOutcome, StreamOutcome, TransferOutcome};
pub use playout::Playout;
pub use source::Source;
pub use source_app::{Judge, SourceApp};
pub use tes::Tes;
pub use timeliness::Timeliness;
pub use transfers::Transfer;
