//! Links between satellites.

use core::ops::Range;

use bentpipe_base::Instant;

use crate::constellation::Constellation;
use crate::earth::EARTH_RADIUS_KM;
use crate::error::OrbitError;
use crate::listed::Listed;
use crate::matching::neighbours;
use crate::planes::{Closure, Planes, Satellite};
use crate::vector::Vector;

/// Altitude below which the atmosphere bends and attenuates a beam, as in ns-2.
const GRAZING_KM: f64 = 150.0;

/// Links between satellites: neighbours in the same plane and in adjacent planes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Grid {
    /// Number of linked satellites ahead and behind in the plane, each.
    pub in_plane: u32,
    /// Number of planes on either side with a link to a neighbour.
    pub across: u32,
    /// True for links across a seam: each satellite of the first plane has a link to the nearest of the last plane.
    pub across_seam: bool,
    /// Latitude in degrees above which links to other planes are off, because neighbours change sides near the poles.
    pub latitude_limit_deg: f64,
}

impl Grid {
    /// Four links at all latitudes: ahead, behind, left and right; none across a seam.
    pub const PLUS: Self = Self { in_plane: 1, across: 1, across_seam: false, latitude_limit_deg: 90.0 };
    /// Iridium's links, with the latitude limit of the ns-2 examples.
    pub const IRIDIUM: Self = Self { latitude_limit_deg: 60.0, ..Self::PLUS };
    /// No links, besides those that are given explicitly.
    pub const NONE: Self = Self { in_plane: 0, across: 0, ..Self::PLUS };
    /// Teledesic's eight links, with the latitude limit of the ns-2 examples.
    pub const TELEDESIC: Self = Self { in_plane: 2, across: 2, across_seam: true, latitude_limit_deg: 60.0 };

    fn validate(&self) -> Result<(), OrbitError> {
        if !(0.0..=90.0).contains(&self.latitude_limit_deg) {
            let accepted = "degrees from 0 to 90";
            return Err(OrbitError::impossible("links.latitude-limit", self.latitude_limit_deg, accepted));
        }
        Ok(())
    }
}

/// Number of a link between satellites.
pub(crate) type EdgeId = u32;

/// All links between satellites, with their present lengths.
#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    edges: Vec<Edge>,
    /// Present length of each link in km; infinite while it is off.
    lengths_km: Vec<f64>,
    /// Links of each satellite, in `around` from `first[satellite]` to the next entry.
    first: Vec<u32>,
    around: Vec<EdgeId>,
    /// Square of the sine of the latitude limit.
    limit: f64,
    /// True if links within a plane have constant length.
    rigid: bool,
    /// The last plane before each seam that links cross.
    seams: Vec<Vec<Satellite>>,
    /// Times of the explicit links.
    times: Vec<Range<Instant>>,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    ends: [Satellite; 2],
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    InPlane,
    Across,
    /// Link over a seam: the second end is the satellite at index `place` of the last plane, and changes.
    Seam {
        seam: u32,
        place: u32,
    },
    /// Explicit link, with the number of its times.
    Listed(u32),
}

impl Mesh {
    /// Makes the links of a grid; without a grid there are none.
    pub fn new(constellation: &Constellation, grid: Option<&Grid>) -> Result<Self, OrbitError> {
        let mut mesh = Self {
            edges: Vec::new(),
            lengths_km: Vec::new(),
            first: Vec::new(),
            around: Vec::new(),
            limit: 1.0,
            rigid: constellation.is_rigid(),
            seams: Vec::new(),
            times: Vec::new(),
        };
        if let Some(grid) = grid {
            grid.validate()?;
            let sine = libm::sin(grid.latitude_limit_deg.to_radians());
            mesh.limit = sine * sine;
            for shell in &constellation.layout.shells {
                mesh.join_shell(shell, &constellation.layout.phases, grid);
            }
            for Listed { ends, during, .. } in &constellation.listed {
                let kind = Kind::Listed(mesh.times.len() as u32);
                mesh.edges.push(Edge { ends: *ends, kind });
                mesh.times.push(during.clone());
            }
        }
        mesh.lengths_km = vec![f64::NAN; mesh.edges.len()];
        mesh.index(constellation.len());
        Ok(mesh)
    }

    fn join_shell(&mut self, shell: &Planes, phases: &[f64], grid: &Grid) {
        shell.members.iter().for_each(|plane| self.join_plane(plane, grid.in_plane));
        let of_plane = |plane: &Vec<Satellite>| plane.iter().map(|one| phases[*one as usize]).collect();
        let phases: Vec<Vec<f64>> = shell.members.iter().map(of_plane).collect();
        (1..=grid.across).for_each(|apart| self.join_planes(shell, &phases, apart as usize));
        if grid.across_seam && shell.closure == Closure::Seam {
            self.join_seam(shell);
        }
    }

    fn join_plane(&mut self, plane: &[Satellite], reach: u32) {
        let count = plane.len();
        for apart in 1..=(reach as usize) {
            // Beyond half of the plane it would be a link of a nearer pair, or the same link twice.
            let pairs = match (apart * 2).cmp(&count) {
                core::cmp::Ordering::Less => count,
                core::cmp::Ordering::Equal => apart,
                core::cmp::Ordering::Greater => 0,
            };
            for index in 0..pairs {
                let ends = [plane[index], plane[(index + apart) % count]];
                self.edges.push(Edge { ends, kind: Kind::InPlane });
            }
        }
    }

    fn join_planes(&mut self, planes: &Planes, phases: &[Vec<f64>], apart: usize) {
        let count = planes.members.len();
        let closes = planes.closure == Closure::Ring && apart * 2 < count;
        let pairs = if closes { count } else { count.saturating_sub(apart) };
        for west in 0..pairs {
            let east = (west + apart) % count;
            for (a, b) in neighbours(&phases[west], &phases[east], &phases[0]) {
                let ends = [planes.members[west][a], planes.members[east][b]];
                self.edges.push(Edge { ends, kind: Kind::Across });
            }
        }
    }

    fn join_seam(&mut self, planes: &Planes) {
        let [first, .., last] = planes.members.as_slice() else { return };
        let kind = Kind::Seam { seam: self.seams.len() as u32, place: 0 };
        self.edges.extend(first.iter().map(|satellite| Edge { ends: [*satellite, last[0]], kind }));
        self.seams.push(last.clone());
    }

    /// Builds the index of each satellite's links.
    fn index(&mut self, satellites: usize) {
        let mut counts = vec![0_u32; satellites + 1];
        for end in self.edges.iter().flat_map(|edge| edge.ends) {
            counts[end as usize + 1] += 1;
        }
        for index in 0..satellites {
            counts[index + 1] += counts[index];
        }
        self.first.clone_from(&counts);
        self.around.clear();
        self.around.resize(2 * self.edges.len(), 0);
        for (id, edge) in self.edges.iter().enumerate() {
            for end in edge.ends {
                self.around[counts[end as usize] as usize] = id as EdgeId;
                counts[end as usize] += 1;
            }
        }
    }

    /// Updates the lengths for the positions at `now`.
    pub fn update(&mut self, now: Instant, positions: &[Vector]) {
        if self.reach_across_seam(positions) {
            self.index(positions.len());
        }
        for (edge, length_km) in self.edges.iter().zip(&mut self.lengths_km) {
            if edge.kind == Kind::InPlane && self.rigid && !length_km.is_nan() {
                continue;
            }
            let [a, b] = edge.ends.map(|end| positions[end as usize]);
            let limited = match edge.kind {
                Kind::InPlane => false,
                Kind::Across | Kind::Seam { .. } => [a, b].iter().any(|p| p.z * p.z > self.limit * p.dot(*p)),
                Kind::Listed(number) => !self.times[number as usize].contains(&now),
            };
            *length_km = if limited || !clears_the_earth(a, b) { f64::INFINITY } else { (a - b).length() };
        }
    }

    /// Connects each satellite at the seam to the nearest peer; returns true if one has changed.
    fn reach_across_seam(&mut self, positions: &[Vector]) -> bool {
        if self.seams.is_empty() {
            return false;
        }
        let mut changed = false;
        for edge in &mut self.edges {
            let Kind::Seam { seam, place } = &mut edge.kind else { continue };
            let last = &self.seams[*seam as usize];
            let count = last.len() as u32;
            let here = positions[edge.ends[0] as usize];
            let distance = |place: u32| (positions[last[place as usize] as usize] - here).length();
            let start = *place;
            // The plane is a ring, so the distance decreases towards the nearest peer in one of the two directions.
            for ahead in [1, count - 1] {
                while distance((*place + ahead) % count) < distance(*place) {
                    *place = (*place + ahead) % count;
                }
            }
            edge.ends[1] = last[*place as usize];
            changed |= *place != start;
        }
        changed
    }

    pub fn edges(&self) -> impl Iterator<Item = ([Satellite; 2], f64)> + '_ {
        self.edges.iter().map(|edge| edge.ends).zip(self.lengths_km.iter().copied())
    }

    /// Returns the links of a satellite: number, other end, length in km.
    pub fn around(&self, satellite: Satellite) -> impl Iterator<Item = (EdgeId, Satellite, f64)> + '_ {
        let range = self.first[satellite as usize] as usize..self.first[satellite as usize + 1] as usize;
        self.around[range].iter().map(move |&id| {
            let [a, b] = self.edges[id as usize].ends;
            (id, if a == satellite { b } else { a }, self.lengths_km[id as usize])
        })
    }

    /// Returns the other end and the length of a link of `satellite`; `None` if the link no longer ends there.
    pub fn across(&self, id: EdgeId, satellite: Satellite) -> Option<(Satellite, f64)> {
        let length_km = self.lengths_km[id as usize];
        match self.edges[id as usize].ends {
            [a, b] if a == satellite => Some((b, length_km)),
            [a, b] if b == satellite => Some((a, length_km)),
            _ => None,
        }
    }
}

/// True if the beam between two satellites stays above the atmosphere.
fn clears_the_earth(a: Vector, b: Vector) -> bool {
    let middle = (a + b) * 0.5;
    let lowest = EARTH_RADIUS_KM + GRAZING_KM;
    middle.dot(middle) >= lowest * lowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shell;

    fn mesh(shell: &Shell, grid: &Grid) -> (Constellation, Mesh) {
        let constellation = Constellation::of_shell(shell).unwrap();
        let mut mesh = Mesh::new(&constellation, Some(grid)).unwrap();
        let mut positions = Vec::new();
        constellation.positions(Instant::ZERO, &mut positions).unwrap();
        mesh.update(Instant::ZERO, &positions);
        (constellation, mesh)
    }

    fn links(mesh: &Mesh, satellite: Satellite) -> Vec<Satellite> {
        let mut others: Vec<_> = mesh.around(satellite).map(|(_, other, _)| other).collect();
        others.sort_unstable();
        others
    }

    #[test]
    fn iridium_has_four_links_and_three_at_the_seam() {
        let (_, mesh) = mesh(&Shell::IRIDIUM, &Grid::IRIDIUM);
        assert_eq!(links(&mesh, 25), [14, 24, 26, 36]);
        assert_eq!(links(&mesh, 3), [2, 4, 14]);
        assert_eq!(mesh.edges().count(), 66 + 55);
    }

    #[test]
    fn teledesic_has_eight_links_and_crosses_the_seam() {
        let (constellation, mesh) = mesh(&Shell::TELEDESIC, &Grid::TELEDESIC);
        assert_eq!(links(&mesh, 100).len(), 8);
        let across = mesh.edges().filter(|([a, b], _)| *a < 24 && *b >= 264).collect::<Vec<_>>();
        assert_eq!(across.len(), 24);
        for ([a, b], length_km) in across {
            let place = |satellite| constellation.position(satellite, Instant::ZERO).unwrap();
            let least = (264..288).map(|peer| (place(peer) - place(a)).length()).fold(f64::MAX, f64::min);
            let limited = [a, b].iter().any(|&end| {
                let place = place(end);
                libm::fabs(place.z) > place.length() * libm::sin(60_f64.to_radians())
            });
            assert!(if limited { length_km.is_infinite() } else { (length_km - least).abs() < 1e-9 });
        }
    }

    #[test]
    fn a_beam_ends_where_it_grazes_the_atmosphere() {
        for (radius, limit) in [(7158.0, 5872.7), (7753.0, 8365.2)] {
            let pair = |distance: f64| {
                let half = distance / 2.0;
                let height = libm::sqrt(radius * radius - half * half);
                [-half, half].map(|x| Vector { x, y: height, z: 0.0 })
            };
            let clears = |distance| clears_the_earth(pair(distance)[0], pair(distance)[1]);
            assert!(clears(limit - 0.1) && !clears(limit + 0.1));
        }
    }

    #[test]
    fn links_to_other_planes_rest_near_the_poles() {
        let (constellation, mesh) = mesh(&Shell::IRIDIUM, &Grid::IRIDIUM);
        for ([a, b], length_km) in mesh.edges() {
            let latitude = |satellite| {
                let place = constellation.position(satellite, Instant::ZERO).unwrap();
                constellation.ground_under(place, Instant::ZERO).0.abs()
            };
            let across = a / 11 != b / 11;
            let high = latitude(a) > 60.0 || latitude(b) > 60.0;
            assert_eq!(length_km.is_infinite(), across && high, "{a} {b}");
        }
    }

    #[test]
    fn two_satellites_in_a_plane_hold_one_link() {
        let shell = Shell { planes: 1, per_plane: 2, altitude_km: 20_000.0, phasing: 0.0, ..Shell::IRIDIUM };
        let (_, mesh) = mesh(&shell, &Grid::TELEDESIC);
        assert_eq!(mesh.edges().count(), 1);
    }
}
