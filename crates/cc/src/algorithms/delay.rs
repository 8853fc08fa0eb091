//! Window set by queueing delay.

pub mod copa;
pub mod dvegas;
pub mod illinois;
pub mod ledbat_plus_plus;
pub mod new_vegas;
pub mod vegas;
pub mod veno;
