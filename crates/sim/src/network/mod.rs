//! Elements of the network between hosts: routes, middleboxes, shared channels.

pub(crate) mod chains;
pub(crate) mod core;
pub(crate) mod forward;
pub(crate) mod hop;
pub(crate) mod medium;
pub(crate) mod middlebox;
mod reroute;
