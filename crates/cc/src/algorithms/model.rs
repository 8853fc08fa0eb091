//! Window and rate set by a model of the path.

pub mod bbr;
pub mod bbr3;
pub mod leocc;
pub mod zenith;
