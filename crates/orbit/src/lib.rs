//! Satellite positions, visibility from the ground, and shortest paths: constellations without packets.
//!
//! A [`Constellation`] moves satellites on circular orbits in planes, or by two-line elements through SGP4. A [`Sky`] computes
//! for each time step the satellites that serve each [`Station`], the links between satellites, and the paths of least delay. Its
//! updates are incremental: satellites far below the horizon are skipped until they may have risen, and shortest-path trees are
//! repaired.
//!
//! Positions are in an inertial frame in which the Earth rotates about the z axis. At time zero of a synthetic constellation,
//! Greenwich is on the x axis.
//!
//! `examples/day.rs` and `examples/paths.rs` compute positions and paths.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod catalogue;
mod constellation;
mod coverage;
mod earth;
mod elements;
mod entry;
mod error;
mod grouping;
mod handover;
mod left_out;
mod listed;
mod matching;
mod mesh;
mod omm;
mod planes;
mod shell;
mod sky;
mod table;
mod tree;
mod vector;

pub use constellation::Constellation;
pub use earth::{EARTH_RADIUS_KM, Earth, LIGHT_KM_PER_S, Place, Station, delay_of_km};
pub use error::OrbitError;
pub use handover::Handover;
pub use left_out::{LeftOut, Reason};
pub use listed::Listed;
pub use mesh::Grid;
pub use planes::Satellite;
pub use shell::{Shell, Spread};
pub use sky::{Hop, Path, Rules, Sky};
pub use table::{PathTable, path_tables};
pub use vector::Vector;
