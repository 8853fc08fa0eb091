//! `bentpipe send` and `receive` over QUIC, on the loopback interface.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

const BENTPIPE: &str = env!("CARGO_BIN_EXE_bentpipe");

/// Returns a UDP port that nobody uses.
fn free_port() -> u16 {
    UdpSocket::bind("[::]:0").unwrap().local_addr().unwrap().port()
}

/// The program, with an end for a transfer that hangs.
fn bentpipe() -> Command {
    let mut command = Command::new("timeout");
    command.args(["100", BENTPIPE]);
    command
}

/// A receiver in a folder of its own.
struct Receiver {
    child: Child,
    port: u16,
    fingerprint: String,
    folder: tempfile::TempDir,
}

impl Receiver {
    fn start(args: &[&str]) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let mut child = bentpipe()
            .args(["receive", &port.to_string()])
            .args(args)
            .args(["--transport", "quic", "--json"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = lines
            .find_map(|line| Some(line.unwrap().strip_prefix("certificate: --fingerprint ")?.to_owned()));
        let fingerprint = said.expect("a receiver prints its fingerprint");
        thread::spawn(move || lines.for_each(|line| eprintln!("receive: {}", line.unwrap_or_default())));
        Self { child, port, fingerprint, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn send(&self, file: &Path, args: &[&str]) -> Output {
        let fingerprint = ["--fingerprint", &self.fingerprint];
        send(self.port, file, &[&fingerprint[..], args].concat())
    }

    /// Waits for the end. Returns the reports, and the exit code.
    fn end(self) -> (Value, i32) {
        let output = self.child.wait_with_output().unwrap();
        (serde_json::from_slice(&output.stdout).unwrap_or_default(), output.status.code().unwrap())
    }
}

fn send(port: u16, file: &Path, args: &[&str]) -> Output {
    bentpipe()
        .args(["send", &format!("127.0.0.1:{port}")])
        .arg(file)
        .args(["--transport", "quic"])
        .args(args)
        .output()
        .unwrap()
}

/// Writes a file of bytes that do not repeat soon.
fn file(folder: &Path, bytes: u32) -> PathBuf {
    let path = folder.join("data");
    let content: Vec<u8> = (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(&path, content).unwrap();
    path
}

fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
}

#[test]
fn a_file_arrives_with_the_algorithm_that_was_named() {
    for cc in ["hybla", "bbr3", "zenith", "quic:cubic", "quic:newreno", "quic:bbr3"] {
        let receiver = Receiver::start(&["got", "--sha256"]);
        let data = file(receiver.folder.path(), 2_500_000);
        let output = receiver.send(&data, &["--cc", cc, "--json", "--sha256"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{report}");
        assert_eq!([&report["cc"], &report["transport"]], [cc, "quic"], "{report}");
        assert_eq!(report["sent_bytes"], 2_500_000, "{report}");
        assert_eq!(fs::read(receiver.path("got")).unwrap(), fs::read(&data).unwrap(), "{cc}");
        let (reports, code) = receiver.end();
        assert_eq!((code, &reports[0]["received_bytes"]), (0, &2_500_000.into()));
        assert_eq!(reports[0]["received_sha256"], report["sent_sha256"]);
    }
}

#[test]
fn both_ends_send_over_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let answer = file(folder.path(), 1_300_000);
    let receiver = Receiver::start(&["got", "--answer", answer.to_str().unwrap()]);
    let (data, reply) = (file(receiver.folder.path(), 700_000), receiver.path("reply"));
    let output = receiver.send(&data, &["--reply", reply.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(&reply).unwrap(), fs::read(&answer).unwrap());
    assert_eq!(fs::read(receiver.path("got")).unwrap(), fs::read(&data).unwrap());
    assert_eq!(receiver.end().1, 0);
}

#[test]
fn an_interrupted_transfer_leaves_no_file() {
    let mut receiver = Receiver::start(&["got"]);
    let mut sender = Command::new(BENTPIPE)
        .args(["send", &format!("127.0.0.1:{}", receiver.port), "-", "--transport", "quic"])
        .args(["--fingerprint", &receiver.fingerprint])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // Otherwise `wait` would end the data.
    let _stdin = sender.stdin.take();
    thread::sleep(Duration::from_millis(500));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(sender.id().try_into().unwrap()),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    assert_eq!(sender.wait().unwrap().code(), Some(1));
    assert_eq!(receiver.child.wait().unwrap().code(), Some(1));
    assert_eq!(fs::read_dir(receiver.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_transfer_goes_on_where_it_broke_off_if_both_ends_wish() {
    let folder = tempfile::tempdir().unwrap();
    let got = folder.path().join("got");
    fs::write(folder.path().join("got.part"), &fs::read(file(folder.path(), 900_000)).unwrap()[..500_000])
        .unwrap();
    let data = folder.path().join("data");
    let receiver = Receiver::start(&[got.to_str().unwrap(), "--resume"]);
    let output = receiver.send(&data, &["--resume", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{report}");
    assert!(report["sent_bytes"].as_u64().unwrap() < 401_000, "only the rest: {report}");
    assert_eq!(fs::read(&got).unwrap(), fs::read(&data).unwrap());
    assert_eq!(receiver.end().1, 0);
}

#[test]
fn a_wrong_fingerprint_is_refused_and_the_receiver_waits_for_the_right_one() {
    let receiver = Receiver::start(&["got"]);
    let data = file(receiver.folder.path(), 1000);
    let wrong = "5a".repeat(32);
    let output = send(receiver.port, &data, &["--fingerprint", &wrong]);
    refused(&output, &["no connection to", &wrong, &receiver.fingerprint]);
    assert!(receiver.send(&data, &[]).status.success());
    assert_eq!(receiver.end().1, 0);
}

#[test]
fn what_does_not_fit_quic_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let data = file(folder.path(), 1000);
    let some = "ab".repeat(32);
    let with = |args: &[&str]| send(1, &data, &[&["--fingerprint", &some], args].concat());
    refused(&send(1, &data, &[]), &["without a certificate", "--fingerprint SHA256"]);
    refused(&send(1, &data, &["--fingerprint", "abc"]), &["found 3 characters", "64 hexadecimal digits"]);
    refused(&with(&["--cc", "hybel"]), &["hybel", "quic:cubic", "did you mean \"hybla\"?"]);
    refused(&with(&["--cc", "peach"]), &["`peach`", "probes"]);
    refused(&with(&["--cc", "prague"]), &["`prague`", "ECT(1)"]);
    refused(&with(&["--cc", "hybla+sack"]), &["hybla+sack", "without recovery"]);
    refused(&with(&["--cc", "quic:cubic", "--set", "cc.beta=0.5"]), &["cc.beta=0.5", "no parameters"]);
    refused(&with(&["--set", "tcp.ecn=true"]), &["tcp.ecn=true", "tcp.receive-window"]);
    refused(&with(&["--set", "tcp.initial-window=2 segments"]), &["2 packets", "at least 10"]);
    refused(&with(&["--set", "tcp.receive-window=4 MB"]), &["4000000 bytes", "at most 2280000"]);
    refused(&with(&["--mtu", "600"]), &["--mtu 600", "at least 1248"]);
    refused(&with(&["--tun", "tun7"]), &["--tun"]);
    refused(&with(&["--address", "10.105.0.6/30"]), &["--address"]);
    refused(&with(&["--scenario", "geo-single"]), &["--scenario"]);
    refused(&with(&["--trace", "x"]), &["--trace", "--qlog"]);
    let memory = folder.path().join("memory");
    refused(&with(&["--cc", "quic:bbr3", "--remember", memory.to_str().unwrap()]), &["--remember"]);
    let over_tcp =
        |args: &[&str]| Command::new(BENTPIPE).args(["send", "127.0.0.1:1"]).args(args).output().unwrap();
    refused(&over_tcp(&["x", "--qlog", "x"]), &["--qlog", "--transport quic"]);
    refused(&over_tcp(&["x", "--fingerprint", &some]), &["--fingerprint", "--transport quic"]);
}

#[test]
fn a_server_of_another_version_of_quic_is_named() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let data = file(folder.path(), 1000);
    thread::spawn(move || {
        let mut buffer = [0; 2000];
        let (_, from) = server.recv_from(&mut buffer).unwrap();
        // Version Negotiation (RFC 8999 section 6): the identifiers of the Initial, exchanged, and one version.
        let to = 6 + usize::from(buffer[5]);
        let (destination, source) = (&buffer[5..to], &buffer[to..=to + usize::from(buffer[to])]);
        let answer = [&[0x80, 0, 0, 0, 0], source, destination, &[0x0a, 0x1a, 0x2a, 0x3b]].concat();
        server.send_to(&answer, from).unwrap();
    });
    let output = send(port, &data, &["--fingerprint", &"ab".repeat(32)]);
    refused(&output, &["no version of QUIC in common", "version 1"]);
}

#[test]
fn a_port_without_a_receiver_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = send(free_port(), &file(folder.path(), 1000), &["--fingerprint", &"ab".repeat(32)]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("nothing listens on that port"), "{said}");
}

#[test]
fn a_transfer_saves_the_capacity_of_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("memory.json");
    let remember = ["--cc", "cubic", "--remember", memory.to_str().unwrap()];
    let receiver = Receiver::start(&["--discard"]);
    let data = file(folder.path(), 3_000_000);
    assert!(receiver.send(&data, &remember).status.success());
    let saved: Value = serde_json::from_slice(&fs::read(&memory).unwrap()).unwrap();
    let entry = |value: &Value| value["capacities"]["127.0.0.1"]["bytes"].as_u64();
    assert!(entry(&saved) > Some(48_000), "{saved}");
}
