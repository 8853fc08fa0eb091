//! Tests of the binary by its arguments, output and exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const BENTPIPE: &str = env!("CARGO_BIN_EXE_bentpipe");

/// Scenario that runs in milliseconds.
const SMALL: [&str; 4] = ["--set", "duration=5 s", "--set", "flow.bulk.count=2"];

fn bentpipe(args: &[&str]) -> Output {
    Command::new(BENTPIPE).args(args).stdin(Stdio::null()).output().unwrap()
}

fn with_small<'a>(args: &[&'a str]) -> Vec<&'a str> {
    args.iter().copied().chain(SMALL).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else")
}

#[track_caller]
fn refused(args: &[&str], wanted: &str) {
    let output = bentpipe(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "{args:?}");
    assert!(text(&output.stderr).contains(wanted), "{args:?}: {}", text(&output.stderr));
}

#[test]
fn a_run_keeps_its_promises() {
    let run =
        json(&bentpipe(&with_small(&["run", "geo-dumbbell", "--seed", "7", "--cc", "newreno", "--json"])));
    let top = ["scenario", "version", "seed", "simulated_s", "wall_s", "events", "flows", "links", "totals"];
    for key in top.into_iter().chain(["groups"]) {
        assert!(run.get(key).is_some(), "{key}");
    }
    assert_eq!((&run["seed"], &run["simulated_s"]), (&7.into(), &5.0.into()));
    let flow = [
        "name",
        "group",
        "cc",
        "goodput_bps",
        "goodput_segments_per_s",
        "delivered_bytes",
        "sent_segments",
        "retransmitted_segments",
        "timeouts",
        "probes_sent",
        "probes_acked",
        "probe_repairs",
        "srtt_ms",
        "completion_s",
    ];
    for key in flow {
        assert!(run["flows"][1].get(key).is_some(), "flows.{key}");
    }
    assert_eq!(run["flows"][1]["cc"], "newreno");
    assert_eq!((&run["groups"][0]["name"], &run["groups"][0]["flows"]), (&"bulk".into(), &2.into()));
    let link = [
        "name",
        "direction",
        "delivered_packets",
        "dropped_by_queue",
        "dropped_by_error",
        "dropped_low_priority",
        "utilisation",
    ];
    for key in link {
        assert!(run["links"][0].get(key).is_some(), "links.{key}");
    }
    for key in
        ["goodput_bps", "goodput_segments_per_s", "jain_index", "probe_overhead", "data_packets_delivered"]
    {
        assert!(run["totals"].get(key).is_some(), "totals.{key}");
    }
}

#[test]
fn one_seed_one_result() {
    let run = || {
        let mut document = json(&bentpipe(&with_small(&["run", "geo-dumbbell", "--json"])));
        document["wall_s"] = Value::Null;
        document.to_string()
    };
    assert_eq!(run(), run());
}

fn compare(more: &[&str]) -> Output {
    let args = ["compare", "geo-dumbbell", "--cc", "sack,cubic", "--vary", "link.satellite.loss.rate=0,0.01"];
    bentpipe(&with_small(&args.iter().chain(more).copied().collect::<Vec<_>>()))
}

#[test]
fn a_comparison_keeps_its_promises_on_any_number_of_threads() {
    let found = json(&compare(&["--seeds", "2", "--jobs", "1", "--json"]));
    assert_eq!((&found["scenario"], &found["seeds"]), (&"geo-dumbbell".into(), &2.into()));
    let rows = found["rows"].as_array().unwrap();
    let place = |row: &Value| (row["cc"].clone(), row["vary"]["link.satellite.loss.rate"].clone());
    let places: Vec<_> = rows.iter().map(place).collect();
    let wanted = [("sack", 0.0), ("sack", 0.01), ("cubic", 0.0), ("cubic", 0.01)];
    assert_eq!(places.len(), wanted.len());
    for (found, wanted) in places.iter().zip(wanted) {
        assert_eq!((found.0.as_str(), found.1.as_f64()), (Some(wanted.0), Some(wanted.1)));
    }
    let metrics = [
        "goodput_bps",
        "goodput_segments_per_s",
        "jain_index",
        "retransmitted_segments",
        "timeouts",
        "probe_overhead",
        "completion_s",
    ];
    for metric in metrics {
        for field in ["mean", "ci95", "min", "max"] {
            assert!(rows[0][metric].get(field).is_some(), "{metric}.{field}");
        }
    }
    assert!(rows[0]["goodput_bps"]["mean"].as_f64() > Some(0.0));
    assert_eq!(found, json(&compare(&["--seeds", "2", "--jobs", "3", "--json"])));
}

#[test]
fn files_are_written_and_hold_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (csv, html, run_html) = (path("a.csv"), path("a.html"), path("run.html"));
    let output = compare(&["--seeds", "2", "--csv", &csv, "--report", &html]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("link.satellite.loss.rate"));
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count(), 1 + 2 * 2 * 2);
    let columns = fs::read_to_string(path("a.columns.csv")).unwrap();
    assert!(columns.lines().any(|line| line.starts_with("goodput_bps,")), "{columns}");
    let html = fs::read_to_string(&html).unwrap();
    for wanted in [
        "Goodput",
        "Congestion window",
        "duration = &quot;5 s&quot;",
        "bentpipe compare geo-dumbbell",
        " lost, ACKs not",
    ] {
        assert!(html.contains(wanted), "{wanted}");
    }
    let (pcap, trace) = (path("run.pcapng"), path("run.jsonl"));
    let run = ["run", "geo-dumbbell", "--report", &run_html, "--pcap", &pcap, "--trace", &trace];
    let output = bentpipe(&with_small(&run));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(fs::read_to_string(&run_html).unwrap().contains("Sequence numbers"));
    assert_eq!(fs::read(&pcap).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let first = fs::read_to_string(&trace).unwrap().lines().next().unwrap().to_owned();
    assert!(serde_json::from_str::<Value>(&first).unwrap().get("t_s").is_some());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 6, "nothing but what was asked for");
}

#[test]
fn wrong_requests_are_refused_in_plain_words() {
    refused(&["run", "geo-dumbell"], "did you mean \"geo-dumbbell\"?");
    refused(&["run", "missing.toml"], "missing.toml");
    refused(&["run", "geo-dumbbell", "--cc", "cubik"], "did you mean \"cubic\"?");
    refused(&["compare", "geo-dumbbell", "--cc", "cubik"], "did you mean \"cubic\"?");
    refused(&["run", "geo-dumbbell", "--sed", "1"], "--seed");
    refused(&["run", "geo-dumbbell", "--set", "link.satelite.rate=1 bit/s"], "`satellite`");
    refused(&["run", "geo-dumbbell", "--set", "duration=60"], "duration");
    refused(&["run", "geo-dumbbell", "--set", "duration"], "KEY=VALUE");
    refused(&["compare", "geo-dumbbell", "--cc", "sack", "--vary", "seed=1,,2"], "empty value");
    refused(&["compare", "geo-dumbbell", "--cc", "sack", "--seeds", "0"], "seeds");
    let twice = ["compare", "geo-dumbbell", "--cc", "sack", "--vary", "seed=1", "--vary", "seed=2"];
    refused(&twice, "given twice");
    refused(&["list", "planets"], "scenarios");
    refused(&["frobnicate"], "frobnicate");
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("world.toml");
    let shown = text(&bentpipe(&["show", "geo-dumbbell"]).stdout);
    fs::write(&path, shown.replace("duration = \"550 s\"", "duration = \"550 parsecs\"")).unwrap();
    refused(&["run", path.to_str().unwrap()], "world.toml:2");
}

/// These would take hours if the path were checked only after the work.
#[test]
fn unwritable_paths_are_refused_before_the_work() {
    let long = ["--set", "duration=100000000 s"];
    for (option, path) in
        [("--report", "/no/such/directory/a.html"), ("--pcap", "/"), ("--trace", "/no/such/a")]
    {
        refused(&["run", "geo-dumbbell", long[0], long[1], option, path], "cannot write");
    }
    refused(
        &["compare", "geo-dumbbell", "--cc", "sack", long[0], long[1], "--csv", "/no/such/a"],
        "cannot write",
    );
    refused(
        &[
            "compare",
            "geo-dumbbell",
            "--cc",
            "sack",
            long[0],
            long[1],
            "--csv",
            "/tmp/x",
            "--report",
            "/tmp/x",
        ],
        "two outputs",
    );
}

#[test]
fn lists_are_complete() {
    let cc = json(&bentpipe(&["list", "cc", "--json"]));
    let keys = [
        "name",
        "title",
        "paper",
        "year",
        "needs_receiver",
        "needs_routers",
        "works_with_plain_receiver",
        "in_simulation",
        "on_the_wire",
        "in_kernel",
    ];
    for entry in cc.as_array().unwrap() {
        for key in keys {
            assert!(entry.get(key).is_some(), "{key}");
        }
    }
    for what in ["scenarios", "queues", "losses", "traffic"] {
        let list = json(&bentpipe(&["list", what, "--json"]));
        let names: Vec<_> =
            list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert!(names.len() > 2, "{what}");
        let shown = text(&bentpipe(&["list", what]).stdout);
        assert!(names.iter().all(|name| shown.contains(name)), "{what}");
    }
}

#[test]
fn what_is_shown_can_be_run_and_shows_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("geo-single.toml");
    let shown = bentpipe(&["show", "geo-single"]);
    assert!(shown.status.success());
    fs::write(&path, &shown.stdout).unwrap();
    assert_eq!(bentpipe(&["show", path.to_str().unwrap()]).stdout, shown.stdout);
}

#[test]
fn all_means_every_algorithm() {
    let all = json(&bentpipe(&["list", "cc", "--json"]));
    let found =
        json(&bentpipe(&with_small(&["compare", "geo-dumbbell", "--cc", "all", "--seeds", "1", "--json"])));
    assert_eq!(found["rows"].as_array().unwrap().len(), all.as_array().unwrap().len());
}

#[test]
#[cfg(unix)]
fn ctrl_c_keeps_what_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let csv = directory.path().join("a.csv");
    let mut command = Command::new(BENTPIPE);
    command.args([
        "compare",
        "geo-dumbbell",
        "--cc",
        "sack",
        "--seeds",
        "1000000",
        "--jobs",
        "1",
        "--json",
        "--csv",
    ]);
    command.arg(&csv).args(SMALL).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("finished and are kept"), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["complete"], false);
    let done = found["rows"][0]["seeds_done"].as_u64().unwrap();
    assert!(done > 0);
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count() as u64, 1 + done);
    assert!(Path::new(&csv).metadata().unwrap().len() > 0);
}

#[test]
fn colour_and_progress_stay_away_from_pipes() {
    let output = compare(&["--seeds", "1"]);
    assert!(!text(&output.stdout).contains('\u{1b}') && !text(&output.stderr).contains('\u{1b}'));
}

const STUDY: &str = r#"
title = "Two windows"
citation = "nobody"

[experiment.loss]
title = "Two algorithms"
scenario = "geo-single"
set = { duration = "8 s" }
arm = { reno = "reno", hybla = "hybla" }
axis = { name = "loss", label = "Loss", keys = ["link.satellite.loss"], values = [0.0, 1e-2] }
seeds = 2

[figure.1]
title = "Goodput"
experiment = "loss"
y = "Goodput (Mbit/s)"
lines = { Reno = "goodput_bps(reno) / 1e6", Hybla = "goodput_bps(hybla) / 1e6" }

[figure.2]
title = "The window"
experiment = "loss"
y = "Window (segments)"
time = { series = "cwnd", arms = { reno = "Reno" }, at = 0.0 }

[claim.faster]
figure = "1"
statement = "Hybla starts faster"
experiment = "loss"
check = "at loss = 0: goodput_bps(hybla) > goodput_bps(reno)"

[claim.slower]
figure = "1"
statement = "Reno starts faster"
experiment = "loss"
check = "at loss = 0: cwnd(reno, t=3) > cwnd(hybla, t=3)"

[claim.taste]
statement = "Reno is nicer"
not-testable = "taste"
"#;

#[test]
fn a_study_is_judged_drawn_and_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let (file, report) = (directory.path().join("mine.toml"), directory.path().join("out"));
    fs::write(&file, STUDY).unwrap();
    let args = ["paper", file.to_str().unwrap(), "--json", "--report", report.to_str().unwrap()];
    let document = json(&bentpipe(&args));
    let verdicts: Vec<&str> =
        document["mine"].as_array().unwrap().iter().map(|c| c["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["HOLDS", "FAILS", "NOT-TESTABLE"]);
    assert_eq!(document["mine"][0].as_object().unwrap().len(), 13);
    let text = fs::read_to_string(report.join("claims.json")).unwrap();
    let keys = [
        "id",
        "figure",
        "statement",
        "verdict",
        "measured",
        "tolerance",
        "seeds",
        "holds_for",
        "joint_verdict",
        "choices",
        "criteria",
    ];
    let places = keys.map(|key| text.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("{key}")));
    assert!(places.is_sorted(), "as the studies have them: {places:?}");
    for name in
        ["mine.html", "mine.md", "claims.json", "mine/figure-1.svg", "mine/figure-1.png", "mine/figure-2.png"]
    {
        assert!(report.join(name).metadata().unwrap().len() > 500, "{name}");
    }
    let points = || fs::read_dir(report.join("points")).unwrap().count();
    let first = points();
    assert!(first > 0);
    assert_eq!(json(&bentpipe(&args)), document);
    assert_eq!(points(), first, "no finished point is run again");
}

#[test]
fn what_the_papers_say_of_single_connections_holds() {
    for (paper, figures) in [("peach", &["3", "3-cwnd", "7", "7-acked"][..]), ("star", &["8", "8-cwnd"])] {
        let chosen = figures.iter().flat_map(|figure| ["--figure", figure]);
        let args: Vec<&str> = ["paper", paper, "--quick", "--json"].into_iter().chain(chosen).collect();
        let document = json(&bentpipe(&args));
        let claims = document[paper].as_array().unwrap();
        assert!(claims.len() >= 5, "{paper}: {}", claims.len());
        for claim in claims {
            // The statement of 6b does not count the repetition; with it the figure would be met. In 7b Reno's window has the three
            // duplicate ACKs of RFC 5681, which the paper leaves out.
            let fails = claim["id"] == "PEACH-6b" || claim["id"] == "PEACH-7b";
            assert_eq!(claim["choices"]["holding"].as_u64() == Some(0), fails, "{paper}: {claim}");
        }
    }
}

#[test]
fn a_wrong_study_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    let with = |from: &str, to: &str| fs::write(&file, STUDY.replace(from, to)).unwrap();
    let path = file.to_str().unwrap();
    with("goodput_bps(hybla) >", "goodput_bps(hibla) >");
    refused(&["paper", path], "did you mean `hybla`");
    with("goodput_bps(hybla) >", "goodput_bps(hybla) is bigger");
    refused(&["paper", path], "claim.faster: check:");
    with("scenario = \"geo-single\"", "scenario = \"geo-singel\"");
    refused(&["paper", path], "geo-single");
    with("not-testable = \"taste\"", "");
    refused(&["paper", path], "claim.taste");
    with("seeds = 2", "seeds = 2\ncolour = 3");
    refused(&["paper", path], "colour");
    with("series = \"cwnd\"", "series = \"cwmd\"");
    refused(&["paper", path], "mine.toml:23: figure.2: time.series: found `cwmd`, accepted: cwnd, ");
    with("goodput_bps(hybla) >", "goodput_bp(hybla) >");
    refused(&["paper", path], "experiment.loss: found the quantity `goodput_bp`, accepted: ");
    with("at = 0.0", "at = 0.5");
    refused(&["paper", path], "figure.2: time: at: found loss = 0.5");
    refused(&["paper", "peachh"], "did you mean `peach`?");
    refused(&["paper", "swift", "--figure", "99"], "accepted: 5, 3, 7");
}

/// A scenario named as an output stays as it is.
#[test]
fn an_output_is_no_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    fs::write(&path, text(&bentpipe(&["show", "geo-single"]).stdout)).unwrap();
    let before = fs::read(&path).unwrap();
    let mine = path.to_str().unwrap();
    for option in ["--report", "--trace", "--pcap"] {
        refused(&["run", mine, option, mine], "my.toml: exists and is no ");
    }
    for option in ["--report", "--csv"] {
        refused(&["compare", mine, "--cc", "reno", option, mine], "my.toml: exists and is no ");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_would_never_end_is_refused() {
    refused(&["run", "/dev/zero"], "a pipe or a device");
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    refused(&["run", pipe.to_str().unwrap()], "a pipe or a device");
    refused(&["compare", "geo-single", "--cc", "reno", "--seeds", "1000000000"], "1000000");
    refused(&["run", "geo-dumbbell", "--set", "flow.bulk.count=10000000", "--memory", "1 GB"], "--memory");
    refused(&["compare", "geo-single", "--cc", "cubic,cubic"], "cubic twice");
    let idle = folder.path().join("idle.toml");
    fs::write(&idle, "duration = \"1 s\"\n[node.a]\n").unwrap();
    refused(&["run", idle.to_str().unwrap()], "flow: found nothing, accepted: at least one group");
}

#[test]
fn without_an_algorithm_each_flow_keeps_its_own() {
    let arguments = ["compare", "geo-fairness", "--seeds", "1", "--json", "--set", "duration=5 s"];
    let shown = text(&bentpipe(&["show", "geo-fairness"]).stdout);
    let group =
        shown.lines().find_map(|line| line.strip_prefix("[flow.")?.strip_suffix(']')).unwrap().to_owned();
    let vary = ["--vary".to_owned(), format!("flow.{group}.cc=reno,vegas")];
    let all: Vec<&str> = arguments.iter().copied().chain(vary.iter().map(String::as_str)).collect();
    let found = json(&bentpipe(&all));
    assert_eq!(found["rows"].as_array().unwrap().len(), 2);
    assert_eq!(found["rows"][0]["cc"], "as-it-is");
}

#[test]
fn an_algorithm_without_its_router_or_without_pacing_says_so() {
    let output = bentpipe(&with_small(&["run", "geo-dumbbell", "--cc", "xcp"]));
    assert!(text(&output.stderr).contains("xcp finds no node of kind \"xcp\""), "{}", text(&output.stderr));
    let output = bentpipe(&with_small(&["run", "geo-dumbbell", "--cc", "zenith", "--json"]));
    assert!(text(&output.stderr).contains("zenith needs pacing"), "{}", text(&output.stderr));
    json(&output);
    let output = bentpipe(&["run", "geo-voip", "--set", "duration=5 s", "--json"]);
    let flows = json(&output)["flows"].clone();
    assert!(
        flows.as_array().unwrap().iter().all(|flow| flow["call"].is_null() || flow["cc"] == "udp"),
        "{flows}"
    );
}

#[test]
fn a_trace_keeps_what_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl").display().to_string();
    let run = ["run", "geo-dumbbell", "--trace", &path, "--trace-only"];
    let output = bentpipe(&with_small(&[&run[..], &["window,flow.bulk.1.sender,dropped"]].concat()));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = fs::read_to_string(&path).unwrap();
    assert!(lines.lines().count() > 5, "{lines}");
    for line in lines.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (&event["event"], &event["source"]),
            (&"window".into(), &"flow.bulk.1.sender".into()),
            "{line}"
        );
    }
    refused(&with_small(&[&run[..], &["windows"]].concat()), "did you mean window?");
    refused(&["run", "geo", "--trace-only", "window"], "--trace <FILE>");
}

#[test]
fn long_arguments_are_not_echoed() {
    let long = "x".repeat(100_000);
    let (vary, set) = (format!("link.satellite.rate={long}"), format!("duration={long}"));
    for args in [
        ["compare", "geo", "--vary", &long],
        ["compare", "geo", "--cc", &long],
        ["compare", "geo", "--vary", &vary],
        ["run", "geo", "--set", &set],
        ["run", "geo", "--set", &long],
    ] {
        let output = bentpipe(&args);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stderr.len() < 5000, "{}: {} bytes", args[2], output.stderr.len());
    }
}

/// A negative number looks like an option: no advice that leads to the next mistake.
#[test]
fn an_unknown_option_comes_without_wrong_advice() {
    let output = bentpipe(&["run", "geo", "--seed", "-5"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("unexpected argument '-5'") && !errors.contains("tip"), "{errors}");
}

/// Build, input files and windows of a result; pages and paths as tables.
#[test]
fn a_run_says_what_it_came_from_and_writes_its_pages() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("mine.toml");
    fs::write(&world, text(&bentpipe(&["show", "geo-web"]).stdout)).unwrap();
    let pages = folder.path().join("pages.csv");
    let (world, pages) = (world.to_str().unwrap(), pages.to_str().unwrap());
    let window = ["--set", "duration=60 s", "--set", "measure.from=20 s"];
    let run = [&["run", world, "--json", "--pages", pages], &window[..]].concat();
    let output = bentpipe(&run);
    let document: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(document["files"][world].as_str().map(str::len), Some(64), "{}", document["files"]);
    assert!(document["build"]["changed"].is_boolean());
    assert_eq!(document["measured_from_s"], 20.0);
    let lines = fs::read_to_string(pages).unwrap();
    assert!(lines.starts_with("scenario,seed,flow,completed_at_s,load_s\n"), "{lines}");
    let completed: u64 = document["flows"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|flow| flow["transfers"]["completed"].as_u64())
        .sum();
    assert_eq!(lines.lines().count() as u64, completed + 1);
    assert!(
        completed > 0
            && lines
                .lines()
                .skip(1)
                .all(|line| { line.split(',').nth(3).unwrap().parse::<f64>().unwrap() > 20.0 }),
        "{lines}"
    );
    let paths = folder.path().join("paths.csv");
    let paths = paths.to_str().unwrap();
    assert!(bentpipe(&["run", "leo-iridium", "--set", "duration=120 s", "--paths", paths]).status.success());
    let lines = fs::read_to_string(paths).unwrap();
    assert!(lines.starts_with("scenario,path,at_s,satellites,handovers,delay_one_way_ms,via\n"), "{lines}");
    assert!(lines.lines().count() > 1);
}

/// Before anything is measured, and not once for each measurement.
#[cfg(target_os = "linux")]
#[test]
fn a_trial_of_the_proxy_tells_a_mistake_once() {
    for (args, wanted) in [
        (["pep", "try", "leo", "--flows", "2"], "found scenario \"leo\""),
        (["pep", "try", "--loss", "1e-3,1%", "--seconds=1"], "did you mean 0.01?"),
        (["pep", "try", "--cc", "star,starr", "--seconds=1"], "starr"),
    ] {
        let output = bentpipe(&args);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert_eq!(errors.matches(wanted).count(), 1, "{errors}");
        assert!(!errors.contains("1 of"), "{errors}");
    }
}
