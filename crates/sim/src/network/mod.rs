//! The network: links, routes, middleboxes, shared media, and the packets on their way.

mod build;
mod chains;
pub(crate) mod hop;
pub(crate) mod medium;
pub(crate) mod middleboxes;
pub(crate) mod routes;
pub(crate) mod source;
pub(crate) mod state;
