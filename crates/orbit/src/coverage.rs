//! Which satellites each station has in view.

use bentpipe_base::{Duration, Instant};

use crate::constellation::{Constellation, Satellite};
use crate::earth::{EARTH_RADIUS_KM, Ground};
use crate::{Earth, OrbitError, Vector};

/// Greatest angle between the normal of the ellipsoid and the direction from the Earth's centre, in degrees.
const OBLIQUENESS_DEG: f64 = 0.193;
/// How much nearer than the equator the poles are to the centre, in km.
const POLAR_DIP_KM: f64 = 21.4;
/// Looks at the sky for which a satellite can sleep.
const LONGEST_SLEEP: usize = 1 << 12;

/// A satellite above the elevation mask of a station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Seen {
    pub satellite: Satellite,
    /// Sine of its elevation.
    pub sine: f64,
    /// Its distance in km.
    pub range_km: f64,
}

/// The satellites in view of each station. A satellite that is far from rising sleeps until it can have risen.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    /// Stations while Greenwich lies on the x axis.
    stations: Vec<Ground>,
    /// Stations now.
    turned: Vec<Ground>,
    sine_of_mask: f64,
    /// Angle between station and satellite, seen from the Earth's centre, above which a satellite cannot be in view.
    widest: f64,
    /// Most by which that angle changes from look to look.
    angle_per_look: f64,
    /// Those in view of each station, by number.
    in_view: Vec<Vec<Seen>>,
    /// (station, satellite) to look at again: the first entry at the next look, and so on around.
    asleep: Vec<Vec<(u32, Satellite)>>,
    next: usize,
}

/// The greatest angle, seen from the Earth's centre, between a station and a satellite above its mask, in radians; `radius_km` is the
/// greatest distance of the satellite from there.
pub(crate) fn widest_view(earth: Earth, radius_km: f64, mask_deg: f64) -> f64 {
    let (dip_km, obliqueness_deg) = match earth {
        Earth::Sphere => (0.0, 0.0),
        Earth::Wgs84 => (POLAR_DIP_KM, OBLIQUENESS_DEG),
    };
    let mask = (mask_deg - obliqueness_deg).to_radians();
    let nearest = (EARTH_RADIUS_KM - dip_km) / radius_km;
    libm::acos((nearest * libm::cos(mask)).min(1.0)) - mask + 1e-9
}

impl Coverage {
    /// Of stations, with a look at the sky every `step`.
    pub fn new(
        constellation: &Constellation,
        stations: Vec<Ground>,
        (mask_deg, step): (f64, Duration),
    ) -> Self {
        let (speed, radius_km) = constellation.bounds();
        let widest = widest_view(constellation.earth, radius_km, mask_deg);
        let everything = (0..stations.len() as u32).flat_map(|station| {
            (0..constellation.len() as Satellite).map(move |satellite| (station, satellite))
        });
        let mut asleep = vec![Vec::new(); LONGEST_SLEEP];
        asleep[0] = everything.collect();
        Self {
            turned: stations.clone(),
            in_view: vec![Vec::new(); stations.len()],
            stations,
            sine_of_mask: libm::sin(mask_deg.to_radians()),
            widest,
            angle_per_look: speed * step.as_secs_f64(),
            asleep,
            next: 0,
        }
    }

    /// Looks at the sky once more; `greenwich` is the angle of the Earth.
    pub fn look(&mut self, positions: &[Vector], greenwich: f64) {
        for (turned, station) in self.turned.iter_mut().zip(&self.stations) {
            *turned = station.turned(greenwich);
        }
        let due = std::mem::take(&mut self.asleep[self.next]);
        for station in 0..self.stations.len() {
            let ground = self.turned[station];
            let mut in_view = std::mem::take(&mut self.in_view[station]);
            in_view.retain_mut(|seen| {
                let satellite = seen.satellite;
                (seen.sine, seen.range_km) = ground.look(positions[satellite as usize]);
                let stays = seen.sine > self.sine_of_mask;
                if !stays {
                    self.send_to_sleep((station as u32, satellite), positions[satellite as usize]);
                }
                stays
            });
            self.in_view[station] = in_view;
        }
        for &(station, satellite) in &due {
            let place = positions[satellite as usize];
            let (sine, range_km) = self.turned[station as usize].look(place);
            if sine > self.sine_of_mask {
                let in_view = &mut self.in_view[station as usize];
                let place = in_view.partition_point(|seen| seen.satellite < satellite);
                in_view.insert(place, Seen { satellite, sine, range_km });
            } else {
                self.send_to_sleep((station, satellite), place);
            }
        }
        self.next = (self.next + 1) % LONGEST_SLEEP;
    }

    fn send_to_sleep(&mut self, (station, satellite): (u32, Satellite), place: Vector) {
        let beyond = self.turned[station as usize].place.angle_to(place) - self.widest;
        let looks = (beyond / self.angle_per_look) as usize;
        let looks = looks.clamp(1, LONGEST_SLEEP - 1);
        self.asleep[(self.next + looks) % LONGEST_SLEEP].push((station, satellite));
    }

    /// Those in view of a station, by number.
    pub fn in_view(&self, station: usize) -> &[Seen] {
        &self.in_view[station]
    }

    /// Where a station is now.
    pub fn place(&self, station: usize) -> Vector {
        self.turned[station].place
    }

    /// How many looks, at most `most`, a satellite stays in view of a station from `from` on.
    pub fn remains(
        &self,
        constellation: &Constellation,
        (station, satellite): (usize, Satellite),
        (from, step): (Instant, Duration),
        most: u32,
    ) -> Result<u32, OrbitError> {
        for look in 1..=most {
            let at = from + step * u64::from(look);
            let ground = self.stations[station].turned(constellation.greenwich(at));
            if ground.look(constellation.position(satellite, at)?).0 <= self.sine_of_mask {
                return Ok(look - 1);
            }
        }
        Ok(most)
    }
}
