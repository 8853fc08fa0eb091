//! Window or rate set by measurements of the receiver.

pub mod probing;
pub mod real;
pub mod tfrc;
