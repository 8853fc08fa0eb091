//! What one end, or one client, may cost the others: resets before everything was delivered, silence, SYNs into nothing, shared rates.

#![cfg(target_os = "linux")]

mod network;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use network::{SERVER_V4, SERVER_V6, World, payload, world};
use nix::sys::signal::Signal;
use socket2::SockRef;

const DATAPATHS: [&str; 2] =
    ["datapath = \"kernel\", cc = \"cubic\"", "datapath = \"engine\", cc = \"cubic\""];

/// A class with more to say of the satellite, and more tables.
fn class(satellite: &str, more: &str) -> String {
    format!("[[class]]\nname = \"all\"\nsatellite = {{ {satellite} }}\n{more}\n")
}

/// Closes with a reset.
fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
}

/// Bytes until the stream ends, and the error that ends it.
fn read_to_error(mut stream: &TcpStream) -> (usize, Option<ErrorKind>) {
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return (bytes, None),
            Ok(more) => bytes += more,
            Err(error) => return (bytes, Some(error.kind())),
        }
    }
}

/// Waits until everything that was written is acknowledged.
fn wait_until_acknowledged(world: &World, stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let waiting = || {
        let mut bytes: nix::libc::c_int = 0;
        // SAFETY: the kernel writes one number, which outlives the call.
        unsafe { nix::libc::ioctl(stream.as_raw_fd(), nix::libc::TIOCOUTQ, &raw mut bytes) };
        bytes
    };
    world.wait_for("the proxy has taken everything", || waiting() == 0);
}

#[test]
fn a_reset_after_everything_was_acknowledged_costs_the_other_end_nothing() {
    const LENGTH: usize = 2_000_000;
    let Some(world) = world() else { return };
    // Each half in turn is slower than the other.
    for datapath in DATAPATHS {
        let proxy = world.proxy(&class(datapath, ""));
        for (device, address) in [("eth0", SERVER_V4), ("sat0", SERVER_V6)] {
            let slow = format!("qdisc replace dev {device} root tbf rate 16mbit burst 20k latency 400ms");
            let command = [&["tc"], slow.split(' ').collect::<Vec<_>>().as_slice()].concat();
            world.proxy_output(&command);
            let (client, server) = world.pair(address, 7301);
            let (mut from, to) = if device == "eth0" { (server, client) } else { (client, server) };
            let reading = thread::spawn(move || read_to_error(&to));
            from.write_all(&payload(LENGTH)).unwrap();
            wait_until_acknowledged(&world, &from);
            reset(from);
            assert_eq!(
                reading.join().unwrap(),
                (LENGTH, Some(ErrorKind::ConnectionReset)),
                "{datapath}, {device} is slow"
            );
            world.proxy_output(&["tc", "qdisc", "del", "dev", device, "root"]);
        }
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn a_client_that_resets_before_a_hung_server_is_forgotten_after_a_time_without_progress() {
    let Some(world) = world() else { return };
    for datapath in DATAPATHS {
        let proxy = world.proxy(&class(datapath, "[limits]\nreset-after = \"2 s\"\n"));
        let (mut client, server) = world.pair(SERVER_V4, 7302);
        client.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let sent = payload(1 << 16);
        while client.write(&sent).is_ok() {}
        reset(client);
        let connections = || world.metric("bentpipe_pep_connections{class=\"all\"}").unwrap();
        thread::sleep(Duration::from_millis(700));
        assert_eq!(connections(), 1, "{datapath}: the server might still read");
        world.wait_for("the connection is gone", || connections() == 0 && world.sockets_at(7302) == 0);
        let (_, error) = read_to_error(&server);
        assert_eq!(error, Some(ErrorKind::ConnectionReset), "{datapath}");
        world.wait_for("its memory is free", || world.metric("bentpipe_pep_memory_bytes") == Some(0));
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn a_silent_connection_is_asked_on_both_sides_as_often_as_configured() {
    let Some(world) = world() else { return };
    for (number, datapath) in DATAPATHS.into_iter().enumerate() {
        let satellite = format!("{datapath}, keepalive = \"1 s\"");
        let proxy = world.proxy(&class(&satellite, "clients = { keepalive = \"1 s\" }"));
        let port = 7303 + number as u16;
        for place in ["c", "s"] {
            let count = format!(
                "table inet t {{ counter asked {{ }}\n chain c {{ type filter hook input priority 0; tcp sport {port} counter name asked\n \
                 tcp dport {port} counter name asked\n }}\n }}\n"
            );
            world.nft(place, &count);
        }
        let (_client, _server) = world.pair(SERVER_V6, port);
        thread::sleep(Duration::from_millis(300));
        let before = ["c", "s"].map(|place| world.counted(place));
        thread::sleep(Duration::from_millis(3500));
        for (place, before) in ["c", "s"].into_iter().zip(before) {
            let asked = world.counted(place) - before;
            assert!((2..=4).contains(&asked), "{datapath}: {asked} packets to {place} in 3.5 s");
            world.nft(place, "delete table inet t");
        }
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn syns_into_nothing_push_nobody_else_off_the_proxy() {
    let Some(world) = world() else { return };
    world.nft(
        "s",
        "table inet t { chain c { type filter hook input priority 0; tcp dport 7306 drop\n }\n }\n",
    );
    for datapath in DATAPATHS {
        let limits = "[limits]\nconnections = 20\nhalf-open-per-client = 3\n";
        let proxy = world.proxy(&class(datapath, limits));
        let scan: Vec<_> = (0..12)
            .map(|_| {
                let address = (SERVER_V4.parse::<std::net::IpAddr>().unwrap(), 7306).into();
                world.start("c", move || TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok())
            })
            .collect();
        let reason = "bentpipe_pep_bypassed_total{reason=\"half-open-per-client\"}";
        world.wait_for("SYNs are counted", || world.metric(reason).is_some_and(|count| count >= 9));
        // The same host at another address is another client.
        let before = world.metric("bentpipe_pep_connections_opened_total{class=\"all\"}").unwrap();
        let _other = world.pair(SERVER_V6, 7307);
        world.wait_for("another client is split", || {
            world.metric("bentpipe_pep_connections_opened_total{class=\"all\"}") == Some(before + 1)
        });
        assert_eq!(world.metric("bentpipe_pep_bypassing"), Some(0));
        assert!(scan.into_iter().all(|attempt| !attempt.join().unwrap()));
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn no_syn_leaves_that_the_client_did_not_send() {
    let Some(world) = world() else { return };
    let table = |hook: &str, verdict: &str| {
        format!(
            "table inet t {{ counter syns {{ }}\n chain c {{ type filter hook {hook} priority 0; tcp dport 7308 tcp flags syn counter name syns \
             {verdict}\n }}\n }}\n"
        )
    };
    world.nft("c", &table("output", "accept"));
    world.nft("s", &table("input", "drop"));
    for datapath in DATAPATHS {
        let proxy = world.proxy(&class(datapath, ""));
        let before = ["c", "s"].map(|place| world.counted(place));
        let attempts: Vec<_> = [SERVER_V4, SERVER_V6]
            .map(|address| {
                let address = (address.parse::<std::net::IpAddr>().unwrap(), 7308).into();
                world.start("c", move || {
                    TcpStream::connect_timeout(&address, Duration::from_millis(1600)).is_ok()
                })
            })
            .into();
        assert!(attempts.into_iter().all(|attempt| !attempt.join().unwrap()));
        // The proxy alone would repeat its SYNs now.
        thread::sleep(Duration::from_millis(2500));
        let after = ["c", "s"].map(|place| world.counted(place));
        assert_eq!(after[0] - before[0], 4, "two attempts, each with a repeated SYN");
        assert_eq!(after[1] - before[1], 4, "{datapath}");
        proxy.end(Signal::SIGTERM);
    }
}

/// Bytes that several downloads side by side receive in `last`.
fn downloads(world: &World, port: u16, addresses: &[&str], last: Duration) -> Vec<usize> {
    let pairs: Vec<_> =
        addresses.iter().zip(port..).map(|(address, port)| world.pair(address, port)).collect();
    let begin = Instant::now();
    let received: Vec<_> = pairs
        .into_iter()
        .map(|(client, mut server)| {
            let sending = thread::spawn(move || while server.write_all(&[0; 1 << 14]).is_ok() {});
            thread::spawn(move || {
                let (mut buffer, mut bytes) = (vec![0; 1 << 14], 0);
                while begin.elapsed() < last {
                    bytes += (&client).read(&mut buffer).unwrap();
                }
                drop(client);
                sending.join().unwrap();
                bytes
            })
        })
        .collect();
    received.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn a_shared_rate_is_that_of_all_who_share_it_in_equal_parts() {
    let Some(world) = world() else { return };
    let last = Duration::from_secs(3);
    for datapath in DATAPATHS {
        for (side, per, parts) in [("clients", "class", 3), ("clients", "client", 2)] {
            let limit = format!("{side} = {{ rate-limit = {{ rate = \"8 Mbit/s\", per = \"{per}\" }} }}");
            let proxy = world.proxy(&class(datapath, &limit));
            // Two of IPv4 and one of IPv6 are two clients.
            let bytes = downloads(&world, 7310, &[SERVER_V4, SERVER_V4, SERVER_V6], last);
            let expected = 1e6 * last.as_secs_f64();
            let shared = bytes[..parts].iter().sum::<usize>() as f64;
            assert!((0.7..1.2).contains(&(shared / expected)), "{datapath}, for each {per}: {bytes:?}");
            let part = shared / parts as f64;
            let fair = bytes[..parts].iter().all(|bytes| (0.7..1.3).contains(&(*bytes as f64 / part)));
            assert!(fair, "{datapath}, for each {per}: {bytes:?}");
            proxy.end(Signal::SIGTERM);
        }
    }
}

#[test]
fn a_shared_rate_holds_over_the_satellite_too() {
    let Some(world) = world() else { return };
    for datapath in DATAPATHS {
        let satellite = format!("{datapath}, rate-limit = {{ rate = \"8 Mbit/s\", per = \"class\" }}");
        let proxy = world.proxy(&class(&satellite, "buffer = \"64 KiB\""));
        let uploads: Vec<_> = [SERVER_V4, SERVER_V6]
            .iter()
            .zip(7320..)
            .map(|(address, port)| world.pair(address, port))
            .collect();
        let begin = Instant::now();
        let uploads: Vec<_> = uploads
            .into_iter()
            .map(|(mut client, server)| {
                let sending = thread::spawn(move || client.write_all(&payload(1_000_000)).unwrap());
                thread::spawn(move || {
                    let received = read_to_error(&server);
                    sending.join().unwrap();
                    received
                })
            })
            .collect();
        for upload in uploads {
            assert_eq!(upload.join().unwrap(), (1_000_000, None), "{datapath}");
        }
        let seconds = begin.elapsed().as_secs_f64();
        assert!((1.7..4.0).contains(&seconds), "{datapath}: 2 MB at 1 MB/s in {seconds} s");
        proxy.end(Signal::SIGTERM);
    }
}
