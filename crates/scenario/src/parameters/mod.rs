//! The parameters of an algorithm, which only its own configuration type knows: read and shown through serde.
//!
//! Times and rates have units here as everywhere in a scenario, and keys have hyphens where Rust has underscores.

mod read;
mod show;

pub(crate) use read::read;
pub(crate) use show::show;
