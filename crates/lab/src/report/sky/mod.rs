//! Paths of flows through a constellation: a map with ground tracks, and the paths over time.

mod globe;

use std::collections::BTreeMap;

use bentpipe_base::Instant;
use bentpipe_orbit::{Constellation, PathTable, Satellite};
use bentpipe_scenario::{ConstellationGroup, Crossing, Scenario, Topology, TopologyError, sky_paths};

use self::globe::{Globe, Line, Spot};
use super::figure::{Axis, Choice, Figure, Number, Pick, Position, Scale, Section, Style, Trace};
use super::thin::thin;

/// Ways that are drawn.
const DRAWN_WAYS: usize = 6;
/// Satellites that have lines of their own.
const MOST_ROWS: usize = 40;
/// Points of a delay over time.
const DELAY_POINTS: usize = 1600;
/// Seconds before and after a satellite is used for which its ground track is drawn.
const TRACK_AROUND_S: f64 = 300.0;
/// Points of all ground tracks together.
const TRACK_POINTS: f64 = 20_000.0;
/// Seconds between two points of a ground track, at the least.
const TRACK_STEP_S: f64 = 10.0;

/// A way through the sky that packets take.
struct Way {
    name: String,
    /// Names of its ends, with the places of those on the ground.
    ends: [(String, Option<Spot>); 2],
    table: PathTable,
    spells: Vec<Spell>,
}

/// A satellite is on a path.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Spell {
    satellite: Satellite,
    role: Role,
    /// First look at which it is, and first at which it is not.
    looks: (usize, usize),
}

/// Role of a satellite on a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Role {
    /// Gets packets from the ground.
    First,
    /// Gives packets to the ground.
    Last,
    /// Both.
    Only,
    /// Between the first and the last satellite.
    Between,
}

impl Role {
    const ALL: [Self; 4] = [Self::First, Self::Last, Self::Only, Self::Between];

    fn of(place: usize, length: usize) -> Self {
        match (place == 0, place + 1 == length) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Between,
        }
    }

    /// Returns the name of the role on a path, and its colour in the palette.
    fn shown(self, way: &Way) -> (String, usize) {
        let [from, to] = way.ends.each_ref().map(|(name, _)| name.as_str());
        match self {
            Self::First => (format!("serves {from}"), 0),
            Self::Last => (format!("serves {to}"), 1),
            Self::Only => ("serves both".into(), 2),
            Self::Between => ("between".into(), 7),
        }
    }
}

/// The section of a constellation; none if the scenario has none or no flow uses it.
///
/// # Errors
/// If its satellites cannot fly until the end.
pub fn section(scenario: &Scenario) -> Result<Option<Section>, TopologyError> {
    let Some(group) = scenario.constellations.first() else { return Ok(None) };
    let refused = |error| TopologyError::Orbit { constellation: group.name.clone(), error };
    let mut pairs = crossings(scenario)?;
    if pairs.is_empty() {
        return Ok(None);
    }
    let all = pairs.len();
    pairs.truncate(DRAWN_WAYS);
    let constellation = group.fly(scenario.duration).map_err(refused)?;
    let ways = ways(scenario, (group, &*constellation), &pairs).map_err(refused)?;
    let names: Vec<String> = ways.iter().map(|way| way.name.clone()).collect();
    let globe = Globe { constellation: &constellation, end: scenario.duration.as_secs_f64() };
    let mut intro: String = ways.iter().map(summary).collect::<Vec<_>>().join(" ");
    if all > ways.len() {
        intro.push_str(&format!(" The first {} of {all} pairs of ends.", ways.len()));
    }
    let figures = vec![map(&ways, &globe), delay(&ways), satellites(&ways, &constellation)];
    Ok(Some(Section::new("The sky", intro, Choice::one_of(PATH, names), figures)))
}

/// A change of a path through a constellation.
#[derive(Clone, PartialEq, Debug)]
pub struct PathChange {
    /// Ground stations or satellites at its ends, `A to B`.
    pub path: String,
    /// Time of the change in seconds.
    pub at_s: f64,
    /// Satellites of the new path in order; empty without a path.
    pub satellites: Vec<String>,
    /// Changes of the first or last satellite so far.
    pub handovers: u64,
    /// One-way propagation delay of the new path in ms; `None` without a path.
    pub delay_one_way_ms: Option<f64>,
}

/// Returns the changes of all paths that flows take through the constellation, path by path.
///
/// # Errors
/// If its satellites cannot fly until the end.
pub fn path_changes(scenario: &Scenario) -> Result<Vec<PathChange>, TopologyError> {
    let Some(group) = scenario.constellations.first() else { return Ok(Vec::new()) };
    let refused = |error| TopologyError::Orbit { constellation: group.name.clone(), error };
    let constellation = group.fly(scenario.duration).map_err(refused)?;
    let ways = ways(scenario, (group, &*constellation), &crossings(scenario)?).map_err(refused)?;
    Ok(ways.iter().flat_map(|way| changes(way, &constellation)).collect())
}

fn changes(way: &Way, constellation: &Constellation) -> Vec<PathChange> {
    let mut changes = Vec::with_capacity(way.table.changes.len());
    let (mut before, mut handovers) = (None, 0);
    for (look, path) in &way.table.changes {
        let ends = path.first().zip(path.last());
        if let (Some((first, last)), Some((old_first, old_last))) = (ends, before) {
            handovers += u64::from(first != old_first) + u64::from(last != old_last);
        }
        before = ends.or(before);
        changes.push(PathChange {
            path: way.name.clone(),
            at_s: seconds(&way.table, *look),
            satellites: path.iter().map(|satellite| constellation.name(*satellite).to_owned()).collect(),
            handovers,
            delay_one_way_ms: way.table.delays_one_way[*look].map(|delay| delay.as_secs_f64() * 1e3),
        });
    }
    changes
}

/// Returns the pairs of ends at which data may enter and leave the constellation, by number, each once.
fn crossings(scenario: &Scenario) -> Result<Vec<(u32, u32)>, TopologyError> {
    let mut topology = Topology::new(scenario)?;
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for flow in &scenario.flows {
        let user = || format!("flow.{}", flow.name);
        let (from, to) = (topology.group(user, &flow.from)?, topology.group(user, &flow.to)?);
        for index in 0..flow.count {
            let ends = (from.start + index % from.len() as u32, to.start + index % to.len() as u32);
            let Some(Crossing { entry, landings }) = topology.crossing(ends.0, ends.1) else { continue };
            for (way, landing) in entry.ways.iter().flat_map(|way| landings.iter().map(move |to| (way, to))) {
                let pair = (way.end, landing.0);
                if !pairs.contains(&pair) && !pairs.contains(&(pair.1, pair.0)) {
                    pairs.push(pair);
                }
            }
        }
    }
    Ok(pairs)
}

fn ways(
    scenario: &Scenario,
    sky: (&ConstellationGroup, &Constellation),
    pairs: &[(u32, u32)],
) -> Result<Vec<Way>, bentpipe_orbit::OrbitError> {
    let stations = scenario.ground_stations().into_iter();
    let stations = stations
        .map(|station| (station.name, Some((station.place.longitude_deg, station.place.latitude_deg))));
    let satellites = scenario.satellite_names().map(|(node, _)| (node.to_owned(), None));
    let ends: Vec<(String, Option<Spot>)> = stations.chain(satellites).collect();
    let numbers: Vec<(usize, usize)> = pairs.iter().map(|&(from, to)| (from as usize, to as usize)).collect();
    let paths = sky_paths(scenario, sky, &numbers)?;
    let way = |(&(from, to), path): (&(usize, usize), bentpipe_scenario::SkyPath)| {
        let ends = [ends[from].clone(), ends[to].clone()];
        let spells = spells(&path.table);
        Way { name: format!("{} to {}", ends[0].0, ends[1].0), ends, table: path.table, spells }
    };
    Ok(numbers.iter().zip(paths).map(way).collect())
}

/// Returns the satellites of a path with the times of their use, in order.
fn spells(table: &PathTable) -> Vec<Spell> {
    let end = table.delays_one_way.len().saturating_sub(1);
    let mut spells: Vec<Spell> = Vec::new();
    let mut open: BTreeMap<Satellite, (Role, usize)> = BTreeMap::new();
    let finish = |spells: &mut Vec<Spell>, satellite, (role, from), to| {
        let before: &[Spell] = spells;
        let place = before.partition_point(|spell| spell.looks.0 <= from);
        spells.insert(place, Spell { satellite, role, looks: (from, to) });
    };
    for (look, path) in &table.changes {
        let role = |satellite: &Satellite| {
            let place = path.iter().position(|other| other == satellite);
            place.map(|place| Role::of(place, path.len()))
        };
        let over: Vec<_> = open
            .iter()
            .filter(|(satellite, (was, _))| role(satellite) != Some(*was))
            .map(|(s, o)| (*s, *o))
            .collect();
        for (satellite, since) in over {
            open.remove(&satellite);
            finish(&mut spells, satellite, since, *look);
        }
        for (place, satellite) in path.iter().enumerate() {
            open.entry(*satellite).or_insert((Role::of(place, path.len()), *look));
        }
    }
    for (satellite, since) in open {
        finish(&mut spells, satellite, since, end);
    }
    spells
}

fn seconds(table: &PathTable, look: usize) -> f64 {
    table.at(look).as_secs_f64()
}

fn summary(way: &Way) -> String {
    let delays: Vec<f64> =
        way.table.delays_one_way.iter().flatten().map(|delay| delay.as_secs_f64() * 1e3).collect();
    let (least, most) = (delays.iter().copied().reduce(f64::min), delays.iter().copied().reduce(f64::max));
    let (Some(least), Some(most)) = (least, most) else { return format!("{}: no path at all.", way.name) };
    let handovers = match way.table.handovers() {
        1 => "1 handover".into(),
        many => format!("{many} handovers"),
    };
    let missing = 1.0 - delays.len() as f64 / way.table.delays_one_way.len() as f64;
    let gaps = if missing > 0.0 {
        format!(", no path for {:.1} % of the time", 100.0 * missing)
    } else {
        String::new()
    };
    format!("{}: {least:.1} to {most:.1} ms one way, {handovers}{gaps}.", way.name)
}

/// Title of the choice between ways.
const PATH: &str = "Path";

/// Returns the options that show a path.
fn shown_by(way: &Way) -> Vec<Pick> {
    vec![Pick::new(PATH, &way.name)]
}

/// A trace of pieces with gaps in between.
fn pieces(pieces: impl Iterator<Item = Line>) -> Trace {
    let mut trace = Trace { legend: true, ..Trace::default() };
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        if !trace.x.is_empty() {
            trace.x.push(Position::Number(Number(piece[0].0)));
            trace.y.push(None);
        }
        trace.x.extend(piece.iter().map(|point| Position::Number(Number(point.0))));
        trace.y.extend(piece.iter().map(|point| Some(Number(point.1))));
    }
    trace
}

fn map(ways: &[Way], globe: &Globe<'_>) -> Figure {
    let mut traces = vec![Trace { style: Style::Outline, legend: false, ..pieces(globe::coastlines()) }];
    for way in ways {
        let shown_by = shown_by(way);
        let mut add = |name: String, colour, style, lines: Vec<Line>| {
            let trace =
                Trace { name, colour, style, shown_by: shown_by.clone(), ..pieces(lines.into_iter()) };
            traces.extend((!trace.x.is_empty()).then_some(trace));
        };
        add(
            "ground tracks, 5 min before and after".into(),
            7,
            Style::Outline,
            tracks(way, globe, TRACK_AROUND_S),
        );
        for role in Role::ALL {
            let (name, colour) = role.shown(way);
            let spells: Vec<Spell> = way.spells.iter().filter(|spell| spell.role == role).copied().collect();
            add(name, colour, Style::Band, tracks_of(way, globe, (&spells, 0.0)));
        }
        add("path at the start".into(), 4, Style::Line, path(way, globe, way.table.changes.first()));
        if way.table.changes.len() > 1 {
            add("path at the end".into(), 4, Style::Dotted, path(way, globe, way.table.changes.last()));
        }
        let places = || way.ends.iter().filter_map(|(name, spot)| Some((name, (*spot)?)));
        traces.push(Trace {
            name: "ground stations".into(),
            x: places().map(|(_, (longitude, _))| Position::Number(Number(longitude))).collect(),
            y: places().map(|(_, (_, latitude))| Some(Number(latitude))).collect(),
            notes: places().map(|(name, _)| name.clone()).collect(),
            style: Style::Places,
            colour: 5,
            shown_by: shown_by.clone(),
            ..Trace::default()
        });
    }
    let spots = ways.iter().flat_map(|way| {
        let used = tracks(way, globe, 0.0).into_iter().flatten();
        used.chain(way.ends.iter().filter_map(|(_, spot)| *spot))
    });
    let (x, y) = globe::frame(spots);
    let axis = |range| Axis { scale: Scale::Degrees, range: Some(range), close: true, ..Axis::default() };
    Figure {
        title: "Ground tracks".into(),
        caption: "Thick while a satellite is on the path. Coastlines: Natural Earth.".into(),
        wide: true,
        x: axis(x),
        y: axis(y),
        traces,
    }
}

/// Returns the tracks of a path's satellites, from `around` seconds before their use until `around` seconds after.
fn tracks(way: &Way, globe: &Globe<'_>, around: f64) -> Vec<Line> {
    tracks_of(way, globe, (&way.spells, around))
}

fn tracks_of(way: &Way, globe: &Globe<'_>, (spells, around): (&[Spell], f64)) -> Vec<Line> {
    let times = |spell: &Spell| {
        let (from, to) = spell.looks;
        ((seconds(&way.table, from) - around).max(0.0), (seconds(&way.table, to) + around).min(globe.end))
    };
    let total: f64 = spells.iter().map(|spell| times(spell).1 - times(spell).0).sum();
    let step = (total / TRACK_POINTS).max(TRACK_STEP_S);
    spells.iter().flat_map(|spell| globe.track(spell.satellite, times(spell), step)).collect()
}

/// Returns the line from end over satellites to end, at the positions of the path's beginning.
fn path(way: &Way, globe: &Globe<'_>, change: Option<&(usize, Vec<Satellite>)>) -> Vec<Line> {
    let Some((look, satellites)) = change.filter(|(_, satellites)| !satellites.is_empty()) else {
        return Vec::new();
    };
    let at: Instant = way.table.at(*look);
    let [from, to] = way.ends.each_ref().map(|(_, spot)| *spot);
    let between = satellites.iter().map(|satellite| globe.under(*satellite, at));
    let spots: Vec<Spot> =
        std::iter::once(from).chain(between).chain(std::iter::once(to)).flatten().collect();
    spots.windows(2).flat_map(|hop| globe::great_circle(hop[0], hop[1])).collect()
}

fn over_time(title: &str, caption: &str, unit: &str) -> Figure {
    let mut figure = Figure { wide: true, ..Figure::over_time(title, caption, unit) };
    figure.y.close = true;
    figure
}

fn delay(ways: &[Way]) -> Figure {
    let caption = "Propagation only, from ground to ground. A gap: no path. Crosses: another satellite serves an end of the path, or \
                   packets go another way between the satellites.";
    let mut figure = over_time("One-way delay", caption, "ms");
    for (colour, way) in ways.iter().enumerate() {
        let shown_by = shown_by(way);
        let line = Trace { name: way.name.clone(), colour, ..pieces(delay_lines(&way.table).into_iter()) };
        figure.traces.push(Trace { style: Style::Line, ..line }.shown_by(&shown_by));
        let (handovers, others): (Vec<_>, Vec<_>) =
            marks(&way.table).into_iter().partition(|(_, served)| *served);
        for (name, colour, marks) in [("handover", 5, handovers), ("another way", 7, others)] {
            let points: Vec<(f64, f64)> = marks.into_iter().map(|(point, _)| point).collect();
            let trace = Trace::over_time(name, &points, Style::Marks).coloured(colour).shown_by(&shown_by);
            figure.traces.extend((!points.is_empty()).then_some(trace));
        }
    }
    figure
}

/// The delay in ms over time, a line for each time with a path.
fn delay_lines(table: &PathTable) -> Vec<Line> {
    let mut lines: Vec<Line> = vec![Vec::new()];
    let mut changes = table.changes.iter().map(|(look, _)| *look).peekable();
    for (look, delay) in table.delays_one_way.iter().enumerate() {
        let at = seconds(table, look);
        let changes_now = changes.next_if_eq(&look).is_some();
        let line = lines.last_mut().expect("there is one from the beginning");
        // The path before lasts until now.
        if let Some(&(_, before)) = line.last().filter(|_| changes_now) {
            line.push((at, before));
        }
        match delay {
            Some(delay) => line.push((at, delay.as_secs_f64() * 1e3)),
            None if line.is_empty() => {}
            None => lines.push(Vec::new()),
        }
    }
    let all: usize = lines.iter().map(Vec::len).sum();
    lines.iter().map(|line| thin(line, (DELAY_POINTS * line.len() / all.max(1)).max(8))).collect()
}

/// Returns time and delay in ms of each new path, and whether another satellite serves one of its ends.
fn marks(table: &PathTable) -> Vec<((f64, f64), bool)> {
    let mut marks = Vec::new();
    for pair in table.changes.windows(2) {
        let [(_, before), (look, after)] = pair else { continue };
        let Some(Some(delay)) = table.delays_one_way.get(*look) else { continue };
        let served = before.first() != after.first() || before.last() != after.last();
        marks.push(((seconds(table, *look), delay.as_secs_f64() * 1e3), served));
    }
    marks
}

fn satellites(ways: &[Way], constellation: &Constellation) -> Figure {
    let mut rows = rows_of(ways, &Role::ALL);
    let (mut roles, mut caption) =
        (&Role::ALL[..], "Which satellites are on the path, in the order in which they come.");
    if rows.len() > MOST_ROWS {
        roles = &Role::ALL[..3];
        rows = rows_of(ways, roles);
        caption = "Which satellites serve the ends of the path, in the order in which they come. Those between are too many to list.";
    }
    let mut figure = over_time("Satellites", caption, "");
    for way in ways {
        for &role in roles {
            let (name, colour) = role.shown(way);
            let spells = way.spells.iter().filter(|spell| spell.role == role);
            let lines = spells.map(|spell| {
                let row = rows.iter().position(|satellite| *satellite == spell.satellite).unwrap_or(0) as f64;
                vec![(seconds(&way.table, spell.looks.0), row), (seconds(&way.table, spell.looks.1), row)]
            });
            let trace = Trace { name, colour, style: Style::Band, ..pieces(lines) };
            figure.traces.extend((!trace.x.is_empty()).then(|| trace.shown_by(&shown_by(way))));
        }
    }
    figure.y.names = rows.iter().map(|satellite| constellation.name(*satellite).to_owned()).collect();
    figure
}

/// Returns the satellites in these roles, in the order of their use.
fn rows_of(ways: &[Way], roles: &[Role]) -> Vec<Satellite> {
    let mut rows: Vec<Satellite> = Vec::new();
    for spell in ways.iter().flat_map(|way| &way.spells).filter(|spell| roles.contains(&spell.role)) {
        if !rows.contains(&spell.satellite) {
            rows.push(spell.satellite);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Duration;
    use bentpipe_scenario::builtin;

    fn table() -> PathTable {
        let ms = Duration::from_millis;
        PathTable {
            step: Duration::from_secs(10),
            delays_one_way: [Some(10), Some(12), Some(30), None, Some(20)]
                .map(|delay| delay.map(ms))
                .to_vec(),
            changes: vec![(0, vec![1, 2]), (2, vec![1, 5, 2]), (3, vec![]), (4, vec![2])],
        }
    }

    #[test]
    fn a_satellite_has_a_spell_for_each_of_its_roles() {
        let spell = |satellite, role, looks| Spell { satellite, role, looks };
        let mut spells = spells(&table());
        spells.sort_by_key(|spell| (spell.satellite, spell.looks));
        let expected = [
            spell(1, Role::First, (0, 3)),
            spell(2, Role::Last, (0, 3)),
            spell(2, Role::Only, (4, 4)),
            spell(5, Role::Between, (2, 3)),
        ];
        assert_eq!(spells, expected);
    }

    #[test]
    fn delays_jump_where_the_path_changes_and_stop_where_there_is_none() {
        let lines = delay_lines(&table());
        let expected =
            [vec![(0.0, 10.0), (10.0, 12.0), (20.0, 12.0), (20.0, 30.0), (30.0, 30.0)], vec![(40.0, 20.0)]];
        assert_eq!(lines, expected);
        assert_eq!(marks(&table()), [((20.0, 30.0), false), ((40.0, 20.0), true)]);
    }

    #[test]
    fn the_changes_of_iridium_are_those_of_its_table() {
        let scenario = builtin("leo-iridium").unwrap();
        let changes = path_changes(&scenario).unwrap();
        let first = &changes[0];
        assert_eq!((first.at_s, first.handovers), (0.0, 0));
        assert!(changes.windows(2).all(|pair| pair[0].path != pair[1].path || pair[0].at_s < pair[1].at_s));
        assert!(changes.windows(2).all(|pair| pair[0].satellites != pair[1].satellites));
        let group = &scenario.constellations[0];
        let constellation = group.fly(scenario.duration).unwrap();
        let ways = ways(&scenario, (group, &*constellation), &crossings(&scenario).unwrap()).unwrap();
        let of_way = changes.iter().rfind(|change| change.path == ways[0].name).unwrap();
        assert_eq!(of_way.handovers, ways[0].table.handovers() as u64);
    }

    #[test]
    fn iridium_is_shown_from_berkeley_to_boston() {
        let section = section(&builtin("leo-iridium").unwrap()).unwrap().unwrap();
        assert!(section.intro.starts_with("berkeley to boston: "), "{}", section.intro);
        let names: Vec<&str> = section.figures[0].traces.iter().map(|trace| trace.name.as_str()).collect();
        assert!(names.contains(&"serves berkeley") && names.contains(&"serves boston"), "{names:?}");
        assert_eq!(section.figures.len(), 3);
        assert_eq!(super::section(&builtin("geo-dumbbell").unwrap()).unwrap(), None);
    }
}
