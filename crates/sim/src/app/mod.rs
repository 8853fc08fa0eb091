//! What flows do: bulk transfers and files, sources of live media, clients that ask a server, sessions of transports that are not TCP.

pub(crate) mod application;
pub(crate) mod client;
mod flow;
mod serve_client;
mod serve_session;
pub(crate) mod session;
pub(crate) mod session_setup;
pub(crate) mod source;
