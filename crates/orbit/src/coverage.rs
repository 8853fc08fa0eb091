//! Visibility of satellites from each station.

use bentpipe_base::{Duration, Instant};

use crate::constellation::Constellation;
use crate::earth::{Earth, Ground, Station, widest_view};
use crate::error::OrbitError;
use crate::planes::Satellite;
use crate::vector::Vector;

/// Maximum number of steps for which a satellite can be skipped, plus one.
const MOST_STEPS: usize = 1 << 12;

/// Satellite above the elevation mask of a station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Seen {
    pub satellite: Satellite,
    /// Sine of the satellite's elevation.
    pub sine: f64,
    /// Distance in km.
    pub range_km: f64,
}

/// Satellites in view of each station. A satellite far below the horizon is skipped until it may have risen.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    stations: Vec<Station>,
    earth: Earth,
    /// Positions of the stations at time zero, turned back to Greenwich on the x axis.
    grounds: Vec<Ground>,
    /// Present positions of the stations.
    turned: Vec<Ground>,
    sine_of_mask: f64,
    /// Maximum angle at the Earth's centre between a station and a satellite in view, in radians.
    widest: f64,
    /// Maximum change of that angle per step, in radians.
    angle_per_step: f64,
    /// Satellites in view of each station, in ascending order.
    in_view: Vec<Vec<Seen>>,
    /// True for stations that no satellite may serve now.
    out: Vec<bool>,
    /// Ring of pairs (station, satellite) to check again: entry `next` at the next step, and so on.
    deferred: Vec<Vec<(u32, Satellite)>>,
    next: usize,
}

/// Times after `from`, a step apart: `most` of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    pub from: Instant,
    pub step: Duration,
    pub most: u32,
}

impl Coverage {
    /// Computes the coverage of stations in steps of `step`.
    pub fn new(constellation: &Constellation, stations: &[Station], mask_deg: f64, step: Duration) -> Self {
        let (speed, radius_km) = constellation.bounds();
        let widest = widest_view(constellation.earth, radius_km, mask_deg);
        let everything = (0..stations.len() as u32).flat_map(|station| {
            (0..constellation.len() as Satellite).map(move |satellite| (station, satellite))
        });
        let mut deferred = vec![Vec::new(); MOST_STEPS];
        deferred[0] = everything.collect();
        let earth = constellation.earth;
        let grounds: Vec<_> =
            stations.iter().map(|station| Ground::of(station, earth, Instant::ZERO)).collect();
        let speed = speed + stations.iter().map(Station::speed).fold(0.0, f64::max);
        Self {
            turned: grounds.clone(),
            grounds,
            in_view: vec![Vec::new(); stations.len()],
            out: vec![false; stations.len()],
            stations: stations.to_vec(),
            earth,
            sine_of_mask: libm::sin(mask_deg.to_radians()),
            widest,
            angle_per_step: speed * step.as_secs_f64(),
            deferred,
            next: 0,
        }
    }

    /// Advances to the step at `now`; `greenwich` is the rotation angle of the Earth.
    pub fn update(&mut self, now: Instant, positions: &[Vector], greenwich: f64) {
        for number in 0..self.stations.len() {
            self.turned[number] = self.ground_at(number, now).turned(greenwich);
            self.out[number] = self.stations[number].is_out(now);
        }
        let due = std::mem::take(&mut self.deferred[self.next]);
        for station in 0..self.stations.len() {
            let ground = self.turned[station];
            let mut in_view = std::mem::take(&mut self.in_view[station]);
            in_view.retain_mut(|seen| {
                let satellite = seen.satellite;
                (seen.sine, seen.range_km) = ground.look(positions[satellite as usize]);
                let stays = seen.sine > self.sine_of_mask;
                if !stays {
                    self.defer((station as u32, satellite), positions[satellite as usize]);
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
                self.defer((station, satellite), place);
            }
        }
        self.next = (self.next + 1) % MOST_STEPS;
    }

    /// Returns the position of a station at a time, turned back to Greenwich on the x axis.
    fn ground_at(&self, station: usize, at: Instant) -> Ground {
        let moves = !self.stations[station].way.is_empty();
        if moves { Ground::of(&self.stations[station], self.earth, at) } else { self.grounds[station] }
    }

    fn defer(&mut self, (station, satellite): (u32, Satellite), place: Vector) {
        let beyond = self.turned[station as usize].place.angle_to(place) - self.widest;
        let steps = (beyond / self.angle_per_step) as usize;
        let steps = steps.clamp(1, MOST_STEPS - 1);
        self.deferred[(self.next + steps) % MOST_STEPS].push((station, satellite));
    }

    /// Returns the satellites in view of a station, in ascending order; none during an outage.
    pub fn in_view(&self, station: usize) -> &[Seen] {
        if self.out[station] { &[] } else { &self.in_view[station] }
    }

    /// Returns the present position of a station.
    pub fn place(&self, station: usize) -> Vector {
        self.turned[station].place
    }

    /// Returns the number of steps for which a satellite stays in view of a station.
    pub fn remains(
        &self,
        constellation: &Constellation,
        station: usize,
        satellite: Satellite,
        Steps { from, step, most }: Steps,
    ) -> Result<u32, OrbitError> {
        for later in 1..=most {
            let at = from + step * u64::from(later);
            let ground = self.ground_at(station, at).turned(constellation.greenwich(at));
            if ground.look(constellation.position(satellite, at)?).0 <= self.sine_of_mask {
                return Ok(later - 1);
            }
        }
        Ok(most)
    }
}
