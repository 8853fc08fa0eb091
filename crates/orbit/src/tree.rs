//! Shortest paths to one end, repaired at each step.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::mesh::{EdgeId, Mesh};
use crate::planes::Satellite;

/// Next hop of each satellite on its shortest path to an end: a station, one of several, or a satellite.
///
/// Between two steps lengths change little and paths rarely. Distances of the existing tree are computed again from the root
/// outwards. Where a link then offers a shorter path, Dijkstra's search (1959) continues. The result equals a new search: all
/// distances belong to existing paths, and no link offers a shorter one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// Distance to the end in km; infinite without a path.
    distances_km: Vec<f64>,
    towards: Vec<Towards>,
    /// Satellites in an order in which each follows its next hop.
    outwards: Vec<Satellite>,
    /// Satellites whose links may offer shorter paths, by distance.
    frontier: BinaryHeap<Reverse<(u64, Satellite)>>,
}

/// Next hop of a satellite towards the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Towards {
    /// Down to a station, or nowhere because the satellite is the end.
    End,
    /// Over a link between satellites.
    Link(EdgeId),
    /// No path to the end.
    Nowhere,
}

/// Returns a number that orders distances, which are never negative.
fn key(distance_km: f64) -> u64 {
    distance_km.to_bits()
}

impl Tree {
    /// Makes a tree over `satellites` satellites without paths.
    pub fn new(satellites: usize) -> Self {
        Self {
            distances_km: vec![f64::INFINITY; satellites],
            towards: vec![Towards::Nowhere; satellites],
            outwards: (0..satellites as Satellite).collect(),
            frontier: BinaryHeap::new(),
        }
    }

    /// Updates the tree for the present lengths. `overhead` holds the satellites at which paths to
    /// the end leave the constellation, each once, with distances in km.
    pub fn repair(&mut self, mesh: &Mesh, overhead: &[(Satellite, f64)]) {
        let mut changed = self.measure(mesh, overhead);
        for &(satellite, range_km) in overhead {
            changed |= self.offer(satellite, range_km, Towards::End);
        }
        for (id, ([a, b], length_km)) in mesh.edges().enumerate() {
            let link = Towards::Link(id as EdgeId);
            changed |= self.offer(b, self.distances_km[a as usize] + length_km, link);
            changed |= self.offer(a, self.distances_km[b as usize] + length_km, link);
        }
        while let Some(Reverse((reached, satellite))) = self.frontier.pop() {
            let distance_km = self.distances_km[satellite as usize];
            if reached > key(distance_km) {
                continue;
            }
            for (id, other, length_km) in mesh.around(satellite) {
                self.offer(other, distance_km + length_km, Towards::Link(id));
            }
        }
        if changed {
            let distances_km = &self.distances_km;
            self.outwards
                .sort_unstable_by_key(|satellite| (key(distances_km[*satellite as usize]), *satellite));
        }
    }

    /// Computes the distances in the present tree; returns true if a path is broken. A seam link may now lead to another
    /// satellite. A path over a satellite without a computed distance is also broken, since it could form a loop.
    fn measure(&mut self, mesh: &Mesh, overhead: &[(Satellite, f64)]) -> bool {
        let mut broken = false;
        self.distances_km.fill(f64::INFINITY);
        for &satellite in &self.outwards {
            let distance_km = match self.towards[satellite as usize] {
                Towards::Nowhere => continue,
                Towards::End => overhead.iter().find(|(one, _)| *one == satellite).map(|(_, range)| *range),
                Towards::Link(id) => mesh
                    .across(id, satellite)
                    .map(|(next, length_km)| self.distances_km[next as usize] + length_km),
            };
            let distance_km = distance_km.unwrap_or(f64::INFINITY);
            self.distances_km[satellite as usize] = distance_km;
            if distance_km.is_infinite() {
                self.towards[satellite as usize] = Towards::Nowhere;
                broken = true;
            }
        }
        broken
    }

    /// Accepts a path if it is shorter than the present one.
    #[inline]
    fn offer(&mut self, satellite: Satellite, distance_km: f64, way: Towards) -> bool {
        let shorter = distance_km < self.distances_km[satellite as usize];
        if shorter {
            self.distances_km[satellite as usize] = distance_km;
            self.towards[satellite as usize] = way;
            self.frontier.push(Reverse((key(distance_km), satellite)));
        }
        shorter
    }

    /// Returns the distance of a satellite to the end in km; infinite without a path.
    pub fn distance_km(&self, satellite: Satellite) -> f64 {
        self.distances_km[satellite as usize]
    }

    /// Returns the next hop of a satellite.
    pub fn towards(&self, satellite: Satellite) -> Towards {
        self.towards[satellite as usize]
    }
}
