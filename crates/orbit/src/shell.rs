//! Circular orbits in planes: Walker stars and deltas.

use crate::earth::{EARTH_RADIUS_KM, GRAVITY_KM3_PER_S2};
use crate::error::OrbitError;

/// Shell of circular orbits at one altitude and inclination, with equally many satellites per plane.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shell {
    /// Altitude above the spherical Earth in km, above 0.
    pub altitude_km: f64,
    /// Angle between the planes and the equator in degrees, from 0 to 180.
    pub inclination_deg: f64,
    /// Number of orbital planes, at least 1.
    pub planes: u32,
    /// Evenly spaced satellites per plane, at least 1.
    pub per_plane: u32,
    /// Distribution of the ascending nodes along the equator.
    pub spread: Spread,
    /// Phase of each plane relative to the previous one, in units of 1/`planes` of the spacing within a plane, as in Walker's
    /// i:t/p/f. Whole spacings are left out, so that satellites with equal numbers are neighbours.
    pub phasing: f64,
    /// Longitude of the first ascending node at time zero, degrees east.
    pub first_node_deg: f64,
}

/// Distribution of the planes of a [`Shell`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Spread {
    /// Over 360 degrees: every plane has two neighbours.
    Delta,
    /// At this separation in degrees, usually over about 180. The seam is between the last plane and the first; the satellites on
    /// its two sides move in opposite directions.
    Star {
        /// Angle between consecutive ascending nodes, in degrees.
        separation_deg: f64,
    },
}

impl Shell {
    /// Iridium: altitude, planes and separation of the papers and of ns-2's manual. Every second plane is half a spacing ahead.
    pub const IRIDIUM: Self = Self {
        altitude_km: 780.0,
        inclination_deg: 86.4,
        planes: 6,
        per_plane: 11,
        spread: Spread::Star { separation_deg: 31.6 },
        phasing: 3.0,
        first_node_deg: 0.0,
    };

    /// Teledesic with 288 satellites, as in the papers and in ns-2's manual. Every second plane is half a spacing ahead, as in
    /// ns-2's script; the papers' table does not say so.
    pub const TELEDESIC: Self = Self {
        altitude_km: 1375.0,
        inclination_deg: 84.7,
        planes: 12,
        per_plane: 24,
        spread: Spread::Star { separation_deg: 15.0 },
        phasing: 6.0,
        first_node_deg: 0.0,
    };

    /// Checks that the shell is possible.
    ///
    /// # Errors
    /// [`OrbitError::Impossible`] with the field.
    pub fn validate(&self) -> Result<(), OrbitError> {
        let refuse = |place, found: f64, accepted| Err(OrbitError::impossible(place, found, accepted));
        if self.planes == 0 {
            return refuse("planes", 0.0, "at least 1 plane");
        }
        if self.per_plane == 0 {
            return refuse("satellites-per-plane", 0.0, "at least 1 satellite");
        }
        if u64::from(self.planes) * u64::from(self.per_plane) > 100_000 {
            let satellites = f64::from(self.planes) * f64::from(self.per_plane);
            return refuse("planes", satellites, "at most 100000 satellites in all planes together");
        }
        if !(self.altitude_km >= 100.0 && self.altitude_km <= 400_000.0) {
            return refuse("altitude", self.altitude_km, "from 100 km to 400000 km");
        }
        if !(0.0..=180.0).contains(&self.inclination_deg) {
            return refuse("inclination", self.inclination_deg, "degrees from 0 to 180");
        }
        if !(self.phasing >= 0.0 && self.phasing < f64::from(self.planes)) {
            return refuse("phasing", self.phasing, "0 or more, less than the number of planes");
        }
        match self.spread {
            Spread::Star { separation_deg } if !(separation_deg > 0.0 && separation_deg <= 180.0) => {
                refuse("plane-separation", separation_deg, "degrees above 0, up to 180")
            }
            _ => Ok(()),
        }
    }

    /// Returns the distance from the Earth's centre in km.
    pub fn radius_km(&self) -> f64 {
        EARTH_RADIUS_KM + self.altitude_km
    }

    /// Returns the duration of one revolution in seconds (Kepler's third law).
    pub fn period_s(&self) -> f64 {
        let radius = self.radius_km();
        core::f64::consts::TAU * libm::sqrt(radius * radius * radius / GRAVITY_KM3_PER_S2)
    }

    /// Returns the longitude of a plane's ascending node in degrees.
    pub(crate) fn node_deg(&self, plane: u32) -> f64 {
        let separation = match self.spread {
            Spread::Delta => 360.0 / f64::from(self.planes),
            Spread::Star { separation_deg } => separation_deg,
        };
        self.first_node_deg + separation * f64::from(plane)
    }

    /// Returns the phase of a plane's first satellite after its ascending node at time zero, as a fraction of the spacing.
    pub(crate) fn phase(&self, plane: u32) -> f64 {
        let phase = self.phasing * f64::from(plane) / f64::from(self.planes);
        phase - libm::floor(phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_those_of_the_table() {
        assert!((Shell::IRIDIUM.period_s() - 6026.96).abs() < 0.01, "{}", Shell::IRIDIUM.period_s());
        assert!((Shell::TELEDESIC.period_s() - 6793.84).abs() < 0.01, "{}", Shell::TELEDESIC.period_s());
    }

    #[test]
    fn every_other_plane_is_half_a_spacing_ahead() {
        let phases = |shell: Shell| (0..4).map(|plane| shell.phase(plane)).collect::<Vec<_>>();
        assert_eq!(phases(Shell::IRIDIUM), [0.0, 0.5, 0.0, 0.5]);
        assert_eq!(phases(Shell::TELEDESIC), [0.0, 0.5, 0.0, 0.5]);
    }

    #[test]
    fn what_cannot_fly_is_refused() {
        let refused = |shell: Shell| shell.validate().unwrap_err().to_string();
        let iridium = Shell::IRIDIUM;
        assert_eq!(refused(Shell { planes: 0, ..iridium }), "planes: found 0, accepted: at least 1 plane");
        assert!(refused(Shell { altitude_km: -3.0, ..iridium }).starts_with("altitude: found -3"));
        assert!(refused(Shell { altitude_km: f64::NAN, ..iridium }).starts_with("altitude: found NaN"));
        assert!(refused(Shell { inclination_deg: 200.0, ..iridium }).starts_with("inclination"));
        assert!(refused(Shell { phasing: 6.0, ..iridium }).starts_with("phasing"));
        let spread = Spread::Star { separation_deg: 0.0 };
        assert!(refused(Shell { spread, ..iridium }).starts_with("plane-separation"));
    }
}
