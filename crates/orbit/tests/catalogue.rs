//! Constellations from mean elements: shells, planes and satellites that are left out.

use bentpipe_base::{Duration, Instant};
use bentpipe_orbit::{
    Constellation, Grid, Handover, PathTable, Reason, Rules, Shell, Sky, Spread, Station, path_tables,
};

/// A Walker delta 53:96/12/6: every second plane is half a spacing ahead.
const WALKER: Shell = Shell {
    altitude_km: 1_400.0,
    inclination_deg: 53.0,
    planes: 12,
    per_plane: 8,
    spread: Spread::Delta,
    phasing: 6.0,
    first_node_deg: 0.0,
};

/// The epoch of the elements, since the beginning of 1970.
const NEW_YEAR: Duration = Duration::from_secs(1_767_225_600);

/// A ring of satellites: catalogue number of the first one, inclination, node and first anomaly in degrees, altitude in km.
#[derive(Clone, Copy)]
struct Ring {
    number: u32,
    count: u32,
    inclination_deg: f64,
    node_deg: f64,
    anomaly_deg: f64,
    altitude_km: f64,
}

/// Returns a line with its checksum.
fn line(body: &str) -> String {
    let value = |c: char| if c == '-' { 1 } else { c.to_digit(10).unwrap_or(0) };
    format!("{body}{}\n", body.chars().map(value).sum::<u32>() % 10)
}

/// Returns the two-line elements of a ring, with the first day of 2026 as epoch.
fn elements(ring: Ring) -> String {
    let axis = 6_378.135 + ring.altitude_km;
    let per_day = 86_400.0 / std::f64::consts::TAU * (398_600.8 / axis.powi(3)).sqrt();
    let satellite = |index: u32| {
        let id = ring.number + index;
        let anomaly = (ring.anomaly_deg + f64::from(index) * 360.0 / f64::from(ring.count)) % 360.0;
        let (inclination, node) = (ring.inclination_deg, ring.node_deg);
        let first = format!("1 {id:05}U 26001A   26001.00000000  .00000000  00000-0  00000-0 0  999");
        let second = format!(
            "2 {id:05} {inclination:8.4} {node:8.4} 0000001   0.0000 {anomaly:8.4} {per_day:11.8}    1"
        );
        format!("S{id}\n{}{}", line(&first), line(&second))
    };
    (0..ring.count).map(satellite).collect()
}

fn walker() -> String {
    let ring = |plane: u32| Ring {
        number: 1_000 + 8 * plane,
        count: 8,
        inclination_deg: 53.0,
        node_deg: f64::from(plane) * 30.0,
        anomaly_deg: f64::from(plane % 2) * 22.5,
        altitude_km: 1_400.0,
    };
    (0..12).map(|plane| elements(ring(plane))).collect()
}

/// Six planes of six satellites over the poles.
fn polar() -> String {
    let ring = |plane: u32| Ring {
        number: 3_000 + 6 * plane,
        count: 6,
        inclination_deg: 87.0,
        node_deg: f64::from(plane) * 30.0 + 11.0,
        anomaly_deg: f64::from(plane) * 7.0,
        altitude_km: 1_200.0,
    };
    (0..6).map(|plane| elements(ring(plane))).collect()
}

fn read(text: &str) -> Constellation {
    Constellation::from_elements(text, None, Duration::ZERO).unwrap()
}

fn stations() -> Vec<Station> {
    let places = [(40.0, -20.0), (4.0, -83.0), (-33.0, 151.0), (51.0, 13.0), (35.0, 139.0)];
    places.iter().map(|(latitude, longitude)| Station::new("place", *latitude, *longitude)).collect()
}

fn paths(constellation: &Constellation, handover: Handover) -> Vec<PathTable> {
    let rules =
        Rules { elevation_mask_deg: 10.0, handover, grid: Some(Grid::PLUS), step: Duration::from_secs(60) };
    let mut sky = Sky::new(constellation, &stations(), rules).unwrap();
    let pairs = [(0, 1), (0, 2), (1, 3), (2, 4), (3, 4)];
    path_tables(&mut sky, &pairs, Instant::ZERO + Duration::from_secs(3_600)).unwrap()
}

const SHORTEST: Handover = Handover::ShortestPath { margin: Duration::ZERO };

fn delays_ms(table: &PathTable) -> Vec<f64> {
    table.delays_one_way.iter().map(|delay| delay.map_or(f64::NAN, |delay| delay.as_millis_f64())).collect()
}

#[test]
fn elements_and_shell_of_the_same_walker_constellation_have_the_same_paths() {
    let elements = read(&walker());
    let first_node_deg = -elements.greenwich(Instant::ZERO).to_degrees();
    let shell = Constellation::of_shell(&Shell { first_node_deg, ..WALKER }).unwrap();
    assert!(elements.left_out().is_empty());
    let (of_elements, of_shell) = (paths(&elements, SHORTEST), paths(&shell, SHORTEST));
    for (a, b) in of_elements.iter().zip(&of_shell) {
        // The Earth is an ellipsoid in one case and a sphere in the other.
        let differences = delays_ms(a).into_iter().zip(delays_ms(b)).map(|(a, b)| (a - b).abs());
        let different = differences.filter(|difference| difference.is_nan() || *difference > 0.5).count();
        assert!(
            different <= 2,
            "{different} of {}: {:?} {:?}",
            a.delays_one_way.len(),
            delays_ms(a),
            delays_ms(b)
        );
    }
}

#[test]
fn satellites_of_another_shell_make_no_path_longer() {
    let (alone, more) = (read(&walker()), read(&(walker() + &polar())));
    assert!(more.left_out().is_empty());
    for handover in [SHORTEST, Handover::Nearest] {
        for (alone, more) in paths(&alone, handover).iter().zip(paths(&more, handover)) {
            for (alone, more) in delays_ms(alone).into_iter().zip(delays_ms(&more)) {
                assert!(alone.is_nan() || more <= alone + 1e-6, "{handover:?}: {alone} ms became {more} ms");
            }
        }
    }
}

#[test]
fn satellites_that_climb_or_drift_between_planes_are_named_and_serve_no_station() {
    let climbing = Ring {
        number: 5_000,
        count: 3,
        inclination_deg: 53.1,
        node_deg: 15.0,
        anomaly_deg: 3.0,
        altitude_km: 1_310.0,
    };
    let drifting = Ring {
        number: 6_000,
        count: 1,
        node_deg: 45.0,
        inclination_deg: 53.0,
        altitude_km: 1_400.5,
        ..climbing
    };
    let (alone, more) = (read(&walker()), read(&(walker() + &elements(climbing) + &elements(drifting))));
    let left_out: Vec<_> = more
        .left_out()
        .iter()
        .map(|one| (one.satellite.as_str(), one.line, one.reason.to_string()))
        .collect();
    let climbs = "90 km below its shell".to_owned();
    let drifts = "between the planes of its shell".to_owned();
    let expected = [
        ("S5000", 290, climbs.clone()),
        ("S5001", 293, climbs.clone()),
        ("S5002", 296, climbs),
        ("S6000", 299, drifts),
    ];
    assert_eq!(left_out, expected);
    for handover in [SHORTEST, Handover::Nearest] {
        let delays = |constellation| paths(constellation, handover).iter().map(delays_ms).collect::<Vec<_>>();
        assert_eq!(format!("{:?}", delays(&alone)), format!("{:?}", delays(&more)));
    }
}

#[test]
fn planes_at_altitudes_of_a_few_km_difference_are_one_shell() {
    let ring = |plane: u32| Ring {
        number: 1_000 + 40 * plane,
        count: 40,
        inclination_deg: 87.9,
        node_deg: f64::from(plane) * 15.2,
        anomaly_deg: f64::from(plane) * 4.5,
        altitude_km: 1_180.0 + 4.0 * f64::from(plane),
    };
    let constellation = read(&(0..12).map(|plane| elements(ring(plane))).collect::<String>());
    assert!(constellation.left_out().is_empty());
    let delays: Vec<_> = paths(&constellation, Handover::Nearest).iter().flat_map(delays_ms).collect();
    let served = delays.iter().filter(|delay| delay.is_finite()).count();
    assert!(served > delays.len() * 9 / 10, "{served} of {}", delays.len());
}

#[test]
fn a_satellite_that_cannot_fly_is_named_and_the_others_fly() {
    let decaying = line("1 09999U 26001A   25330.00000000  .00000000  00000-0  99999-0 0  999")
        + &line("2 09999  53.0000   0.0000 0000001   0.0000   0.0000 16.40000000    1");
    let constellation = read(&format!("COMING DOWN\n{decaying}{}", walker()));
    assert_eq!(constellation.len(), 96);
    let [lost] = constellation.left_out() else { panic!("{:?}", constellation.left_out()) };
    assert_eq!((lost.satellite.as_str(), lost.line), ("COMING DOWN", 2));
    let Reason::CannotFly(what) = &lost.reason else { panic!("{lost:?}") };
    assert!(what.starts_with("no position 0 s after time zero: "), "{what}");
    let refused =
        Constellation::from_elements(&decaying, Some(NEW_YEAR), Duration::ZERO).unwrap_err().to_string();
    assert!(refused.starts_with("line 1: no position 0 s after time zero: "), "{refused}");
}

#[test]
fn a_start_moves_the_satellites_and_the_earth_to_that_time() {
    let start = NEW_YEAR + Duration::from_secs(5_400);
    let later = Constellation::from_elements(&walker(), Some(start), Duration::ZERO).unwrap();
    let (first, at) = (read(&walker()), Instant::ZERO + Duration::from_secs(5_400));
    for satellite in [0, 50, 95] {
        let apart =
            first.position(satellite, at).unwrap() - later.position(satellite, Instant::ZERO).unwrap();
        assert!(apart.length() < 1e-6, "{apart:?}");
    }
    let turned = (first.greenwich(at) - later.greenwich(Instant::ZERO)).rem_euclid(std::f64::consts::TAU);
    assert!(turned.min(std::f64::consts::TAU - turned) < 1e-6, "{turned}");
}
