//! What a proxy promises, by both of its datapaths: the kernel's sockets, and the engine in user space.

#![cfg(target_os = "linux")]

mod network;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bentpipe_base::Flags;
use bentpipe_wire::{Ends, Header, IpFields, Packet, Payload};
use network::{PATIENCE, SERVER_V4, SERVER_V6, World, ip, payload, world};
use nix::sys::signal::Signal;

/// A datapath: what a class says of the satellite, and how many sockets of the kernel a connection has.
#[derive(Clone, Copy)]
struct Path {
    satellite: &'static str,
    sockets: usize,
}

const KERNEL: Path = Path { satellite: "datapath = \"kernel\", cc = \"cubic\"", sockets: 2 };
const ENGINE: Path = Path { satellite: "datapath = \"engine\", cc = \"cubic\"", sockets: 1 };
const BOTH: [Path; 2] = [KERNEL, ENGINE];

impl Path {
    /// A class with more keys.
    fn class(self, more: &str) -> String {
        format!("[[class]]\nsatellite = {{ {} }}\n{more}\n", self.satellite)
    }

    /// A class with more to say of the satellite.
    fn limited(self, more: &str) -> String {
        format!("[[class]]\nsatellite = {{ {}, {more} }}\n", self.satellite)
    }
}

/// Sends so many bytes, then a FIN, which the other end answers after it has read the last byte.
fn transfer(from: &TcpStream, to: &TcpStream, length: usize) {
    let sent = payload(length);
    let (mut writer, expected) = (from.try_clone().unwrap(), sent.clone());
    let writing = thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    (&mut &*to).read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == expected, "{} bytes of {length}, or others", received.len());
}

#[test]
fn the_engine_passes_bytes_both_ways_in_the_names_of_the_ends() {
    let Some(world) = world() else { return };
    for syn in ["syn = \"server-first\"", "syn = \"early\""] {
        let proxy = world.proxy(&ENGINE.class(syn));
        for (address, port) in [(SERVER_V4, 7101), (SERVER_V6, 7102)] {
            let (client, server) = world.pair(address, port);
            world.wait_for("one socket of the kernel", || world.sockets_at(port) == 1);
            assert_eq!(server.peer_addr().unwrap(), client.local_addr().unwrap());
            assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
            transfer(&client, &server, 2_000_000);
            // The client's direction has ended, the server's has not.
            transfer(&server, &client, 3_000_000);
        }
        proxy.end(Signal::SIGTERM);
        world.assert_clean();
    }
    assert_eq!(world.setting("tcp_early_demux"), "1", "restored");
}

#[test]
fn the_engine_refuses_closed_ports_and_leaves_the_unanswered_unanswered() {
    let Some(world) = world() else { return };
    let _proxy = world.proxy(&ENGINE.class(""));
    for address in [SERVER_V4, SERVER_V6] {
        assert_eq!(world.connect(address, 7103).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
    world.nft(
        "s",
        "table inet t { chain c { type filter hook input priority 0; tcp dport 7104 drop\n }\n }\n",
    );
    assert_eq!(world.connect(SERVER_V4, 7104).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn the_engine_passes_resets_on() {
    let Some(world) = world() else { return };
    let _proxy = world.proxy(&ENGINE.class(""));
    // Closing with bytes that nobody has read is a reset.
    let (mut client, server) = world.pair(SERVER_V4, 7105);
    client.write_all(b"unread").unwrap();
    thread::sleep(Duration::from_millis(200));
    drop(server);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let (client, mut server) = world.pair(SERVER_V4, 7105);
    server.write_all(b"unread").unwrap();
    thread::sleep(Duration::from_millis(200));
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_reader_that_pauses_holds_its_sender_back_and_loses_nothing() {
    let Some(world) = world() else { return };
    const LENGTH: usize = 40_000_000;
    for path in BOTH {
        let proxy = world.proxy(&path.class("buffer = \"256 KiB\""));
        let (client, server) = world.pair(SERVER_V4, 7106);
        let sent = payload(LENGTH);
        client.set_nonblocking(true).unwrap();
        // Until the windows of both halves are closed, and have been for a while.
        let (mut written, mut progress) = (0, Instant::now());
        while progress.elapsed() < Duration::from_secs(2) {
            match (&client).write(&sent[written..]) {
                Ok(bytes) => (written, progress) = (written + bytes, Instant::now()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
        assert!(written < LENGTH, "nothing held the client back");
        client.set_nonblocking(false).unwrap();
        let (mut writer, rest) = (client.try_clone().unwrap(), sent[written..].to_vec());
        let writing = thread::spawn(move || {
            writer.write_all(&rest).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        (&server).read_to_end(&mut received).unwrap();
        writing.join().unwrap();
        assert!(received == sent, "{} bytes", received.len());
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn losses_on_either_side_are_repaired() {
    let Some(world) = world() else { return };
    // Of packets with data, one in fifty, in the networks of both ends.
    let lossy = "table inet t { chain c { type filter hook input priority 0; meta length > 200 numgen random mod 50 == 0 drop\n }\n }\n";
    for place in ["c", "s"] {
        world.nft(place, lossy);
    }
    for path in BOTH {
        let proxy = world.proxy(&path.class(""));
        let (client, server) = world.pair(SERVER_V4, 7107);
        transfer(&client, &server, 3_000_000);
        transfer(&server, &client, 3_000_000);
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn a_proxy_with_the_engine_that_is_killed_stands_in_nobodys_way() {
    let Some(world) = world() else { return };
    world.proxy(&ENGINE.class("")).end(Signal::SIGKILL);
    assert_eq!(world.setting("tcp_early_demux"), "0", "nobody was there to restore it");
    let (client, server) = world.pair(SERVER_V4, 7108);
    assert_eq!(world.sockets_at(7108), 0);
    transfer(&client, &server, 100_000);
    // The next one knows what it was before, and so does who cleans up.
    let proxy = world.proxy(&ENGINE.class(""));
    let (client, server) = world.pair(SERVER_V4, 7109);
    transfer(&client, &server, 100_000);
    proxy.end(Signal::SIGTERM);
    assert_eq!(world.setting("tcp_early_demux"), "1");
    world.proxy(&ENGINE.class("")).end(Signal::SIGKILL);
    world.proxy_output(&[env!("CARGO_BIN_EXE_bentpipe"), "pep", "clean"]);
    assert_eq!(world.setting("tcp_early_demux"), "1");
    world.assert_clean();
}

#[test]
fn what_a_killed_proxy_did_not_deliver_does_not_look_complete() {
    let Some(world) = world() else { return };
    for path in BOTH {
        let proxy = world.proxy(&path.class(""));
        let (client, server) = world.pair(SERVER_V4, 7119);
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        for (mut from, mut to) in [(&client, &server), (&server, &client)] {
            from.write_all(b"the first part").unwrap();
            to.read_exact(&mut [0; 14]).unwrap();
        }
        proxy.end(Signal::SIGKILL);
        let heard = |mut end: &TcpStream| end.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(heard(&client), Err(ErrorKind::ConnectionReset), "a FIN would say that all has come");
        if path.sockets == 2 {
            assert_eq!(heard(&server), Err(ErrorKind::ConnectionReset));
        }
        world.proxy_output(&[env!("CARGO_BIN_EXE_bentpipe"), "pep", "clean"]);
    }
}

#[test]
fn connections_of_the_engine_end_before_the_proxy_does() {
    let Some(world) = world() else { return };
    let mut proxy = world.proxy(&ENGINE.class(""));
    let (client, server) = world.pair(SERVER_V4, 7110);
    proxy.signal(Signal::SIGTERM);
    thread::sleep(Duration::from_millis(500));
    transfer(&client, &server, 300_000);
    transfer(&server, &client, 300_000);
    drop((client, server));
    assert!(proxy.child.wait().unwrap().success());
    world.assert_clean();
}

/// Connects again and again, each time for a few bytes there and back, until it is told to stop; how many it were.
fn visits(world: &World, port: u16) -> (Arc<AtomicBool>, thread::JoinHandle<u32>) {
    let listener = world.listen(SERVER_V4, port);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut said = [0; 4];
            stream.read_exact(&mut said).unwrap();
            if &said == b"stop" {
                return;
            }
            stream.write_all(&said).unwrap();
        }
    });
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let work = move || {
        let address: SocketAddr = (SERVER_V4.parse::<std::net::IpAddr>().unwrap(), port).into();
        let mut visits = 0;
        loop {
            let over = told.load(Ordering::Relaxed);
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(if over { b"stop" } else { b"here" }).unwrap();
            if over {
                return visits;
            }
            stream.read_exact(&mut [0; 4]).unwrap();
            visits += 1;
            // Ports must not run out.
            thread::sleep(Duration::from_millis(2));
        }
    };
    (stop, world.start("c", work))
}

#[test]
fn a_new_proxy_takes_over_new_connections_while_the_old_one_finishes_its_own() {
    let Some(world) = world() else { return };
    for (path, syn) in [(KERNEL, "early"), (KERNEL, "server-first"), (ENGINE, "server-first")] {
        let classes = path.class(&format!("syn = \"{syn}\""));
        let mut old = world.proxy(&classes);
        let (old_client, old_server) = world.pair(SERVER_V4, 7111);
        let (stop, visits) = visits(&world, 7112);
        // A second one is no accident.
        let config = world.config(&classes);
        let run = [env!("CARGO_BIN_EXE_bentpipe"), "pep", "run", "--config", config.to_str().unwrap()];
        let refused = world.command(&run).output().unwrap();
        assert_eq!(refused.status.code(), Some(2));
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            message.contains("--take-over") && message.contains(&old.child.id().to_string()),
            "{message}"
        );

        let new = world.proxy_with(&classes, &[], &["--take-over"]);
        assert!(old.has_said("are finished here"));
        let (new_client, new_server) = world.pair(SERVER_V4, 7113);
        world.wait_for("a connection of the new one", || world.sockets_at(7113) == path.sockets);
        transfer(&old_client, &old_server, 1_000_000);
        transfer(&old_server, &old_client, 1_000_000);
        drop((old_client, old_server));
        assert!(old.child.wait().unwrap().success());
        // The rules that the old one removed were its own.
        transfer(&new_client, &new_server, 1_000_000);
        transfer(&new_server, &new_client, 1_000_000);
        let (late_client, late_server) = world.pair(SERVER_V4, 7114);
        world.wait_for("another one", || world.sockets_at(7114) == path.sockets);
        transfer(&late_client, &late_server, 1_000_000);
        stop.store(true, Ordering::Relaxed);
        assert!(visits.join().unwrap() > 0, "each visit was answered");
        drop((new_client, new_server, late_client, late_server));
        new.end(Signal::SIGTERM);
        world.assert_clean();
        assert_eq!(world.setting("tcp_early_demux"), "1");
    }
}

#[test]
fn at_the_limit_of_descriptors_connections_are_forwarded_untouched() {
    let Some(world) = world() else { return };
    for path in BOTH {
        // A third of what the connections below need, beside those of the proxy itself and those of pipes.
        let limit = format!("--nofile={}", 64 + 12 * path.sockets);
        let proxy = world.proxy_with(&path.class(""), &["prlimit", &limit], &[]);
        let listener = world.listen(SERVER_V4, 7115);
        let accepting =
            thread::spawn(move || (0..30).map(|_| listener.accept().unwrap().0).collect::<Vec<_>>());
        let clients: Vec<TcpStream> = (0..30).map(|_| world.connect(SERVER_V4, 7115).unwrap()).collect();
        let servers = accepting.join().unwrap();
        let split = world.sockets_at(7115) / path.sockets;
        assert!((5..=15).contains(&split), "{split} of 30 are split");
        for server in &servers {
            let client =
                clients.iter().find(|client| client.local_addr().unwrap() == server.peer_addr().unwrap());
            transfer(client.unwrap(), server, 10_000);
        }
        drop((clients, servers));
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn connections_for_which_there_are_no_pipes_pass_their_bytes_all_the_same() {
    let Some(world) = world() else { return };
    // One pipe, for which twelve connections with slow readers ask twice.
    let proxy = world.proxy_with(&KERNEL.class(""), &["prlimit", "--nofile=96"], &[]);
    let mut pairs: Vec<_> = (0..12).map(|_| world.pair(SERVER_V4, 7120)).collect();
    world.wait_for("all are split", || world.sockets_at(7120) == 24);
    let sent = payload(8_000_000);
    let writing: Vec<_> = pairs
        .iter()
        .flat_map(|(client, server)| [client.try_clone().unwrap(), server.try_clone().unwrap()])
        .map(|mut end| {
            let sent = sent.clone();
            thread::spawn(move || {
                end.write_all(&sent).unwrap();
                end.shutdown(Shutdown::Write).unwrap();
            })
        })
        .collect();
    // Until the proxy holds what nobody reads.
    thread::sleep(Duration::from_secs(2));
    let reading: Vec<_> = pairs
        .drain(..)
        .flat_map(|(client, server)| [client, server])
        .map(|mut end| {
            thread::spawn(move || {
                let mut received = Vec::new();
                end.read_to_end(&mut received).unwrap();
                received
            })
        })
        .collect();
    for received in reading {
        assert!(received.join().unwrap() == sent);
    }
    writing.into_iter().for_each(|one| one.join().unwrap());
    proxy.end(Signal::SIGTERM);
}

#[test]
fn at_the_limit_of_memory_connections_are_forwarded_untouched_until_there_is_room() {
    let Some(world) = world() else { return };
    for path in BOTH {
        let proxy =
            world.proxy(&format!("[limits]\nmemory = \"1 MiB\"\n{}", path.class("buffer = \"4 MB\"")));
        // Nobody reads: the proxy holds what it can. How much of one connection that is depends on how the kernel's buffers have grown.
        let mut held = [7116, 7120, 7121].map(|port| (world.pair(SERVER_V4, port), 0));
        for ((client, _), _) in &held {
            client.set_nonblocking(true).unwrap();
        }
        let sent = payload(1 << 20);
        let port = 7117;
        let _listener = world.listen(SERVER_V4, port);
        let begin = Instant::now();
        loop {
            assert!(begin.elapsed() < PATIENCE, "connections are still split: {held:?}");
            for ((client, _), written) in &mut held {
                while let Ok(bytes) = client.write(&sent) {
                    *written += bytes;
                }
            }
            thread::sleep(Duration::from_millis(500));
            let before = world.sockets_at(port);
            let _visitor = world.connect(SERVER_V4, port).unwrap();
            if world.sockets_at(port) == before {
                break;
            }
        }
        for ((_, server), written) in &mut held {
            server.read_exact(&mut vec![0; *written]).unwrap();
        }
        world.wait_for("connections are split again", || {
            let before = world.sockets_at(port);
            let _visitor = world.connect(SERVER_V4, port).unwrap();
            world.sockets_at(port) > before
        });
        proxy.end(Signal::SIGKILL);
        world.proxy_output(&[env!("CARGO_BIN_EXE_bentpipe"), "pep", "clean"]);
    }
}

#[test]
fn a_rate_limit_bounds_each_connection() {
    let Some(world) = world() else { return };
    for path in BOTH {
        let proxy = world.proxy(&path.limited("rate-limit = \"8 Mbit/s\""));
        let (client, server) = world.pair(SERVER_V4, 7118);
        let begin = Instant::now();
        transfer(&client, &server, 2_000_000);
        // Two seconds at that rate; the other direction, towards the clients, is not limited.
        assert!(begin.elapsed() > Duration::from_millis(1800), "{:?}", begin.elapsed());
        let begin = Instant::now();
        transfer(&server, &client, 2_000_000);
        assert!(begin.elapsed() < Duration::from_millis(1800), "{:?}", begin.elapsed());
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn the_code_point_of_the_clients_syn_is_that_of_the_half_towards_the_server() {
    let Some(world) = world() else { return };
    let rules = "table inet t { counter others { }\n chain c { type filter hook input priority 0; \
        tcp dport 7119-7120 ip dscp != ef counter name others\n tcp dport 7119-7120 ip6 dscp != ef counter name others\n }\n }\n";
    world.nft("s", rules);
    for path in BOTH {
        let proxy = world.proxy(&path.class(""));
        for (address, port) in [(SERVER_V4, 7119), (SERVER_V6, 7120)] {
            let listener = world.listen(address, port);
            let target = SocketAddr::new(address.parse().unwrap(), port);
            let client = world.inside("c", move || {
                let socket =
                    socket2::Socket::new(socket2::Domain::for_address(target), socket2::Type::STREAM, None)
                        .unwrap();
                match target {
                    SocketAddr::V4(_) => socket.set_tos_v4(46 << 2).unwrap(),
                    SocketAddr::V6(_) => socket.set_tclass_v6(46 << 2).unwrap(),
                }
                socket.connect(&target.into()).unwrap();
                TcpStream::from(socket)
            });
            let (server, _) = listener.accept().unwrap();
            transfer(&client, &server, 500_000);
        }
        assert_eq!(world.counted("s"), 0, "packets of another class of service");
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn each_half_negotiates_ecn_as_this_machine_is_set() {
    let Some(world) = world() else { return };
    let mut port = 7150;
    for path in BOTH {
        for (ecn, capable) in [("0", false), ("1", true)] {
            // A port of its own: packets of the connection before may be late.
            port += 1;
            world.nft(
                "s",
                &format!(
                    "table inet t {{ }}\ndelete table inet t\ntable inet t {{ counter capable {{ }}\n chain c {{ type filter hook input \
                     priority 0; tcp dport {port} ip ecn ect0 counter name capable\n }}\n }}\n"
                ),
            );
            world.set("p", "tcp_ecn", ecn);
            let before = world.counted("s");
            let proxy = world.proxy(&path.class(""));
            let (client, server) = world.pair(SERVER_V4, port);
            transfer(&client, &server, 500_000);
            assert_eq!(world.counted("s") > before, capable, "tcp_ecn = {ecn}");
            proxy.end(Signal::SIGTERM);
        }
    }
}

/// The server closes first, so what remains of the connection in the proxy is the half towards the client, in TIME-WAIT.
#[test]
fn a_port_can_be_used_again_as_soon_as_its_connection_has_ended() {
    let Some(world) = world() else { return };
    for path in BOTH {
        for syn in ["early", "server-first"] {
            let proxy = world.proxy(&path.class(&format!("syn = \"{syn}\"")));
            let listener = world.listen(SERVER_V4, 7130);
            for _ in 0..3 {
                let client = world.inside("c", || {
                    let socket =
                        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
                    socket.set_reuse_address(true).unwrap();
                    let own: SocketAddr = "10.71.1.2:7131".parse().unwrap();
                    socket.bind(&own.into()).unwrap();
                    let server: SocketAddr = "10.71.2.2:7130".parse().unwrap();
                    socket.connect_timeout(&server.into(), Duration::from_secs(10)).unwrap();
                    TcpStream::from(socket)
                });
                client.set_read_timeout(Some(PATIENCE)).unwrap();
                let (server, _) = listener.accept().unwrap();
                transfer(&server, &client, 10_000);
                transfer(&client, &server, 10_000);
                drop((client, server));
                // The last ACK is under way.
                thread::sleep(Duration::from_millis(100));
            }
            proxy.end(Signal::SIGTERM);
        }
    }
}

/// Sends another SYN of a client's connection over IPv4.
fn repeat_syn(world: &World, client: &TcpStream) {
    let ends = Ends { local: client.local_addr().unwrap(), remote: client.peer_addr().unwrap() };
    let tcp = Header { seq: 1, flags: Flags::SYN, window: 65_535, ..Header::default() };
    let mut packet = Vec::new();
    Packet { ends, ip: IpFields::default(), tcp, payload: Payload::Bytes(&[]) }.write_headers(&mut packet);
    world.inside("c", move || {
        let protocol = Some(socket2::Protocol::from(255));
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::RAW, protocol).unwrap();
        socket.set_header_included_v4(true).unwrap();
        socket.send_to(&packet, &SocketAddr::new(ends.remote.ip(), 0).into()).unwrap();
    });
}

#[test]
fn a_late_copy_of_a_syn_reaches_nobody_but_the_proxy() {
    let Some(world) = world() else { return };
    let rules = "table inet t { counter syns { }\n chain c { type filter hook input priority 0; \
        tcp dport 7132 tcp flags & (syn | ack) == syn counter name syns\n }\n }\n";
    world.nft("s", rules);
    for path in BOTH {
        for syn in ["early", "server-first"] {
            let proxy = world.proxy(&path.class(&format!("syn = \"{syn}\"")));
            let (client, server) = world.pair(SERVER_V4, 7132);
            let of_the_proxy = world.counted("s");
            repeat_syn(&world, &client);
            thread::sleep(Duration::from_millis(300));
            assert_eq!(world.counted("s"), of_the_proxy, "{syn}: SYNs at the server");
            transfer(&client, &server, 100_000);
            transfer(&server, &client, 100_000);
            proxy.end(Signal::SIGTERM);
        }
    }
}

#[test]
fn a_client_hears_that_there_is_no_way() {
    let Some(world) = world() else { return };
    world.set("p", "icmp_ratelimit", "0");
    let proxy = world.name("p");
    ip(&format!("-n {proxy} route add prohibit 10.98.0.0/16"));
    for path in BOTH {
        // The router answers such SYNs itself, and limits its ICMP errors to one client.
        thread::sleep(Duration::from_secs(8));
        let proxy = world.proxy(&path.class(""));
        for (address, kinds) in [
            ("10.99.0.1", [ErrorKind::NetworkUnreachable, ErrorKind::HostUnreachable]),
            ("fd99::1", [ErrorKind::NetworkUnreachable, ErrorKind::HostUnreachable]),
            ("10.98.0.1", [ErrorKind::PermissionDenied, ErrorKind::HostUnreachable]),
        ] {
            let kind = world.connect(address, 7123).unwrap_err().kind();
            assert!(kinds.contains(&kind), "{address}: {kind:?}");
        }
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn packets_that_are_too_big_beyond_the_proxy_become_smaller() {
    let Some(world) = world() else { return };
    // Behind the server's machine another one, over a link that takes packets of 1300 bytes, which it itself does not know.
    let (proxy, server, beyond) = (world.name("p"), world.name("s"), world.name("x"));
    ip(&format!("netns add {beyond}"));
    ip(&format!("-n {server} link add far0 type veth peer name eth0 netns {beyond}"));
    for (place, device, v4, v6) in
        [(&server, "far0", "10.71.4.1/24", "fd71:4::1/64"), (&beyond, "eth0", "10.71.4.2/24", "fd71:4::2/64")]
    {
        ip(&format!("-n {place} addr add {v4} dev {device}"));
        ip(&format!("-n {place} addr add {v6} dev {device} nodad"));
        ip(&format!("-n {place} link set {device} up"));
    }
    ip(&format!("-n {server} link set far0 mtu 1300"));
    ip(&format!("-n {beyond} route add default via 10.71.4.1"));
    ip(&format!("-n {beyond} -6 route add default via fd71:4::1"));
    ip(&format!("-n {proxy} route add 10.71.4.0/24 via 10.71.2.2"));
    ip(&format!("-n {proxy} -6 route add fd71:4::/64 via fd71:2::2"));
    world.inside("s", || {
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
    });
    for path in BOTH {
        let proxy = world.proxy(&path.class(""));
        for (address, port) in [("10.71.4.2", 7124), ("fd71:4::2", 7125)] {
            let at: SocketAddr = (address.parse::<std::net::IpAddr>().unwrap(), port).into();
            let listener = world.inside("x", move || TcpListener::bind(at).unwrap());
            let client = world.connect(address, port).unwrap();
            let (server, _) = listener.accept().unwrap();
            server.set_read_timeout(Some(PATIENCE)).unwrap();
            world.wait_for("split", || world.sockets_at(port) == path.sockets);
            transfer(&client, &server, 1_000_000);
        }
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn connections_from_beyond_the_satellite_are_split_only_where_a_class_says_so() {
    let Some(world) = world() else { return };
    for path in BOTH {
        let lines = world.folder.path().join(format!("lines-{}", path.sockets));
        let down =
            "name = \"down\"\nmatch = { opened-by = \"satellite\", ports = \"7127\" }\nsyn = \"early\"";
        // A class of the clients with the same ports stands before it.
        let classes = format!(
            "[watch]\nconnections = {:?}\n{}{}",
            lines.to_str().unwrap(),
            path.class("name = \"up\""),
            path.class(down)
        );
        let proxy = world.proxy(&classes);
        for (port, sockets) in [(7126, 0), (7127, path.sockets)] {
            let listener = world.inside("c", move || TcpListener::bind(("10.71.1.2", port)).unwrap());
            let client = world.inside("s", move || TcpStream::connect(("10.71.1.2", port)).unwrap());
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            let (server, from) = listener.accept().unwrap();
            assert_eq!(from, client.local_addr().unwrap());
            world.wait_for("split or not", || world.sockets_at(port) == sockets);
            transfer(&client, &server, 200_000);
            transfer(&server, &client, 200_000);
        }
        world.wait_for("a line", || fs::read_to_string(&lines).is_ok_and(|text| text.ends_with('\n')));
        let line: serde_json::Value =
            serde_json::from_str(fs::read_to_string(&lines).unwrap().trim()).unwrap();
        assert_eq!((&line["class"], &line["front"]["side"]), (&"down".into(), &"satellite".into()), "{line}");
        proxy.end(Signal::SIGTERM);
    }
}

#[test]
fn an_algorithm_that_the_kernel_lacks_is_named_with_those_that_there_are() {
    let Some(world) = world() else { return };
    let config = world.config("[[class]]\nsatellite = \"kernel:bp_absent\"\n");
    let run = [env!("CARGO_BIN_EXE_bentpipe"), "pep", "run", "--config", config.to_str().unwrap()];
    let refused = world.command(&run).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{message}");
    for part in ["bp_absent", "cubic", "bentpipe kernel load absent"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    world.assert_clean();
}
