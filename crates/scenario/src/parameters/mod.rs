//! Parameters of an algorithm, read and shown through serde on its configuration type.
//!
//! Times and rates have units here as in the rest of a scenario. Keys have hyphens instead of Rust's underscores.

mod read;
mod show;

pub(crate) use read::{accepted, read};
pub(crate) use show::show;
