//! Shape and rotation of the Earth, and positions on it.

use bentpipe_base::Duration;

use crate::error::OrbitError;
use crate::vector::Vector;

/// Radius of the spherical Earth, as in ns-2 and in papers based on it.
pub const EARTH_RADIUS_KM: f64 = 6378.0;
/// Speed of light in vacuum.
pub const LIGHT_KM_PER_S: f64 = 299_792.458;
/// Gravitational parameter of the Earth, as in ns-2.
pub(crate) const GRAVITY_KM3_PER_S2: f64 = 398_601.2;
/// Duration of one rotation of the Earth relative to the stars, as in ns-2.
pub(crate) const SIDEREAL_DAY_S: f64 = 86_164.0;

/// Maximum angle between the normal of the ellipsoid and the direction from the Earth's centre, in degrees.
const OBLIQUENESS_DEG: f64 = 0.193;
/// Difference between equatorial and polar radius in km.
const POLAR_DIP_KM: f64 = 21.4;

/// Model of the Earth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Earth {
    /// Sphere of [`EARTH_RADIUS_KM`] with geocentric latitudes, as in ns-2 and the papers.
    #[default]
    Sphere,
    /// WGS 84 ellipsoid with geodetic latitudes; the zenith is along its normal.
    Wgs84,
}

/// A ground station at sea level.
#[derive(Clone, PartialEq, Debug)]
pub struct Station {
    /// Name for messages.
    pub name: String,
    /// Degrees north of the equator, from -90 to 90.
    pub latitude_deg: f64,
    /// Degrees east of Greenwich, from -180 to 180.
    pub longitude_deg: f64,
    /// True for a gateway with an antenna for every satellite in view. Other stations have one antenna, for one satellite at a
    /// time.
    pub gateway: bool,
}

impl Station {
    /// Makes a station with one antenna.
    pub fn new(name: &str, latitude_deg: f64, longitude_deg: f64) -> Self {
        Self { name: name.to_owned(), latitude_deg, longitude_deg, gateway: false }
    }

    pub(crate) fn validate(&self) -> Result<(), OrbitError> {
        let refuse = |what: &str, found: f64, accepted: &'static str| {
            let place = format!("{}.{what}", self.name);
            Err(OrbitError::Impossible { place, found: found.to_string(), accepted })
        };
        if !(-90.0..=90.0).contains(&self.latitude_deg) {
            return refuse("latitude", self.latitude_deg, "degrees from -90 to 90");
        }
        if !(-180.0..=180.0).contains(&self.longitude_deg) {
            return refuse("longitude", self.longitude_deg, "degrees from -180 to 180");
        }
        Ok(())
    }
}

/// Position that rotates with the Earth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Ground {
    /// Position.
    pub place: Vector,
    /// Direction of the zenith: a unit vector.
    pub up: Vector,
}

impl Ground {
    /// Returns the position of a station while Greenwich is on the x axis.
    pub fn of(station: &Station, earth: Earth) -> Self {
        let (sin_lat, cos_lat) = libm::sincos(station.latitude_deg.to_radians());
        let (sin_lon, cos_lon) = libm::sincos(station.longitude_deg.to_radians());
        let up = Vector { x: cos_lat * cos_lon, y: cos_lat * sin_lon, z: sin_lat };
        let place = match earth {
            Earth::Sphere => up * EARTH_RADIUS_KM,
            Earth::Wgs84 => {
                // NIMA TR8350.2, 3rd edition, section 4.2.
                const RADIUS_KM: f64 = 6378.137;
                const FLATTENING: f64 = 1.0 / 298.257_223_563;
                let squeezed = (1.0 - FLATTENING) * (1.0 - FLATTENING);
                let normal = RADIUS_KM / libm::sqrt(1.0 - (1.0 - squeezed) * sin_lat * sin_lat);
                Vector { x: normal * up.x, y: normal * up.y, z: normal * squeezed * up.z }
            }
        };
        Self { place, up }
    }

    /// Returns the position after the Earth rotated by an angle in radians.
    pub fn turned(self, angle: f64) -> Self {
        Self { place: self.place.turned(angle), up: self.up.turned(angle) }
    }

    /// Returns the sine of the elevation of `satellite`, and its distance in km.
    pub fn look(self, satellite: Vector) -> (f64, f64) {
        let way = satellite - self.place;
        let range_km = way.length();
        (way.dot(self.up) / range_km, range_km)
    }
}

/// Returns the maximum angle at the Earth's centre between a station and a satellite above its mask, in radians. `radius_km` is
/// the satellite's maximum distance from the centre.
pub(crate) fn widest_view(earth: Earth, radius_km: f64, mask_deg: f64) -> f64 {
    let (dip_km, obliqueness_deg) = match earth {
        Earth::Sphere => (0.0, 0.0),
        Earth::Wgs84 => (POLAR_DIP_KM, OBLIQUENESS_DEG),
    };
    let mask = (mask_deg - obliqueness_deg).to_radians();
    let nearest = (EARTH_RADIUS_KM - dip_km) / radius_km;
    libm::acos((nearest * libm::cos(mask)).min(1.0)) - mask + 1e-9
}

/// Returns the propagation time of light for a distance in km.
pub fn delay_of_km(distance_km: f64) -> Duration {
    Duration::from_secs_f64(distance_km / LIGHT_KM_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ellipsoid_is_flat_at_the_poles() {
        let place = |latitude| Ground::of(&Station::new("x", latitude, 0.0), Earth::Wgs84).place.length();
        assert!((place(0.0) - 6378.137).abs() < 1e-6);
        assert!((place(90.0) - 6356.752).abs() < 1e-3);
    }

    #[test]
    fn a_station_off_the_globe_is_refused() {
        let error = Station::new("station", 91.0, 0.0).validate().unwrap_err();
        assert_eq!(error.to_string(), "station.latitude: found 91, accepted: degrees from -90 to 90");
        assert!(Station::new("station", 0.0, f64::NAN).validate().is_err());
    }
}
