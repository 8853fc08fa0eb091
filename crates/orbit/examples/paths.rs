//! Paths between pairs of cities under Iridium or Teledesic, sampled every 10 s: the input of
//! `scripts/compare-with-ns2-satellite`.
//!
//! `cargo run --package bentpipe-orbit --example paths iridium 6020 37.9,-122.3,42.3,-71.1`
//!
//! Prints a line per pair and sample: number of the pair, seconds, propagation delay in ms, links between satellites.

use bentpipe_base::{Duration, Instant};
use bentpipe_orbit::{Constellation, Grid, Handover, OrbitError, Rules, Shell, Sky, Station, path_tables};

const USAGE: &str = "paths CONSTELLATION SECONDS LATITUDE,LONGITUDE,LATITUDE,LONGITUDE ...";

fn main() -> Result<(), OrbitError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, seconds, pairs @ ..] = arguments.as_slice() else { panic!("{USAGE}") };
    let (shell, grid, elevation_mask_deg) = match kind.as_str() {
        "iridium" => (Shell::IRIDIUM, Grid::IRIDIUM, 8.2),
        "teledesic" => (Shell::TELEDESIC, Grid::TELEDESIC, 40.0),
        _ => panic!("{USAGE}"),
    };
    let mut stations = Vec::new();
    for pair in pairs {
        let degrees: Vec<f64> = pair.split(',').map(|degrees| degrees.parse().expect(USAGE)).collect();
        let [a, b, c, d] = degrees.as_slice() else { panic!("{USAGE}") };
        stations.extend([Station::new("from", *a, *b), Station::new("to", *c, *d)]);
    }
    let constellation = Constellation::of_shell(&shell)?;
    let step = Duration::from_secs(10);
    let rules = Rules { elevation_mask_deg, handover: Handover::InPlane, grid: Some(grid), step };
    let mut sky = Sky::new(&constellation, &stations, rules)?;
    let numbers: Vec<_> = (0..pairs.len()).map(|pair| (2 * pair, 2 * pair + 1)).collect();
    let end = Instant::ZERO + Duration::from_secs(seconds.parse().expect(USAGE));
    for (pair, table) in path_tables(&mut sky, &numbers, end)?.iter().enumerate() {
        let mut changes = table.changes.iter().peekable();
        let mut between = 0;
        for (look, delay) in table.delays_one_way.iter().enumerate() {
            while let Some((_, path)) = changes.next_if(|(from, _)| *from <= look) {
                between = path.len().saturating_sub(1);
            }
            if let Some(delay) = delay {
                println!("{pair} {} {} {between}", table.at(look).as_secs_f64(), delay.as_millis_f64());
            }
        }
    }
    Ok(())
}
