//! A short comparison with the release build, checked from outside: does the promise of the command line hold?

use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

const ALGORITHMS: [&str; 4] = ["peach", "newreno", "sack", "cubic"];
const RATES: [&str; 2] = ["1e-5", "1e-2"];

/// What the 10 Mbit/s link carries at most, headers left out.
const PAYLOAD_LIMIT_BPS: f64 = 9.6e6;

/// Runs the comparison and prints one line for each of its rows.
pub fn main(root: &Path) -> ExitCode {
    match run(root).and_then(|document| check(&document)) {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            println!("demo: {} rows are in order", lines.len());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("demo: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path) -> Result<Value, String> {
    let report = root.join("out/demo-check.html");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let program = target.join("release/bentpipe");
    std::fs::create_dir_all(root.join("out")).map_err(|error| format!("cannot make out/: {error}"))?;
    let output = Command::new(&program)
        .args(["compare", "geo-dumbbell", "--cc", &ALGORITHMS.join(",")])
        .args(["--vary", &format!("link.satellite.loss.rate={}", RATES.join(","))])
        .args(["--set", "duration=60 s", "--seeds", "1", "--json", "--report"])
        .arg(&report)
        .output()
        .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let page = std::fs::read_to_string(&report).map_err(|error| format!("no report: {error}"))?;
    if !page.contains("<svg") && !page.contains("<canvas") {
        return Err("the report has no chart".into());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("what it printed is no JSON: {error}"))
}

/// One line for each row, or what is wrong with the document.
fn check(document: &Value) -> Result<Vec<String>, String> {
    let rows = document["rows"].as_array().ok_or("no rows")?;
    let expected = ALGORITHMS.len() * RATES.len();
    if rows.len() != expected {
        return Err(format!("{} rows, not {expected}", rows.len()));
    }
    rows.iter().map(check_row).collect()
}

fn check_row(row: &Value) -> Result<String, String> {
    let cc = row["cc"].as_str().ok_or("a row without cc")?;
    let goodput = row["goodput_bps"]["mean"].as_f64().ok_or("a row without goodput")?;
    let jain = row["jain_index"]["mean"].as_f64().ok_or("a row without Jain's index")?;
    let line = format!("{cc:8} {:>30} {:7.3} Mbit/s  Jain {jain:.3}", row["vary"].to_string(), goodput / 1e6);
    let possible = goodput > 0.0 && goodput <= PAYLOAD_LIMIT_BPS && (0.0..=1.0 + 1e-9).contains(&jain);
    if possible { Ok(line) } else { Err(format!("physics forbids this row: {line}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(goodput: f64, rows: usize) -> Value {
        let row = json!({ "cc": "reno", "vary": {}, "goodput_bps": { "mean": goodput }, "jain_index": { "mean": 1.0 } });
        json!({ "rows": vec![row; rows] })
    }

    #[test]
    fn a_full_table_within_the_link_rate_passes() {
        assert_eq!(check(&document(5e6, 8)).map(|lines| lines.len()), Ok(8));
    }

    #[test]
    fn missing_rows_and_impossible_goodput_fail() {
        assert!(check(&document(5e6, 7)).is_err());
        assert!(check(&document(11e6, 8)).is_err());
        assert!(check(&document(0.0, 8)).is_err());
        assert!(check(&json!({})).is_err());
    }
}
