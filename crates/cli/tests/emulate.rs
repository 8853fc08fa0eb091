//! `bentpipe emulate` in real namespaces. The tests need root, `ip`, `nft` and `ping`; without them they print a
//! reason and pass.
//!
//! Time limits are loose, because a busy machine may be late. The accuracy of the emulator is not tested here.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

mod emulation;

use bentpipe_emu::{At, Hop, Path};
use bentpipe_net::{LinkConfig, LossModel, Schedule};
use emulation::{bentpipe, emulate, ready, stdout};

/// Returns the round-trip times of `ping` in milliseconds.
fn rtts_ms(text: &str) -> Vec<f64> {
    let times = text.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse().ok());
    times.collect()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Returns all settings of the host that an emulation may change.
fn host() -> String {
    let script = "ip -o link; ip -o address; ip rule; ip route show table all; ip -6 route show table all; nft list ruleset; \
                  grep -r . /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv6/conf/*/forwarding";
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    // Counters of time, such as the remaining lifetime of an address, are not settings.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| line.split("valid_lft").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_ping_takes_twice_the_delay_in_ipv4_and_ipv6() {
    let Some(_alone) = ready(&[]) else { return };
    let arguments = ["geo-single", "--delay-one-way", "40ms", "--rate", "1mbit"];
    let output =
        emulate(&arguments, "ping -c 5 -i 0.2 $BENTPIPE_HOST && ping -6 -c 5 -i 0.2 $BENTPIPE_HOST6");
    let rtts = rtts_ms(&stdout(&output));
    assert_eq!(rtts.len(), 10, "{output:?}");
    // 84 bytes (104 in IPv6) at 1 Mbit/s, there and back, take 1.344 ms (1.664 ms).
    let (v4, v6) = (least(&rtts[..5]), least(&rtts[5..]));
    assert!((81.3..86.0).contains(&v4), "{v4} ms");
    assert!((81.6..86.0).contains(&v6), "{v6} ms");
}

#[test]
fn nothing_is_left_behind_and_the_exit_code_is_that_of_the_command() {
    let Some(_alone) = ready(&[]) else { return };
    let before = host();
    assert_eq!(emulate(&["geo-single"], "exit 7").status.code(), Some(7));
    assert_eq!(emulate(&["geo-single"], "kill -TERM $$").status.code(), Some(128 + 15));
    let inside =
        emulate(&["geo-single"], "nft list ruleset; ip -o link | wc -l; cat /proc/sys/net/ipv4/ip_forward");
    assert_eq!(stdout(&inside).trim(), "2\n1", "loopback and the path, which others may take");
    assert_eq!(host(), before);
    let missing = bentpipe(&["emulate", "geo-single", "--", "/no/such/program"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert_eq!(host(), before);
}

#[test]
fn a_missing_packet_filter_is_all_that_is_said() {
    let Some(_alone) = ready(&[]) else { return };
    let which = Command::new("which").arg("ip").output().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(stdout(&which).trim(), folder.path().join("ip")).unwrap();
    let before = host();
    let mut command = bentpipe(&["emulate", "geo-single", "--quiet", "--", "/bin/true"]);
    let output = command.env("PATH", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "bentpipe: the program `nft` is missing: install the package nftables\n");
    assert_eq!(host(), before);
}

#[test]
fn the_host_is_as_before_after_an_interrupt_and_after_a_crash() {
    let Some(_alone) = ready(&[]) else { return };
    let before = host();
    for signal in heeded(&["INT", "TERM", "KILL"]) {
        let mut emulation = Emulation::start();
        emulation.end_by(signal);
        wait_until(|| host() == before, &format!("the host is as before after {signal}"));
    }
}

/// Also the segments of the kernel, in both directions: 960 bytes with the timestamps.
#[test]
fn packets_are_as_long_as_those_of_the_scenario_and_what_has_no_effect_is_named() {
    let Some(_alone) = ready(&["python3"]) else { return };
    let output = emulate(&["geo-dumbbell"], "ip address show dev bentpipe");
    let device = stdout(&output);
    assert!(device.contains("mtu 1000 ") && !device.contains("inet6"), "{device}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("IPv4 only"), "{said}");
    assert!(
        said.contains("programs use the TCP of this machine: tcp.recovery, tcp.receive-window"),
        "{said}"
    );
    assert!(!said.contains("tcp.mss") && !said.contains("tcp.header"), "{said}");
}

/// The way back uses another link.
#[test]
fn delays_that_a_shorthand_leaves_are_told() {
    let Some(_alone) = ready(&[]) else { return };
    let output = emulate(&["vsat-rain", "--delay-one-way", "50ms"], "true");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("260 ms of `spot`, reverse"), "{said}");
}

/// Includes the child of a server's shell, which the death of the shell alone would not end.
#[test]
fn servers_do_not_outlive_a_crash() {
    let Some(_alone) = ready(&["python3"]) else { return };
    let marker = tempfile::NamedTempFile::new().unwrap();
    let path = marker.path().to_str().unwrap();
    let alive = || {
        let output = Command::new("ps").args(["-A", "-o", "args="]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains(path)).count()
    };
    let server = format!("tail -f {path} & python3 -m http.server 8000 2>&1; true");
    let mut command = bentpipe(&["emulate", "geo-single", "--listen", &server, "--", "sleep", "60"]);
    let mut emulation = Emulation(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    // The emulation, the shell of the server, and its child.
    wait_until(|| alive() >= 3, "the server runs");
    emulation.end_by("KILL");
    wait_until(|| alive() == 0, "nothing of it is left");
}

/// The signals that a parent of this test has not set to be ignored, as `nohup` does.
fn heeded<'a>(signals: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    let number = |signal: &str| match signal {
        "HUP" => 1,
        "INT" => 2,
        "KILL" => 9,
        "TERM" => 15,
        other => panic!("{other}"),
    };
    signals.iter().copied().filter(move |signal| ignored >> (number(signal) - 1) & 1 == 0)
}

/// Programs of the command, also one in another session whose parent has ended.
#[test]
fn nothing_that_the_command_started_outlives_the_emulation() {
    let Some(_alone) = ready(&[]) else { return };
    let marker = tempfile::NamedTempFile::new().unwrap();
    let path = marker.path().to_str().unwrap();
    let alive = || {
        let output = Command::new("ps").args(["-A", "-o", "args="]).output().unwrap();
        let started = format!("tail -f {path}");
        String::from_utf8_lossy(&output.stdout).lines().filter(|line| **line == started).count()
    };
    let script =
        format!("tail -f {path} & (setsid tail -f {path} &) ; (trap '' TERM; exec tail -f {path}) &");
    for signal in heeded(&["INT", "TERM", "HUP", "KILL"]) {
        let endless = format!("{script} wait; true");
        let mut command = bentpipe(&["emulate", "geo-single", "--", "sh", "-c", &endless]);
        let mut emulation = Emulation(command.stderr(Stdio::null()).spawn().unwrap());
        wait_until(|| alive() == 3, "the programs run");
        emulation.end_by(signal);
        wait_until(|| alive() == 0, &format!("nothing is left after {signal}"));
    }
    emulate(&["geo-single"], &script);
    assert_eq!(alive(), 0, "nor after the end of the command");
}

/// A process that emulates, killed when dropped.
struct Emulation(Child);

impl Emulation {
    /// Starts an emulation that sleeps for a minute, and waits until the host's settings have changed.
    fn start() -> Self {
        let mut command = bentpipe(&["emulate", "geo-single", "--", "sleep", "60"]);
        let emulation = Self(command.stderr(Stdio::null()).spawn().unwrap());
        wait_until(|| host().contains("masquerade"), "an emulation begins");
        emulation
    }

    fn end_by(&mut self, signal: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
        let has_ended = |child: &mut Child| child.try_wait().unwrap().is_some();
        wait_until(|| has_ended(&mut self.0), &format!("it ends by {signal}"));
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_until(mut condition: impl FnMut() -> bool, what: &str) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it never happened that {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn two_emulations_share_a_host_and_the_last_one_tidies_up() {
    let Some(_alone) = ready(&[]) else { return };
    let before = host();
    let mut first = Emulation::start();
    let during = host();
    let second =
        emulate(&["geo-single", "--delay-one-way", "1ms"], "ping -c 1 $BENTPIPE_HOST; echo $BENTPIPE_HOST");
    assert!(stdout(&second).ends_with("198.18.1.1\n"), "{second:?}");
    assert_eq!(host(), during, "the first one still needs what it changed");
    first.end_by("TERM");
    assert_eq!(host(), before);
}

#[test]
fn a_transfer_gets_the_rate_of_the_link() {
    let Some(_alone) = ready(&["python3", "curl"]) else { return };
    let server = "cd /proc/self && python3 -c '
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(2500000))
    def log_message(self, *_): pass
http.server.HTTPServer((\"0.0.0.0\", 80), Handler).serve_forever()'";
    let arguments =
        ["geo-single", "--delay-one-way", "5ms", "--rate", "10mbit", "--queue", "200p", "--listen", server];
    let output = emulate(
        &arguments,
        "curl -s -o /dev/null -w '%{size_download} %{time_total}' http://$BENTPIPE_HOST/",
    );
    let text = stdout(&output);
    let (bytes, time) = text.trim().split_once(' ').unwrap();
    assert_eq!(bytes, "2500000");
    // 1448 of 1500 bytes are payload: 2.072 s on the link; slow start and the handshake need a little more.
    let time: f64 = time.parse().unwrap();
    assert!((2.07..2.7).contains(&time), "{time} s");
}

/// Returns the output of `bentpipe send --json`.
fn report(output: &Output) -> serde_json::Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Returns the initial delays of these hops in milliseconds.
fn delay_ms(hops: &[Hop]) -> f64 {
    let first = |hop: &Hop| match &hop.config.delay_one_way {
        Schedule::Constant(delay) => delay.as_millis_f64(),
        Schedule::Table { points, .. } => points[0].1.as_millis_f64(),
        other => panic!("{other:?}"),
    };
    hops.iter().map(first).sum()
}

#[test]
fn the_delay_through_a_constellation_is_that_of_the_plan() {
    let Some(_alone) = ready(&[]) else { return };
    for name in ["leo-iridium", "leo-starlink"] {
        let scenario = bentpipe_scenario::load(name).unwrap();
        let path = Path::of(&scenario, At::Receiver).unwrap();
        let planned = delay_ms(&path.up) + delay_ms(&path.down);
        let output = emulate(&[name], "ping -c 10 -i 0.1 $BENTPIPE_HOST");
        let rtt = least(&rtts_ms(&stdout(&output)));
        // At 7.5 km/s a satellite changes the path by less than 0.1 ms per second.
        assert!(
            (planned - 0.2..planned + 8.0).contains(&rtt),
            "{name}: planned {planned} ms, found {rtt} ms"
        );
    }
}

#[test]
fn shorthands_change_any_scenario_and_what_is_left_out_is_named() {
    let Some(_alone) = ready(&[]) else { return };
    let short = ["--rate", "10mbit", "--delay-one-way", "100ms", "--loss", "0", "--queue", "50p"];
    // Delays of the other links of the path, there and back: leased line, backbone, return channel, wired link.
    for (name, beside) in
        [("leo-starlink", 4.0..12.0), ("vsat-rain", 280.0..310.0), ("wired-snoop", 50.0..70.0)]
    {
        let output = emulate(&[&[name], &short[..]].concat(), "ping -c 2 -i 0.2 $BENTPIPE_HOST");
        let rtt = least(&rtts_ms(&stdout(&output)));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let changed = if name == "vsat-rain" { 100.0 } else { 200.0 };
        assert!(beside.contains(&(rtt - changed)), "{name}: {rtt} ms\n{said}");
        assert_eq!(said.contains("not emulated"), name != "vsat-rain", "{said}");
        assert!(name != "wired-snoop" || said.contains("node.station (snoop)"), "{said}");
    }
}

#[test]
fn handovers_hold_packets_up() {
    let Some(_alone) = ready(&[]) else { return };
    let settings =
        ["constellation.starlink.step=2 s", "constellation.starlink.interruption=300 ms", "duration=60 s"];
    let mut draft = bentpipe_scenario::Draft::load("leo-starlink").unwrap();
    settings.iter().for_each(|setting| draft.set(setting).unwrap());
    let path = Path::of(&draft.scenario().unwrap(), At::Receiver).unwrap();
    let handover = path.down.last().unwrap().config.outages.intervals[0].from.as_secs_f64();
    assert!(handover < 30.0, "{handover} s");
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = ["leo-starlink"].into_iter().chain(settings).collect();
    let count = ((handover + 1.5) / 0.05) as u32;
    let rtts = rtts_ms(&stdout(&emulate(&arguments, &format!("ping -c {count} -i 0.05 $BENTPIPE_HOST"))));
    // A packet from the first sixth of the pause waits for most of it, and nothing is lost.
    let longest = rtts.iter().copied().fold(0.0, f64::max) - least(&rtts);
    assert!(
        (245.0..345.0).contains(&longest) && rtts.len() == count as usize,
        "{longest} ms, {}",
        rtts.len()
    );
}

#[test]
fn a_shared_return_channel_makes_its_terminal_ask_for_room() {
    let Some(_alone) = ready(&[]) else { return };
    let rtt = |medium: &str| {
        let setting = format!("link.spot.reverse.medium={medium}");
        rtts_ms(&stdout(&emulate(&["geo-vsat", "--set", &setting], "ping -c 1 $BENTPIPE_HOST")))[0]
    };
    // 50 and 250 ms, there and back. With demand assignment, a request and its answer cross the satellite first.
    let (free, on_demand) = (rtt("none"), rtt("tdma-dama"));
    assert!((600.0..615.0).contains(&free), "{free} ms");
    assert!(on_demand >= 1100.0, "{on_demand} ms");
}

/// A server that sends datagrams back, and clients as DNS and QUIC have them. What the kernel cuts into packets below IP (UDP_SEGMENT) or
/// in IP crosses the path in pieces.
const DATAGRAMS: &str = r#"
import os, socket, sys
PORT, UDP_SEGMENT = 4433, 103
if sys.argv[1:] == ["serve"]:
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::", PORT))
    while True:
        data, peer = s.recvfrom(65536)
        s.sendto(data, peer)
for family, host in [(socket.AF_INET, "BENTPIPE_HOST"), (socket.AF_INET6, "BENTPIPE_HOST6")]:
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(10)
    s.connect((os.environ[host], PORT))
    s.send(b"query")
    assert s.recv(65536) == b"query"
    s.send(bytes(range(256)) * 16)
    assert s.recv(65536) == bytes(range(256)) * 16
    s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1200)
    burst = b"".join(n.to_bytes(2, "big") for n in range(6000))
    s.send(burst)
    got = sorted(s.recv(65536) for _ in range(10))
    assert b"".join(got) == burst and all(len(piece) == 1200 for piece in got)
    print(host)
"#;

#[test]
fn datagrams_pass_whole_in_ipv4_and_ipv6() {
    let Some(_alone) = ready(&["python3"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("datagrams.py");
    std::fs::write(&program, DATAGRAMS).unwrap();
    let run = format!("python3 {}", program.display());
    let server = format!("exec {run} serve");
    let arguments = ["geo-single", "--delay-one-way", "10ms", "--rate", "20mbit", "--listen", &server];
    assert_eq!(stdout(&emulate(&arguments, &run)), "BENTPIPE_HOST\nBENTPIPE_HOST6\n");
}

#[test]
fn our_tcp_stands_at_both_ends_of_the_path() {
    let Some(_alone) = ready(&[]) else { return };
    let binary = env!("CARGO_BIN_EXE_bentpipe");
    let server = format!("exec {binary} receive 5001 --discard");
    let path = ["geo-single", "--delay-one-way", "30ms", "--rate", "20mbit", "--at", "sender"];
    for peer in ["$BENTPIPE_PEER", "[$BENTPIPE_PEER6]"] {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace");
        let script = format!(
            "{binary} send {peer}:5001 --zeros 500000 --scenario geo-single --cc vegas --json --trace {}",
            trace.display()
        );
        let report = report(&emulate(&[&path[..], &["--listen", &server]].concat(), &script));
        assert_eq!((&report["sent_bytes"], &report["cc"]), (&500_000.into(), &"vegas".into()));
        // The queue is empty for the first round trips, and no packet is early.
        assert!(report["srtt_ms"].as_f64().unwrap() >= 60.0, "{report}");
        let trace = std::fs::read_to_string(trace).unwrap();
        let windows = trace.lines().filter(|line| line.contains("\"event\":\"window\"")).count();
        assert!(windows > 10, "{trace}");
        // The scenario's initial window, not today's ten segments.
        assert!(trace.contains("\"cwnd\":1.0,"), "{trace}");
    }
}

/// One connection, a file in each direction at once, and everything that can happen to a packet; the long form is
/// `scripts/on-wire-matrix`.
#[test]
fn streams_are_whole_over_a_hostile_path() {
    let Some(_alone) = ready(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let pattern = |step: u64| (0..3_000_000_u64).map(|i| ((i * i * step) >> 7) as u8).collect::<Vec<_>>();
    std::fs::write(file("there"), pattern(3)).unwrap();
    std::fs::write(file("back"), pattern(5)).unwrap();
    let binary = env!("CARGO_BIN_EXE_bentpipe");
    let at = |name: &str| file(name).display().to_string();
    let server = format!("exec {binary} receive 5001 {} --answer {} --cc bbr", at("there.got"), at("back"));
    let script = format!(
        "{binary} send $BENTPIPE_PEER:5001 {} --reply {} --cc bbr && sleep 0.5",
        at("there"),
        at("back.got")
    );
    let (summary, reordering) =
        (at("summary"), "{ probability = 0.01, extra-min = \"1 ms\", extra-max = \"5 ms\" }");
    let output = emulate(
        &[
            "geo-single --rate 50mbit --delay-one-way 5ms --queue 200p --loss 0.01 --at sender --listen"
                .split(' ')
                .collect(),
            vec![server.as_str(), "--summary", &summary],
            vec!["--set", "link.satellite.duplication=0.01", "--set", "link.satellite.corruption=0.01"],
            vec!["--set", &format!("link.satellite.reordering={reordering}")],
            vec![
                "--set",
                "link.satellite.outages={ every = \"600 ms\", length = \"100 ms\", effect = \"cut-path\" }",
            ],
        ]
        .concat(),
        &script,
    );
    stdout(&output);
    let same = |name: &str| {
        std::fs::read(file(name)).unwrap() == std::fs::read(file(&format!("{name}.got"))).unwrap()
    };
    assert!(same("there") && same("back"), "{output:?}");
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    let stats = &summary["up"][0]["stats"];
    for cause in ["dropped_by_error", "dropped_by_outage", "duplicated_packets", "corrupted_packets"] {
        assert!(stats[cause].as_u64().unwrap() > 0, "{cause}: {stats}");
    }
}

/// Both ends support ECN, the engine in either role: the queue marks instead of dropping, and the sender reduces its
/// window.
#[test]
fn congestion_marks_are_understood_between_our_tcp_and_the_kernels() {
    let Some(_alone) = ready(&["python3"]) else { return };
    let binary = env!("CARGO_BIN_EXE_bentpipe");
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary");
    let peer = "import os, socket, sys
def swallow(s):
    while s.recv(1 << 18): pass
if sys.argv[1] == 'listen':
    swallow(socket.create_server(('0.0.0.0', 5001)).accept()[0])
else:
    s = socket.create_connection((os.environ['BENTPIPE_PEER'], 5001))
    s.sendall(bytes(1500000))
    s.shutdown(socket.SHUT_WR)
    swallow(s)
";
    let program = folder.path().join("peer.py");
    std::fs::write(&program, peer).unwrap();
    let python = format!("echo 1 > /proc/sys/net/ipv4/tcp_ecn; python3 {}", program.display());
    let settings = [
        "geo-single",
        "--rate",
        "8mbit",
        "--delay-one-way",
        "15ms",
        "--at",
        "sender",
        "--set",
        "link.satellite.queue={ kind = \"codel\", limit = \"500 packets\", target = \"5 ms\", interval = \"60 ms\", ecn = true }",
        "--summary",
    ];
    for (server, command) in [
        (
            format!("{python} listen"),
            format!("{binary} send $BENTPIPE_HOST:5001 --zeros 1500000 --set tcp.ecn=true --json"),
        ),
        (format!("exec {binary} receive 5001 --discard --set tcp.ecn=true"), format!("{python} connect")),
    ] {
        let output =
            emulate(&[&settings[..], &[summary.to_str().unwrap(), "--listen", &server]].concat(), &command);
        stdout(&output);
        let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
        let stats = &summary["up"][0]["stats"];
        let count = |key: &str| stats[key].as_u64().unwrap();
        assert!(count("marked_packets") >= 1 && count("dropped_by_queue") == 0, "{command}: {stats}");
    }
}

/// The long form, with other algorithms and with Linux beside them, is `docs/validation-real-time.md`.
#[test]
fn one_scenario_simulated_and_in_real_time_gives_the_same_goodput() {
    let Some(_alone) = ready(&["python3"]) else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/validate-reality");
    let output = Command::new(script)
        .args([env!("CARGO_BIN_EXE_bentpipe"), "--quick"])
        .output()
        .expect("the script is there");
    assert!(String::from_utf8_lossy(&output.stdout).contains("0 of 1 pairs"), "{output:?}");
}

#[test]
fn our_tcp_reaches_the_host_as_the_command_does() {
    let Some(_alone) = ready(&[]) else { return };
    let before = host();
    let listener = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let script =
        format!("{} send $BENTPIPE_HOST:{port} --zeros 100000 --json", env!("CARGO_BIN_EXE_bentpipe"));
    let output = emulate(&["geo-single", "--delay-one-way", "20ms", "--at", "sender"], &script);
    assert_eq!(report(&output)["sent_bytes"], 100_000);
    assert_eq!(peer.join().unwrap(), 100_000);
    assert_eq!(host(), before);
}

#[test]
fn packets_are_lost_as_often_as_asked() {
    let Some(_alone) = ready(&[]) else { return };
    let arguments = ["geo-single", "--delay-one-way", "1ms", "--rate", "100mbit", "--loss", "0.2"];
    let output = emulate(&arguments, "ping -q -c 1000 -i 0.002 -W 0.1 $BENTPIPE_HOST || true");
    let text = stdout(&output);
    let received = text.split("transmitted, ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let received: f64 = received.parse().unwrap();
    // 640 of 1000 survive both ways; six standard deviations are 91.
    assert!((549.0..731.0).contains(&received), "{text}");
}

#[test]
fn a_command_at_the_sender_has_the_narrow_way_the_other_way_round() {
    let Some(_alone) = ready(&[]) else { return };
    let narrow =
        ["geo-single", "--delay-one-way", "10ms", "--set", "link.satellite.reverse.delay-one-way=70 ms"];
    let script = "ping -c 2 -i 0.2 $BENTPIPE_HOST";
    let least_of = |at: &str| {
        let arguments: Vec<&str> = narrow.iter().copied().chain(["--at", at]).collect();
        let output = emulate(&arguments, script);
        let summary = String::from_utf8_lossy(&output.stderr).into_owned();
        (least(&rtts_ms(&stdout(&output))), summary.find("reverse:") < summary.find("forward:"))
    };
    let (rtt, reverse_first) = least_of("receiver");
    assert!((80.0..90.0).contains(&rtt) && reverse_first, "{rtt} ms");
    let (rtt, reverse_first) = least_of("sender");
    assert!((80.0..90.0).contains(&rtt) && !reverse_first, "{rtt} ms");
}

#[test]
fn without_root_there_is_a_world_of_its_own() {
    let Some(_alone) = ready(&["setpriv", "python3", "curl"]) else { return };
    // A copy where everybody may read it; the build folder may be private.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let binary = folder.path().join("bentpipe");
    // A separate process copies it: a child of another test could hold the file open for writing, so that it could
    // not be executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_bentpipe")).arg(&binary).status().unwrap();
    assert!(copied.success());
    open_to_all(folder.path());
    let run = |arguments: &[&str], script: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&binary);
        command.arg("emulate").args(arguments).args(["--", "sh", "-c", script]);
        command.current_dir("/").output().unwrap()
    };
    std::fs::write(folder.path().join("page"), "a page\n").unwrap();
    let server = format!("exec python3 -m http.server 80 --directory {} >/dev/null", folder.path().display());
    let script = "id -u; curl -s http://$BENTPIPE_HOST/page; ping -c 3 -i 0.2 $BENTPIPE_HOST";
    let output = run(&["geo-single", "--delay-one-way", "20ms", "--listen", &server], script);
    if output.status.code() == Some(3) {
        return eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = stdout(&output);
    assert!(text.starts_with("65534\na page\n"), "{text}");
    assert!(least(&rtts_ms(&text)) >= 40.0, "{text}");
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let alone = run(&["geo-single"], "ping -c 1 -W 1 192.0.2.1");
    assert!(alone.status.code() != Some(0) && said(&alone).contains("--listen"), "{alone:?}");
    assert!(!said(&output).contains("without root"), "{output:?}");
    let failing = run(&["geo-single", "--listen", "false"], "true");
    assert_eq!(failing.status.code(), Some(2), "{failing:?}");
}

fn open_to_all(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Answer to an HTTP request without a library: the whole of it, status line first.
fn ask(method: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(REMOTE)?;
    let len = body.len();
    write!(
        stream,
        "{method} / HTTP/1.1\r\nHost: {REMOTE}\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Address of the HTTP test.
const REMOTE: &str = "127.0.0.1:47521";

#[test]
fn knobs_turn_while_the_command_runs() {
    let Some(_alone) = ready(&[]) else { return };
    let mut command =
        bentpipe(&["emulate", "geo-single", "--delay-one-way", "20ms", "--http", REMOTE, "--", "sh", "-c"]);
    command.arg(
        "ping -c 5 -i 0.2 $BENTPIPE_HOST; touch $FLAG; while [ -e $FLAG ]; do sleep 0.05; done; \
                 ping -c 5 -i 0.2 $BENTPIPE_HOST",
    );
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("flag");
    let child = command.env("FLAG", &flag).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| flag.exists(), "the first half is over");
    let change = r#"{"link.satellite.delay-one-way": "90 ms", "link.satellite.queue.limit": "9 packets"}"#;
    assert!(ask("PATCH", change).unwrap().starts_with("HTTP/1.1 200"));
    let refused = ask("PATCH", r#"{"link.satellite.rate": "much"}"#).unwrap();
    assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("link.satellite.rate"), "{refused}");
    for ignored in [r#"{"flow.bulk.count": 3}"#, r#"{"tcp.mss": "500 bytes"}"#, r#"{"seed": 3}"#] {
        let refused = ask("PATCH", ignored).unwrap();
        assert!(
            refused.starts_with("HTTP/1.1 400") && refused.contains("without effect on the path"),
            "{refused}"
        );
    }
    assert!(ask("DELETE", "").unwrap().starts_with("HTTP/1.1 405"));
    wait_until(
        || ask("GET", "").unwrap().contains("\"delay_one_way_ms\": 90.0"),
        "the state shows the change",
    );
    std::fs::remove_file(&flag).unwrap();
    let rtts = rtts_ms(&stdout(&child.wait_with_output().unwrap()));
    let (before, after) = (least(&rtts[..5]), least(&rtts[5..]));
    assert!((40.0..60.0).contains(&before) && (180.0..200.0).contains(&after), "{rtts:?}");
}

#[test]
fn what_passes_is_recorded_and_summed_up() {
    let Some(_alone) = ready(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (pcap, summary) = (folder.path().join("seen.pcapng"), folder.path().join("summary.json"));
    let files = ["--pcap", pcap.to_str().unwrap(), "--summary", summary.to_str().unwrap()];
    let arguments: Vec<&str> = ["geo-single", "--delay-one-way", "5ms"].into_iter().chain(files).collect();
    let output = emulate(&arguments, "ping -c 3 -i 0.1 -s 100 $BENTPIPE_HOST");
    assert_eq!(rtts_ms(&stdout(&output)).len(), 3);
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    assert_eq!(summary["up"][0]["stats"]["delivered_packets"], 3);
    assert_eq!(summary["down"][0]["stats"]["delivered_bytes"], 3 * 128);
    assert_eq!(summary["fidelity"]["packets"], 6);
    // Six packets of 128 bytes, each in a block with 32 bytes more.
    let blocks = std::fs::read(&pcap).unwrap();
    let packets = blocks.windows(8).filter(|window| *window == [6, 0, 0, 0, 160, 0, 0, 0]).count();
    assert_eq!(packets, 6);
}

#[test]
fn a_recorded_path_replays_as_what_was_recorded() {
    let Some(_alone) = ready(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_bentpipe");
    let server = format!("exec {binary} record serve");
    let record = |scenario: &[&str], name: &str| {
        let file = folder.path().join(name).to_str().unwrap().to_owned();
        let script = format!("{binary} record $BENTPIPE_HOST --duration 3s --interval 5ms --output {file}");
        let output = emulate(&[scenario, &["--listen", &server]].concat(), &script);
        stdout(&output);
        let draft = bentpipe_scenario::Draft::load(&file).unwrap();
        (file, draft.scenario().unwrap().links.remove(0))
    };
    let path = ["geo-single", "--rate", "10mbit", "--delay-one-way", "30ms", "--loss", "0.05", "--seed", "4"];
    let (file, first) = record(&path, "first.toml");
    let (_, second) = record(&[&file], "second.toml");
    for link in [&first, &second] {
        let rate = rate_mbps(&link.forward);
        assert!((8.5..11.0).contains(&rate), "{rate} Mbit/s\n{link:?}");
    }
    for (first, second) in [(&first.forward, &second.forward), (&first.reverse, &second.reverse)] {
        let (first_ms, second_ms) = (typical_delay_ms(first), typical_delay_ms(second));
        assert!((first_ms - second_ms).abs() < 5.0, "{first_ms} ms, then {second_ms} ms");
        let (first_loss, second_loss) = (mean_loss(first), mean_loss(second));
        // Of 600 packets 5 % are 30; four standard deviations of the difference are 5 %.
        assert!((0.01..0.12).contains(&first_loss), "{first_loss}");
        assert!((first_loss - second_loss).abs() < 0.05, "{first_loss}, then {second_loss}");
    }
}

fn rate_mbps(link: &LinkConfig) -> f64 {
    match link.rate {
        Schedule::Constant(rate) => rate.bps() as f64 / 1e6,
        ref other => panic!("{other:?}"),
    }
}

/// Returns the median of the table.
fn typical_delay_ms(link: &LinkConfig) -> f64 {
    let Schedule::Table { points, .. } = &link.delay_one_way else { panic!("{link:?}") };
    let mut delays: Vec<f64> = points.iter().map(|(_, delay)| delay.as_millis_f64()).collect();
    delays.sort_by(f64::total_cmp);
    delays[delays.len() / 2]
}

/// Returns the mean of the first three seconds.
fn mean_loss(link: &LinkConfig) -> f64 {
    let LossModel::Schedule { points, .. } = &link.loss.model else { panic!("{link:?}") };
    let at =
        |second: f64| points.iter().rfind(|(from, _)| from.as_secs_f64() <= second).map_or(0.0, |(_, p)| *p);
    (0..3).map(|second| at(f64::from(second))).sum::<f64>() / 3.0
}

/// Joined commands share address and path of the emulation, and end with it.
#[test]
fn a_further_command_joins_a_running_emulation() {
    let Some(_alone) = ready(&[]) else { return };
    let join = |emulation: &str, script: &str| {
        let mut command = bentpipe(&["emulate", "--join"]);
        command.args([emulation, "--", "sh", "-c", script]);
        command
    };
    let alone = join("1", "true").output().unwrap();
    assert_eq!(alone.status.code(), Some(2), "{alone:?}");
    assert!(String::from_utf8_lossy(&alone.stderr).contains("no emulation with the process number 1"));

    let mut first = bentpipe(&["emulate", "geo-single", "--delay-one-way", "20ms", "-q", "--", "cat"]);
    // While the emulation starts, programs in its network have this variable, and not yet those of the command.
    first.env("BENTPIPE_OTHER", "1");
    let mut first = first.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let emulation = first.id().to_string();
    let begin = Instant::now();
    let ping = loop {
        let output = join(&emulation, "ping -c 3 -i 0.2 $BENTPIPE_HOST").output().unwrap();
        if output.status.code() != Some(2) || begin.elapsed() > Duration::from_secs(10) {
            break output;
        }
    };
    let times = rtts_ms(&stdout(&ping));
    assert!(times.len() == 3 && times.iter().all(|time| *time >= 40.0), "{times:?}");
    let mut endless = join(&emulation, "sleep 600").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(endless.try_wait().unwrap(), None);
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    assert!(!endless.wait().unwrap().success());
}

#[test]
fn a_command_joins_in_a_changed_root_folder() {
    let Some(_alone) = ready(&["chroot"]) else { return };
    // A name server on this host gives the command a mount namespace of its own, and the folder `here` is in the new root only.
    let script = r#"mount --rbind / "$ROOT"; mount -t tmpfs none "$ROOT/mnt"; mkdir "$ROOT/mnt/here"
        printf 'nameserver 127.0.0.1\nnameserver 192.0.2.53\n' >"$ROOT/mnt/resolv.conf"
        mount --bind "$ROOT/mnt/resolv.conf" "$ROOT/etc/resolv.conf"; exec chroot "$ROOT" sh -c "$INSIDE""#;
    let inside = r#"cd /mnt/here
        sleep 20 | "$BENTPIPE" emulate geo-single -q -- cat & emulation=$!
        for attempt in 1 2 3 4 5 6 7 8 9 10; do
            sleep 0.5; "$BENTPIPE" emulate --join -- cat /mnt/here/../resolv.conf /etc/resolv.conf && break; done
        kill $emulation; wait"#;
    let root = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", script]);
    command.env("ROOT", root.path()).env("INSIDE", inside).env("BENTPIPE", env!("CARGO_BIN_EXE_bentpipe"));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with("nameserver 192.0.2.53\nnameserver 192.0.2.53\n"), "{output:?}");
}

#[test]
fn a_host_that_forwards_sends_nothing_of_its_own_over_the_path() {
    let Some(_alone) = ready(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    // In a network namespace, because the setting is one of the host.
    let script = "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding; \
                  exec \"$BENTPIPE\" emulate geo-single -q --summary \"$SUMMARY\" -- sleep 1.5";
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", script]);
    command.env("BENTPIPE", env!("CARGO_BIN_EXE_bentpipe")).env("SUMMARY", &summary);
    assert!(command.status().unwrap().success());
    let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    assert_eq!(summary["fidelity"]["packets"], 0, "{summary}");
}

#[test]
fn wrong_requests_are_refused_before_anything_runs() {
    let refused = |arguments: &[&str]| {
        let output = bentpipe(&["emulate"]).args(arguments).args(["--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["geo-single", "--rate", "10 parsec"]).contains("link.satellite.rate"));
    assert!(refused(&["geo-sngle"]).contains("geo-single"));
    assert!(refused(&["geo-single", "--set", "link.satellit.rate=1 Mbit/s"]).contains("`satellite`"));
    let output = bentpipe(&["emulate", "geo-single"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a command is required");
}

#[test]
fn a_trial_of_the_proxy_that_is_killed_leaves_no_process() {
    let Some(_alone) = ready(&[]) else { return };
    // A variable that all processes of the trial inherit.
    let mark = format!("TRIAL_OF_TEST={}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let parts = || -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let ours = processes.filter(|process| {
            let variables = std::fs::read(process.path().join("environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        });
        ours.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok()).collect()
    };
    let mut command = bentpipe(&["pep", "try", "geo", "--seconds", "30", "--cc", "end-to-end:cubic"]);
    command.env(name, value).stderr(Stdio::null()).stdout(Stdio::null());
    let trial = Emulation(command.spawn().unwrap());
    for part in ["--part\0server", "--part\0client"] {
        wait_until(|| parts().iter().any(|line| line.contains(part)), "client and server of the trial run");
    }
    drop(trial);
    wait_until(|| parts().is_empty(), "all processes of the trial end");
}
