//! Use of connections and packets by flows: applications, and sessions of transports other than TCP.

pub(crate) mod application;
mod flow;
#[cfg(feature = "quic")]
mod quic_ends;
#[cfg(not(feature = "quic"))]
#[path = "no_quic_ends.rs"]
mod quic_ends;
mod serve_client;
mod serve_requests;
mod serve_session;
pub(crate) mod session;
pub(crate) mod session_setup;
