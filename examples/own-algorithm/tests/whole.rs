//! The example works in Bentpipe's commands, and a copy of its folder is self-contained.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn own(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_own-algorithm")).args(arguments).output().expect("it is built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn its_algorithm_is_compared_like_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let [csv, report] = ["runs.csv", "own.html"].map(|name| folder.path().join(name).display().to_string());
    let shared = ["--set", "duration=40 s", "--set", "link.satellite.loss.rate=3e-7", "--seeds", "2"];
    let output = own(&[
        &["compare", "geo-single", "--cc", "second-thought,reno", "--csv", &csv, "--report", &report][..],
        &shared,
    ]
    .concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = fs::read_to_string(&csv).expect("written");
    let goodput = |cc: &str| -> f64 {
        let line = rows.lines().find(|line| line.starts_with(&format!("geo-single,{cc},"))).expect(cc);
        line.split(',').nth(3).and_then(|number| number.parse().ok()).expect("a number")
    };
    assert!(goodput("second-thought") > 1.2 * goodput("reno"), "errors are no congestion: {rows}");
    assert!(fs::read_to_string(&report).expect("written").contains("second-thought"));
    assert!(text(&own(&["list", "cc"]).stdout).contains("second-thought"));
}

#[test]
fn it_has_no_parameters_and_takes_a_recovery() {
    let run = |cc: &str| own(&["run", "geo-single", "--set", "duration=5 s", "--set", cc]);
    assert!(run("flow.bulk.cc=second-thought+sack").status.success());
    let refused = run("flow.bulk.cc={ name = 'second-thought', beta = 0.5 }");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("flow.bulk.cc.beta: found an unknown parameter"),
        "{}",
        text(&refused.stderr)
    );
}

/// A copy in any other place, with its one path changed, is a package that Cargo
/// resolves.
#[test]
fn a_copy_of_the_folder_stands_alone() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("src")).expect("a folder");
    fs::copy(here.join("src/main.rs"), folder.path().join("src/main.rs")).expect("copied");
    fs::copy(here.join("../../Cargo.lock"), folder.path().join("Cargo.lock")).expect("copied");
    let manifest = fs::read_to_string(here.join("Cargo.toml")).expect("it is there");
    let bentpipe = here.join("../../crates/cli").canonicalize().expect("it is there");
    let changed = manifest.replace("../../crates/cli", &bentpipe.display().to_string());
    assert_ne!(changed, manifest);
    fs::write(folder.path().join("Cargo.toml"), changed).expect("written");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--depth", "1"])
        .current_dir(folder.path())
        .output()
        .expect("Cargo runs this test");
    assert!(output.status.success(), "{}", text(&output.stderr));
}
