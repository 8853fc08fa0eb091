//! Satellites of a file that are left out.

use core::fmt;

/// A satellite that is left out, or has no links between satellites.
#[derive(Clone, PartialEq, Debug)]
pub struct LeftOut {
    /// Name of the satellite; empty if it cannot be read.
    pub satellite: String,
    /// Line of the file at which its elements begin.
    pub line: usize,
    /// Reason.
    pub reason: Reason,
}

impl LeftOut {
    pub(crate) fn cannot_fly(satellite: String, line: usize, what: String) -> Self {
        Self { satellite, line, reason: Reason::CannotFly(what) }
    }
}

/// Reason why a satellite is left out.
#[derive(Clone, PartialEq, Debug)]
pub enum Reason {
    /// Its elements cannot be read, or give no position: a description.
    CannotFly(String),
    /// It moves at another altitude than the shell of its inclination.
    OffShell {
        /// Semi-major axis minus that of the shell, in km.
        above_km: f64,
    },
    /// It moves between the planes of its shell.
    BetweenPlanes,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotFly(what) => f.write_str(what),
            Self::OffShell { above_km } if *above_km < 0.0 => {
                write!(f, "{:.0} km below its shell", -above_km)
            }
            Self::OffShell { above_km } => write!(f, "{above_km:.0} km above its shell"),
            Self::BetweenPlanes => f.write_str("between the planes of its shell"),
        }
    }
}
