//! Writes the two-line elements of `scenarios/starlink-shell.tle`. They are synthetic, after the shell of the operator's
//! application: 72 planes of 22 satellites at 53 degrees and 550 km. No real satellite has these elements.
//!
//! `cargo run --package bentpipe-orbit --example elements > scenarios/starlink-shell.tle`

const PLANES: u32 = 72;
const PER_PLANE: u32 = 22;
/// This phasing has the largest minimum distance between satellites at orbit crossings: 72 km.
const PHASING: u32 = 65;
/// Revolutions per day at 550 km.
const REVOLUTIONS: f64 = 15.055;

fn main() {
    println!(
        "# A made-up shell: 72 planes of 22 satellites at 53 degrees and 550 km, epoch at the start of 2026."
    );
    println!(
        "# Written by the example `elements` of the crate bentpipe-orbit; no real satellite has these elements."
    );
    for plane in 0..PLANES {
        for number in 0..PER_PLANE {
            let id = 80_000 + plane * PER_PLANE + number;
            let node = f64::from(plane) * 360.0 / f64::from(PLANES);
            let ahead = f64::from(PHASING * plane % PLANES) / f64::from(PLANES);
            let anomaly = (f64::from(number) + ahead) * 360.0 / f64::from(PER_PLANE);
            line(format!("1 {id:05}U 26001A   26001.00000000  .00000000  00000-0  00000-0 0  999"));
            line(format!(
                "2 {id:05}  53.0000 {node:8.4} 0000001   0.0000 {anomaly:8.4} {REVOLUTIONS:11.8}    1"
            ));
        }
    }
}

/// Prints a line with its checksum: the sum of its digits, where a minus sign counts as one.
fn line(body: String) {
    let value = |c: char| if c == '-' { 1 } else { c.to_digit(10).unwrap_or(0) };
    println!("{body}{}", body.chars().map(value).sum::<u32>() % 10);
}
