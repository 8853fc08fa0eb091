//! Window set by reports of routers or links.

pub mod ba_tcp;
pub mod p_xcp;
pub mod prague;
pub mod scps_tp;
pub mod xcp;
