//! What flows do: bulk transfers and files, sources of live media, clients that ask a server, sessions of transports that are not TCP.

pub(crate) mod application;
pub(crate) mod client;
mod flow;
pub(crate) mod session;
pub(crate) mod session_setup;
pub(crate) mod source;
