//! `bentpipe kernel` with this machine's kernel: loads, transfers in a network namespace, unloads.
//!
//! The tests need root, a build with `--features kernel`, and a kernel with congestion control in BPF; otherwise they
//! print a reason and pass. `BENTPIPE_KERNEL_BYTES=100000000` is the long form.
#![cfg(feature = "kernel")]

mod network;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// One test at a time, because loaded algorithms belong to the whole machine.
static ALONE: Mutex<()> = Mutex::new(());

/// Guard of a test; `None` if something is missing or algorithms are already loaded.
fn ready() -> Option<MutexGuard<'static, ()>> {
    let doctor = bentpipe(&["kernel", "doctor"]);
    if doctor.status.code() == Some(3) {
        eprintln!("skipped: {}", String::from_utf8_lossy(&doctor.stderr).trim());
        return None;
    }
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if Path::new("/sys/fs/bpf/bentpipe").exists() {
        eprintln!("skipped: algorithms are loaded on this machine already");
        return None;
    }
    Some(alone)
}

/// A missing program is printed.
fn lacks(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        !found.is_ok_and(|output| output.status.success())
    });
    if let Some(program) = missing {
        eprintln!("skipped: the program {program} is missing");
    }
    missing.is_some()
}

/// Rules need control groups of version 2.
fn lacks_groups() -> bool {
    let lacks = !fs::read_to_string("/proc/mounts").is_ok_and(|mounts| mounts.contains(" cgroup2 "));
    if lacks {
        eprintln!("skipped: control groups of version 2 are not mounted");
    }
    lacks
}

/// `doctor` reports something that does not work at all or not everywhere.
fn doctor_doubts(what: &str) -> bool {
    let found = String::from_utf8_lossy(&bentpipe(&["kernel", "doctor"]).stdout).into_owned();
    !found.lines().any(|line| line.starts_with("ok ") && line.contains(what))
}

fn bentpipe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bentpipe")).args(arguments).output().expect("the binary is there")
}

fn done(arguments: &[&str]) -> String {
    let output = bentpipe(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(arguments: &[&str], code: i32) -> String {
    let output = bentpipe(arguments);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn offered() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("Linux")
}

/// Unloads the algorithms of a test, also after a failure.
struct Clean;

impl Drop for Clean {
    fn drop(&mut self) {
        bentpipe(&["kernel", "unload", "--all"]);
    }
}

/// The received data has the sent data's hash, over a link with losses, with the requested algorithm.
#[test]
fn every_algorithm_transfers_under_loss_and_goes_again() {
    let Some(_alone) = ready() else { return };
    if lacks(&["python3", "ip", "nft"]) {
        return;
    }
    let before = offered();
    let clean = Clean;
    let loaded = done(&["kernel", "load", "--all", "--rate", "80mbit"]);
    let controls: Vec<&str> = loaded.lines().filter_map(|line| line.strip_suffix(": loaded")).collect();
    assert!(controls.len() >= 11, "{loaded}");
    let bytes = std::env::var("BENTPIPE_KERNEL_BYTES").unwrap_or_else(|_| "2000000".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel_transfer.py");
    let sends: Vec<String> = controls
        .iter()
        .map(|control| format!("python3 {script} send $BENTPIPE_HOST 5001 {control} {bytes}"))
        .collect();
    let listen = format!("python3 {script} receive 5001");
    #[rustfmt::skip]
    let link = [
        "emulate", "geo-single", "--at", "sender", "--rate", "100mbit", "--delay-one-way", "5ms", "--loss", "1e-3", "--queue", "200p",
        "--quiet", "--listen", &listen, "--", "sh", "-c", &sends.join(" && "),
    ];
    let said = done(&link);
    println!("{said}");
    let equal = said.lines().filter(|line| line.starts_with("equal ")).count();
    assert_eq!(equal, controls.len(), "{said}");
    let again: u64 = said.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<u64>().ok()).sum();
    assert!(again > 0, "the link lost nothing: {said}");
    drop(clean);
    assert_eq!(offered(), before);
}

/// An unmodified receiver reports the copies, no report undoes a reduction, and the data is correct.
#[test]
fn probes_leave_in_low_priority_and_are_answered() {
    let Some(_alone) = ready() else { return };
    if lacks(&["python3", "ip", "nft"]) {
        return;
    }
    if doctor_doubts("programs at interfaces (tcx)") {
        return eprintln!("skipped: programs at interfaces came with kernel 6.6");
    }
    let _clean = Clean;
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let listen = format!("python3 {here}/kernel_transfer.py receive 5001");
    for (name, control) in [("peach", "bp_peach"), ("swift", "bp_swift")] {
        // The probing program is attached to the interfaces of the command's network namespace.
        let send = format!(
            "{} kernel load {name} && python3 {here}/kernel_probes.py $BENTPIPE_HOST 5001 {control} 4000000",
            env!("CARGO_BIN_EXE_bentpipe")
        );
        // The queue drops nothing, and losses are rare: in a long recovery a receiver delays ACKs, and their reports
        // would be lost with them.
        #[rustfmt::skip]
        let link = [
            "emulate", "geo-single", "--at", "sender", "--rate", "20mbit", "--delay-one-way", "20ms", "--loss", "1e-3", "--queue", "4000p",
            "--quiet", "--listen", &listen, "--", "sh", "-c", &send,
        ];
        let said = done(&link);
        println!("{said}");
        let words = |first: &str| -> Vec<String> {
            let line = said.lines().find(|line| line.starts_with(first)).unwrap_or_default();
            line.split(' ').map(str::to_owned).collect()
        };
        let number = |words: &[String], at: usize| -> u64 {
            words.get(at).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{said}"))
        };
        let (equal, probes) = (words("equal "), words("copies "));
        // Counts segments instead of reports, because a receiver merges reports of neighbouring segments.
        let (copies, reported) = (number(&probes, 1), number(&equal, 3));
        assert!(number(&equal, 2) > 0, "the link lost nothing: {said}");
        assert!(copies > 35, "no more than those of the start: {said}");
        // The link loses copies and the ACKs that report them at the same rate as data.
        assert!((copies * 4 / 5..=copies + number(&equal, 2)).contains(&reported), "{said}");
        assert_eq!(number(&probes, 3), 0, "{said}");
        let status = done(&["kernel", "status"]);
        assert!(status.contains(&format!("probes of {control}: through interface ")), "{status}");
        done(&["kernel", "unload", name]);
        assert!(!Path::new("/sys/fs/bpf/bentpipe").exists(), "a folder is left behind");
    }
}

#[test]
fn loading_twice_and_unloading_twice_are_no_mistakes() {
    let Some(_alone) = ready() else { return };
    let before = offered();
    let _clean = Clean;
    assert_eq!(done(&["kernel", "load", "hybla", "veno"]), "bp_hybla: loaded\nbp_veno: loaded\n");
    assert!(offered().contains("bp_hybla"));
    assert_eq!(done(&["kernel", "load", "bp_hybla"]), "bp_hybla: was already loaded and is unchanged\n");
    let status = done(&["kernel", "status", "--json"]);
    assert!(status.contains("bp_hybla") && status.contains("bp_veno"), "{status}");
    assert!(done(&["kernel", "unload", "hybla"]).starts_with("bp_hybla: unloaded"));
    assert_eq!(done(&["kernel", "unload", "hybla"]), "bp_hybla: was not loaded\n");
    done(&["kernel", "unload", "--all"]);
    assert_eq!(offered(), before);
    assert!(!Path::new("/sys/fs/bpf/bentpipe").exists(), "a folder is left behind");
}

#[test]
fn what_cannot_be_done_is_refused_and_leaves_nothing() {
    let Some(_alone) = ready() else { return };
    let _clean = Clean;
    let before = offered();
    assert!(refused(&["kernel", "load", "cubic"], 2).contains("there are hybla, "));
    assert!(refused(&["kernel", "load", "hybla", "scps-tp"], 2).contains("--rate"));
    assert!(refused(&["kernel", "load", "hybla", "--rate", "8mbit"], 2).contains("only scps-tp"));
    assert!(refused(&["kernel", "load", "hybla", "--phase", "12"], 2).contains("only satcp"));
    assert!(refused(&["kernel", "load", "hybla", "--interface", "lo"], 2).contains("only peach and swift"));
    if !doctor_doubts("programs at interfaces (tcx)") {
        let words = refused(&["kernel", "load", "peach", "--interface", "nowhere"], 2);
        assert!(words.contains("no interface \"nowhere\""), "{words}");
    }
    assert!(
        refused(&["kernel", "use", "veno", "--to", "10.0.0.0/8"], 2).contains("bentpipe kernel load veno")
    );
    assert!(refused(&["kernel", "use", "none", "--to", "10.0.0.0/8"], 2).contains("no rule"));
    assert_eq!(offered(), before);
    assert!(!Path::new("/sys/fs/bpf/bentpipe").exists(), "a folder is left behind");
}

/// Makes a network namespace with many interfaces, so that loading a probing algorithm takes long.
struct ManyInterfaces(String);

impl ManyInterfaces {
    fn new() -> Self {
        let name = format!("bp-dies-{}", std::process::id());
        let ip = |words: &[&str]| {
            let output = Command::new("ip").args(words).output().expect("iproute2 is there");
            assert!(output.status.success(), "{words:?}: {output:?}");
        };
        ip(&["netns", "add", &name]);
        for pair in 0..10 {
            let (one, other) = (format!("a{pair}"), format!("b{pair}"));
            ip(&["-n", &name, "link", "add", &one, "type", "veth", "peer", "name", &other]);
        }
        Self(name)
    }

    fn bentpipe(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.0));
        command.arg(env!("CARGO_BIN_EXE_bentpipe")).args(arguments);
        command
    }
}

impl Drop for ManyInterfaces {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

/// The kernel closes the descriptors of a process shortly after its end.
fn is_soon_offered_no_more(control: &str) -> bool {
    let begin = Instant::now();
    while offered().contains(control) {
        if begin.elapsed() > Duration::from_secs(10) {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// After a command is killed at any time, the next one can load, or unload everything.
#[test]
fn a_command_that_dies_leaves_nothing_that_the_next_one_does_not_mend() {
    let Some(_alone) = ready() else { return };
    if lacks(&["ip", "nsenter"]) {
        return;
    }
    if doctor_doubts("programs at interfaces (tcx)") {
        return eprintln!("skipped: programs at interfaces came with kernel 6.6");
    }
    let _clean = Clean;
    let many = ManyInterfaces::new();
    let whole = |arguments: &[&str]| {
        let begin = Instant::now();
        let output = many.bentpipe(arguments).output().expect("nsenter is there");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        begin.elapsed()
    };
    let load = ["kernel", "load", "peach"];
    let unload = ["kernel", "unload", "--all"];
    let took = [whole(&load), whole(&unload)];
    let (mut halfway, mut died) = (0, 0);
    for step in 0..20 {
        // Every third time the unloading is killed.
        let unloads = step % 3 == 2;
        if unloads {
            whole(&load);
        }
        let (arguments, took) = if unloads { (unload, took[1]) } else { (load, took[0]) };
        let mut command = many.bentpipe(&arguments).stdout(Stdio::null()).spawn().expect("nsenter is there");
        thread::sleep(took * step / 20);
        command.kill().expect("it is a child");
        died += u32::from(!command.wait().expect("it is a child").success());
        let probes = fs::read_dir("/sys/fs/bpf/bentpipe/peach-copies").map_or(0, Iterator::count);
        halfway += u32::from((1..21).contains(&probes));
        if step % 2 == 0 {
            whole(&load);
            assert!(offered().contains("bp_peach"), "killed at step {step}, it does not load");
            let status = done(&["kernel", "status"]);
            assert_eq!(status.matches("probes of bp_peach").count(), 20, "killed at step {step}: {status}");
        }
        whole(&unload);
        assert!(is_soon_offered_no_more("bp_peach"), "killed at step {step}, it stays");
        assert!(
            !Path::new("/sys/fs/bpf/bentpipe").exists(),
            "killed at step {step}, a folder is left behind"
        );
    }
    println!("{died} of 20 commands died, {halfway} with the probes at some of 20 interfaces");
    assert!(died > 5 && halfway > 0, "{died} died, {halfway} halfway: it was too quick");
}

/// The system default keeps an algorithm in the kernel, so unloading would leave it behind.
#[test]
fn the_default_of_the_system_is_not_unloaded() {
    let Some(_alone) = ready() else { return };
    let _clean = Clean;
    done(&["kernel", "load", "veno"]);
    let binary = env!("CARGO_BIN_EXE_bentpipe");
    let script =
        format!("echo bp_veno > /proc/sys/net/ipv4/tcp_congestion_control && {binary} kernel unload veno");
    let output =
        Command::new("unshare").args(["--net", "sh", "-c", &script]).output().expect("util-linux is there");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("default"), "{output:?}");
}

/// A network namespace that `ip netns exec` enters, with a mount namespace of its own for each command.
struct Entered(String);

impl Entered {
    fn new() -> Self {
        let name = format!("bp-exec-{}", std::process::id());
        let added = Command::new("ip").args(["netns", "add", &name]).output().expect("iproute2 is there");
        assert!(added.status.success(), "{added:?}");
        Self(name)
    }

    /// Runs a script of the shell, in which `bentpipe` is this program.
    fn run(&self, script: &str) -> Output {
        let script = format!("bentpipe() {{ {} \"$@\"; }}; {script}", env!("CARGO_BIN_EXE_bentpipe"));
        let words = ["netns", "exec", &self.0, "sh", "-c", &script];
        Command::new("ip").args(words).output().expect("iproute2 is there")
    }

    fn done(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

#[test]
fn what_is_loaded_in_a_network_namespace_outlives_the_command_its_interface_and_an_unload_elsewhere() {
    let Some(_alone) = ready() else { return };
    if lacks_groups() {
        return;
    }
    let _clean = Clean;
    let there = Entered::new();
    there.done("bentpipe kernel load veno");
    assert!(offered().contains("bp_veno"), "gone with the mount namespace of the command");
    let make = "ip link add a0 type veth peer name b0 && ip addr replace 10.71.9.1/24 dev a0 && ip link set a0 up && ip link set b0 up";
    there.done(&format!("{make} && bentpipe kernel use veno --interface a0"));
    assert!(there.done("bentpipe kernel status").contains("a0"));
    there.done(&format!("ip link del a0 && {make}"));
    let status = there.done("bentpipe kernel status");
    assert!(status.lines().any(|line| line.contains("a0") && !line.contains("absent")), "{status}");
    there.done("bentpipe kernel use none --interface a0");
    // The default there holds it.
    there.done("echo bp_veno > /proc/sys/net/ipv4/tcp_congestion_control");
    let words = refused(&["kernel", "unload", "veno"], 2);
    assert!(words.contains(&there.0) && words.contains("default"), "{words}");
    there.done("echo reno > /proc/sys/net/ipv4/tcp_congestion_control");
    done(&["kernel", "unload", "veno"]);
    assert!(is_soon_offered_no_more("bp_veno"));
}

fn control_of(stream: &TcpStream) -> String {
    let script = "import socket,sys\nprint(socket.socket(fileno=int(sys.argv[1])).getsockopt(6,13,16).rstrip(b'\\0').decode())";
    let fd = stream.as_raw_fd();
    // The child inherits the descriptor as standard input.
    let input =
        std::process::Stdio::from(std::os::fd::OwnedFd::from(stream.try_clone().expect("a descriptor")));
    let output = Command::new("python3").args(["-c", script, "0"]).stdin(input).output().expect("python3");
    assert!(output.status.success(), "{fd}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Opens a connection over the loopback device and returns the algorithms of both ends.
fn controls_to(address: &str) -> (String, String) {
    let listener = TcpListener::bind((address, 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(b"!").expect("open");
        control_of(&stream)
    });
    let mut client = TcpStream::connect((address, port)).expect("the server listens");
    client.read_exact(&mut [0]).expect("a byte");
    (control_of(&client), server.join().expect("the server"))
}

#[test]
fn destinations_and_interfaces_get_the_algorithm_chosen_for_them() {
    let Some(_alone) = ready() else { return };
    if lacks(&["python3"]) || lacks_groups() {
        return;
    }
    let _clean = Clean;
    let usual = controls_to("127.0.0.1").0;
    done(&["kernel", "load", "star", "veno"]);
    done(&["kernel", "use", "star", "--to", "127.9.0.0/16"]);
    // Seen from the other end's port, the client is 127.0.0.1.
    assert_eq!(controls_to("127.9.0.1").0, "bp_star");
    assert_eq!(controls_to("127.0.0.1").0, usual);
    done(&["kernel", "use", "veno", "--interface", "lo"]);
    assert_eq!(controls_to("127.0.0.1"), ("bp_veno".into(), "bp_veno".into()));
    assert!(done(&["kernel", "status"]).contains("127.9.0.0/16"));
    done(&["kernel", "use", "none", "--interface", "lo"]);
    done(&["kernel", "use", "none", "--to", "127.9.0.0/16"]);
    assert_eq!(controls_to("127.9.0.1").0, usual);
    assert!(done(&["kernel", "status"]).contains("rules: none"));
    for prefix in ["127.9.0.0/16", "2001:db8::/32"] {
        done(&["kernel", "use", "star", "--to", prefix]);
    }
    done(&["kernel", "use", "veno", "--to", "127.8.0.0/16"]);
    assert!(done(&["kernel", "unload", "star"]).contains("2 of the rules"));
    let status = done(&["kernel", "status"]);
    assert!(status.contains("127.8.0.0/16") && !status.contains("bp_star"), "{status}");
    done(&["kernel", "unload", "--all"]);
    assert!(!Path::new("/sys/fs/bpf/bentpipe").exists(), "rules are left behind");
}

#[test]
fn watching_shows_the_connection_and_the_state_of_its_algorithm() {
    let Some(_alone) = ready() else { return };
    if lacks_groups() {
        return;
    }
    let _clean = Clean;
    done(&["kernel", "load", "hybla"]);
    done(&["kernel", "use", "hybla", "--to", "127.8.0.0/16"]);
    let listener = TcpListener::bind("127.8.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let client = TcpStream::connect(address).expect("it listens");
    let lines = done(&["kernel", "watch", "--json", "--count", "1"]);
    let port = client.local_addr().expect("bound").port();
    let line = lines.lines().find(|line| line.contains(&format!(":{port}\""))).expect("our connection");
    let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(line["control"], "bp_hybla");
    assert_eq!(line["remote"], address.to_string());
    assert!(line["cwnd"].as_u64().is_some_and(|cwnd| cwnd >= 1), "{line}");
    let state = line["state"].as_array().expect("the law's members");
    let rho = state.iter().find(|member| member[0] == "rho").expect("rho is one of them");
    assert_eq!(rho[1], 1.0, "the loopback is faster than the reference connection: {line}");
    done(&["kernel", "use", "none", "--to", "127.8.0.0/16"]);
}

/// The half over the satellite uses the algorithm, the half towards the clients does not, and no byte is lost.
#[test]
fn a_class_of_the_proxy_sends_by_an_algorithm_that_was_loaded() {
    let Some(_alone) = ready() else { return };
    if lacks(&["ip", "nft", "ss"]) {
        return;
    }
    let Some(world) = network::world() else { return };
    let _clean = Clean;
    let classes = "[[class]]\nsatellite = { cc = \"kernel:bp_star\" }\nclients = { cc = \"reno\" }\n";
    let config = world.config(classes);
    let run = [env!("CARGO_BIN_EXE_bentpipe"), "pep", "run", "--config", config.to_str().expect("text")];
    let before = world.command(&run).output().expect("the binary is there");
    assert_eq!(before.status.code(), Some(3), "{before:?}");
    assert!(String::from_utf8_lossy(&before.stderr).contains("bentpipe kernel load star"), "{before:?}");

    done(&["kernel", "load", "star"]);
    let proxy = world.proxy(classes);
    let lossy = "table inet t { chain c { type filter hook input priority 0; meta length > 200 numgen inc mod 10 == 5 drop\n }\n }\n";
    world.nft("s", lossy);
    let listener = world.listen(network::SERVER_V4, 7131);
    let mut client = world.connect(network::SERVER_V4, 7131).expect("the server listens");
    let (mut server, _) = listener.accept().expect("a connection");
    let sent = network::payload(3_000_000);
    let writing = thread::spawn({
        let sent = sent.clone();
        move || {
            client.write_all(&sent).expect("open");
            client
        }
    });
    let mut received = vec![0; sent.len()];
    server.read_exact(&mut received).expect("all of it");
    assert!(received == sent);
    let client = writing.join().expect("it writes");
    let towards_server = world.proxy_output(&["ss", "-tniH", "dport = :7131"]);
    let towards_client = world.proxy_output(&["ss", "-tniH", "sport = :7131"]);
    println!("towards the server: {towards_server}towards the client: {towards_client}");
    assert!(
        towards_server.contains(" bp_star ") && towards_server.contains("bytes_retrans:"),
        "{towards_server}"
    );
    assert!(towards_client.contains(" reno "), "{towards_client}");
    drop((client, server));
    proxy.end(nix::sys::signal::Signal::SIGTERM);
    world.assert_clean();
}
