//! The algorithms, by the signal that sets their window or rate: one folder for each [`Family`](crate::Family).

pub mod bandwidth;
pub mod delay;
pub mod loss;
pub mod memory;
pub mod model;
pub mod network;
pub mod probes;
pub mod receiver;
