//! Positions of satellites, their visibility from the ground, and shortest paths through them: constellations without packets.
//!
//! A [`Constellation`] moves satellites: circular orbits in planes, or two-line elements through SGP4. A [`Sky`] computes for
//! one time step after the other which satellite serves each [`Station`], which links between satellites are up, and the paths of least
//! delay. What changes little between steps is not computed anew: satellites far below the horizon are skipped until they can have risen, and
//! trees of shortest paths are repaired.
//!
//! Positions are in an inertial frame whose z axis is the Earth's; the Earth turns in it. At time zero of a constellation made by
//! hand, Greenwich lies on the x axis.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod constellation;
mod coverage;
mod earth;
mod elements;
mod error;
mod handover;
mod mesh;
mod planes;
mod shell;
mod sky;
mod table;
mod tree;
mod vector;

pub use constellation::Constellation;
pub use earth::{EARTH_RADIUS_KM, Earth, LIGHT_KM_PER_S, Station, delay_of_km};
pub use error::OrbitError;
pub use handover::Handover;
pub use mesh::Grid;
pub use planes::Satellite;
pub use shell::{Shell, Spread};
pub use sky::{Hop, Path, Rules, Sky};
pub use table::{PathTable, path_tables};
pub use vector::Vector;
