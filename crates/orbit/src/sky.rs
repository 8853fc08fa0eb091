//! Serving satellites and paths of all stations, step by step.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use bentpipe_base::{Duration, Instant};

use crate::constellation::Constellation;
use crate::coverage::{Coverage, Seen, Steps};
use crate::earth::{Station, delay_of_km};
use crate::error::OrbitError;
use crate::handover::Handover;
use crate::mesh::{Grid, Mesh};
use crate::planes::Satellite;
use crate::tree::{Towards, Tree};
use crate::vector::Vector;

/// Maximum number of steps in the search for the satellite that stays in view longest; a pass is shorter.
const LONGEST_PASS: u32 = 2_000;

/// Rules for links of stations and satellites.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// Minimum elevation of a usable satellite in degrees, from 0 to below 90.
    pub elevation_mask_deg: f64,
    /// Selection of the serving satellite.
    pub handover: Handover,
    /// Links between satellites. `None` means bent pipes: a station is served only by satellites that a gateway has in view.
    pub grid: Option<Grid>,
    /// Time between two steps, above 0; nothing changes between them.
    pub step: Duration,
}

/// Next hop of a packet at a satellite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// Down to the ground station with this number.
    Ground(usize),
    /// To another satellite.
    Satellite(Satellite),
}

/// End of a path.
#[derive(Clone, PartialEq, Debug)]
enum End {
    /// A ground station.
    Station,
    /// A satellite that ends connections.
    Satellite(Satellite),
    /// The best of several stations, each with an additional length in km.
    AnyOf(Vec<(usize, f64)>),
}

/// Path through the constellation.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// Length in km from end to end.
    pub distance_km: f64,
    /// Satellites on the path, at least one.
    pub satellites: Vec<Satellite>,
}

impl Path {
    /// Returns the propagation delay.
    pub fn delay_one_way(&self) -> Duration {
        delay_of_km(self.distance_km)
    }
}

/// Serving satellites and paths of least delay at one time.
#[derive(Clone, Debug)]
pub struct Sky<'a> {
    constellation: &'a Constellation,
    rules: Rules,
    gateways: Vec<bool>,
    now: Instant,
    positions: Vec<Vector>,
    coverage: Coverage,
    mesh: Mesh,
    /// Satellites that serve each station, with their distances in km.
    serving: Vec<Vec<(Satellite, f64)>>,
    /// Ends of paths: the stations, then those added.
    ends: Vec<End>,
    /// Paths to each end, with the time of their computation.
    trees: Vec<(Option<Instant>, Tree)>,
    /// State for handover by paths: the first satellite of the path between two ends, and the last satellites of the paths to
    /// each end. Both are kept for this step and the previous one.
    first: BTreeMap<(usize, usize), Satellite>,
    last: Vec<BTreeSet<Satellite>>,
    last_before: Vec<BTreeSet<Satellite>>,
}

impl<'a> Sky<'a> {
    /// Computes the state at time zero.
    ///
    /// # Errors
    /// [`OrbitError::Impossible`] for an invalid station or rule.
    pub fn new(
        constellation: &'a Constellation,
        stations: &[Station],
        rules: Rules,
    ) -> Result<Self, OrbitError> {
        if !(rules.elevation_mask_deg >= 0.0 && rules.elevation_mask_deg < 90.0) {
            let accepted = "degrees from 0 to below 90";
            return Err(OrbitError::impossible("elevation-mask", rules.elevation_mask_deg, accepted));
        }
        if rules.step.is_zero() {
            return Err(OrbitError::impossible("step", rules.step, "longer than 0 s"));
        }
        rules.handover.validate()?;
        stations.iter().try_for_each(Station::validate)?;
        let gateways: Vec<bool> = stations.iter().map(|station| station.gateway).collect();
        if rules.grid.is_none() && !gateways.contains(&true) {
            let accepted = "a station that is a gateway, since bent pipes connect others only to those";
            return Err(OrbitError::impossible("gateway", "none", accepted));
        }
        let mut sky = Self {
            constellation,
            rules,
            gateways,
            now: Instant::ZERO,
            positions: Vec::new(),
            coverage: Coverage::new(constellation, stations, rules.elevation_mask_deg, rules.step),
            mesh: Mesh::new(constellation, rules.grid.as_ref())?,
            serving: vec![Vec::new(); stations.len()],
            ends: Vec::new(),
            trees: Vec::new(),
            first: BTreeMap::new(),
            last: Vec::new(),
            last_before: Vec::new(),
        };
        for _ in stations {
            sky.add_end(End::Station);
        }
        sky.update()?;
        Ok(sky)
    }

    /// Adds a satellite as an end of paths. Returns its number; stations have the numbers before it.
    pub fn add_satellite(&mut self, satellite: Satellite) -> usize {
        self.add_end(End::Satellite(satellite))
    }

    /// Adds an end that is the best of several stations, each with an additional length in km: that from the station to a host, for
    /// example. Returns the number of the end.
    pub fn add_any_of(&mut self, stations: Vec<(usize, f64)>) -> usize {
        self.add_end(End::AnyOf(stations))
    }

    fn add_end(&mut self, end: End) -> usize {
        self.ends.push(end);
        self.trees.push((None, Tree::new(self.constellation.len())));
        self.last.push(BTreeSet::new());
        self.last_before.push(BTreeSet::new());
        self.ends.len() - 1
    }

    /// Advances to the next step.
    ///
    /// # Errors
    /// [`OrbitError::Lost`] if the elements of a satellite are not valid at that time.
    pub fn advance(&mut self) -> Result<(), OrbitError> {
        self.now += self.rules.step;
        self.last_before = self.last.iter_mut().map(std::mem::take).collect();
        self.update()
    }

    fn update(&mut self) -> Result<(), OrbitError> {
        self.constellation.positions(self.now, &mut self.positions)?;
        self.mesh.update(self.now, &self.positions);
        self.coverage.update(self.now, &self.positions, self.constellation.greenwich(self.now));
        (0..self.serving.len()).try_for_each(|station| self.serve(station))
    }

    /// Selects the satellites that serve a station: all for a gateway or if paths select them, else one of each shell.
    fn serve(&mut self, station: usize) -> Result<(), OrbitError> {
        let seen = self.coverage.in_view(station).iter().copied();
        let usable = seen.filter_map(|seen| Some((self.shell_of(seen.satellite)?, seen)));
        let mut usable: Vec<(u32, Seen)> = usable.collect();
        let served = |seen: &Seen| (seen.satellite, seen.range_km);
        if self.gateways[station] || self.rules.handover.margin_km().is_some() {
            self.serving[station].clear();
            self.serving[station].extend(usable.iter().map(|(_, seen)| served(seen)));
            return Ok(());
        }
        usable.retain(|(_, seen)| self.is_usable(seen.satellite));
        usable.sort_by_key(|(shell, seen)| (*shell, seen.satellite));
        let remains = |satellite| {
            let steps = Steps { from: self.now, step: self.rules.step, most: LONGEST_PASS };
            self.coverage.remains(self.constellation, station, satellite, steps)
        };
        let mut serving = Vec::new();
        for of_shell in usable.chunk_by(|a, b| a.0 == b.0) {
            let before = self.serving[station].iter().map(|(satellite, _)| *satellite);
            let present = before.clone().find(|before| self.shell_of(*before) == Some(of_shell[0].0));
            let seen: Vec<Seen> = of_shell.iter().map(|(_, seen)| *seen).collect();
            let chosen = self.rules.handover.choose(self.constellation, present, &seen, remains)?;
            serving.extend(seen.iter().filter(|seen| Some(seen.satellite) == chosen).map(served));
        }
        self.serving[station] = serving;
        Ok(())
    }

    /// Returns the shell whose links reach a satellite; `None` if none do. Without links all satellites count as one shell.
    fn shell_of(&self, satellite: Satellite) -> Option<u32> {
        if self.rules.grid.is_some() {
            self.constellation.layout.shell_of[satellite as usize]
        } else {
            Some(0)
        }
    }

    /// True if a bent-pipe satellite is also in view of a gateway.
    fn is_usable(&self, satellite: Satellite) -> bool {
        let seen_by = |station: usize| {
            let in_view = self.coverage.in_view(station);
            in_view.binary_search_by_key(&satellite, |seen| seen.satellite).is_ok()
        };
        self.rules.grid.is_some()
            || (0..self.gateways.len()).any(|station| self.gateways[station] && seen_by(station))
    }

    /// Returns the time of the present step.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the constellation.
    pub fn constellation(&self) -> &'a Constellation {
        self.constellation
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the present positions of the satellites.
    pub fn positions(&self) -> &[Vector] {
        &self.positions
    }

    /// Returns the present position of a station.
    pub fn place(&self, station: usize) -> Vector {
        self.coverage.place(station)
    }

    /// Returns the satellites that serve a station, with distances in km: at most one of each shell, unless it is a gateway or paths select it.
    pub fn serving(&self, station: usize) -> &[(Satellite, f64)] {
        &self.serving[station]
    }

    /// Returns number, elevation in degrees and distance in km of each satellite above a station's mask; none during an outage.
    pub fn in_view(&self, station: usize) -> impl Iterator<Item = (Satellite, f64, f64)> + '_ {
        let seen = self.coverage.in_view(station).iter();
        seen.map(|seen| (seen.satellite, libm::asin(seen.sine.min(1.0)).to_degrees(), seen.range_km))
    }

    /// Returns the present path of least delay between two ends, given by number; `None` if one is not served, or no links join them.
    pub fn path(&mut self, from: usize, to: usize) -> Option<Path> {
        let mut satellites = Vec::new();
        let distance_km = self.find_path(from, to, &mut satellites)?;
        Some(Path { distance_km, satellites })
    }

    /// As [`Sky::path`], with the satellites in the caller's buffer. Returns the length in km, that behind the last station included.
    pub fn find_path(&mut self, from: usize, to: usize, satellites: &mut Vec<Satellite>) -> Option<f64> {
        satellites.clear();
        self.refresh(to);
        let first = self.first_of(from, to)?;
        let tree = &self.trees[to].1;
        let mut distance_km = self.range_km(from, first)?;
        let mut next = Some(first);
        while let Some(satellite) = next {
            debug_assert!(satellites.len() < self.positions.len(), "no path meets a satellite twice");
            satellites.push(satellite);
            next = match tree.towards(satellite) {
                Towards::Link(id) => self.mesh.across(id, satellite).map(|(other, length_km)| {
                    distance_km += length_km;
                    other
                }),
                Towards::End | Towards::Nowhere => None,
            };
        }
        if self.rules.handover.margin_km().is_none() {
            return Some(self.range_km(from, first)? + tree.distance_km(first));
        }
        let last = *satellites.last()?;
        distance_km += self.range_km(to, last)?;
        self.first.insert((from, to), first);
        self.last[to].insert(last);
        Some(distance_km)
    }

    /// Returns the satellites at which paths of an end begin, with the length in km beyond each.
    fn overhead(&self, end: usize) -> Cow<'_, [(Satellite, f64)]> {
        match &self.ends[end] {
            End::Station => Cow::Borrowed(&self.serving[end]),
            End::Satellite(satellite) => Cow::Owned(vec![(*satellite, 0.0)]),
            End::AnyOf(stations) => {
                let mut least: BTreeMap<Satellite, f64> = BTreeMap::new();
                for (station, further_km) in stations {
                    for (satellite, range_km) in &self.serving[*station] {
                        let known = least.entry(*satellite).or_insert(f64::INFINITY);
                        *known = known.min(range_km + further_km);
                    }
                }
                Cow::Owned(least.into_iter().collect())
            }
        }
    }

    /// Returns the length in km between an end and a satellite at which its paths begin.
    fn range_km(&self, end: usize, satellite: Satellite) -> Option<f64> {
        let overhead = self.overhead(end);
        overhead.iter().find(|(one, _)| *one == satellite).map(|(_, range_km)| *range_km)
    }

    /// Returns the first satellite of the path of least delay. With a margin it is the previous step's, unless another saves
    /// more.
    fn first_of(&self, from: usize, to: usize) -> Option<Satellite> {
        let tree = &self.trees[to].1;
        let overhead = self.overhead(from);
        let lengths = || overhead.iter().map(|&(first, range)| (first, range + tree.distance_km(first)));
        let best = lengths().reduce(|best, one| if one.1 < best.1 { one } else { best })?;
        let margin_km = self.rules.handover.margin_km().unwrap_or(0.0);
        let before = self.first.get(&(from, to));
        let kept = lengths().find(|one| Some(&one.0) == before && one.1 <= best.1 + margin_km);
        best.1.is_finite().then_some(kept.unwrap_or(best).0)
    }

    /// Returns the present next hop of a satellite towards an end, given by number; `None` without a path, or if it is the end.
    pub fn next_hop(&mut self, satellite: Satellite, to: usize) -> Option<Hop> {
        self.refresh(to);
        match self.trees[to].1.towards(satellite) {
            Towards::End => self.station_below(satellite, to).map(Hop::Ground),
            Towards::Link(id) => self.mesh.across(id, satellite).map(|(other, _)| Hop::Satellite(other)),
            Towards::Nowhere => None,
        }
    }

    /// Returns the station of an end to which a satellite sends down.
    fn station_below(&self, satellite: Satellite, end: usize) -> Option<usize> {
        let stations = match &self.ends[end] {
            End::Station => return Some(end),
            End::Satellite(_) => return None,
            End::AnyOf(stations) => stations,
        };
        let length_km = |(station, further_km): &(usize, f64)| {
            let range_km = self.range_km(*station, satellite)?;
            Some((*station, range_km + further_km))
        };
        let lengths = stations.iter().filter_map(length_km);
        lengths.reduce(|best, one| if one.1 < best.1 { one } else { best }).map(|(station, _)| station)
    }

    /// True if two satellites are linked now.
    pub fn are_linked(&self, a: Satellite, b: Satellite) -> bool {
        self.mesh.around(a).any(|(_, other, length_km)| other == b && length_km.is_finite())
    }

    /// Returns the pairs of satellites that are linked now.
    pub fn links(&self) -> impl Iterator<Item = [Satellite; 2]> + '_ {
        self.mesh.edges().filter(|(_, length_km)| length_km.is_finite()).map(|(ends, _)| ends)
    }

    /// Updates the paths to an end.
    fn refresh(&mut self, end: usize) {
        if self.trees[end].0 == Some(self.now) {
            return;
        }
        let mut tree = std::mem::take(&mut self.trees[end].1);
        let overhead = self.overhead(end);
        let before = &self.last_before[end];
        match self.rules.handover.margin_km().filter(|_| !before.is_empty()) {
            // Other last satellites count as farther by the margin.
            Some(margin_km) => {
                let farther =
                    |satellite: Satellite| if before.contains(&satellite) { 0.0 } else { margin_km };
                let with_margin = overhead.iter().map(|&(one, range_km)| (one, range_km + farther(one)));
                tree.repair(&self.mesh, &with_margin.collect::<Vec<_>>());
            }
            None => tree.repair(&self.mesh, &overhead),
        }
        self.trees[end] = (Some(self.now), tree);
    }
}
