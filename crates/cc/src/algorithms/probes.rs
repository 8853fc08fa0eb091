//! Spare capacity found by probes of low priority.

pub mod fast_start;
pub mod pbs;
pub mod peach;
pub mod peach_plus;
pub mod rcs;
pub mod swift;
