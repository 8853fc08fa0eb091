//! Path between two ground stations as a single link, for worlds without satellites.

use bentpipe_base::{Duration, Instant};
use bentpipe_net::{Interpolation, LinkConfig, Outage, OutageEffect, Outages, Schedule};
use bentpipe_orbit::{Constellation, OrbitError, PathTable, path_tables};

use crate::model::Scenario;
use crate::sky::ConstellationGroup;

/// Delay and outages of a path over time, as input of a link, and the underlying table.
#[derive(Clone, PartialEq, Debug)]
pub struct SkyPath {
    /// One-way delay: linear between steps of the same path, a jump at a path change, constant without a path.
    pub delay_one_way: Schedule<Duration>,
    /// Intervals without a path. Packets on the path at their start are lost.
    pub outages: Outages,
    /// Table of the path.
    pub table: PathTable,
}

/// Returns the paths between pairs of ground stations over the scenario's duration. Stations are given by their numbers in the
/// scenario.
///
/// # Errors
/// If the orbits end before the scenario.
pub fn sky_paths(
    scenario: &Scenario,
    (group, constellation): (&ConstellationGroup, &Constellation),
    pairs: &[(usize, usize)],
) -> Result<Vec<SkyPath>, OrbitError> {
    let mut sky = group.sky(constellation, &scenario.ground_stations())?;
    let tables = path_tables(&mut sky, pairs, Instant::ZERO + scenario.duration)?;
    Ok(tables.into_iter().map(SkyPath::of).collect())
}

/// Returns the path between two ground stations, given by number, as two links. The first has the station's uplink rate and
/// queue, with delay and outages of the whole path. The second is the downlink, with the interruptions of all handovers. Queueing
/// at links between satellites is left out: they are much faster in any constellation that has them.
///
/// # Errors
/// If the orbits end before the scenario.
pub fn sky_as_links(
    scenario: &Scenario,
    group: &ConstellationGroup,
    (from, to): (u32, u32),
) -> Result<[LinkConfig; 2], OrbitError> {
    let constellation = group.fly(scenario.duration)?;
    let pair = (from as usize, to as usize);
    let mut paths = sky_paths(scenario, (group, &constellation), &[pair])?;
    let SkyPath { delay_one_way, outages, table } = paths.remove(0);
    let up = LinkConfig { delay_one_way, outages, ..group.up.clone() };
    Ok([up, LinkConfig { outages: interruptions(&table, group.interruption), ..group.down.clone() }])
}

/// Returns the interruptions after handovers, as seen at the end of the path. A handover at the path's start is seen there one
/// path delay later.
fn interruptions(table: &PathTable, length: Duration) -> Outages {
    let mut begins = Vec::new();
    for pair in table.changes.windows(2) {
        let [(_, before), (index, after)] = pair else { continue };
        let (at, delay) = (table.at(*index), table.delays_one_way.get(*index).copied().flatten());
        let (Some(delay), false) = (delay, before.is_empty() || length.is_zero()) else { continue };
        begins.extend((before.first() != after.first()).then_some(at + delay));
        begins.extend((before.last() != after.last()).then_some(at));
    }
    begins.sort_unstable();
    let mut intervals: Vec<Outage> = Vec::new();
    for from in begins {
        match intervals.last_mut() {
            Some(last) if last.to >= from => last.to = from + length,
            _ => intervals.push(Outage { from, to: from + length }),
        }
    }
    Outages { intervals, effect: OutageEffect::Cut }
}

impl SkyPath {
    fn of(table: PathTable) -> Self {
        Self { delay_one_way: delays(&table), outages: outages(&table), table }
    }
}

fn delays(table: &PathTable) -> Schedule<Duration> {
    let at = |index| table.at(index).since(Instant::ZERO);
    let mut points: Vec<(Duration, Duration)> = Vec::new();
    let mut changes = table.changes.iter().map(|(index, _)| *index).peekable();
    for (index, delay) in table.delays_one_way.iter().enumerate() {
        let changes_now = changes.next_if_eq(&index).is_some();
        let held = points.last().map(|(_, delay)| *delay);
        let Some(delay) = delay.or(held) else { continue };
        // The previous path ends just before now, so that its delay is not interpolated towards the next path's.
        let before = at(index).saturating_sub(Duration::from_nanos(1));
        match points.last() {
            None if index > 0 => points.push((Duration::ZERO, delay)),
            Some((last, held)) if changes_now && *last < before => points.push((before, *held)),
            _ => {}
        }
        points.push((at(index), delay));
    }
    if points.is_empty() {
        return Schedule::Constant(Duration::ZERO);
    }
    Schedule::Table { points, interpolation: Interpolation::Linear, repeat_every: None }
}

fn outages(table: &PathTable) -> Outages {
    let mut intervals: Vec<Outage> = Vec::new();
    for (index, delay) in table.delays_one_way.iter().enumerate() {
        let (from, to) = (table.at(index), table.at(index + 1));
        match intervals.last_mut() {
            _ if delay.is_some() => {}
            Some(last) if last.to == from => last.to = to,
            _ => intervals.push(Outage { from, to }),
        }
    }
    Outages { intervals, effect: OutageEffect::CutPath }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handovers_interrupt_the_end_of_the_path() {
        let ms = Duration::from_millis;
        let table = PathTable {
            step: Duration::from_secs(10),
            delays_one_way: vec![Some(ms(10)), Some(ms(40)), Some(ms(12)), None, Some(ms(20))],
            changes: vec![(0, vec![1, 2]), (1, vec![3, 2]), (2, vec![3, 4]), (3, vec![]), (4, vec![5])],
        };
        let at = |millis| Instant::ZERO + ms(millis);
        let outages = interruptions(&table, ms(25));
        // The first satellite changes at 10 s, the last one at 20 s. A path after an outage has no interruption.
        let expected =
            [Outage { from: at(10_040), to: at(10_065) }, Outage { from: at(20_000), to: at(20_025) }];
        assert_eq!((outages.intervals.as_slice(), outages.effect), (&expected[..], OutageEffect::Cut));
        assert!(interruptions(&table, Duration::ZERO).intervals.is_empty());
    }

    #[test]
    fn a_path_becomes_a_delay_with_steps_and_outages() {
        let ms = Duration::from_millis;
        let delays_one_way = [Some(10), Some(12), Some(30), None, None, Some(20)].map(|delay| delay.map(ms));
        let table = PathTable {
            step: Duration::from_secs(10),
            delays_one_way: delays_one_way.to_vec(),
            changes: vec![(0, vec![1]), (2, vec![2]), (3, vec![]), (5, vec![3])],
        };
        let path = SkyPath::of(table);
        let s = Duration::from_secs;
        let just_before = |secs| s(secs) - Duration::from_nanos(1);
        let Schedule::Table { points, .. } = path.delay_one_way else { panic!("a table") };
        let expected = [
            (s(0), ms(10)),
            (s(10), ms(12)),
            (just_before(20), ms(12)),
            (s(20), ms(30)),
            (just_before(30), ms(30)),
            (s(30), ms(30)),
            (s(40), ms(30)),
            (just_before(50), ms(30)),
            (s(50), ms(20)),
        ];
        assert_eq!(points, expected);
        let at = |secs| Instant::ZERO + s(secs);
        assert_eq!(path.outages.intervals, [Outage { from: at(30), to: at(50) }]);
    }
}
