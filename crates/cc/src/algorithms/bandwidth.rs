//! Window set after a loss by the bandwidth that ACKs show.

pub mod astart;
pub mod jersey;
pub mod star;
pub mod tcp_j;
pub mod westwood;
pub mod westwood_br;
pub mod westwood_plus;
