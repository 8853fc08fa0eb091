//! Paths over time.

use bentpipe_base::{Duration, Instant};

use crate::earth::delay_of_km;
use crate::error::OrbitError;
use crate::planes::Satellite;
use crate::sky::Sky;

/// Path between two ends over time.
#[derive(Clone, PartialEq, Debug)]
pub struct PathTable {
    /// Time between consecutive delays.
    pub step: Duration,
    /// One-way propagation delay at each step from time zero on; `None` without a path.
    pub delays_one_way: Vec<Option<Duration>>,
    /// Steps at which the path changes, with its new satellites; empty without a path.
    pub changes: Vec<(usize, Vec<Satellite>)>,
}

impl PathTable {
    /// Returns the time of step `index`.
    pub fn at(&self, index: usize) -> Instant {
        Instant::ZERO + self.step * index as u64
    }

    /// Returns the number of changes of the first or last satellite.
    pub fn handovers(&self) -> usize {
        let ends = self.changes.iter().map(|(_, path)| (path.first(), path.last()));
        let ends: Vec<_> = ends.filter(|(first, _)| first.is_some()).collect();
        ends.windows(2)
            .map(|pair| usize::from(pair[0].0 != pair[1].0) + usize::from(pair[0].1 != pair[1].1))
            .sum()
    }
}

/// Computes the paths between pairs of ends, given by their numbers in the sky, from now until `until`.
///
/// # Errors
/// [`OrbitError::Lost`] if the elements of a satellite are not valid at that time.
pub fn path_tables(
    sky: &mut Sky<'_>,
    pairs: &[(usize, usize)],
    until: Instant,
) -> Result<Vec<PathTable>, OrbitError> {
    let empty = PathTable { step: sky.rules().step, delays_one_way: Vec::new(), changes: Vec::new() };
    let mut tables = vec![empty; pairs.len()];
    let mut path = Vec::new();
    loop {
        for (&(from, to), table) in pairs.iter().zip(&mut tables) {
            let distance_km = sky.find_path(from, to, &mut path);
            if table.changes.last().is_none_or(|(_, before)| *before != path) {
                table.changes.push((table.delays_one_way.len(), path.clone()));
            }
            table.delays_one_way.push(distance_km.map(delay_of_km));
        }
        if sky.now() >= until {
            return Ok(tables);
        }
        sky.advance()?;
    }
}
