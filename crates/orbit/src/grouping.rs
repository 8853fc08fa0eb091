//! Shells and planes of satellites with mean elements.

use core::cmp::Reverse;
use core::f64::consts::TAU;
use core::mem;
use std::collections::BTreeMap;

use crate::elements::Elements;
use crate::left_out::{LeftOut, Reason};
use crate::planes::{Closure, Layout, Planes, Satellite};
use crate::vector::Vector;

/// Tolerance of the semi-major axis within a shell, as a part of it. 5 km at 550 km: OneWeb's planes are 4 km apart in altitude.
const AXIS: f64 = 7e-4;
/// Tolerance of the inclination within a shell, in degrees. Starlink's first shells are at 53.05 and 53.22 degrees.
const INCLINATION_DEG: f64 = 0.1;
/// Tolerance of the eccentricity within a shell.
const ECCENTRICITY: f64 = 5e-3;
/// Part of the tolerances in which satellites that hold their orbits are close together.
const CLOSE: f64 = 0.2;
/// Step in which shapes are rounded, as a part of what counts as close.
const ROUNDING: f64 = 0.1;
/// Minimum number of close satellites, as a part of the maximum in the shell. Fewer of them are passing through.
const PASSING: f64 = 0.05;
/// Difference of inclination in degrees at which a small group is on its way to or from a large shell.
const SAME_ORBITS_DEG: f64 = 1.0;
/// Minimum size of a group, as a part of the largest shell of about the same inclination, and of a plane, as a part of the usual
/// size in its shell.
const SMALL: f64 = 0.25;
/// Maximum difference of ascending nodes within a plane, in degrees. Operational shells keep their planes to a fraction of a
/// degree, at least 5 degrees apart.
const PLANE_GAP_DEG: f64 = 1.0;
/// Widest gap between neighbouring planes all around the Earth, in degrees. The planes of a star leave at least 180.
const RING_GAP_DEG: f64 = 120.0;

/// Groups satellites into shells with planes. Returns also the satellites that belong to none.
///
/// `states` holds position and velocity of each satellite at time zero.
pub(crate) fn layout(satellites: &[Elements], states: &[(Vector, Vector)]) -> (Layout, Vec<LeftOut>) {
    let orbits: Vec<_> = satellites.iter().zip(states).map(|(one, state)| Orbit::of(one, *state)).collect();
    let mut left_out = Vec::new();
    let mut leave = |satellite: Satellite, reason| {
        let Elements { name, line, .. } = &satellites[satellite as usize];
        left_out.push(LeftOut { satellite: name.clone(), line: *line, reason });
    };
    let mut shells = Vec::new();
    let mut largest: Vec<(usize, Orbit)> = Vec::new();
    for group in groups(&orbits) {
        let orbit = median(&group, &orbits);
        let is_small = |(size, shell): &&(usize, Orbit)| {
            libm::fabs(shell.inclination_deg - orbit.inclination_deg) <= SAME_ORBITS_DEG
                && (group.len() as f64) < SMALL * *size as f64
        };
        if let Some((_, shell)) = largest.iter().find(is_small) {
            for satellite in group {
                let above_km = orbits[satellite as usize].axis_km - shell.axis_km;
                leave(satellite, Reason::OffShell { above_km });
            }
            continue;
        }
        largest.push((group.len(), orbit));
        let (shell, between) = planes(&group, &orbits);
        between.into_iter().for_each(|satellite| leave(satellite, Reason::BetweenPlanes));
        shells.push(shell);
    }
    left_out.sort_by_key(|one| one.line);
    (Layout::new(shells, orbits.iter().map(|orbit| orbit.phase).collect()), left_out)
}

/// Orbit of a satellite at time zero.
#[derive(Clone, Copy, Debug)]
struct Orbit {
    axis_km: f64,
    inclination_deg: f64,
    eccentricity: f64,
    /// Direction of the ascending node, in degrees from 0 to 360.
    node_deg: f64,
    /// Angle from the ascending node in radians, from 0 to 2 pi.
    phase: f64,
}

impl Orbit {
    fn of(satellite: &Elements, (position, velocity): (Vector, Vector)) -> Self {
        let normal = position.cross(velocity);
        let node = Vector { x: -normal.y, y: normal.x, z: 0.0 };
        let ahead = normal.cross(node) * (1.0 / normal.length());
        Self {
            axis_km: satellite.axis_km(),
            inclination_deg: satellite.inclination_deg,
            eccentricity: satellite.eccentricity,
            node_deg: full_turn(libm::atan2(node.y, node.x)).to_degrees(),
            phase: full_turn(libm::atan2(position.dot(ahead), position.dot(node))),
        }
    }

    /// True if the shapes of two orbits differ by at most this part of the tolerances.
    fn is_near(&self, other: &Self, part: f64) -> bool {
        libm::fabs(self.axis_km - other.axis_km) <= part * AXIS * self.axis_km
            && libm::fabs(self.inclination_deg - other.inclination_deg) <= part * INCLINATION_DEG
            && libm::fabs(self.eccentricity - other.eccentricity) <= ECCENTRICITY
    }
}

/// Returns the orbit of a group whose semi-major axis is the median.
fn median(group: &[Satellite], orbits: &[Orbit]) -> Orbit {
    let mut of_group: Vec<_> = group.iter().map(|satellite| orbits[*satellite as usize]).collect();
    of_group.sort_by(|a, b| a.axis_km.total_cmp(&b.axis_km));
    of_group[of_group.len() / 2]
}

/// Satellites whose orbits have nearly the same shape: they differ by less than a rounding step.
struct Alike {
    orbit: Orbit,
    members: Vec<Satellite>,
}

/// Collects satellites with nearly the same shape, in ascending order of the semi-major axis.
fn alike(orbits: &[Orbit]) -> Vec<Alike> {
    let mut by_shape: BTreeMap<[i64; 3], Alike> = BTreeMap::new();
    let step = |value: f64, step: f64| libm::round(value / step) as i64;
    for (satellite, orbit) in orbits.iter().enumerate() {
        let axis = step(libm::log(orbit.axis_km), CLOSE * AXIS * ROUNDING);
        let inclination = step(orbit.inclination_deg, CLOSE * INCLINATION_DEG * ROUNDING);
        let shape = [axis, inclination, step(orbit.eccentricity, ECCENTRICITY * ROUNDING)];
        let alike = by_shape.entry(shape).or_insert(Alike { orbit: *orbit, members: Vec::new() });
        alike.members.push(satellite as Satellite);
    }
    let mut all: Vec<_> = by_shape.into_values().collect();
    all.sort_by(|a, b| a.orbit.axis_km.total_cmp(&b.orbit.axis_km));
    all
}

/// Groups satellites with orbits of the same shape, the largest group first. A group begins where most satellites are close
/// together, and continues over the tolerances while enough of them are.
fn groups(orbits: &[Orbit]) -> Vec<Vec<Satellite>> {
    let all = &alike(orbits)[..];
    let near = |place: usize, part: f64| {
        let orbit = &all[place].orbit;
        let reach = part * AXIS * orbit.axis_km;
        let begin = all.partition_point(|other| other.orbit.axis_km < orbit.axis_km - reach);
        let within = move |other: &usize| all[*other].orbit.axis_km <= orbit.axis_km + reach;
        (begin..all.len()).take_while(within).filter(move |other| orbit.is_near(&all[*other].orbit, part))
    };
    let count = |place: usize| near(place, CLOSE).map(|other| all[other].members.len()).sum();
    let close: Vec<usize> = (0..all.len()).map(count).collect();
    let mut densest_first: Vec<_> = (0..all.len()).collect();
    densest_first.sort_by_key(|place| (Reverse(close[*place]), all[*place].members[0]));
    let mut is_grouped = vec![false; all.len()];
    let mut groups = Vec::new();
    for first in densest_first {
        if mem::replace(&mut is_grouped[first], true) {
            continue;
        }
        let least = PASSING * close[first] as f64;
        let (mut group, mut next) = (vec![first], 0);
        while let Some(place) = group.get(next).copied() {
            next += 1;
            for other in near(place, 1.0) {
                if close[other] as f64 >= least && !mem::replace(&mut is_grouped[other], true) {
                    group.push(other);
                }
            }
        }
        let mut members: Vec<_> = group.iter().flat_map(|place| &all[*place].members).copied().collect();
        members.sort_unstable();
        groups.push(members);
    }
    groups.sort_by_key(|group| (Reverse(group.len()), group[0]));
    groups
}

/// Groups satellites with close ascending nodes into planes. A ring begins with the plane of its first satellite, a star after the
/// widest gap. Returns also the satellites between the planes.
fn planes(group: &[Satellite], orbits: &[Orbit]) -> (Planes, Vec<Satellite>) {
    let node_deg = |satellite: &Satellite| orbits[*satellite as usize].node_deg;
    let mut by_node = group.to_vec();
    by_node.sort_by(|a, b| node_deg(a).total_cmp(&node_deg(b)).then(a.cmp(b)));
    let gap = |west: &Satellite, east: &Satellite| {
        let gap = node_deg(east) - node_deg(west);
        if gap < 0.0 { gap + 360.0 } else { gap }
    };
    let mut members: Vec<Vec<Satellite>> = Vec::new();
    for satellite in by_node {
        match members.last_mut() {
            Some(plane) if plane.last().is_some_and(|last| gap(last, &satellite) <= PLANE_GAP_DEG) => {
                plane.push(satellite);
            }
            _ => members.push(vec![satellite]),
        }
    }
    // A plane may lie on both sides of 0 degrees.
    if let [first, .., last] = members.as_slice()
        && gap(&last[last.len() - 1], &first[0]) <= PLANE_GAP_DEG
    {
        let last = members.pop().unwrap_or_default();
        members[0].splice(0..0, last);
    }
    let mut sizes: Vec<_> = members.iter().flat_map(|plane| plane.iter().map(|_| plane.len())).collect();
    sizes.sort_unstable();
    let least = SMALL * sizes[sizes.len() / 2] as f64;
    let (mut members, small): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|plane| plane.len() as f64 >= least);
    let count = members.len();
    let gap_before = |plane: usize| {
        let (before, plane) = (&members[(plane + count - 1) % count], &members[plane]);
        if count == 1 { 360.0 } else { gap(&before[before.len() - 1], &plane[0]) }
    };
    let widest = (0..count).map(|plane| (gap_before(plane), plane)).max_by(|a, b| a.0.total_cmp(&b.0));
    let (widest, behind) = widest.unwrap_or((360.0, 0));
    let closure = match count {
        0..=2 => Closure::Open,
        _ if widest <= RING_GAP_DEG => Closure::Ring,
        _ => Closure::Seam,
    };
    let lowest = members.iter().flatten().min().copied();
    let first = match closure {
        Closure::Ring => members.iter().position(|plane| plane.iter().copied().min() == lowest),
        Closure::Seam | Closure::Open => Some(behind),
    };
    members.rotate_left(first.unwrap_or(0));
    let phase = |satellite: &Satellite| orbits[*satellite as usize].phase;
    members.iter_mut().for_each(|plane| plane.sort_by(|a, b| phase(a).total_cmp(&phase(b))));
    (Planes { members, closure }, small.into_iter().flatten().collect())
}

fn full_turn(angle: f64) -> f64 {
    if angle < 0.0 { angle + TAU } else { angle }
}
