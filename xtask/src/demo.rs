//! A short comparison with the program of `make demo`, and a few figures of a paper with the full one, as `make test` has built it.

use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

const ALGORITHMS: [&str; 4] = ["peach", "newreno", "sack", "cubic"];
const RATES: [&str; 2] = ["1e-5", "1e-2"];

/// Figures of TCP-Peach whose claims hold with a large margin: single connections, and short pages.
const FIGURES: [&str; 4] = ["3", "3-cwnd", "14", "15"];

/// Maximum goodput of the 10 Mbit/s link, without headers.
const PAYLOAD_LIMIT_BPS: f64 = 9.6e6;

/// Runs the comparison and prints one line per row.
pub fn main(root: &Path) -> ExitCode {
    let compared = run(root).and_then(|document| check(&document));
    match compared.and_then(|lines| Ok((lines, papers(root)?))) {
        Ok((lines, claims)) => {
            lines.iter().chain(&claims).for_each(|line| println!("{line}"));
            println!("demo: {} rows and {} claims are in order", lines.len(), claims.len());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("demo: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the JSON output of the program of a `profile` for these arguments.
fn ask(root: &Path, profile: &str, arguments: &[&str]) -> Result<Value, String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let program = target.join(profile).join("bentpipe");
    let output = Command::new(&program)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("what it printed is no JSON: {error}"))
}

/// Runs a few figures of TCP-Peach in the short form. Returns one line per claim, or the first refuted claim.
fn papers(root: &Path) -> Result<Vec<String>, String> {
    let report = root.join("out/demo-papers");
    let mut arguments = vec!["paper", "peach", "--quick", "--json"];
    arguments.extend(FIGURES.iter().flat_map(|figure| ["--figure", figure]));
    arguments.extend(["--report", report.to_str().ok_or("the path of the repository is no UTF-8")?]);
    let document = ask(root, "debug", &arguments)?;
    if let Some(missing) = FIGURES
        .iter()
        .map(|figure| report.join(format!("peach/figure-{figure}.png")))
        .find(|path| !path.exists())
    {
        return Err(format!("{} was not drawn", missing.display()));
    }
    let claims = document["peach"].as_array().ok_or("no claims")?;
    let line = |claim: &Value| {
        let line = format!(
            "{:12} {:9} {}",
            claim["id"].as_str()?,
            claim["verdict"].as_str()?,
            claim["statement"].as_str()?
        );
        Some((claim["verdict"] != "FAILS", line))
    };
    let lines = claims.iter().map(|claim| line(claim).ok_or_else(|| format!("no claim: {claim}")));
    lines.map(|line| line.and_then(|(fine, line)| if fine { Ok(line) } else { Err(line) })).collect()
}

fn run(root: &Path) -> Result<Value, String> {
    let report = root.join("out/demo-check.html");
    std::fs::create_dir_all(root.join("out")).map_err(|error| format!("cannot make out/: {error}"))?;
    let (algorithms, rates) = (ALGORITHMS.join(","), format!("link.satellite.loss.rate={}", RATES.join(",")));
    let mut arguments = vec!["compare", "geo-dumbbell", "--cc", &algorithms, "--vary", &rates];
    arguments.extend(["--set", "duration=60 s", "--seeds", "1", "--json", "--report"]);
    arguments.push(report.to_str().ok_or("the path of the repository is no UTF-8")?);
    let document = ask(root, "release", &arguments)?;
    let page = std::fs::read_to_string(&report).map_err(|error| format!("no report: {error}"))?;
    if !page.contains("<svg") && !page.contains("<canvas") {
        return Err("the report has no chart".into());
    }
    Ok(document)
}

/// Returns one line per row, or the mistake in the document.
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
