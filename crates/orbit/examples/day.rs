//! A day of a shell of 1,584 satellites between 20 ground stations. `time` should show less than a minute.
//!
//! `cargo run --release --package bentpipe-orbit --example day [STEP_SECONDS]`

use bentpipe_base::{Duration, Instant};
use bentpipe_orbit::{
    Constellation, Grid, Handover, OrbitError, Rules, Shell, Sky, Spread, Station, path_tables,
};

const CITIES: [(&str, f64, f64); 20] = [
    ("Amsterdam", 52.4, 4.9),
    ("Bogota", 4.7, -74.1),
    ("Cape Town", -33.9, 18.4),
    ("Chicago", 41.9, -87.6),
    ("Dakar", 14.7, -17.4),
    ("Delhi", 28.6, 77.2),
    ("Honolulu", 21.3, -157.9),
    ("Istanbul", 41.0, 29.0),
    ("Jakarta", -6.2, 106.8),
    ("Lima", -12.0, -77.0),
    ("London", 51.5, -0.1),
    ("Los Angeles", 34.1, -118.2),
    ("Madrid", 40.4, -3.7),
    ("Nairobi", -1.3, 36.8),
    ("New York", 40.7, -74.0),
    ("Perth", -32.0, 115.9),
    ("Rio de Janeiro", -22.9, -43.2),
    ("Singapore", 1.4, 103.8),
    ("Sydney", -33.9, 151.2),
    ("Tokyo", 35.7, 139.7),
];

fn main() -> Result<(), OrbitError> {
    let step = std::env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(10);
    let shell = Shell {
        altitude_km: 550.0,
        inclination_deg: 53.0,
        planes: 72,
        per_plane: 22,
        spread: Spread::Delta,
        // This phasing has the largest minimum distance between satellites at orbit crossings: 72 km.
        phasing: 65.0,
        first_node_deg: 0.0,
    };
    let constellation = Constellation::of_shell(&shell)?;
    let stations = CITIES.map(|(name, latitude, longitude)| Station::new(name, latitude, longitude));
    let rules = Rules {
        elevation_mask_deg: 25.0,
        handover: Handover::Nearest,
        grid: Some(Grid::PLUS),
        step: Duration::from_secs(step),
    };
    let mut sky = Sky::new(&constellation, &stations, rules)?;
    let pairs: Vec<_> = (0..20).flat_map(|from| (0..from).map(move |to| (from, to))).collect();
    let day = Instant::ZERO + Duration::from_secs(86_400);
    let tables = path_tables(&mut sky, &pairs, day)?;
    println!(
        "from - to: least, median and greatest delay in ms, share of time without a path, changes of the path"
    );
    for ((from, to), table) in pairs.iter().zip(&tables) {
        let mut delays: Vec<f64> =
            table.delays_one_way.iter().flatten().map(|delay| delay.as_millis_f64()).collect();
        delays.sort_by(f64::total_cmp);
        let [Some(least), Some(median), Some(most)] =
            [delays.first(), delays.get(delays.len() / 2), delays.last()]
        else {
            continue;
        };
        let without = 1.0 - delays.len() as f64 / table.delays_one_way.len() as f64;
        println!(
            "{} - {}: {least:.2} {median:.2} {most:.2}, {without:.4}, {}",
            stations[*from].name,
            stations[*to].name,
            table.changes.len()
        );
    }
    Ok(())
}
