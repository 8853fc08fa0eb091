//! Orbital planes and their satellites.

/// Number of a satellite in its constellation, from 0, plane by plane.
pub type Satellite = u32;

/// Shells of a constellation. Links exist only between satellites of the same shell.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub shells: Vec<Planes>,
    /// Angle of each satellite from its ascending node at time zero, in radians from 0 to 2 pi.
    pub phases: Vec<f64>,
    /// Shell of each satellite; `None` if it belongs to no shell.
    pub shell_of: Vec<Option<u32>>,
}

impl Layout {
    /// Makes a layout of satellites with these phases.
    pub fn new(shells: Vec<Planes>, phases: Vec<f64>) -> Self {
        let mut shell_of = vec![None; phases.len()];
        for (number, shell) in shells.iter().enumerate() {
            for satellite in shell.members.iter().flatten() {
                shell_of[*satellite as usize] = Some(number as u32);
            }
        }
        Self { shells, phases, shell_of }
    }

    /// Keeps only satellites for which `linked` is true in shells. Those without a shell form another one.
    pub fn serve_only(&mut self, linked: impl Fn(Satellite) -> bool) {
        let other = self.shells.len() as u32;
        for (satellite, shell) in self.shell_of.iter_mut().enumerate() {
            *shell = linked(satellite as Satellite).then_some(shell.unwrap_or(other));
        }
    }
}

/// Orbital planes of a shell from west to east.
#[derive(Clone, Debug)]
pub(crate) struct Planes {
    /// Satellites of each plane in their order along the orbit.
    pub members: Vec<Vec<Satellite>>,
    pub closure: Closure,
}

/// Relation between the last plane and the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closure {
    /// The last and the first plane are neighbours like any other two planes.
    Ring,
    /// A seam: the satellites on both sides move in opposite directions.
    Seam,
    /// No relation, because there are at most two planes, or none.
    Open,
}
