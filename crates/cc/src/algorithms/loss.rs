//! Window set by losses only.

pub mod cubic;
pub mod gaimd;
pub mod highspeed;
pub mod hybla;
pub mod reno;
pub mod satcp;
pub mod scalable;
