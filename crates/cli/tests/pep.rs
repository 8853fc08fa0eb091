//! The proxy between real TCPs of the kernel, in network namespaces: client, proxy, server.

#![cfg(target_os = "linux")]

mod network;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use network::{EARLY, PATIENCE, SERVER_FIRST, SERVER_V4, SERVER_V6, World, payload, world};
use nix::sys::signal::Signal;

fn exchange(world: &World, address: &'static str, port: u16) {
    let listener = world.listen(address, port);
    let server = world.start("s", move || {
        let (mut stream, client) = listener.accept().unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        stream.write_all(&received).unwrap();
        client
    });
    let client = world.connect(address, port).unwrap();
    world.assert_split(port, 1);
    let own = client.local_addr().unwrap();
    let sent = payload(3_000_000);
    let (mut writer, expected) = (client.try_clone().unwrap(), sent.clone());
    let writing = thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    (&client).read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == expected, "{} bytes of {}", received.len(), expected.len());
    assert_eq!(server.join().unwrap(), own, "the server sees the client's address and port");
}

#[test]
fn bytes_pass_both_ways_after_a_half_close_and_addresses_are_those_of_the_ends() {
    let Some(world) = world() else { return };
    for classes in [EARLY, SERVER_FIRST] {
        let proxy = world.proxy(classes);
        exchange(&world, SERVER_V4, 7001);
        exchange(&world, SERVER_V6, 7002);
        proxy.end(Signal::SIGTERM);
        world.assert_clean();
    }
}

#[test]
fn server_first_refuses_closed_ports_and_leaves_the_unanswered_unanswered() {
    let Some(world) = world() else { return };
    let _proxy = world.proxy(SERVER_FIRST);
    for address in [SERVER_V4, SERVER_V6] {
        assert_eq!(world.connect(address, 7003).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
    let server = world.name("s");
    let drop = "table inet t { chain c { type filter hook input priority 0; tcp dport 7004 drop\n }\n }\n";
    assert!(Command::new("ip").args(["netns", "exec", &server, "nft", drop]).status().unwrap().success());
    assert_eq!(world.connect(SERVER_V4, 7004).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn a_reset_is_passed_on() {
    let Some(world) = world() else { return };
    let _proxy = world.proxy(SERVER_FIRST);
    let listener = world.listen(SERVER_V4, 7006);
    let accept = world.start("s", move || (listener.accept().unwrap().0, listener));
    let mut client = world.connect(SERVER_V4, 7006).unwrap();
    let (server, listener) = accept.join().unwrap();
    client.write_all(b"unread").unwrap();
    // Closing with bytes that nobody has read is a reset.
    thread::sleep(Duration::from_millis(200));
    drop(server);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);

    let accept = world.start("s", move || listener.accept().unwrap().0);
    let client = world.connect(SERVER_V4, 7006).unwrap();
    let mut server = accept.join().unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    server.write_all(b"unread").unwrap();
    thread::sleep(Duration::from_millis(200));
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn what_belongs_to_no_class_and_what_exceeds_the_limit_is_forwarded_untouched() {
    let Some(world) = world() else { return };
    for syn in ["early", "server-first"] {
        let classes = format!(
            "[limits]\nconnections = 2\n[[class]]\nmatch = {{ ports = \"7008\", to = \"10.0.0.0/8\" }}\nproxy = false\n\
             [[class]]\nmatch = \"7007-7008\"\nsyn = \"{syn}\"\n"
        );
        let proxy = world.proxy(&classes);
        let listeners: Vec<TcpListener> =
            [7007, 7008, 7009].into_iter().map(|port| world.listen(SERVER_V4, port)).collect();
        for port in [7008, 7009] {
            let _untouched = world.connect(SERVER_V4, port).unwrap();
            assert_eq!(world.sockets_at(port), 0, "port {port} is forwarded");
        }
        let _both: Vec<_> = (0..2).map(|_| world.connect(SERVER_V4, 7007).unwrap()).collect();
        world.assert_split(7007, 2);
        thread::sleep(Duration::from_secs(1));
        let _third = world.connect(SERVER_V4, 7007).unwrap();
        assert_eq!(world.sockets_at(7007), 4, "the third connection is forwarded");
        drop(listeners);
        proxy.end(Signal::SIGKILL);
    }
}

#[test]
fn a_proxy_that_is_killed_stands_in_nobodys_way_and_the_next_one_cleans_up() {
    let Some(world) = world() else { return };
    for classes in [EARLY, SERVER_FIRST] {
        world.proxy(classes).end(Signal::SIGKILL);
        assert!(world.is_installed(), "nobody was there to remove the rules");
        let listener = world.listen(SERVER_V4, 7010);
        let mut client = world.connect(SERVER_V4, 7010).unwrap();
        assert_eq!(world.sockets_at(7010), 0);
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"still here").unwrap();
        let mut read = [0; 10];
        server.read_exact(&mut read).unwrap();
        drop(listener);
        let proxy = world.proxy(classes);
        exchange(&world, SERVER_V4, 7011);
        proxy.end(Signal::SIGKILL);
    }
    world.proxy_output(&[env!("CARGO_BIN_EXE_bentpipe"), "pep", "clean"]);
    world.assert_clean();
}

#[test]
fn a_hangup_reads_the_file_again_and_a_wrong_file_changes_nothing() {
    let Some(world) = world() else { return };
    let mut proxy = world.proxy(EARLY);
    exchange(&world, SERVER_V4, 7012);
    world.config("[[class]]\nsyn = \"eearly\"\n");
    proxy.signal(Signal::SIGHUP);
    assert!(proxy.has_said("class.1.syn: found \"eearly\", accepted: \"server-first\", \"early\""));
    exchange(&world, SERVER_V4, 7013);
    world.config("[[class]]\nproxy = false\n");
    proxy.signal(Signal::SIGHUP);
    assert!(proxy.has_said("read again"));
    let _listener = world.listen(SERVER_V4, 7014);
    let _client = world.connect(SERVER_V4, 7014).unwrap();
    assert_eq!(world.sockets_at(7014), 0);
}

#[test]
fn connections_end_before_the_proxy_does() {
    let Some(world) = world() else { return };
    let proxy = world.proxy(SERVER_FIRST);
    let listener = world.listen(SERVER_V4, 7015);
    let accept = world.start("s", move || listener.accept().unwrap().0);
    let mut client = world.connect(SERVER_V4, 7015).unwrap();
    let mut server = accept.join().unwrap();
    proxy.signal(Signal::SIGTERM);
    thread::sleep(Duration::from_secs(1));
    client.write_all(b"last words").unwrap();
    let mut read = [0; 10];
    server.read_exact(&mut read).unwrap();
    drop(client);
    drop(server);
    let mut proxy = proxy;
    assert!(proxy.child.wait().unwrap().success());
    world.assert_clean();
}

#[test]
fn metrics_and_lines_count_what_has_passed() {
    let Some(world) = world() else { return };
    let lines = world.folder.path().join("connections.jsonl");
    let classes = format!("{EARLY}name = \"all\"\n[watch]\nconnections = {:?}\n", lines.to_str().unwrap());
    let _proxy = world.proxy(&classes);
    exchange(&world, SERVER_V4, 7016);
    let metrics = || {
        world.inside("p", || {
            let mut stream = TcpStream::connect("127.0.0.1:9464").unwrap();
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        })
    };
    let begin = Instant::now();
    while !metrics().contains("bentpipe_pep_connections_ended_total{class=\"all\",how=\"closed\"} 1") {
        assert!(begin.elapsed() < PATIENCE, "{}", metrics());
        thread::sleep(Duration::from_millis(50));
    }
    for side in ["satellite", "clients"] {
        let wanted = format!("bentpipe_pep_sent_total{{class=\"all\",side=\"{side}\"}} 3000000");
        assert!(metrics().contains(&wanted), "{}", metrics());
    }
    while fs::read_to_string(&lines).unwrap().is_empty() {
        assert!(begin.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(50));
    }
    let line: serde_json::Value = serde_json::from_str(fs::read_to_string(&lines).unwrap().trim()).unwrap();
    assert_eq!((&line["state"], &line["class"]), (&"closed".into(), &"all".into()));
    assert_eq!(line["server"], "10.71.2.2:7016");
}

#[test]
fn a_wrong_file_is_refused_with_place_found_and_accepted_before_anything_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pep.toml");
    let interfaces = "[interfaces]\nclients = \"eth0\"\nsatellite = \"sat0\"\n";
    for (text, place, found, accepted) in [
        (
            "[[class]]\nsyn = \"late\"\n",
            "pep.toml:5:7: class.1.syn",
            "\"late\"",
            "\"server-first\", \"early\"",
        ),
        ("[[class]]\nsin = \"early\"\n", "pep.toml:5:1: class.1.sin", "an unknown key", "syn"),
        ("[[class]]\nmatch = { ports = \"70000\" }\n", "class.1.match.ports", "\"70000\"", "65535"),
        ("[[class]]\nmatch = { to = \"10.0.0.1/8\" }\n", "class.1.match.to", "\"10.0.0.1/8\"", "10.0.0.0/8"),
        (
            "[[class]]\nsatellite = { rate-limit = \"20 Mbps\" }\n",
            "satellite.rate-limit",
            "20 Mbps",
            "Mbit/s",
        ),
        (
            "[[class]]\nsatellite = { datapath = \"engine\", cc = \"starr\" }\n",
            "satellite.cc",
            "\"starr\"",
            "star",
        ),
        ("[limits]\nconnections = 0\n[[class]]\n", "limits.connections", "0", "from 1 to"),
        ("", "class", "nothing", "[[class]]"),
    ] {
        fs::write(&path, format!("{interfaces}{text}")).unwrap();
        for command in [["check"].as_slice(), &["run", "--config"]] {
            let output = Command::new(env!("CARGO_BIN_EXE_bentpipe"))
                .arg("pep")
                .args(command)
                .arg(&path)
                .output()
                .unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{error}");
            for part in [place, found, accepted] {
                assert!(error.contains(part), "{part} is missing in: {error}");
            }
        }
    }
}
