//! Constellation and weather of a run, for the globe and the curves of the live view.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant};
use bentpipe_lab::report::{PathChange, path_changes};
use bentpipe_orbit::{Constellation, EARTH_RADIUS_KM, Satellite, Vector};
use bentpipe_scenario::{ConstellationGroup, Scenario, TopologyError};
use serde::Serialize;

use crate::world::Refusal;

/// Number of times at which the page knows the positions of satellites. It interpolates between them.
const POSITIONS: usize = 60;
/// Minimum time between two of them, in seconds. A satellite in low orbit moves 75 km in this time.
const LEAST_STEP_S: f64 = 10.0;
/// Points of a curve of attenuation.
const FADE_POINTS: usize = 400;

/// A constellation in an interval of a run.
#[derive(Serialize)]
pub struct Sky {
    stations: Vec<Station>,
    /// Names of the satellites.
    satellites: Vec<String>,
    /// Times of the positions in seconds.
    at_s: Vec<f64>,
    /// At each time x, y and z of each satellite, as [`fixed`] returns them.
    positions: Vec<Vec<f64>>,
    links: Vec<Link>,
    paths: Vec<Path>,
}

#[derive(Serialize)]
struct Station {
    name: String,
    position: [f64; 3],
}

/// A link between two satellites while it exists.
#[derive(Serialize)]
struct Link {
    ends: [Satellite; 2],
    from_s: f64,
    until_s: f64,
}

/// A path between two ends, from its change until the next one.
#[derive(Serialize)]
struct Path {
    /// Names of the ends, `A to B`.
    name: String,
    /// Numbers of the stations; none for a satellite.
    ends: [Option<usize>; 2],
    at_s: f64,
    /// Numbers of the satellites in order; empty without a path.
    satellites: Vec<usize>,
    /// Changes of the first or last satellite so far.
    handovers: u64,
}

/// Attenuation of a link by the weather.
#[derive(Serialize)]
pub struct Fade {
    link: String,
    at_s: Vec<f64>,
    attenuation_db: Vec<f64>,
}

/// Returns a position relative to the rotating Earth, in Earth radii with four digits: x points to Greenwich, z to the north pole.
fn fixed(position: Vector, greenwich: f64) -> [f64; 3] {
    let (sin, cos) = greenwich.sin_cos();
    let Vector { x, y, z } = position;
    [x * cos + y * sin, y * cos - x * sin, z].map(|km| (km / EARTH_RADIUS_KM * 1e4).round() / 1e4)
}

/// Returns the constellation from `from_s` seconds to the end of `scenario`; `None` if there is none.
pub fn sky(scenario: &Scenario, from_s: f64) -> Result<Option<Sky>, Refusal> {
    let Some(group) = scenario.constellations.first() else { return Ok(None) };
    let refused = |error| TopologyError::Orbit { constellation: group.name.clone(), error };
    let constellation = group.fly(scenario.duration).map_err(refused)?;
    let satellites: Vec<String> =
        (0..constellation.len() as Satellite).map(|one| constellation.name(one).to_owned()).collect();
    let at_s = times(from_s, scenario.duration.as_secs_f64());
    let positions = at_s.iter().map(|at| positions(&constellation, *at).map_err(refused));
    let positions = positions.collect::<Result<_, _>>()?;
    let (stations, links) = ground_and_links(scenario, group, &constellation)?;
    let paths = path_changes(scenario)?.iter().map(|change| path(change, &stations, &satellites)).collect();
    Ok(Some(Sky { stations, satellites, at_s, positions, links, paths }))
}

fn times(from_s: f64, until_s: f64) -> Vec<f64> {
    let step = ((until_s - from_s) / POSITIONS as f64).max(LEAST_STEP_S);
    let count = ((until_s - from_s) / step).ceil() as usize;
    (0..count).map(|index| from_s + step * index as f64).chain([until_s]).collect()
}

fn positions(constellation: &Constellation, at_s: f64) -> Result<Vec<f64>, bentpipe_orbit::OrbitError> {
    let at = Instant::ZERO + Duration::from_secs_f64(at_s);
    let mut positions = Vec::new();
    constellation.positions(at, &mut positions)?;
    let greenwich = constellation.greenwich(at);
    Ok(positions.into_iter().flat_map(|position| fixed(position, greenwich)).collect())
}

/// Returns the ground stations, and the links between satellites over time.
fn ground_and_links(
    scenario: &Scenario,
    group: &ConstellationGroup,
    constellation: &Constellation,
) -> Result<(Vec<Station>, Vec<Link>), TopologyError> {
    let refused = |error| TopologyError::Orbit { constellation: group.name.clone(), error };
    let stations = scenario.ground_stations();
    let mut sky = group.sky(constellation, &stations).map_err(refused)?;
    let greenwich = constellation.greenwich(sky.now());
    let station = |(number, station): (usize, bentpipe_orbit::Station)| Station {
        name: station.name,
        position: fixed(sky.place(number), greenwich),
    };
    let stations = stations.into_iter().enumerate().map(station).collect();
    let end = Instant::ZERO + scenario.duration;
    let (mut links, mut open) = (Vec::new(), BTreeMap::new());
    loop {
        let now_s = sky.now().min(end).as_secs_f64();
        let present: BTreeMap<[Satellite; 2], f64> =
            sky.links().map(|ends| (ends, *open.get(&ends).unwrap_or(&now_s))).collect();
        let ended = open.iter().filter(|(ends, _)| !present.contains_key(*ends));
        links.extend(ended.map(|(&ends, &from_s)| Link { ends, from_s, until_s: now_s }));
        open = present;
        if sky.now() >= end {
            links.extend(open.into_iter().map(|(ends, from_s)| Link { ends, from_s, until_s: now_s }));
            return Ok((stations, links));
        }
        sky.advance().map_err(refused)?;
    }
}

fn path(change: &PathChange, stations: &[Station], satellites: &[String]) -> Path {
    let name = change.path.clone();
    let from = stations.iter().position(|station| name.starts_with(&format!("{} to ", station.name)));
    let to = stations.iter().position(|station| name.ends_with(&format!(" to {}", station.name)));
    let number = |name: &String| satellites.iter().position(|other| other == name);
    Path {
        name,
        ends: [from, to],
        at_s: change.at_s,
        satellites: change.satellites.iter().filter_map(number).collect(),
        handovers: change.handovers,
    }
}

/// Returns the attenuation over the run of each link with a modem and weather.
pub fn fades(scenario: &Scenario) -> Vec<Fade> {
    let end = scenario.duration;
    let at: Vec<Duration> =
        (0..=FADE_POINTS).map(|step| end.mul_f64(step as f64 / FADE_POINTS as f64)).collect();
    let directions = scenario.links.iter().flat_map(|link| {
        let names = [link.name.clone(), format!("{} reverse", link.name)];
        names.into_iter().zip(&link.radio).filter(|(_, radio)| radio.modem.is_some())
    });
    let fade = |(link, radio): (String, &bentpipe_scenario::Radio)| Fade {
        link,
        at_s: at.iter().map(|at| at.as_secs_f64()).collect(),
        attenuation_db: at.iter().map(|at| radio.weather.attenuation_db(*at)).collect(),
    };
    directions.map(fade).filter(|fade| fade.attenuation_db.iter().any(|db| *db > 0.0)).collect()
}
