//! Robustness test: reading any text returns satellites or an error.

use bentpipe_base::{Duration, Instant};
use bentpipe_orbit::{Constellation, OrbitError};
use proptest::prelude::*;

const LINES: [&str; 2] = [
    "1 00005U 58002B   00179.78495062  .00000023  00000-0  28098-4 0  4753",
    "2 00005  34.2682 348.7242 1859667 331.7664  19.3264 10.82419157413667",
];

/// Returns the line with a corrected checksum.
fn summed(line: &str) -> String {
    let body = &line[..68];
    let value = |c: char| if c == '-' { 1 } else { c.to_digit(10).unwrap_or(0) };
    format!("{body}{}", body.chars().map(value).sum::<u32>() % 10)
}

fn read(text: &str) {
    let constellation = match Constellation::from_elements(text, None, Duration::ZERO) {
        Ok(constellation) => constellation,
        Err(OrbitError::Elements { line, .. }) => {
            assert!(line >= 1 && line <= text.lines().count().max(1), "line {line} of {text:?}");
            return;
        }
        Err(_) => return,
    };
    let later = Instant::ZERO + Duration::from_secs(100_000);
    if let Ok(place) = constellation.position(0, later) {
        assert!(place.length().is_finite());
    }
}

proptest! {
    #[test]
    fn any_text(text in "\\PC{0,200}(\n[12] \\PC{0,80}){0,4}") {
        read(&text);
    }

    #[test]
    fn elements_with_other_digits(
        changes in prop::collection::vec((0_usize..2, 2_usize..68, "[0-9 .+-]"), 0..8),
    ) {
        let mut lines = LINES.map(str::to_owned);
        for (line, column, character) in changes {
            lines[line].replace_range(column..=column, &character);
        }
        read(&lines.map(|line| summed(&line)).join("\n"));
    }
}
