//! Applications: the flows of a world, and what they were served.

pub(crate) mod application;
pub(crate) mod flow;
pub(crate) mod session;
pub(crate) mod state;
