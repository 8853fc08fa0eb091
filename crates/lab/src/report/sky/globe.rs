//! Lines on the Earth, cut where they leave the map at the date line.

use bentpipe_base::{Duration, Instant};
use bentpipe_orbit::{Constellation, Satellite};

/// Longitude and latitude in degrees, in this order.
pub type Spot = (f64, f64);
/// Points joined by straight lines.
pub type Line = Vec<(f64, f64)>;

/// Coasts from Natural Earth, one a line.
const COASTLINES: &str = include_str!("../../../assets/coastlines.txt");
/// Margin of a map in degrees.
const MARGIN_DEG: f64 = 12.0;
/// Points of a great circle.
const CIRCLE_POINTS: u32 = 12;

/// Satellites over the Earth until an end in seconds.
pub struct Globe<'a> {
    pub constellation: &'a Constellation,
    pub end: f64,
}

impl Globe<'_> {
    /// Returns the point below a satellite; none for a time outside the data.
    pub fn under(&self, satellite: Satellite, at: Instant) -> Option<Spot> {
        let place = self.constellation.position(satellite, at).ok()?;
        let (latitude, longitude) = self.constellation.ground_under(place, at);
        Some((longitude, latitude))
    }

    /// The ground track of a satellite between two times in seconds, with a point every `step` seconds and at both ends.
    pub fn track(&self, satellite: Satellite, (from, to): (f64, f64), step: f64) -> Vec<Line> {
        let points = ((to - from) / step).ceil().max(1.0) as u32;
        let at = |point| from + (to - from) * f64::from(point) / f64::from(points);
        let spot = |point| self.under(satellite, Instant::ZERO + Duration::from_secs_f64(at(point)));
        cut((0..=points).filter_map(spot))
    }
}

/// Cuts a line where it leaves the map at one side and enters at the other.
pub fn cut(spots: impl Iterator<Item = Spot>) -> Vec<Line> {
    let mut lines: Vec<Line> = vec![Vec::new()];
    for spot in spots {
        let line = lines.last_mut().expect("there is one from the beginning");
        match line.last() {
            Some(last) if (last.0 - spot.0).abs() > 180.0 => lines.push(vec![spot]),
            _ => line.push(spot),
        }
    }
    lines
}

/// The shortest way over the ground between two places.
pub fn great_circle(from: Spot, to: Spot) -> Vec<Line> {
    let vector = |(longitude, latitude): Spot| {
        let ((sin_lon, cos_lon), (sin_lat, cos_lat)) =
            (longitude.to_radians().sin_cos(), latitude.to_radians().sin_cos());
        [cos_lat * cos_lon, cos_lat * sin_lon, sin_lat]
    };
    let (a, b) = (vector(from), vector(to));
    // The ends are taken as they are, so that lines meet.
    let spot = |point: u32| match point {
        0 => from,
        CIRCLE_POINTS => to,
        _ => {
            let share = f64::from(point) / f64::from(CIRCLE_POINTS);
            let [x, y, z] = [0, 1, 2].map(|axis| a[axis] * (1.0 - share) + b[axis] * share);
            (y.atan2(x).to_degrees(), z.atan2((x * x + y * y).sqrt()).to_degrees())
        }
    };
    cut((0..=CIRCLE_POINTS).map(spot))
}

/// The coastlines of the world.
pub fn coastlines() -> impl Iterator<Item = Line> {
    let lines = COASTLINES.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        line.split(' ')
            .filter_map(|pair| {
                let (longitude, latitude) = pair.split_once(',')?;
                Some((longitude.parse().ok()?, latitude.parse().ok()?))
            })
            .collect()
    })
}

/// Returns the part of the map that shows all spots: ranges of longitude and latitude in degrees, twice as wide as high, within the
/// map.
pub fn frame(spots: impl Iterator<Item = Spot>) -> ([f64; 2], [f64; 2]) {
    let (mut west, mut east, mut south, mut north) = (180.0_f64, -180.0_f64, 90.0_f64, -90.0_f64);
    for (longitude, latitude) in spots {
        (west, east) = (west.min(longitude), east.max(longitude));
        (south, north) = (south.min(latitude), north.max(latitude));
    }
    let width = (east - west + 2.0 * MARGIN_DEG).max(2.0 * (north - south + 2.0 * MARGIN_DEG)).min(360.0);
    let fitted = |low: f64, high: f64, (size, edge): (f64, f64)| {
        let low = (f64::midpoint(low, high) - size / 2.0).clamp(-edge, (edge - size).max(-edge));
        [low, low + size]
    };
    (fitted(west, east, (width, 180.0)), fitted(south, north, (width / 2.0, 90.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_over_the_date_line_is_cut_there() {
        let lines = cut([(170.0, 1.0), (179.0, 2.0), (-179.0, 3.0), (-170.0, 4.0)].into_iter());
        assert_eq!(lines, [vec![(170.0, 1.0), (179.0, 2.0)], vec![(-179.0, 3.0), (-170.0, 4.0)]]);
        assert_eq!(great_circle((170.0, 0.0), (-170.0, 0.0)).len(), 2);
    }

    #[test]
    fn the_shortest_way_from_berkeley_to_london_leads_over_greenland() {
        let line = great_circle((-122.3, 37.9), (-0.1, 51.5)).concat();
        let northernmost = line.iter().map(|spot| spot.1).fold(0.0, f64::max);
        // sin(initial course) cos(latitude) is the cosine of the northernmost latitude (Clairaut): 64.79 degrees.
        assert!((64.7..64.79).contains(&northernmost), "{northernmost}");
    }

    #[test]
    fn coasts_lie_on_the_map_and_are_those_of_all_continents() {
        let spots: Vec<Spot> = coastlines().flatten().collect();
        assert!(spots.iter().all(|(longitude, latitude)| longitude.abs() <= 180.0 && latitude.abs() <= 90.0));
        let near = |longitude: f64, latitude: f64| {
            spots.iter().any(|spot| (spot.0 - longitude).abs() < 2.0 && (spot.1 - latitude).abs() < 2.0)
        };
        // Cape Agulhas, Cape Horn, the North Cape, Cape York, Florida, the Antarctic Peninsula.
        for (longitude, latitude) in
            [(20.0, -34.8), (-67.3, -55.9), (25.7, 71.1), (142.5, -10.7), (-80.4, 25.2), (-57.0, -63.3)]
        {
            assert!(near(longitude, latitude), "{longitude} {latitude}");
        }
    }

    #[test]
    fn a_frame_holds_its_spots_and_stays_on_the_map() {
        let (x, y) = frame([(-122.0, 38.0), (-71.0, 42.0)].into_iter());
        assert!(x[0] < -122.0 && x[1] > -71.0 && ((x[1] - x[0]) / (y[1] - y[0]) - 2.0).abs() < 1e-9);
        let (x, y) = frame([(-170.0, 80.0), (175.0, -80.0)].into_iter());
        assert_eq!((x, y), ([-180.0, 180.0], [-90.0, 90.0]));
    }
}
