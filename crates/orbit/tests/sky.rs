//! Visibility and path lengths: known cases and invariants.

use bentpipe_base::{Duration, Instant};
use bentpipe_orbit::{
    Constellation, Grid, Handover, Hop, LIGHT_KM_PER_S, Listed, OrbitError, PathTable, Place, Rules, Shell,
    Sky, Spread, Station, Vector, path_tables,
};

const RULES: Rules = Rules {
    elevation_mask_deg: 8.2,
    handover: Handover::Nearest,
    grid: Some(Grid::IRIDIUM),
    step: Duration::from_secs(10),
};

fn berkeley() -> Station {
    Station::new("berkeley", 37.9, -122.3)
}

fn boston() -> Station {
    Station::new("boston", 42.3, -71.1)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn tables(shell: &Shell, rules: Rules, until: u64) -> PathTable {
    let constellation = Constellation::of_shell(shell).unwrap();
    let mut sky = Sky::new(&constellation, &[berkeley(), boston()], rules).unwrap();
    path_tables(&mut sky, &[(0, 1)], at(until)).unwrap().remove(0)
}

#[test]
fn a_geostationary_satellite_is_as_far_as_the_manual_says() {
    let constellation = Constellation::geostationary(&[-95.0]).unwrap();
    let stations = [
        Station::new("new york", 40.9, -73.9),
        Station { gateway: true, ..Station::new("san francisco", 37.8, -122.4) },
        Station::new("below", 0.0, -95.0),
    ];
    let rules = Rules { elevation_mask_deg: 5.0, grid: None, ..RULES };
    let mut sky = Sky::new(&constellation, &stations, rules).unwrap();
    for _ in 0..3 {
        for (station, elevation, range) in
            [(0, 37.998, 37_936.88), (1, 37.672, 37_962.85), (2, 90.0, 35_786.0)]
        {
            let (satellite, seen_at, range_km) = sky.in_view(station).next().unwrap();
            assert_eq!(satellite, 0);
            assert!((seen_at - elevation).abs() < 0.001, "{seen_at}");
            assert!((range_km - range).abs() < 0.01, "{range_km}");
        }
        let path = sky.path(0, 1).unwrap();
        assert!((path.delay_one_way().as_secs_f64() - 0.253_174).abs() < 2e-6);
        assert_eq!(path.satellites, [0]);
        sky.advance().unwrap();
    }
}

#[test]
fn a_satellite_at_the_mask_is_as_far_as_the_table_says() {
    for (shell, mask, range_km, pass_s) in
        [(Shell::IRIDIUM, 8.2, 2464.6, 667.0), (Shell::TELEDESIC, 40.0, 1920.1, 412.8)]
    {
        let radius = shell.radius_km();
        let elevation = f64::to_radians(mask);
        let inner = f64::acos(6378.0 / radius * elevation.cos()) - elevation;
        let range = (radius * radius + 6378.0 * 6378.0 - 2.0 * radius * 6378.0 * inner.cos()).sqrt();
        assert!((range - range_km).abs() < 0.1, "{range}");
        assert!((2.0 * inner / std::f64::consts::TAU * shell.period_s() - pass_s).abs() < 0.5);
        let constellation = Constellation::of_shell(&shell).unwrap();
        let rules = Rules { elevation_mask_deg: mask, ..RULES };
        let mut sky = Sky::new(&constellation, &[berkeley()], rules).unwrap();
        let mut farthest = 0.0_f64;
        for _ in 0..1_000 {
            farthest = sky.in_view(0).map(|(_, _, range)| range).fold(farthest, f64::max);
            sky.advance().unwrap();
        }
        assert!(farthest <= range_km + 0.1 && farthest > 0.98 * range_km, "{farthest}");
    }
}

/// Returns minimum, median, mean, 95th percentile and maximum delay in ms as ns-2 measures it: with the transmission time of 210
/// bytes per hop.
fn measured(table: &PathTable, isl_bps: f64) -> [f64; 5] {
    let bits = 210.0 * 8.0;
    let mut links = Vec::new();
    let mut changes = table.changes.iter().peekable();
    let mut between = 0;
    for index in 0..table.delays_one_way.len() {
        while let Some((_, path)) = changes.next_if(|(from, _)| *from <= index) {
            between = path.len() - 1;
        }
        links.push(between as f64);
    }
    let total = |(delay, between): (&Option<Duration>, &f64)| {
        delay.expect("always in view").as_millis_f64() + 1e3 * bits * (2.0 / 1.5e6 + between / isl_bps)
    };
    let mut delays: Vec<f64> = table.delays_one_way.iter().zip(&links).map(total).collect();
    delays.sort_by(f64::total_cmp);
    let count = delays.len();
    let mean = delays.iter().sum::<f64>() / count as f64;
    [delays[0], delays[count / 2], mean, delays[count * 95 / 100], delays[count - 1]]
}

#[test]
fn berkeley_to_boston_takes_as_long_as_in_ns2() {
    let iridium = Rules { handover: Handover::InPlane, ..RULES };
    let teledesic = Rules { elevation_mask_deg: 40.0, grid: Some(Grid::TELEDESIC), ..iridium };
    let cases = [
        (Shell::IRIDIUM, iridium, 25e6, [23.1, 37.1, 37.5, 51.3, 52.7]),
        (Shell::TELEDESIC, teledesic, 155e6, [27.1, 33.6, 33.6, 39.2, 40.3]),
    ];
    for (shell, rules, isl_bps, expected) in cases {
        let found = measured(&tables(&shell, rules, 6020), isl_bps);
        println!("{found:?} {expected:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.02, "{found} instead of {expected}");
        }
    }
}

/// A small shell whose links can be counted by hand.
const SMALL: Shell = Shell {
    altitude_km: 1_200.0,
    inclination_deg: 60.0,
    planes: 9,
    per_plane: 12,
    spread: Spread::Delta,
    phasing: 0.0,
    first_node_deg: 10.0,
};

fn sine_of_elevation(station: Vector, satellite: Vector) -> f64 {
    let way = satellite - station;
    way.dot(station) / (way.length() * station.length())
}

/// Returns the shortest path length in km between two stations by Bellman-Ford.
fn bellman_ford(sky: &Sky<'_>, from: usize, to: usize) -> Option<f64> {
    let distances = distances_km(sky, sky.serving(to));
    let totals = sky.serving(from).iter().map(|&(first, range)| range + distances[first as usize]);
    totals.filter(|total| total.is_finite()).reduce(f64::min)
}

/// Returns the distance in km of each satellite to the nearest of these `ends` of paths by Bellman-Ford.
fn distances_km(sky: &Sky<'_>, ends: &[(u32, f64)]) -> Vec<f64> {
    let positions = sky.positions();
    let (planes, per_plane) = (SMALL.planes as usize, SMALL.per_plane as usize);
    let mut distances = vec![f64::INFINITY; positions.len()];
    for &(satellite, range_km) in ends {
        distances[satellite as usize] = distances[satellite as usize].min(range_km);
    }
    loop {
        let mut better = false;
        for plane in 0..planes {
            for number in 0..per_plane {
                let a = plane * per_plane + number;
                let ahead = plane * per_plane + (number + 1) % per_plane;
                let east = (plane + 1) % planes * per_plane + number;
                for (a, b) in [(a, ahead), (ahead, a), (a, east), (east, a)] {
                    let middle = ((positions[a] + positions[b]) * 0.5).length();
                    let through = distances[b] + (positions[a] - positions[b]).length();
                    if middle >= 6528.0 && through < distances[a] {
                        distances[a] = through;
                        better = true;
                    }
                }
            }
        }
        if !better {
            return distances;
        }
    }
}

#[test]
fn what_is_repaired_and_what_sleeps_gives_what_brute_force_gives() {
    let constellation = Constellation::of_shell(&SMALL).unwrap();
    let south = Station { gateway: true, ..Station::new("south", -41.0, 150.0) };
    let stations = [berkeley(), boston(), south, Station::new("pole", 89.0, 0.0)];
    for handover in [Handover::Nearest, Handover::Hysteresis { margin_deg: 10.0 }, Handover::LongestVisible] {
        let rules = Rules { elevation_mask_deg: 12.0, handover, grid: Some(Grid::PLUS), ..RULES };
        let mut sky = Sky::new(&constellation, &stations, rules).unwrap();
        for _ in 0..400 {
            for station in 0..stations.len() {
                let place = sky.place(station);
                let above = (0..constellation.len() as u32).filter(|satellite| {
                    let sine = sine_of_elevation(place, sky.positions()[*satellite as usize]);
                    sine > f64::to_radians(12.0).sin()
                });
                let seen: Vec<_> = sky.in_view(station).map(|(satellite, ..)| satellite).collect();
                assert_eq!(seen, above.collect::<Vec<_>>(), "station {station} at {:?}", sky.now());
            }
            for (from, to) in [(0, 1), (1, 2), (2, 0), (3, 1)] {
                let expected = bellman_ford(&sky, from, to);
                let found = sky.path(from, to).map(|path| path.distance_km);
                match (found, expected) {
                    (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-6),
                    _ => assert_eq!(found, expected),
                }
            }
            sky.advance().unwrap();
        }
    }
}

#[test]
fn paths_to_satellites_and_to_the_best_of_several_stations_are_those_of_brute_force() {
    let constellation = Constellation::of_shell(&SMALL).unwrap();
    let south = Station { gateway: true, ..Station::new("south", -41.0, 150.0) };
    let failing = Station { outages: vec![at(1_000)..at(1_200)], ..boston() };
    let stations = [berkeley(), failing, south];
    for handover in [Handover::Nearest, Handover::ShortestPath { margin: Duration::ZERO }] {
        let rules = Rules { elevation_mask_deg: 12.0, handover, grid: Some(Grid::PLUS), ..RULES };
        let mut sky = Sky::new(&constellation, &stations, rules).unwrap();
        let satellite = sky.add_satellite(17);
        let any = sky.add_any_of(vec![(1, 9_000.0), (2, 100.0)]);
        let mut landed = [0, 0];
        for _ in 0..400 {
            let further =
                |station: usize, km: f64| sky.serving(station).iter().map(move |one| (one.0, one.1 + km));
            let ends: Vec<_> = further(1, 9_000.0).chain(further(2, 100.0)).collect();
            let to_any = distances_km(&sky, &ends);
            let to_satellite = distances_km(&sky, &[(17, 0.0)]);
            let from_berkeley = |to: &[f64]| {
                let totals = sky.serving(0).iter().map(|&(first, range)| range + to[first as usize]);
                totals.fold(f64::INFINITY, f64::min)
            };
            let expected = [
                from_berkeley(&to_satellite),
                from_berkeley(&to_satellite),
                from_berkeley(&to_any),
                to_any[17],
            ];
            let pairs = [(0, satellite), (satellite, 0), (0, any), (satellite, any)];
            for ((from, to), expected) in pairs.into_iter().zip(expected) {
                let path = sky.path(from, to);
                let found = path.as_ref().map_or(f64::INFINITY, |path| path.distance_km);
                assert!(
                    found == expected || (found - expected).abs() < 1e-6,
                    "{from} {to}: {found}, {expected}"
                );
                let ends = path.map(|path| (path.satellites[0], *path.satellites.last().unwrap()));
                assert!(
                    ends.is_none_or(|(first, last)| [first, last].contains(&17) || (from, to) == (0, any))
                );
            }
            assert_eq!(sky.next_hop(17, satellite), None);
            let last = sky.path(0, any).and_then(|path| path.satellites.last().copied());
            let hop = last.and_then(|last| sky.next_hop(last, any));
            if let Some(hop) = hop {
                let Hop::Ground(station) = hop else { panic!("{hop:?}") };
                landed[station - 1] += 1;
            }
            sky.advance().unwrap();
        }
        assert!(landed.iter().all(|steps| *steps > 20), "{landed:?}");
    }
}

/// At a seam links change their ends, so a previously known path may form a loop.
#[test]
fn paths_across_a_seam_are_those_of_a_sky_that_knows_nothing_from_before() {
    let shell = Shell {
        altitude_km: 1375.0,
        inclination_deg: 84.7,
        planes: 12,
        per_plane: 24,
        phasing: 6.0,
        spread: Spread::Star { separation_deg: 15.0 },
        ..Shell::IRIDIUM
    };
    let constellation = Constellation::of_shell(&shell).unwrap();
    let stations = [Station::new("easter", -36.0, -103.1), Station::new("bahia", -12.7, -42.1)];
    let handover = Handover::LongestVisible;
    let step = Duration::from_secs(27);
    let rules = Rules { elevation_mask_deg: 5.0, handover, grid: Some(Grid::TELEDESIC), step };
    let sky = || Sky::new(&constellation, &stations, rules).unwrap();
    let (mut repaired, mut untouched) = (sky(), sky());
    for _ in 0..370 {
        for (from, to) in [(0, 1), (1, 0)] {
            let paths = [&mut repaired, &mut untouched.clone()]
                .map(|sky| sky.path(from, to).map_or(-1.0, |path| path.distance_km));
            assert!((paths[0] - paths[1]).abs() < 1e-6, "{paths:?} at {:?}", repaired.now());
        }
        repaired.advance().unwrap();
        untouched.advance().unwrap();
    }
}

#[test]
fn a_path_is_as_long_as_its_hops_and_never_shorter_than_the_straight_line() {
    let constellation = Constellation::of_shell(&Shell::TELEDESIC).unwrap();
    let rules = Rules { elevation_mask_deg: 40.0, grid: Some(Grid::TELEDESIC), ..RULES };
    let mut sky = Sky::new(&constellation, &[berkeley(), boston()], rules).unwrap();
    for _ in 0..200 {
        let path = sky.path(0, 1).unwrap();
        let places = path.satellites.iter().map(|satellite| sky.positions()[*satellite as usize]);
        let places: Vec<_> = [sky.place(0)].into_iter().chain(places).chain([sky.place(1)]).collect();
        let length: f64 = places.windows(2).map(|pair| (pair[1] - pair[0]).length()).sum();
        assert!((length - path.distance_km).abs() < 1e-6);
        assert!(length > (sky.place(1) - sky.place(0)).length());
        assert!((path.delay_one_way().as_secs_f64() - length / LIGHT_KM_PER_S).abs() < 1e-9);
        sky.advance().unwrap();
    }
}

#[test]
fn policies_trade_handovers_for_delay() {
    let policies = [
        Handover::Nearest,
        Handover::Hysteresis { margin_deg: 15.0 },
        Handover::InPlane,
        Handover::LongestVisible,
    ];
    let tables = policies.map(|handover| tables(&Shell::IRIDIUM, Rules { handover, ..RULES }, 12_000));
    let [nearest, hysteresis, in_plane, longest] = tables.each_ref().map(PathTable::handovers);
    assert!(nearest > hysteresis && hysteresis > longest && in_plane >= longest, "{tables:?}");
    // Each of the two stations has passes of at most 667 s (slightly more by the Earth's rotation), which gives the minimum
    // number of handovers.
    assert!(longest >= 2 * (12_000 / 700), "{longest}");
    let mean = |table: &PathTable| {
        let sum: f64 = table.delays_one_way.iter().flatten().map(|delay| delay.as_millis_f64()).sum();
        sum / table.delays_one_way.len() as f64
    };
    assert!(mean(&tables[0]) < mean(&tables[3]));
}

#[test]
fn bent_pipes_reach_a_gateway_under_the_same_satellite_and_no_farther() {
    let constellation = Constellation::of_shell(&Shell::IRIDIUM).unwrap();
    let gateway = Station { gateway: true, ..Station::new("tempe", 33.4, -111.9) };
    let stations = [berkeley(), gateway, Station::new("sydney", -33.9, 151.2)];
    let rules = Rules { grid: None, handover: Handover::LongestVisible, ..RULES };
    let mut sky = Sky::new(&constellation, &stations, rules).unwrap();
    let mut with_path = 0;
    for _ in 0..600 {
        assert_eq!(sky.path(2, 1), None, "Sydney sees no satellite that Tempe sees");
        if let Some(path) = sky.path(0, 1) {
            with_path += 1;
            let [only] = path.satellites[..] else { panic!("one satellite, not {path:?}") };
            for station in [0, 1] {
                assert!(sky.in_view(station).any(|(satellite, ..)| satellite == only));
            }
            // The maximum is two slant ranges at the mask, the minimum two altitudes.
            assert!(path.distance_km > 1_560.0 && path.distance_km < 4_929.4);
        }
        sky.advance().unwrap();
    }
    assert!(with_path > 500, "{with_path}");
}

#[test]
fn two_line_elements_fly_like_the_shell_that_they_describe() {
    // Two planes of a shell at 86.4 degrees and 780 km, with the epoch at the start of 2026. Checksums are computed here.
    let line = |text: String| {
        let sum: u32 =
            text.bytes().map(|b| if b == b'-' { 1 } else { (b as char).to_digit(10).unwrap_or(0) }).sum();
        format!("{text}{}", sum % 10)
    };
    let mut text = String::new();
    for (plane, node) in [(0, 10.0), (1, 41.6)] {
        for number in 0..11 {
            let id = 90_000 + plane * 11 + number;
            let anomaly = (f64::from(number) + 0.5 * f64::from(plane)) * 360.0 / 11.0;
            let first = format!("1 {id:05}U 26001A   26001.00000000  .00000000  00000-0  00000-0 0  999");
            let second =
                format!("2 {id:05}  86.4000 {node:8.4} 0000001   0.0000 {anomaly:8.4} 14.33550000    0");
            text += &format!("{}\n{}\n", line(first), line(second));
        }
    }
    let constellation = Constellation::from_elements(&text, None, Duration::ZERO).unwrap();
    assert_eq!((constellation.len(), constellation.name(12)), (22, "90012"));
    for second in [0, 3_000, 80_000] {
        let mut positions = Vec::new();
        constellation.positions(at(second), &mut positions).unwrap();
        for place in &positions {
            assert!((place.length() - 7_158.0).abs() < 25.0, "{}", place.length());
        }
        // Eleven satellites in a ring are 4033 km apart.
        for number in 0..11 {
            let distance = (positions[number] - positions[(number + 1) % 11]).length();
            assert!((distance - 4_033.3).abs() < 40.0, "{distance}");
        }
    }
    let mut sky = Sky::new(&constellation, &[berkeley(), boston()], RULES).unwrap();
    let paths = path_tables(&mut sky, &[(0, 1)], at(86_400)).unwrap().remove(0);
    let served = paths.delays_one_way.iter().flatten().count() as f64 / paths.delays_one_way.len() as f64;
    assert!(served > 0.1 && served < 0.9, "two planes of six: {served}");
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let constellation = Constellation::of_shell(&Shell::IRIDIUM).unwrap();
    let refused = |stations: &[Station], rules| match Sky::new(&constellation, stations, rules) {
        Err(error @ OrbitError::Impossible { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let stations = [berkeley(), boston()];
    let none = Rules { grid: None, ..RULES };
    assert!(refused(&stations, none).starts_with("gateway: found none"));
    let flat = Rules { elevation_mask_deg: 90.0, ..RULES };
    assert!(refused(&stations, flat).starts_with("elevation-mask: found 90"));
    let frozen = Rules { step: Duration::ZERO, ..RULES };
    assert_eq!(refused(&stations, frozen), "step: found 0 s, accepted: longer than 0 s");
    let handover = Handover::Hysteresis { margin_deg: -1.0 };
    assert!(refused(&stations, Rules { handover, ..RULES }).starts_with("handover.margin"));
    let grid = Some(Grid { latitude_limit_deg: 100.0, ..Grid::PLUS });
    assert!(refused(&stations, Rules { grid, ..RULES }).starts_with("links.latitude-limit"));
    let nowhere = [Station::new("berkeley", 37.9, 237.7)];
    assert!(refused(&nowhere, RULES).starts_with("berkeley.longitude: found 237.7"));
}

#[test]
fn a_station_too_far_from_the_equator_is_out_of_reach() {
    let reaches = |constellation: &Constellation, latitude, mask| {
        constellation.reaches(&Station::new("x", latitude, 20.0), mask)
    };
    let shell = Constellation::of_shell(&Shell { inclination_deg: 53.0, ..SMALL }).unwrap();
    // From 1200 km, the coverage radius is 15.3 degrees at a mask of 25 degrees, and 32.7 at 0 degrees.
    assert!(reaches(&shell, 68.0, 25.0) && !reaches(&shell, 69.0, 25.0) && reaches(&shell, -85.0, 0.0));
    let fixed = Constellation::geostationary(&[20.0]).unwrap();
    assert!(reaches(&fixed, 81.0, 0.0) && !reaches(&fixed, 82.0, 0.0) && !reaches(&fixed, 60.0, 45.0));
}

#[test]
fn a_path_leads_back_as_it_came() {
    let constellation = Constellation::of_shell(&SMALL).unwrap();
    let gateway = Station { gateway: true, ..Station::new("tempe", 33.4, -111.9) };
    for grid in [None, Some(Grid::PLUS)] {
        let rules = Rules { elevation_mask_deg: 20.0, grid, ..RULES };
        let mut sky = Sky::new(&constellation, &[berkeley(), gateway.clone()], rules).unwrap();
        let mut found = 0;
        for _ in 0..300 {
            let there = sky.path(0, 1);
            let back = sky.path(1, 0);
            let reversed = back.clone().map(|mut path| {
                path.satellites.reverse();
                path.satellites
            });
            assert_eq!(there.as_ref().map(|path| path.satellites.clone()), reversed, "{there:?} {back:?}");
            found += usize::from(there.is_some());
            sky.advance().unwrap();
        }
        assert!(found > 10, "{found}");
    }
}

/// Wrocław and Nairobi under 53°:1584/72/17. The highest satellite and its neighbours may fly in the opposite direction. The
/// shortest path over all visible satellites takes less than half the time.
#[test]
fn a_choice_that_sees_the_path_finds_one_of_half_the_delay() {
    let spread = Spread::Delta;
    let shell = Shell {
        altitude_km: 550.0,
        inclination_deg: 53.0,
        planes: 72,
        per_plane: 22,
        phasing: 17.0,
        spread,
        ..Shell::IRIDIUM
    };
    let constellation = Constellation::of_shell(&shell).unwrap();
    let stations = [Station::new("wroclaw", 51.1, 17.0), Station::new("nairobi", -1.3, 36.8)];
    let delays = |handover| {
        let rules = Rules {
            elevation_mask_deg: 25.0,
            handover,
            grid: Some(Grid::PLUS),
            step: Duration::from_secs(15),
        };
        let mut sky = Sky::new(&constellation, &stations, rules).unwrap();
        let (mut delays, mut ends, mut changes) = (Vec::new(), None, 0);
        for _ in 0..60 {
            let path = sky.path(0, 1).expect("both are served");
            delays.push(path.delay_one_way().as_millis_f64());
            let now = Some((path.satellites[0], *path.satellites.last().unwrap()));
            changes += u32::from(ends != now);
            ends = now;
            sky.advance().unwrap();
        }
        (delays.iter().sum::<f64>() / delays.len() as f64, changes)
    };
    let nearest = delays(Handover::Nearest);
    let shortest = delays(Handover::ShortestPath { margin: Duration::ZERO });
    let steady = delays(Handover::ShortestPath { margin: Duration::from_millis(5) });
    println!("nearest {nearest:?}, shortest {shortest:?}, steady {steady:?}");
    // The great circle is 6,300 km long, a propagation delay of 21 ms.
    assert!((21.0..60.0).contains(&shortest.0), "{shortest:?}");
    assert!(nearest.0 > 1.5 * shortest.0, "{nearest:?} {shortest:?}");
    assert!(steady.0 >= shortest.0 && steady.0 < shortest.0 + 10.0, "{steady:?}");
    assert!(steady.1 < shortest.1, "{steady:?} {shortest:?}");
}

/// Returns the links of a shell's grid at time zero.
fn mesh_of(shell: &Shell, grid: Grid) -> Vec<Listed> {
    let constellation = Constellation::of_shell(shell).unwrap();
    let sky = Sky::new(&constellation, &[berkeley()], Rules { grid: Some(grid), ..RULES }).unwrap();
    let pairs = (0..constellation.len() as u32).flat_map(|a| (0..a).map(move |b| [a, b]));
    let linked = pairs.filter(|[a, b]| sky.are_linked(*a, *b));
    linked.map(|ends| Listed { ends, rate: None, during: Instant::ZERO..Instant::FAR_FUTURE }).collect()
}

fn delays(constellation: &Constellation, grid: Grid) -> Vec<Option<Duration>> {
    let rules = Rules { grid: Some(grid), ..RULES };
    let mut sky = Sky::new(constellation, &[berkeley(), boston()], rules).unwrap();
    path_tables(&mut sky, &[(0, 1)], at(3600)).unwrap().remove(0).delays_one_way
}

#[test]
fn a_list_of_the_links_of_the_grid_gives_the_paths_of_the_grid() {
    let links = mesh_of(&Shell::IRIDIUM, Grid::PLUS);
    assert_eq!(links.len(), 66 + 55);
    let plain = Constellation::of_shell(&Shell::IRIDIUM).unwrap();
    let listed = Constellation::of_shell(&Shell::IRIDIUM).unwrap().with_links(links);
    let expected = delays(&plain, Grid::PLUS);
    assert!(expected.iter().all(Option::is_some));
    assert_eq!(delays(&listed, Grid::NONE), expected);
}

#[test]
fn a_listed_link_exists_in_its_time_and_only_linked_satellites_serve() {
    let during = at(100)..at(200);
    let link = Listed { ends: [7, 6], rate: Some(bentpipe_base::Rate::from_mbps(5)), during };
    let listed = Constellation::of_shell(&Shell::IRIDIUM).unwrap().with_links(vec![link]);
    assert_eq!(listed.rate_between(6, 7), listed.rate_between(7, 6));
    assert_eq!((listed.rate_between(6, 7).is_some(), listed.rate_between(6, 8)), (true, None));
    let rules = Rules { grid: Some(Grid::NONE), ..RULES };
    let mut sky = Sky::new(&listed, &[berkeley()], rules).unwrap();
    let mut served = 0;
    for step in 0..8640 {
        assert_eq!(sky.are_linked(6, 7), (10..20).contains(&step), "step {step}");
        assert!(sky.serving(0).iter().all(|(satellite, _)| [6, 7].contains(satellite)));
        served += sky.serving(0).len();
        sky.advance().unwrap();
    }
    assert!(served > 0);
}

#[test]
fn a_satellite_is_found_by_index_name_or_catalogue_number() {
    let shell = Constellation::of_shell(&Shell::IRIDIUM).unwrap();
    assert_eq!(
        ["0", "65", "66", "1-0", "6-0"].map(|name| shell.find(name)),
        [Some(0), Some(65), None, Some(11), None]
    );
    let text = include_str!("../../../scenarios/starlink-shell.tle");
    let elements = Constellation::from_elements(text, None, Duration::from_secs(1)).unwrap();
    let second = text.lines().filter(|line| line.starts_with("1 ")).nth(1).unwrap();
    assert_eq!(elements.find(&second[2..7]), Some(1));
    assert_eq!(elements.find(elements.name(2)), Some(2));
}

#[test]
fn a_moving_station_sees_what_a_station_at_its_place_sees() {
    let constellation = Constellation::of_shell(&Shell::IRIDIUM).unwrap();
    let place = |longitude_deg| Place { latitude_deg: 0.0, longitude_deg, altitude_km: 10.0 };
    let hour = Duration::from_secs(3600);
    // 3600 km/h over the date line, then at rest.
    let way = vec![(hour, place(-175.0)), (hour * 2, place(-175.0))];
    let aircraft = Station { place: place(155.0), way, ..Station::new("aircraft", 0.0, 0.0) };
    let rules = Rules { handover: Handover::LongestVisible, ..RULES };
    let mut moving = Sky::new(&constellation, &[aircraft], rules).unwrap();
    for step in 0..720 {
        let east = 155.0 + (f64::from(step) / 12.0).min(30.0);
        let longitude = if east > 180.0 { east - 360.0 } else { east };
        if step % 90 == 0 {
            let there = Station { place: place(longitude), ..Station::new("there", 0.0, 0.0) };
            let mut fixed = Sky::new(&constellation, &[there], RULES).unwrap();
            (0..step).for_each(|_| fixed.advance().unwrap());
            let seen = |sky: &Sky<'_>| sky.in_view(0).map(|seen| seen.0).collect::<Vec<_>>();
            assert_eq!(seen(&moving), seen(&fixed), "step {step}");
            assert!((moving.place(0) - fixed.place(0)).length() < 1e-6);
        }
        assert!(!moving.serving(0).is_empty());
        moving.advance().unwrap();
    }
}

#[test]
fn no_satellite_serves_a_station_that_has_failed() {
    let constellation = Constellation::of_shell(&Shell::IRIDIUM).unwrap();
    let failing = Station { outages: vec![at(100)..at(200)], ..boston() };
    let mut sky = Sky::new(&constellation, &[berkeley(), failing], RULES).unwrap();
    for step in 0..60 {
        let out = (10..20).contains(&step);
        assert_eq!((sky.path(0, 1).is_none(), sky.path(1, 0).is_none()), (out, out), "step {step}");
        sky.advance().unwrap();
    }
}

#[test]
fn impossible_ways_and_outages_are_refused() {
    let constellation = Constellation::of_shell(&Shell::IRIDIUM).unwrap();
    let refused = |station| Sky::new(&constellation, &[station], RULES).unwrap_err().to_string();
    let here = boston().place;
    let way = vec![(Duration::ZERO, here)];
    assert_eq!(
        refused(Station { way, ..boston() }),
        "boston.way: found 0 s after 0 s, accepted: ascending times above 0 s"
    );
    let way = vec![(Duration::from_secs(1), Place { altitude_km: 51.0, ..here })];
    assert_eq!(refused(Station { way, ..boston() }), "boston.altitude: found 51, accepted: km from 0 to 50");
    assert!(refused(Station { outages: vec![at(2)..at(2)], ..boston() }).starts_with("boston.outages: "));
}
