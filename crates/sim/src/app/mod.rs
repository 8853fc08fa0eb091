//! What flows do with their connections and packets: applications at work, sessions of transports that are not TCP.

pub(crate) mod application;
mod flow;
mod serve_client;
mod serve_session;
pub(crate) mod session;
pub(crate) mod session_setup;
