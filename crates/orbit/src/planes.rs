//! Orbital planes and their satellites.

/// Number of a satellite in its constellation, from 0, plane by plane.
pub type Satellite = u32;

/// Orbital planes from west to east.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planes {
    /// Satellites of each plane in their order along the orbit.
    pub members: Vec<Vec<Satellite>>,
    /// Angle of each satellite from its ascending node at time zero, in radians from 0 to 2 pi.
    pub phases: Vec<f64>,
    pub closure: Closure,
}

/// Relation between the last plane and the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Closure {
    /// The same as between any two planes.
    Ring,
    /// A seam: the satellites on both sides move in opposite directions.
    Seam,
    /// None: there are no planes.
    #[default]
    Open,
}
