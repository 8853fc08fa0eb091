//! What packets meet between hosts: routes, middleboxes, shared channels.

pub(crate) mod chains;
pub(crate) mod core;
mod cross;
mod follow;
pub(crate) mod forward;
pub(crate) mod hop;
pub(crate) mod medium;
pub(crate) mod middlebox;
pub(crate) mod port;
mod reroute;
