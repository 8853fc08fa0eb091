//! Satellites and their positions.

use core::f64::consts::TAU;

use std::collections::BTreeSet;

use bentpipe_base::{Duration, Instant, Rate};
use sgp4::chrono::{DateTime, NaiveDateTime};

use crate::catalogue::{Catalogue, error};
use crate::earth::{EARTH_RADIUS_KM, Earth, Ground, SIDEREAL_DAY_S, Station, widest_view};
use crate::elements::Elements;
use crate::error::OrbitError;
use crate::grouping;
use crate::left_out::LeftOut;
use crate::listed::Listed;
use crate::planes::{Closure, Layout, Planes, Satellite};
use crate::shell::{Shell, Spread};
use crate::vector::Vector;

/// Altitude of the geostationary orbit above the spherical Earth, as in ns-2.
const GEOSTATIONARY_ALTITUDE_KM: f64 = 35_786.0;

/// A set of moving satellites.
#[derive(Debug)]
pub struct Constellation {
    motion: Motion,
    /// Model of the Earth.
    pub(crate) earth: Earth,
    /// Angle from the x axis to Greenwich at time zero, in radians.
    greenwich: f64,
    names: Vec<String>,
    pub(crate) layout: Layout,
    left_out: Vec<LeftOut>,
    /// Explicit links between satellites, in ascending order of their ends.
    pub(crate) listed: Vec<Listed>,
}

#[derive(Debug)]
enum Motion {
    Circular(Vec<Circle>, f64),
    Elements(Vec<Elements>),
}

/// A circular orbit: `cosine * cos(n t) + sine * sin(n t)` with the mean motion n.
#[derive(Clone, Copy, Debug)]
struct Circle {
    cosine: Vector,
    sine: Vector,
}

impl Circle {
    /// Makes an orbit whose node is at angle `node` from the x axis. The satellite is at `phase` from the node at time zero.
    /// Angles are in radians.
    fn new(radius_km: f64, inclination: f64, node: f64, phase: f64) -> Self {
        let (sin_i, cos_i) = libm::sincos(inclination);
        let along_node = Vector { x: radius_km, y: 0.0, z: 0.0 }.turned(node);
        let ahead = Vector { x: 0.0, y: radius_km * cos_i, z: radius_km * sin_i }.turned(node);
        let (sin, cos) = libm::sincos(phase);
        Self { cosine: along_node * cos + ahead * sin, sine: ahead * cos - along_node * sin }
    }
}

impl Constellation {
    /// Makes a shell of circular orbits over a spherical Earth.
    ///
    /// # Errors
    /// [`OrbitError::Impossible`] for an impossible shell.
    pub fn of_shell(shell: &Shell) -> Result<Self, OrbitError> {
        shell.validate()?;
        let (mut circles, mut names, mut phases) = (Vec::new(), Vec::new(), Vec::new());
        let mut planes = Vec::new();
        for plane in 0..shell.planes {
            let node = shell.node_deg(plane).to_radians();
            let mut members = Vec::new();
            for number in 0..shell.per_plane {
                let phase = TAU * (f64::from(number) + shell.phase(plane)) / f64::from(shell.per_plane);
                members.push(circles.len() as Satellite);
                circles.push(Circle::new(shell.radius_km(), shell.inclination_deg.to_radians(), node, phase));
                names.push(format!("{plane}-{number}"));
                phases.push(phase);
            }
            planes.push(members);
        }
        let closure = match shell.spread {
            Spread::Delta => Closure::Ring,
            Spread::Star { .. } => Closure::Seam,
        };
        let motion = Motion::Circular(circles, TAU / shell.period_s());
        let layout = Layout::new(vec![Planes { members: planes, closure }], phases);
        Ok(Self {
            motion,
            earth: Earth::Sphere,
            greenwich: 0.0,
            names,
            layout,
            left_out: Vec::new(),
            listed: Vec::new(),
        })
    }

    /// Makes geostationary satellites over a spherical Earth at these longitudes in degrees east.
    ///
    /// # Errors
    /// [`OrbitError::Impossible`] without satellites or for an invalid longitude.
    pub fn geostationary(longitudes_deg: &[f64]) -> Result<Self, OrbitError> {
        if longitudes_deg.is_empty() {
            return Err(OrbitError::impossible("longitudes", "none", "at least one longitude"));
        }
        if let Some(bad) = longitudes_deg.iter().find(|degrees| !(-180.0..=180.0).contains(*degrees)) {
            return Err(OrbitError::impossible("longitudes", bad, "degrees from -180 to 180"));
        }
        let radius_km = EARTH_RADIUS_KM + GEOSTATIONARY_ALTITUDE_KM;
        let circle = |degrees: &f64| Circle::new(radius_km, 0.0, degrees.to_radians(), 0.0);
        let members = (0..longitudes_deg.len() as Satellite).map(|satellite| vec![satellite]).collect();
        let planes = Planes { members, closure: Closure::Open };
        Ok(Self {
            motion: Motion::Circular(longitudes_deg.iter().map(circle).collect(), TAU / SIDEREAL_DAY_S),
            earth: Earth::Sphere,
            greenwich: 0.0,
            names: longitudes_deg.iter().map(|degrees| format!("{degrees}")).collect(),
            layout: Layout::new(vec![planes], vec![0.0; longitudes_deg.len()]),
            left_out: Vec::new(),
            listed: Vec::new(),
        })
    }

    /// Reads the satellites of a text of two-line elements, with or without names. SGP4 moves them over the WGS 84 ellipsoid.
    /// Time zero is `start`, given as the time since the beginning of 1970 in UTC, or else the latest epoch in the text. Satellites
    /// that SGP4 cannot move until `until` after time zero are left out.
    ///
    /// Shells and planes are derived from the orbits.
    ///
    /// # Errors
    /// [`OrbitError::Elements`] with the line number, if no satellite can be used.
    pub fn from_elements(text: &str, start: Option<Duration>, until: Duration) -> Result<Self, OrbitError> {
        let catalogue = Catalogue::read(text, start.map(date))?;
        let unread = catalogue.broken.iter();
        let mut left_out: Vec<LeftOut> =
            unread.map(|(line, what)| LeftOut::cannot_fly(String::new(), *line, what.clone())).collect();
        let (mut satellites, mut states) = (Vec::new(), Vec::new());
        for (name, entry) in catalogue.names().into_iter().zip(&catalogue.entries) {
            let elements = Elements::new(name.clone(), entry, &catalogue.zero);
            match elements.and_then(|elements| Ok((elements.start(until.as_secs_f64())?, elements))) {
                Ok((state, elements)) => {
                    states.push(state);
                    satellites.push(elements);
                }
                Err(what) => left_out.push(LeftOut::cannot_fly(name, entry.line, what)),
            }
        }
        if satellites.is_empty() {
            let first = left_out.into_iter().min_by_key(|one| one.line);
            return Err(error(first.map_or((1, String::new()), |one| (one.line, one.reason.to_string()))));
        }
        let (layout, without_links) = grouping::layout(&satellites, &states);
        left_out.extend(without_links);
        let names = satellites.iter().map(|satellite| satellite.name.clone()).collect();
        let greenwich = sgp4::iau_epoch_to_sidereal_time(sgp4::julian_years_since_j2000(&catalogue.zero));
        Ok(Self {
            motion: Motion::Elements(satellites),
            earth: Earth::Wgs84,
            greenwich,
            names,
            layout,
            left_out,
            listed: Vec::new(),
        })
    }

    /// Adds explicit links between satellites, in addition to those of a [`Grid`](crate::Grid). Only satellites with such a link
    /// serve stations then.
    #[must_use]
    pub fn with_links(mut self, mut links: Vec<Listed>) -> Self {
        links.iter_mut().for_each(|link| link.ends.sort_unstable());
        links.sort_by_key(|link| (link.ends, link.during.start));
        let linked: BTreeSet<Satellite> = links.iter().flat_map(|link| link.ends).collect();
        self.layout.serve_only(|satellite| linked.contains(&satellite));
        let names: BTreeSet<&str> = linked.iter().map(|satellite| self.name(*satellite)).collect();
        let left_out = self.left_out.iter().filter(|one| !names.contains(one.satellite.as_str()));
        self.left_out = left_out.cloned().collect();
        self.listed = links;
        self
    }

    /// Returns the rate of an explicit link between two satellites, if it has one.
    pub fn rate_between(&self, a: Satellite, b: Satellite) -> Option<Rate> {
        let ends = [a.min(b), a.max(b)];
        let place = self.listed.partition_point(|link| link.ends < ends);
        self.listed.get(place).filter(|link| link.ends == ends)?.rate
    }

    /// Returns a satellite by its number in the constellation, its name or its catalogue number.
    pub fn find(&self, name: &str) -> Option<Satellite> {
        let number: Option<u64> = name.parse().ok();
        let index = number.filter(|number| *number < self.len() as u64).map(|number| number as Satellite);
        let known = |place: Option<usize>| place.map(|place| place as Satellite);
        let of_catalogue = || match &self.motion {
            Motion::Elements(all) => known(all.iter().position(|one| Some(one.number) == number)),
            Motion::Circular(..) => None,
        };
        index.or_else(of_catalogue).or_else(|| known(self.names.iter().position(|known| known == name)))
    }

    /// Returns the satellites of a text of elements that cannot fly or belong to no shell.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Returns the number of satellites.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True without satellites, which no constructor allows.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the name of a satellite: plane and number in a shell, its name in the elements, or its longitude.
    pub fn name(&self, satellite: Satellite) -> &str {
        &self.names[satellite as usize]
    }

    /// Returns the position of a satellite in the inertial frame.
    ///
    /// # Errors
    /// [`OrbitError::Lost`] if its elements are not valid at that time.
    pub fn position(&self, satellite: Satellite, at: Instant) -> Result<Vector, OrbitError> {
        match &self.motion {
            Motion::Circular(circles, mean_motion) => {
                let (sin, cos) = libm::sincos(mean_motion * at.as_secs_f64());
                let circle = circles[satellite as usize];
                Ok(circle.cosine * cos + circle.sine * sin)
            }
            Motion::Elements(elements) => elements[satellite as usize].position(at.as_secs_f64()),
        }
    }

    /// Computes the positions of all satellites.
    ///
    /// # Errors
    /// Those of [`Constellation::position`].
    pub fn positions(&self, at: Instant, positions: &mut Vec<Vector>) -> Result<(), OrbitError> {
        positions.clear();
        match &self.motion {
            Motion::Circular(circles, mean_motion) => {
                let (sin, cos) = libm::sincos(mean_motion * at.as_secs_f64());
                positions.extend(circles.iter().map(|circle| circle.cosine * cos + circle.sine * sin));
            }
            Motion::Elements(elements) => {
                let seconds = at.as_secs_f64();
                for satellite in elements {
                    positions.push(satellite.position(seconds)?);
                }
            }
        }
        Ok(())
    }

    /// Returns the angle of Greenwich from the x axis, in radians.
    pub fn greenwich(&self, at: Instant) -> f64 {
        self.greenwich + TAU * at.as_secs_f64() / SIDEREAL_DAY_S
    }

    /// Returns latitude and longitude in degrees below a position in the inertial frame. The longitude is from -180 to 180.
    pub fn ground_under(&self, place: Vector, at: Instant) -> (f64, f64) {
        let latitude = libm::asin((place.z / place.length()).clamp(-1.0, 1.0)).to_degrees();
        let east = libm::atan2(place.y, place.x) - self.greenwich(at);
        let turns = libm::floor(east / TAU + 0.5);
        (latitude, (east - turns * TAU).to_degrees())
    }

    /// False if no satellite can ever be higher than the mask over a station. The station is then too far from the equator for
    /// all inclinations, or from all geostationary satellites.
    pub fn reaches(&self, station: &Station, elevation_mask_deg: f64) -> bool {
        let ground = Ground::of(station, self.earth, Instant::ZERO);
        if let (Motion::Circular(circles, _), Closure::Open) = (&self.motion, self.layout.shells[0].closure) {
            let sine = libm::sin(elevation_mask_deg.to_radians());
            return circles.iter().any(|circle| ground.look(circle.cosine).0 > sine);
        }
        let northernmost = match &self.motion {
            Motion::Circular(circles, _) => {
                let of = |circle: &Circle| {
                    let height = circle.cosine.z * circle.cosine.z + circle.sine.z * circle.sine.z;
                    libm::asin((libm::sqrt(height) / circle.cosine.length()).min(1.0))
                };
                circles.iter().map(of).fold(0.0, f64::max)
            }
            Motion::Elements(elements) => elements.iter().map(Elements::northernmost).fold(0.0, f64::max),
        };
        let (_, radius_km) = self.bounds();
        let latitude = libm::fabs(station.place.latitude_deg.to_radians());
        latitude < northernmost + widest_view(self.earth, radius_km, elevation_mask_deg)
    }

    /// True if the distance between two satellites of a plane is constant.
    pub(crate) fn is_rigid(&self) -> bool {
        matches!(self.motion, Motion::Circular(..))
    }

    /// Returns the maximum angular speed of a satellite relative to the rotating Earth in radians per second, and the maximum
    /// distance from the Earth's centre in km. These bound the time until a satellite can come into view.
    pub(crate) fn bounds(&self) -> (f64, f64) {
        let earth = TAU / SIDEREAL_DAY_S;
        match &self.motion {
            Motion::Circular(circles, mean_motion) => {
                let radius = circles.iter().map(|circle| circle.cosine.length()).fold(0.0, f64::max);
                (mean_motion + earth, radius)
            }
            Motion::Elements(satellites) => {
                let bounds = satellites.iter().map(Elements::bounds);
                let (speed, radius) =
                    bounds.fold((0.0_f64, 0.0_f64), |most, one| (most.0.max(one.0), most.1.max(one.1)));
                (speed + earth, radius)
            }
        }
    }
}

/// Returns the date of a time since the beginning of 1970.
fn date(since_1970: Duration) -> NaiveDateTime {
    DateTime::from_timestamp_nanos(since_1970.as_nanos() as i64).naive_utc()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Duration;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn neighbours_in_a_plane_keep_the_distance_of_the_table() {
        for (shell, distance_km) in [(Shell::IRIDIUM, 4033.3), (Shell::TELEDESIC, 2023.9)] {
            let constellation = Constellation::of_shell(&shell).unwrap();
            for seconds in [0, 1_000, 50_000] {
                let place = |satellite| constellation.position(satellite, at(seconds)).unwrap();
                assert!(((place(0) - place(1)).length() - distance_km).abs() < 0.1);
            }
        }
    }

    #[test]
    fn a_revolution_leads_back() {
        let constellation = Constellation::of_shell(&Shell::IRIDIUM).unwrap();
        let period = Instant::ZERO + Duration::from_secs_f64(Shell::IRIDIUM.period_s());
        let (start, end) = (constellation.position(17, at(0)), constellation.position(17, period));
        assert!((start.unwrap() - end.unwrap()).length() < 1e-3);
    }

    #[test]
    fn positions_are_those_of_each() {
        let constellation = Constellation::of_shell(&Shell::TELEDESIC).unwrap();
        let mut all = Vec::new();
        constellation.positions(at(777), &mut all).unwrap();
        for (satellite, place) in all.iter().enumerate() {
            assert_eq!(*place, constellation.position(satellite as Satellite, at(777)).unwrap());
        }
    }

    #[test]
    fn a_geostationary_satellite_stays_over_its_longitude() {
        let constellation = Constellation::geostationary(&[-95.0]).unwrap();
        for seconds in [0, 10_000, 100_000] {
            let place = constellation.position(0, at(seconds)).unwrap();
            let (latitude, longitude) = constellation.ground_under(place, at(seconds));
            assert!(latitude.abs() < 1e-9 && (longitude + 95.0).abs() < 1e-6, "{latitude} {longitude}");
        }
        assert!(Constellation::geostationary(&[]).is_err());
        assert!(Constellation::geostationary(&[300.0]).is_err());
    }
}
