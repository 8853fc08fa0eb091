//! The parameters of an algorithm, read and shown through the serde implementation of its configuration type.
//!
//! Times and rates have units here as everywhere in a scenario, and keys have hyphens where Rust has underscores.

mod read;
mod show;

pub(crate) use read::read;
pub(crate) use show::show;
