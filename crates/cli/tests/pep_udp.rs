//! UDP beside the proxy: QUIC that a class refuses, counters, and the queue of the satellite interface.

#![cfg(target_os = "linux")]

mod network;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use network::{Proxy, SERVER_V4, SERVER_V6, World, world};
use nix::sys::signal::Signal;

const CLIENT_V4: &str = "10.71.1.2";
const REFUSE: &str = "[[class]]\nname = \"all\"\nquic = \"refuse\"\n";
const FORWARD: &str = "[[class]]\nname = \"all\"\n";

/// Answers each datagram to a port of a host with the same bytes.
fn echo(world: &World, place: &str, address: &str, port: u16) {
    let address = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
    let socket = world.inside(place, move || UdpSocket::bind(address).unwrap());
    thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok((bytes, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..bytes], from).unwrap();
        }
    });
}

/// A socket of a host that sends to an address.
fn socket(world: &World, place: &str, address: &str, port: u16) -> UdpSocket {
    let to = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
    world.inside(place, move || {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(to).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        socket
    })
}

/// Sends a datagram of 1200 bytes. Returns the length of the answer.
fn ask(socket: &UdpSocket) -> Result<usize, ErrorKind> {
    let mut buffer = [0; 2000];
    socket.send(&[1; 1200]).and_then(|_| socket.recv(&mut buffer)).map_err(|error| error.kind())
}

fn udp(world: &World, what: &str, side: &str) -> u64 {
    world.metric(&format!("bentpipe_pep_udp_{what}_total{{class=\"all\",side=\"{side}\"}}")).unwrap()
}

const REFUSED: Result<usize, ErrorKind> = Err(ErrorKind::ConnectionRefused);
const ANSWERED: Result<usize, ErrorKind> = Ok(1200);

#[test]
fn quic_of_a_class_is_refused_while_the_proxy_runs_and_other_udp_is_counted() {
    let Some(world) = world() else { return };
    for (address, port) in [(SERVER_V4, 443), (SERVER_V4, 444), (SERVER_V6, 443), (SERVER_V6, 444)] {
        echo(&world, "s", address, port);
    }
    let before = world.proxy_output(&["nft", "list", "ruleset"]);
    for (address, header) in [(SERVER_V4, 28), (SERVER_V6, 48)] {
        let proxy = world.proxy(REFUSE);
        let refused = || world.metric("bentpipe_pep_quic_refused_total{class=\"all\"}").unwrap();
        assert_eq!(refused(), 0);
        assert_eq!(ask(&socket(&world, "c", address, 443)), REFUSED, "{address}");
        assert_eq!(refused(), 1);
        let other = socket(&world, "c", address, 444);
        for answered in 1..=3 {
            assert_eq!(ask(&other), ANSWERED, "{address}");
            for side in ["satellite", "clients"] {
                assert_eq!(udp(&world, "packets", side), answered);
                assert_eq!(udp(&world, "bytes", side), answered * (1200 + header));
            }
        }
        proxy.end(Signal::SIGTERM);
        world.assert_clean();
        assert_eq!(world.proxy_output(&["nft", "list", "ruleset"]), before);
        assert_eq!(ask(&socket(&world, "c", address, 443)), ANSWERED, "{address} without a proxy");
        // The rules of a killed proxy stay, without an effect.
        world.proxy(REFUSE).end(Signal::SIGKILL);
        assert!(world.is_installed());
        assert_eq!(ask(&socket(&world, "c", address, 443)), ANSWERED, "{address} after a kill");
        world.proxy(FORWARD).end(Signal::SIGTERM);
        world.assert_clean();
    }
}

#[test]
fn status_and_top_show_the_udp_of_each_class() {
    let Some(world) = world() else { return };
    echo(&world, "s", SERVER_V4, 444);
    let proxy = world.proxy(REFUSE);
    assert_eq!(ask(&socket(&world, "c", SERVER_V4, 443)), REFUSED);
    assert_eq!(ask(&socket(&world, "c", SERVER_V4, 444)), ANSWERED);
    let pep = |args: &[&str]| world.proxy_output(&[&[env!("CARGO_BIN_EXE_bentpipe"), "pep"], args].concat());
    let status = pep(&["status"]);
    let line = "UDP of class all: to the satellite 1 packets, 1.23 kB; to the clients 1 packets, 1.23 kB; QUIC refused 1 packets";
    assert!(status.lines().any(|shown| shown == line), "{status}");
    let status: serde_json::Value = serde_json::from_str(&pep(&["status", "--json"])).unwrap();
    assert_eq!(status["udp"][0]["to_clients"]["bytes"], 1228, "{status}");
    assert_eq!(status["udp"][0]["refused_packets"], 1, "{status}");
    let top = pep(&["top", "--once", "--every", "1"]);
    assert!(top.contains("UDP of class") && top.contains("Mbit/s to satellite"), "{top}");
    proxy.end(Signal::SIGTERM);
}

#[test]
fn a_reload_refuses_new_flows_of_quic_and_keeps_open_ones() {
    let Some(world) = world() else { return };
    echo(&world, "s", SERVER_V4, 443);
    let mut proxy = world.proxy(FORWARD);
    let open = socket(&world, "c", SERVER_V4, 443);
    assert_eq!(ask(&open), ANSWERED);
    world.config(REFUSE);
    proxy.signal(Signal::SIGHUP);
    assert!(proxy.has_said("read again"));
    assert_eq!(ask(&socket(&world, "c", SERVER_V4, 443)), REFUSED);
    assert_eq!(ask(&open), ANSWERED);
    assert_eq!(udp(&world, "packets", "satellite"), 2);
    // At a limit TCP is not split, so QUIC is better than TCP.
    world.config(&format!("{REFUSE}[limits]\nmemory = \"1 MiB\"\nconnections = 1\n"));
    proxy.signal(Signal::SIGHUP);
    assert!(proxy.has_said("read again"));
    let (_client, _server) = world.pair(SERVER_V4, 7501);
    world.wait_for("the limit", || ask(&socket(&world, "c", SERVER_V4, 443)) == ANSWERED);
    assert_eq!(world.metric("bentpipe_pep_bypassing"), Some(1));
    proxy.end(Signal::SIGTERM);
}

#[test]
fn the_first_class_that_matches_decides_on_quic_and_its_opener_is_the_client() {
    let Some(world) = world() else { return };
    echo(&world, "s", SERVER_V4, 443);
    echo(&world, "s", SERVER_V6, 443);
    echo(&world, "c", CLIENT_V4, 443);
    let class = |name: &str, keys: &str| format!("[[class]]\nname = \"{name}\"\n{keys}\n");
    let of_clients = [
        class("ssh", "match = 22\nproxy = false"),
        class("kept", &format!("match = {{ to = \"{SERVER_V4}\" }}")),
        class("all", "quic = \"refuse\""),
    ]
    .concat();
    let proxy = world.proxy(&of_clients);
    assert_eq!(ask(&socket(&world, "c", SERVER_V4, 443)), ANSWERED);
    assert_eq!(ask(&socket(&world, "c", SERVER_V6, 443)), REFUSED);
    assert_eq!(ask(&socket(&world, "s", CLIENT_V4, 443)), ANSWERED);
    let kept = |side: &str| {
        world.metric(&format!("bentpipe_pep_udp_packets_total{{class=\"kept\",side=\"{side}\"}}"))
    };
    assert_eq!(["satellite", "clients"].map(kept), [Some(1), Some(1)]);
    proxy.end(Signal::SIGTERM);
    let proxy = world.proxy(&format!("{REFUSE}match = {{ opened-by = \"satellite\" }}\n"));
    assert_eq!(ask(&socket(&world, "c", SERVER_V4, 443)), ANSWERED);
    assert_eq!(ask(&socket(&world, "s", CLIENT_V4, 443)), REFUSED);
    proxy.end(Signal::SIGTERM);
}

const QUEUE: &str = "[satellite-queue]\nkind = \"fq-codel\"\nrate = \"18 Mbit/s\"\n";

/// The queues of an interface of the proxy.
fn queues(world: &World, interface: &str) -> String {
    world.proxy_output(&["tc", "qdisc", "show", "dev", interface])
}

/// True if the kernel has FQ-CoDel.
fn has_fq_codel(world: &World) -> bool {
    let tc = |arguments: &str| {
        let command: Vec<&str> = ["tc"].into_iter().chain(arguments.split(' ')).collect();
        world.command(&command).output().unwrap().status.success()
    };
    tc("qdisc add dev lo root fq_codel") && tc("qdisc del dev lo root")
}

#[test]
fn the_queue_of_the_satellite_is_as_before_after_the_end_and_after_a_kill() {
    let Some(world) = world() else { return };
    if !has_fq_codel(&world) {
        println!("skipped: this needs a kernel with sch_fq_codel");
        return;
    }
    let before = queues(&world, "sat0");
    let is_set = || {
        let now = queues(&world, "sat0");
        now.contains("tbf") && now.contains("rate 18Mbit") && now.contains("target 100ms interval 1.2s")
    };
    let mut proxy = world.proxy(&format!("{FORWARD}{QUEUE}"));
    assert!(is_set(), "{}", queues(&world, "sat0"));
    assert!(!queues(&world, "eth0").contains("fq_codel"));
    world.proxy_output(&["tc", "qdisc", "del", "dev", "sat0", "root"]);
    world.wait_for("the queue is back", is_set);
    let with_more = format!("{FORWARD}{QUEUE}target = \"30 ms\"\nlimit = \"100 packets\"\n");
    world.config(&with_more.replace("rate = \"18 Mbit/s\"", ""));
    proxy.signal(Signal::SIGHUP);
    assert!(proxy.has_said("read again"));
    let now = queues(&world, "sat0");
    assert!(now.contains("limit 100p") && now.contains("target 30ms") && !now.contains("tbf"), "{now}");
    world.config(FORWARD);
    proxy.signal(Signal::SIGHUP);
    assert!(proxy.has_said("read again"));
    assert_eq!(queues(&world, "sat0"), before);
    proxy.end(Signal::SIGTERM);
    // A newer proxy takes the queue over, and the end of the older one does not remove it.
    let mut older = world.proxy(&format!("{FORWARD}{QUEUE}"));
    let open = world.pair(SERVER_V4, 7502);
    let newer = world.proxy_with(&format!("{FORWARD}{QUEUE}"), &[], &["--take-over"]);
    drop(open);
    older.child.wait().unwrap();
    assert!(is_set(), "{}", queues(&world, "sat0"));
    newer.end(Signal::SIGTERM);
    assert_eq!(queues(&world, "sat0"), before);
    world.proxy(&format!("{FORWARD}{QUEUE}")).end(Signal::SIGKILL);
    assert!(is_set());
    world.proxy_output(&[env!("CARGO_BIN_EXE_bentpipe"), "pep", "clean"]);
    assert_eq!(queues(&world, "sat0"), before);
}

#[test]
fn a_queue_that_cannot_be_set_is_named_and_the_proxy_goes_on() {
    let Some(world) = world() else { return };
    let run = |reason: &str| {
        let path = world.config(&format!("{FORWARD}{QUEUE}"));
        let command = [env!("CARGO_BIN_EXE_bentpipe"), "pep", "run", path.to_str().unwrap()];
        let child = world.command(&command).stderr(Stdio::piped()).spawn().unwrap();
        let mut proxy = Proxy { child };
        assert!(proxy.has_said(reason) && proxy.has_said("proxying"));
        let _pair = world.pair(SERVER_V4, 7503);
        world.assert_split(7503, 1);
        proxy.end(Signal::SIGTERM);
    };
    let path = world.config(&format!("{REFUSE}{QUEUE}"));
    let doctor = [env!("CARGO_BIN_EXE_bentpipe"), "pep", "doctor", path.to_str().unwrap()];
    let findings = String::from_utf8(world.command(&doctor).output().unwrap().stdout).unwrap();
    let state = if has_fq_codel(&world) { "ok" } else { "warning" };
    let line = findings.lines().find(|line| line.contains("satellite-queue: FQ-CoDel of the kernel"));
    assert!(line.is_some_and(|line| line.starts_with(state)), "{findings}");
    assert!(findings.contains("fix: sysctl -w net.ipv4.icmp_ratemask=6160"), "{findings}");
    if !has_fq_codel(&world) {
        let before = queues(&world, "sat0");
        run("it needs a kernel with CONFIG_NET_SCH_FQ_CODEL");
        assert_eq!(queues(&world, "sat0"), before, "the token bucket is removed");
    }
    let tbf = "tc qdisc add dev sat0 root handle 5: tbf rate 100mbit burst 20k latency 400ms";
    world.proxy_output(&tbf.split(' ').collect::<Vec<_>>());
    let before = queues(&world, "sat0");
    run("sat0 has no FQ-CoDel of the proxy: found the queue tbf 5: of somebody else");
    assert_eq!(queues(&world, "sat0"), before);
}
