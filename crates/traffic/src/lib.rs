//! What applications send and ask for, and how well they are served.
//!
//! Everything here is a pure state machine: it is told the time, draws from random streams of its own, and knows no
//! connection. Two kinds of application there are. A [`Source`] decides by itself when it sends how much: video, voice,
//! bursts. A [`Client`] asks a server and reacts to what arrives: a browser, a player of adaptive video, a file fetcher.
//! The driver carries bytes between them and whatever transport it has.
//!
//! An [`Application`] is what a flow has of all this, or something simpler: a file, pages, packets at a constant rate. Sources and clients
//! there have what a driver needs to carry their bytes: [`SourceApp`], [`ClientApp`].
//!
//! Beside them stand the measures of an application's fate: [`Timeliness`] of packets, [`Playout`] of frames, the [`voice`]
//! quality of a call; and [`gap`], the closed-form model of what limits a window of TCP over an asymmetric link.

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
pub use transfers::Transfers;
