//! SYNs that would not survive a split pass the proxy untouched, and are counted with the reason.

#![cfg(target_os = "linux")]

mod network;

use std::net::{IpAddr, SocketAddr};

use network::{World, world};

const CLIENT: [u8; 4] = [10, 71, 1, 2];
const SERVER: [u8; 4] = [10, 71, 2, 2];
/// Sequence number by which the client's own SYN is known.
const SEQUENCE: u32 = 0x6270_6270;

/// A SYN of the client.
#[derive(Clone, Copy)]
struct Syn {
    ttl: u8,
    ip_options: &'static [u8],
    tcp_options: &'static [u8],
}

const PLAIN: Syn = Syn { ttl: 64, ip_options: &[], tcp_options: &[] };

impl Syn {
    const fn with_tcp(tcp_options: &'static [u8]) -> Self {
        Self { tcp_options, ..PLAIN }
    }

    /// The packet from a port of the client to one of the server. The kernel writes its checksum of IP.
    fn packet(self, ports: [u16; 2]) -> Vec<u8> {
        let Self { ttl, ip_options, tcp_options } = self;
        let mut tcp = ports.map(u16::to_be_bytes).concat();
        tcp.extend(SEQUENCE.to_be_bytes());
        tcp.extend([0, 0, 0, 0, (5 + tcp_options.len() as u8 / 4) << 4, 2, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(tcp_options);
        let pseudo = [&CLIENT[..], &SERVER, &[0, 6, 0, tcp.len() as u8]].concat();
        let sum: u32 = [pseudo, tcp.clone()]
            .concat()
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        tcp[16..18].copy_from_slice(&(!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
        let length = 20 + ip_options.len() + tcp.len();
        let mut packet =
            vec![0x45 + ip_options.len() as u8 / 4, 0, 0, length as u8, 0, 0, 0x40, 0, ttl, 6, 0, 0];
        packet.extend([&CLIENT[..], &SERVER, ip_options, &tcp].concat());
        packet
    }

    fn send(self, world: &World, ports: [u16; 2]) {
        let packet = self.packet(ports);
        world.inside("c", move || {
            let protocol = Some(socket2::Protocol::from(255));
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::RAW, protocol).unwrap();
            socket.set_header_included_v4(true).unwrap();
            socket.send_to(&packet, &SocketAddr::new(IpAddr::from(SERVER), 0).into()).unwrap();
        });
    }
}

/// Connections that the proxy leaves alone: name, SYN, and the reason under which the proxy counts them.
const UNTOUCHED: [(&str, Syn, &str); 8] = [
    (
        "TCP MD5",
        Syn::with_tcp(&[1, 1, 19, 18, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        "signed",
    ),
    ("TCP-AO", Syn::with_tcp(&[29, 16, 1, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]), "signed"),
    ("TCP-ENO", Syn::with_tcp(&[69, 3, 0x21, 0]), "signed"),
    ("alternate checksums", Syn::with_tcp(&[14, 3, 1, 0]), "signed"),
    ("a router alert", Syn { ip_options: &[0x94, 4, 0, 0], ..PLAIN }, "options"),
    ("the TTL of traceroute", Syn { ttl: 3, ..PLAIN }, "ttl"),
    ("the TTL of RFC 5082", Syn { ttl: 255, ..PLAIN }, "ttl"),
    ("a helper of connection tracking", PLAIN, "helper"),
];

#[test]
fn what_would_not_survive_a_split_passes_untouched_and_is_counted_with_its_reason() {
    let Some(world) = world() else { return };
    // Nobody answers, so that all that arrives was sent by the client or by the proxy.
    world.nft(
        "s",
        &format!(
            "table inet t {{ counter own {{ }}\n counter others {{ }}\n chain c {{ type filter hook input priority 0
 tcp sequence {SEQUENCE} counter name own drop\n tcp dport 7400-7499 counter name others drop\n }}\n }}"
        ),
    );
    world.nft(
        "p",
        "table inet t { ct helper f { type \"ftp\" protocol tcp; }
 chain c { type filter hook prerouting priority 0; tcp dport 7407 ct helper set \"f\"\n }\n }",
    );
    // Connection tracking knows a port of the client for a while.
    for (datapath, from) in [("kernel", 7000), ("engine", 7001)] {
        let class = format!("[[class]]\nsatellite = {{ datapath = \"{datapath}\", cc = \"cubic\" }}\n");
        let proxy = world.proxy(&class);
        for (number, (what, syn, reason)) in UNTOUCHED.into_iter().enumerate() {
            let counted = || {
                let metric = format!("bentpipe_pep_bypassed_total{{reason=\"{reason}\"}}");
                (world.counters("s"), world.metric(&metric).unwrap())
            };
            let (before, reasons) = counted();
            syn.send(&world, [from, 7400 + number as u16]);
            world.wait_for(what, || counted() == (vec![before[0] + 1, before[1]], reasons + 1));
        }
        // The same without anything unusual is split: what arrives is the SYN of the proxy.
        let before = world.counters("s");
        PLAIN.send(&world, [from, 7420]);
        world.wait_for("a plain SYN", || world.counters("s") == [before[0], before[1] + 1]);
        proxy.end(nix::sys::signal::Signal::SIGTERM);
    }
}
