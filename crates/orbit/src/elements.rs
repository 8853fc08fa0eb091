//! Satellites that SGP4 moves from their mean elements.

use core::f64::consts::TAU;

use sgp4::chrono::NaiveDateTime;
use sgp4::{Constants, MinutesSinceEpoch};

use crate::earth::EARTH_RADIUS_KM;
use crate::entry::Entry;
use crate::error::OrbitError;
use crate::vector::Vector;

/// A satellite whose orbit is propagated from mean elements.
#[derive(Debug)]
pub(crate) struct Elements {
    pub name: String,
    /// Catalogue number.
    pub number: u64,
    /// Line of the file at which its elements begin.
    pub line: usize,
    constants: Constants,
    /// Minutes from the epoch to time zero.
    minutes_at_zero: f64,
    mean_motion_per_day: f64,
    pub eccentricity: f64,
    pub inclination_deg: f64,
}

impl Elements {
    /// Makes a satellite with this name from its elements.
    ///
    /// # Errors
    /// A description of the element that SGP4 refuses.
    pub fn new(name: String, entry: &Entry, zero: &NaiveDateTime) -> Result<Self, String> {
        let Entry { line, elements } = entry;
        // Published elements are fitted to the constants of WGS 72 (Vallado et al., "Revisiting Spacetrack Report #3", AIAA 2006-6753).
        let constants =
            Constants::from_elements_afspc_compatibility_mode(elements).map_err(|error| error.to_string())?;
        let since = elements.datetime_to_minutes_since_epoch(zero).map_err(|error| error.to_string())?;
        Ok(Self {
            name,
            number: elements.norad_id,
            line: *line,
            constants,
            minutes_at_zero: since.0,
            mean_motion_per_day: elements.mean_motion,
            eccentricity: elements.eccentricity,
            inclination_deg: elements.inclination,
        })
    }

    /// Returns the position `seconds` after time zero.
    pub fn position(&self, seconds: f64) -> Result<Vector, OrbitError> {
        let lost = |what| OrbitError::Lost { satellite: self.name.clone(), seconds, what };
        self.state(seconds).map(|(position, _)| position).map_err(lost)
    }

    /// Returns position in km and velocity in km/s.
    ///
    /// # Errors
    /// The reason why there are none.
    pub fn state(&self, seconds: f64) -> Result<(Vector, Vector), String> {
        let minutes = self.minutes_at_zero + seconds / 60.0;
        let vector = |[x, y, z]: [f64; 3]| Vector { x, y, z };
        match self.constants.propagate_afspc_compatibility_mode(MinutesSinceEpoch(minutes)) {
            Ok(prediction) => {
                let position = vector(prediction.position);
                let distance_km = position.length();
                if !distance_km.is_finite() {
                    return Err("no finite number".to_owned());
                }
                if distance_km < EARTH_RADIUS_KM {
                    return Err("it has come down".to_owned());
                }
                Ok((position, vector(prediction.velocity)))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns position and velocity at time zero, after a check that there are any `seconds` later.
    ///
    /// # Errors
    /// The time without a position, and the reason.
    pub fn start(&self, seconds: f64) -> Result<(Vector, Vector), String> {
        let state = |seconds| {
            let lost = |what| format!("no position {seconds} s after time zero: {what}");
            self.state(seconds).map_err(lost)
        };
        state(seconds).and_then(|_| state(0.0))
    }

    /// Returns the maximum latitude in radians, plus one degree for SGP4's deviation from the Keplerian orbit.
    pub fn northernmost(&self) -> f64 {
        let from_pole = libm::fabs(90.0 - self.inclination_deg);
        (91.0 - from_pole).to_radians()
    }

    /// Returns the mean motion in radians per second.
    fn mean_motion(&self) -> f64 {
        TAU * self.mean_motion_per_day / 86_400.0
    }

    /// Returns the semi-major axis of the mean motion in km.
    pub fn axis_km(&self) -> f64 {
        libm::cbrt(crate::earth::GRAVITY_KM3_PER_S2 / (self.mean_motion() * self.mean_motion()))
    }

    /// Returns bounds of the angular speed in radians per second and of the distance from the Earth's centre in km. They include
    /// 2 % for SGP4's deviation from the Keplerian orbit.
    pub fn bounds(&self) -> (f64, f64) {
        let (mean_motion, axis, e) = (self.mean_motion(), self.axis_km(), self.eccentricity);
        let at_perigee = mean_motion * libm::sqrt(1.0 - e * e) / ((1.0 - e) * (1.0 - e));
        (at_perigee * 1.02, axis * (1.0 + e) * 1.02)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::catalogue::tests::{FIRST, SECOND};

    #[test]
    fn vanguard_1_is_where_the_reference_implementation_has_it() {
        // AIAA 2006-6753, verification output of satellite 5.
        let catalogue = Catalogue::read(&format!("{FIRST}\n{SECOND}\n"), None).unwrap();
        let satellite = Elements::new("5".to_owned(), &catalogue.entries[0], &catalogue.zero).unwrap();
        let expected = [
            (0.0, [7022.46529266, -1400.08296755, 0.03995155]),
            (360.0, [-7154.03120202, -3783.17682504, -3536.19412294]),
        ];
        for (minutes, [x, y, z]) in expected {
            let off = satellite.position(minutes * 60.0).unwrap() - Vector { x, y, z };
            assert!(off.length() < 1e-3, "{minutes} min: {off:?}");
        }
    }
}
