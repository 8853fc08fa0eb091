//! Window set by what other connections learnt.

pub mod sharing;
