//! `bentpipe send` over QUIC through an emulated GEO satellite: Bentpipe's algorithms, and those of the stack. The test needs root; without
//! it prints a reason and passes.

#![cfg(target_os = "linux")]

mod emulation;

use std::fs;
use std::path::Path;

use emulation::{emulate, ready, stdout};
use serde_json::Value;

const ALGORITHMS: [&str; 5] = ["hybla", "bbr3", "zenith", "quic:cubic", "quic:bbr3"];
const BYTES: u64 = 1_500_000;

/// Sends the file with every algorithm. The receiver is on the host at the far end.
fn transfers(folder: &Path) {
    let program = env!("CARGO_BIN_EXE_bentpipe");
    let far = format!(
        "cd {} && exec {program} receive 5001 --discard --connections 0 --transport quic 2> said",
        folder.display()
    );
    let near = format!(
        "cd {}
        until grep -q fingerprint said; do sleep 0.1; done
        for cc in {}; do
            timeout 100 {program} send $BENTPIPE_HOST:5001 data --transport quic --cc $cc --json --qlog $cc.sqlog \\
                --fingerprint $(sed -n 's/.*--fingerprint //p' said) > $cc.json || exit 1
        done",
        folder.display(),
        ALGORITHMS.join(" ")
    );
    fs::write(folder.join("far"), far).unwrap();
    fs::write(folder.join("data"), vec![7; BYTES as usize]).unwrap();
    stdout(&emulate(&["geo-single", "--listen", &format!("sh {}", folder.join("far").display())], &near));
}

/// Events of the stack with the state of the congestion control.
struct Qlog {
    title: String,
    windows: Vec<u64>,
    pacing_rates: Vec<u64>,
}

impl Qlog {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        // A record begins with the control character RS (RFC 7464).
        let mut records = text.split('\x1e').filter(|record| !record.is_empty());
        let mut next = || serde_json::from_str::<Value>(records.next()?).ok();
        let title = next().unwrap()["title"].as_str().unwrap().to_owned();
        let mut qlog = Self { title, windows: Vec::new(), pacing_rates: Vec::new() };
        while let Some(event) = next() {
            qlog.windows.extend(event["data"]["congestion_window"].as_u64());
            qlog.pacing_rates.extend(event["data"]["pacing_rate"].as_u64());
        }
        qlog
    }
}

/// No event of the stack has the name of a congestion control. Therefore the test compares windows and rates.
#[test]
fn the_algorithm_in_the_report_is_the_one_whose_window_the_stack_logs() {
    let Some(_alone) = ready(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    transfers(folder.path());
    let all = ALGORITHMS.map(|cc| {
        let report = fs::read(folder.path().join(format!("{cc}.json"))).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        assert_eq!((&report["cc"], &report["sent_bytes"]), (&cc.into(), &BYTES.into()), "{report}");
        assert!(report["srtt_ms"].as_f64().unwrap() > 500.0, "{report}");
        let qlog = Qlog::read(&folder.path().join(format!("{cc}.sqlog")));
        assert!(qlog.title.ends_with(&format!("--cc {cc}")), "{}", qlog.title);
        assert_eq!(qlog.windows.last().copied(), report["cwnd_bytes"].as_u64(), "{cc}");
        assert!(qlog.windows.len() > 50, "{cc}: {} windows", qlog.windows.len());
        println!(
            "{cc}: {} s, {} windows to {}, {} rates, {} of {} packets lost",
            report["duration_s"],
            qlog.windows.len(),
            report["cwnd_bytes"],
            qlog.pacing_rates.len(),
            report["lost_packets"],
            report["sent_packets"]
        );
        (report["duration_s"].as_f64().unwrap(), qlog)
    });
    let [(hybla_s, hybla), (_, bbr3), (_, zenith), (cubic_s, cubic), (_, stack_bbr3)] = &all;
    // Hybla grows at a long round trip as if it were 25 ms; CUBIC doubles its window per round trip.
    assert!(*hybla_s < 0.8 * cubic_s, "{hybla_s} s against {cubic_s} s");
    assert!([hybla, bbr3, zenith].iter().all(|qlog| qlog.pacing_rates.len() > 50), "Bentpipe paces");
    assert!(cubic.pacing_rates.is_empty(), "the stack's CUBIC sets no rate");
    assert!(!stack_bbr3.pacing_rates.is_empty(), "the stack's BBR sets a rate");
}
