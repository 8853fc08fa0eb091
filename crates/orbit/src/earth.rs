//! Shape and rotation of the Earth, and positions on it.

use core::ops::Range;

use bentpipe_base::{Duration, Instant};

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

/// A ground station.
#[derive(Clone, PartialEq, Debug)]
pub struct Station {
    /// Name for messages.
    pub name: String,
    /// Position at time zero.
    pub place: Place,
    /// Later positions of a moving station, with ascending times. It moves along great circles at constant speed in between, and
    /// stays at the last one.
    pub way: Vec<(Duration, Place)>,
    /// Intervals in which no satellite serves the station.
    pub outages: Vec<Range<Instant>>,
    /// True for a gateway with an antenna for every satellite in view. Other stations have one antenna, for one satellite at a
    /// time.
    pub gateway: bool,
}

/// A place on the Earth or above it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Place {
    /// Degrees north of the equator, from -90 to 90.
    pub latitude_deg: f64,
    /// Degrees east of Greenwich, from -180 to 180.
    pub longitude_deg: f64,
    /// Altitude above the sea in km, from 0 to 50.
    pub altitude_km: f64,
}

impl Place {
    fn validate(&self, station: &str) -> Result<(), OrbitError> {
        let refuse = |what: &str, found: f64, accepted: &'static str| {
            let place = format!("{station}.{what}");
            Err(OrbitError::Impossible { place, found: found.to_string(), accepted })
        };
        if !(-90.0..=90.0).contains(&self.latitude_deg) {
            return refuse("latitude", self.latitude_deg, "degrees from -90 to 90");
        }
        if !(-180.0..=180.0).contains(&self.longitude_deg) {
            return refuse("longitude", self.longitude_deg, "degrees from -180 to 180");
        }
        if !(0.0..=50.0).contains(&self.altitude_km) {
            return refuse("altitude", self.altitude_km, "km from 0 to 50");
        }
        Ok(())
    }

    /// Returns the direction of the zenith while Greenwich is on the x axis.
    fn zenith(&self) -> Vector {
        let (sin_lat, cos_lat) = libm::sincos(self.latitude_deg.to_radians());
        let (sin_lon, cos_lon) = libm::sincos(self.longitude_deg.to_radians());
        Vector { x: cos_lat * cos_lon, y: cos_lat * sin_lon, z: sin_lat }
    }
}

impl Station {
    /// Makes a station at sea level with one antenna.
    pub fn new(name: &str, latitude_deg: f64, longitude_deg: f64) -> Self {
        let place = Place { latitude_deg, longitude_deg, altitude_km: 0.0 };
        Self { name: name.to_owned(), place, way: Vec::new(), outages: Vec::new(), gateway: false }
    }

    /// True if no satellite may serve the station now.
    pub(crate) fn is_out(&self, now: Instant) -> bool {
        self.outages.iter().any(|outage| outage.contains(&now))
    }

    /// Returns the places of the station with their times, the first at time zero.
    fn places(&self) -> impl Iterator<Item = (Duration, Place)> + '_ {
        [(Duration::ZERO, self.place)].into_iter().chain(self.way.iter().copied())
    }

    /// Returns the maximum angle at the Earth's centre that the station moves per second, in radians.
    pub(crate) fn speed(&self) -> f64 {
        let speed = |((from, a), (to, b)): ((Duration, Place), (Duration, Place))| {
            // Geocentric directions differ by up to 0.7 % more than zeniths of the ellipsoid.
            1.01 * a.zenith().angle_to(b.zenith()) / (to - from).as_secs_f64()
        };
        self.places().zip(self.places().skip(1)).map(speed).fold(0.0, f64::max)
    }

    pub(crate) fn validate(&self) -> Result<(), OrbitError> {
        self.places().try_for_each(|(_, place)| place.validate(&self.name))?;
        let refuse = |what: &str, found: String, accepted: &'static str| {
            Err(OrbitError::Impossible { place: format!("{}.{what}", self.name), found, accepted })
        };
        let times = || self.places().map(|(time, _)| time);
        if let Some((before, time)) = times().zip(times().skip(1)).find(|(before, time)| before >= time) {
            return refuse("way", format!("{time} after {before}"), "ascending times above 0 s");
        }
        if let Some(outage) = self.outages.iter().find(|outage| outage.is_empty()) {
            let found = format!("from {:?} to {:?}", outage.start, outage.end);
            return refuse("outages", found, "outages that end after they begin");
        }
        Ok(())
    }
}

/// Position that rotates with the Earth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Ground {
    /// Position of the ground station.
    pub place: Vector,
    /// Direction of the zenith: a unit vector.
    pub up: Vector,
}

impl Ground {
    /// Returns the position of a station `now`, turned back to Greenwich on the x axis.
    pub fn of(station: &Station, earth: Earth, now: Instant) -> Self {
        let now = now.since(Instant::ZERO);
        let ahead = station.way.partition_point(|(time, _)| *time <= now);
        let (since, here) = match ahead.checked_sub(1) {
            Some(last) => station.way[last],
            None => (Duration::ZERO, station.place),
        };
        let Some((until, there)) = station.way.get(ahead) else {
            return Self::above(here.zenith(), here.altitude_km, earth);
        };
        let part = (now - since).as_secs_f64() / (*until - since).as_secs_f64();
        let (from, to) = (here.zenith(), there.zenith());
        let angle = from.angle_to(to);
        let up = if angle < 1e-12 {
            from
        } else {
            let weights = [libm::sin((1.0 - part) * angle), libm::sin(part * angle)];
            (from * weights[0] + to * weights[1]) * (1.0 / libm::sin(angle))
        };
        Self::above(up, here.altitude_km + part * (there.altitude_km - here.altitude_km), earth)
    }

    /// Returns the position at an altitude with the zenith `up`.
    fn above(up: Vector, altitude_km: f64, earth: Earth) -> Self {
        let place = match earth {
            Earth::Sphere => up * (EARTH_RADIUS_KM + altitude_km),
            Earth::Wgs84 => {
                // NIMA TR8350.2, 3rd edition, section 4.2.
                const RADIUS_KM: f64 = 6378.137;
                const FLATTENING: f64 = 1.0 / 298.257_223_563;
                let squeezed = (1.0 - FLATTENING) * (1.0 - FLATTENING);
                let normal = RADIUS_KM / libm::sqrt(1.0 - (1.0 - squeezed) * up.z * up.z);
                let across = normal + altitude_km;
                Vector { x: across * up.x, y: across * up.y, z: (normal * squeezed + altitude_km) * up.z }
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
        let place = |latitude| {
            Ground::of(&Station::new("x", latitude, 0.0), Earth::Wgs84, Instant::ZERO).place.length()
        };
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
