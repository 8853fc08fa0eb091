//! Path between two ends of a constellation as a few links, for worlds without satellites.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{Interpolation, LinkConfig, LossModel, Outage, OutageEffect, Outages, Schedule};
use bentpipe_orbit::{Constellation, OrbitError, PathTable, path_tables};

use crate::model::Scenario;
use crate::sky::ConstellationGroup;
use crate::sky::plan::with_handovers;

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

/// Returns the paths between pairs of ends over the scenario's duration. Ends are given by their numbers in
/// [`Graph::sky_ends`](crate::Graph::sky_ends).
///
/// # Errors
/// If the orbits end before the scenario.
pub fn sky_paths(
    scenario: &Scenario,
    (group, constellation): (&ConstellationGroup, &Constellation),
    pairs: &[(usize, usize)],
) -> Result<Vec<SkyPath>, OrbitError> {
    let mut sky = scenario.sky(group, constellation)?;
    let tables = path_tables(&mut sky, pairs, Instant::ZERO + scenario.duration)?;
    Ok(tables.into_iter().map(SkyPath::of).collect())
}

/// Path between two ends as links in series.
#[derive(Clone, PartialEq, Debug)]
pub struct SkyLinks {
    /// Names and configurations of the links: `up` from a ground station, `between` for all links between satellites, `down` to a
    /// ground station with the interruptions of all handovers. The first one has delay and outages of the whole path.
    pub links: Vec<(&'static str, LinkConfig)>,
    /// Properties of the links between satellites that `between` does not have.
    pub left_out: Vec<String>,
}

/// Rate of a link that delays no packet: the maximum rate of a scenario.
const UNLIMITED: Rate = Rate::from_bps(10_000_000_000_000);

/// Returns the path between two ends, given by number, as links in series.
///
/// All links between satellites have the same rate, so packets queue only at the first one. Their losses are those of all links of
/// the present path.
///
/// # Errors
/// If the orbits end before the scenario.
pub fn sky_as_links(
    scenario: &Scenario,
    group: &ConstellationGroup,
    (from, to): (u32, u32),
) -> Result<SkyLinks, OrbitError> {
    let constellation = group.fly(scenario.duration)?;
    let pair = (from as usize, to as usize);
    let mut paths = sky_paths(scenario, (group, &*constellation), &[pair])?;
    let SkyPath { delay_one_way, outages, table } = paths.remove(0);
    let [first, last] = handovers(&table);
    let (mut links, mut left_out) = (Vec::new(), Vec::new());
    let stations = scenario.ground_stations().len() as u32;
    if from < stations {
        let loss = with_handovers(&group.up.loss, &first);
        links.push(("up", LinkConfig { loss, ..group.up.clone() }));
    }
    if group.links.is_some() {
        if has_rates(&constellation, &table) {
            left_out.push(format!("constellation.{}.links.file (the rates of single links)", group.name));
        }
        let key = format!("constellation.{}.between", group.name);
        let mut leave_out = |what: &str| left_out.push(format!("{key}.{what}"));
        links.push(("between", as_one(&group.between, &hops(&table), &mut leave_out)));
    }
    if to < stations {
        let loss = with_handovers(&group.down.loss, &last);
        let outages = interruptions(&table, group.interruption);
        links.push(("down", LinkConfig { outages, loss, ..group.down.clone() }));
    }
    if let Some((_, first)) = links.first_mut() {
        *first = LinkConfig { delay_one_way, outages, ..first.clone() };
    }
    Ok(SkyLinks { links, left_out })
}

/// True if a link of the path has a rate of its own.
fn has_rates(constellation: &Constellation, table: &PathTable) -> bool {
    let mut pairs = table.changes.iter().flat_map(|(_, path)| path.windows(2));
    pairs.any(|pair| constellation.rate_between(pair[0], pair[1]).is_some())
}

/// Returns the number of links between satellites over time. Without a path the previous number holds.
fn hops(table: &PathTable) -> Vec<(Duration, u32)> {
    let mut hops: Vec<(Duration, u32)> = Vec::new();
    for (index, path) in table.changes.iter().filter(|(_, path)| !path.is_empty()) {
        let count = path.len() as u32 - 1;
        let at = if hops.is_empty() { Duration::ZERO } else { table.at(*index).since(Instant::ZERO) };
        if hops.last().is_none_or(|(_, before)| *before != count) {
            hops.push((at, count));
        }
    }
    if hops.is_empty() { vec![(Duration::ZERO, 0)] } else { hops }
}

/// Returns links in series as one link. `hops` holds their number over time. Properties that one link cannot have are left out.
fn as_one(link: &LinkConfig, hops: &[(Duration, u32)], leave_out: &mut dyn FnMut(&str)) -> LinkConfig {
    let usual = usual(hops);
    let varies = hops.len() > 1;
    let rate = match &link.rate {
        Schedule::Constant(rate) => {
            let rate = |count| if count == 0 { UNLIMITED } else { *rate };
            steps(hops.iter().map(|(at, count)| (*at, rate(*count))))
        }
        changing => {
            if hops.iter().any(|(_, count)| *count == 0) {
                leave_out("rate (it holds also while the path has no such link)");
            }
            changing.clone()
        }
    };
    let all = |probability: f64, count: u32| 1.0 - libm::pow(1.0 - probability, f64::from(count));
    let mut loss = link.loss.clone();
    match &mut loss.model {
        LossModel::None => {}
        LossModel::Packet { probability } => {
            let points = hops.iter().map(|(at, count)| (*at, all(*probability, *count))).collect();
            loss.model = LossModel::Schedule { points, repeat_every: None };
        }
        LossModel::Bit { probability } | LossModel::Byte { probability } => {
            *probability = all(*probability, usual);
            if varies {
                leave_out(&format!("loss (always that of {usual} links, although their number varies)"));
            }
        }
        _ if !varies && usual == 1 => {}
        _ if !varies && usual == 0 => loss.model = LossModel::None,
        _ => leave_out("loss (that of one link only)"),
    }
    LinkConfig { rate, loss, ..link.clone() }
}

/// Returns the number of links that holds for the longest time. The end of the last number is unknown, so it counts only if it is
/// the only one.
fn usual(hops: &[(Duration, u32)]) -> u32 {
    let mut times: BTreeMap<u32, Duration> = BTreeMap::new();
    for pair in hops.windows(2) {
        *times.entry(pair[0].1).or_default() += pair[1].0.saturating_sub(pair[0].0);
    }
    let longest = times.into_iter().max_by_key(|(_, time)| *time);
    longest.or(hops.last().map(|(_, count)| (*count, Duration::ZERO))).map_or(0, |(count, _)| count)
}

/// Returns a schedule of values that hold until the next one.
fn steps<T: Copy + PartialEq>(values: impl Iterator<Item = (Duration, T)>) -> Schedule<T> {
    let mut points: Vec<(Duration, T)> = Vec::new();
    for (at, value) in values {
        if points.last().is_none_or(|(_, before)| *before != value) {
            points.push((at, value));
        }
    }
    match points[..] {
        [(_, only)] => Schedule::Constant(only),
        _ => Schedule::Table { points, interpolation: Interpolation::Step, repeat_every: None },
    }
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

/// Returns the times at which a path changes its first satellite, and its last one.
fn handovers(table: &PathTable) -> [Vec<Duration>; 2] {
    let mut handovers = [Vec::new(), Vec::new()];
    for pair in table.changes.windows(2) {
        let [(_, before), (index, after)] = pair else { continue };
        if before.is_empty() || after.is_empty() {
            continue;
        }
        let at = table.at(*index).since(Instant::ZERO);
        handovers[0].extend((before.first() != after.first()).then_some(at));
        handovers[1].extend((before.last() != after.last()).then_some(at));
    }
    handovers
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
    use bentpipe_net::{LossConfig, QueueConfig};

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
    fn links_between_satellites_become_one_with_their_rate_and_all_their_losses() {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        let table = PathTable {
            step: s(10),
            delays_one_way: [Some(10), Some(40), None, Some(12), Some(20)]
                .map(|delay| delay.map(ms))
                .to_vec(),
            changes: vec![(0, vec![1, 2, 3]), (1, vec![3, 2]), (2, vec![]), (3, vec![3, 5]), (4, vec![5])],
        };
        let hops = hops(&table);
        assert_eq!(hops, [(s(0), 2), (s(10), 1), (s(40), 0)]);
        let mut link = LinkConfig::new(Rate::from_mbps(1), Duration::ZERO, QueueConfig::default());
        let one = |link: &LinkConfig| {
            let mut left_out = Vec::new();
            let made = as_one(link, &hops, &mut |what| left_out.push(what.to_owned()));
            (made, left_out)
        };
        link.loss = LossConfig::data(LossModel::Packet { probability: 0.1 });
        let (made, left_out) = one(&link);
        let points = vec![(s(0), Rate::from_mbps(1)), (s(40), UNLIMITED)];
        let interpolation = Interpolation::Step;
        assert_eq!(made.rate, Schedule::Table { points, interpolation, repeat_every: None });
        let LossModel::Schedule { points, .. } = made.loss.model else { panic!("{:?}", made.loss) };
        let expected = [(s(0), 0.19), (s(10), 0.1), (s(40), 0.0)];
        for ((at, loss), (due, expected)) in points.iter().zip(expected) {
            assert!(*at == due && (loss - expected).abs() < 1e-12, "{points:?}");
        }
        assert!(made.loss.data_only && left_out.is_empty());
        link.loss = LossConfig::all(LossModel::Bit { probability: 1e-6 });
        let (made, left) = one(&link);
        // One link is on the path for 30 s, two for 10 s.
        let LossModel::Bit { probability } = made.loss.model else { panic!("{:?}", made.loss) };
        assert!((probability - 1e-6).abs() < 1e-15);
        assert_eq!(left, ["loss (always that of 1 links, although their number varies)"]);
        link.loss = LossConfig::all(LossModel::List { numbers: vec![1] });
        let (made, left) = one(&link);
        assert_eq!((made.loss.model, left.len()), (link.loss.model.clone(), 1));
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
        // The path changes both satellites at 20 s. The gap from 30 s to 50 s is no handover.
        assert_eq!(handovers(&path.table), [[s(20)], [s(20)]]);
    }
}
