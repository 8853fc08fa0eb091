//! Results as Parquet, and runs that survive a process. pandas, polars and DuckDB read the files in `python/tests`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SMALL: [&str; 6] = ["--set", "duration=5 s", "--set", "flow.bulk.count=2", "--cc", "reno,cubic"];

fn bentpipe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bentpipe")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn compare(args: &[&str]) -> Output {
    let all: Vec<&str> =
        ["compare", "geo-dumbbell", "--json"].into_iter().chain(SMALL).chain(args.iter().copied()).collect();
    bentpipe(&all)
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn is_table(path: &Path, kind: &str) -> bool {
    let bytes = fs::read(path).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1") && has("bentpipe.kind") && has(kind)
}

#[test]
fn results_and_traces_are_tables_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let [runs, flows, trace] = ["runs.parquet", "flows.parquet", "trace.parquet"].map(path);
    for _ in 0..2 {
        // The second time, they replace files of the same kind.
        assert!(compare(&["--seeds", "2", "--out", runs.to_str().unwrap()]).status.success());
        let [flows, trace] = [&flows, &trace].map(|path| path.to_str().unwrap());
        let run = ["run", "geo-single", "--set", "duration=5 s", "--out", flows, "--trace", trace];
        assert!(bentpipe(&run).status.success());
    }
    assert!(is_table(&runs, "runs") && is_table(&flows, "run") && is_table(&trace, "trace"));
    let note = path("note.parquet");
    fs::write(&note, "PAR1 mine").unwrap();
    let refused = compare(&["--out", note.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(fs::read(&note).unwrap(), b"PAR1 mine");
}

#[test]
fn what_is_kept_is_not_run_again_and_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("kept");
    let keep = keep.to_str().unwrap();
    let plain = compare(&["--seeds", "4"]);
    assert!(compare(&["--seeds", "2", "--keep", keep]).status.success());
    let first = files(Path::new(keep));
    assert!(!first.is_empty());
    let extended = compare(&["--seeds", "4", "--keep", keep]);
    assert_eq!(extended.stdout, plain.stdout, "{}", String::from_utf8_lossy(&extended.stderr));
    let second = files(Path::new(keep));
    assert!(second.len() > first.len());
    assert_eq!(compare(&["--seeds", "4", "--keep", keep]).stdout, plain.stdout);
    assert_eq!(files(Path::new(keep)), second, "all of it was known");
    let other = compare(&["--seeds", "1", "--keep", keep, "--set", "link.satellite.loss.rate=0.01"]);
    assert_ne!(other.stdout, compare(&["--seeds", "1"]).stdout);
    assert!(files(Path::new(keep)).len() > second.len(), "another world is run");
}

#[test]
fn a_store_that_cannot_be_used_is_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let refused = compare(&["--keep", file.to_str().unwrap()]);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
    let fresh = bentpipe(&["paper", "peach", "--fresh"]);
    assert_eq!(fresh.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&fresh.stderr).contains("--keep or --report"));
}
