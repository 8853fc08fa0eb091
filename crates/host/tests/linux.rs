//! This stack and the kernel's over a simulated link, in real time.
//!
//! Each test runs itself again in a new network namespace, where it has root privileges.

#[path = "common/namespace.rs"]
mod namespace;

use std::io::{BufRead, BufReader, Lines};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_cc::Algorithm;
use bentpipe_host::{Id, Limits, Stack, StackConfig};
use bentpipe_net::{
    Limit, Link, LinkConfig, LossConfig, LossModel, Outage, Outages, Packet, QueueConfig, Reordering,
};
use bentpipe_tcp::{Config, State, Stats};
use bentpipe_wire::{Datagram, Offload};
use namespace::inside;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use tun_rs::{DeviceBuilder, SyncDevice};

const OURS: [&str; 2] = ["10.105.0.2", "fd62:656e::2"];
const KERNEL: [&str; 2] = ["10.105.0.1", "fd62:656e::1"];
const PORT: u16 = 6001;
/// Number of runs in this process: each uses its own ports.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Program of the kernel's end: it sends what it is told, and reports length and digest of the received data.
const PEER: &str = r#"
import hashlib, socket, sys, threading, time
role, host, port, length = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
if role in ("listen", "pause"):
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen()
    print("ready", flush=True)
    s = listener.accept()[0]
    if role == "pause":
        time.sleep(65)
else:
    s = socket.create_connection((host, port))
data = bytes((i * i >> 5) & 255 for i in range(1 << 16))
data = (data * (length // len(data) + 1))[:length]
def send():
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
digest, count = hashlib.sha256(), 0
while piece := s.recv(1 << 18):
    digest.update(piece)
    count += len(piece)
print(count, digest.hexdigest(), hashlib.sha256(data).hexdigest(), flush=True)
"#;

/// Packet on the link.
#[derive(Clone)]
struct Frame {
    bytes: Vec<u8>,
    low: bool,
}

impl Frame {
    fn new(bytes: Vec<u8>) -> Self {
        let low = Datagram::read(&bytes).is_ok_and(|datagram| datagram.is_low_priority());
        Self { bytes, low }
    }
}

impl Packet for Frame {
    fn size(&self) -> u32 {
        self.bytes.len() as u32
    }
    fn low_priority(&self) -> bool {
        self.low
    }
    fn is_data(&self) -> bool {
        self.bytes.len() > 100
    }
}

/// Both stacks and the link: from this stack to the kernel, and back.
struct Path {
    stack: Stack,
    tun: SyncDevice,
    links: [Link<Frame>; 2],
    corruption: f64,
    /// Packets above this size are silently lost.
    largest: usize,
    rng: Rng,
    epoch: std::time::Instant,
    buffer: Vec<u8>,
}

fn link(queue: QueueConfig, rate_mbps: u64, delay_one_way: Duration) -> LinkConfig {
    LinkConfig::new(Rate::from_mbps(rate_mbps), delay_one_way, queue)
}

impl Path {
    fn new(configs: [LinkConfig; 2], corruption: f64, seed: u64) -> Self {
        // Without offloads: the link carries packets, not units of 64 KiB.
        let tun = DeviceBuilder::new()
            .mtu(1500)
            .ipv4(KERNEL[0], 30, None)
            .ipv6(KERNEL[1], 126)
            .build_sync()
            .unwrap();
        tun.set_nonblocking(true).unwrap();
        let addresses = OURS.map(|own| own.parse().unwrap()).to_vec();
        let stack = Stack::new(StackConfig {
            addresses,
            transparent: false,
            mtu: 1500,
            offload: false,
            key: (u128::from(std::process::id()) << 70)
                | (u128::from(seed + RUNS.fetch_add(1, Relaxed)) << 64),
            limits: Limits::default(),
        });
        let mut names = ["out", "back"].into_iter();
        let links = configs.map(|config| Link::new(&config, seed, names.next().unwrap()).unwrap());
        let rng = Rng::stream(seed, "corruption");
        let epoch = std::time::Instant::now();
        Self { stack, tun, links, corruption, largest: 1500, rng, epoch, buffer: vec![0; 1 << 16] }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(1_000_000_000 + self.epoch.elapsed().as_nanos() as u64)
    }

    fn carry(&mut self, which: usize, mut bytes: Vec<u8>) {
        if bytes.len() > self.largest {
            return;
        }
        if self.rng.chance(self.corruption) {
            let at = 40 + self.rng.below((bytes.len() - 40) as u64) as usize;
            bytes[at] ^= 1 << self.rng.below(8);
        }
        let now = self.now();
        self.links[which].enqueue(now, Frame::new(bytes));
    }

    fn turn(&mut self) {
        let now = self.now();
        let mut out = Vec::new();
        while self.stack.poll_packet(now, &mut out) {
            self.carry(0, std::mem::take(&mut out));
        }
        while let Some(arrival) = self.links[0].deliver(now) {
            // The kernel drops invalid packets.
            let _ = self.tun.send(&arrival.packet.bytes);
        }
        while let Some(arrival) = self.links[1].deliver(now) {
            self.stack.handle_packet(now, &Offload::default(), &arrival.packet.bytes);
        }
        for link in &mut self.links {
            while link.poll_dropped().is_some() {}
        }
        self.stack.handle_timeouts(now);
        self.wait();
        while let Ok(len) = self.tun.recv(&mut self.buffer) {
            let bytes = self.buffer[..len].to_vec();
            // Neighbour discovery and other non-TCP packets bypass the link.
            if Datagram::read(&bytes).is_ok_and(|datagram| datagram.protocol == 6) {
                self.carry(1, bytes);
            }
        }
    }

    fn wait(&mut self) {
        let mut out = Vec::new();
        if self.stack.poll_packet(self.now(), &mut out) {
            self.carry(0, out);
            return;
        }
        let next = self.links.iter().map(Link::next_event).fold(self.stack.next_timeout(), Instant::min);
        let wait = next.since(self.now()).as_nanos().min(20_000_000);
        // SAFETY: the descriptor is open while `tun` exists, which outlives this call.
        let tun = unsafe { BorrowedFd::borrow_raw(self.tun.as_raw_fd()) };
        let wait = TimeSpec::from_duration(std::time::Duration::from_nanos(wait));
        let _ = ppoll(&mut [PollFd::new(tun, PollFlags::POLLIN)], Some(wait), None);
    }

    /// Sends `data` over the connection and closes. Returns the received data, and the time until all was
    /// acknowledged.
    fn exchange(&mut self, id: Id, data: &[u8]) -> (Vec<u8>, Duration) {
        let (mut written, mut got, mut closed) = (0, Vec::new(), false);
        let begin = self.now();
        let mut acknowledged = None;
        let mut piece = vec![0; 1 << 16];
        while self.now().since(begin) < Duration::from_secs(900) {
            let now = self.now();
            written += self.stack.write(now, id, &data[written..]);
            if written == data.len() && !std::mem::replace(&mut closed, true) {
                self.stack.close(now, id);
            }
            let len = self.stack.read(now, id, &mut piece);
            got.extend_from_slice(&piece[..len]);
            let connection = self.stack.connection(id).unwrap();
            if connection.acknowledged_bytes() == data.len() as u64 {
                acknowledged.get_or_insert(now.since(begin));
            }
            if len == 0 && matches!(connection.state(), State::TimeWait | State::Closed) {
                break;
            }
            self.turn();
        }
        (got, acknowledged.expect("all data is acknowledged"))
    }

    fn connect(&mut self, v6: bool, config: Config) -> Id {
        let remote = SocketAddr::new(KERNEL[usize::from(v6)].parse::<IpAddr>().unwrap(), PORT);
        let now = self.now();
        self.stack.connect(now, remote, config).unwrap()
    }

    fn accept(&mut self, config: Config) -> Id {
        self.stack.listen(PORT, Arc::new(config));
        loop {
            if let Some(id) = self.stack.accept(PORT) {
                return id;
            }
            self.turn();
        }
    }
}

/// The kernel's end.
struct Kernel {
    child: Child,
    says: Lines<BufReader<ChildStdout>>,
}

impl Kernel {
    fn start(role: &str, host: &str, bytes: usize) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", PEER, role, host, &PORT.to_string(), &bytes.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut says = BufReader::new(child.stdout.take().unwrap()).lines();
        if role != "connect" {
            assert_eq!(says.next().unwrap().unwrap(), "ready");
        }
        Self { child, says }
    }

    /// Returns the number of received bytes, and true if they are the expected ones.
    fn finish(mut self) -> (usize, bool) {
        let line = self.says.next().unwrap().unwrap();
        assert!(self.child.wait().unwrap().success());
        let words: Vec<&str> = line.split(' ').collect();
        (words[0].parse().unwrap(), words[1] == words[2])
    }
}

/// Returns the data sent by the kernel's end.
fn pattern(len: usize) -> Vec<u8> {
    (0..1_usize << 16).map(|i| ((i * i) >> 5) as u8).cycle().take(len).collect()
}

fn config(cc: &str) -> Config {
    Config::default().with(|config| config.sender.cc = Algorithm::from_name(cc).expect("it is registered"))
}

/// A hostile link, and the data that both ends send over it at once.
#[derive(Clone, Copy, Debug)]
struct Hostile {
    we_open: bool,
    v6: bool,
    rate_mbps: u64,
    loss: f64,
    bytes: usize,
    /// True if the link is out for 0.2 s every 2 s, as at a handover.
    handovers: bool,
}

const QUICK: Hostile =
    Hostile { we_open: true, v6: false, rate_mbps: 50, loss: 0.01, bytes: 2_000_000, handovers: false };

impl Hostile {
    fn link(&self) -> LinkConfig {
        let millis = Duration::from_millis;
        let outages = (1..300).map(|nth| Instant::ZERO + millis(2000 * nth));
        let outages = outages.map(|from| Outage { from, to: from + millis(200) });
        LinkConfig {
            loss: LossConfig { model: LossModel::Packet { probability: self.loss }, ..LossConfig::default() },
            reordering: Some(Reordering { probability: 0.02, extra_min: millis(1), extra_max: millis(8) }),
            duplicate_probability: 0.01,
            outages: Outages {
                intervals: outages.filter(|_| self.handovers).collect(),
                ..Outages::default()
            },
            ..link(QueueConfig::DropTail { limit: Limit::Packets(200) }, self.rate_mbps, millis(5))
        }
    }

    fn run(&self) {
        let mut path = Path::new([self.link(), self.link()], 0.01, 7);
        let version = usize::from(self.v6);
        let (kernel, id) = if self.we_open {
            let kernel = Kernel::start("listen", KERNEL[version], self.bytes);
            (kernel, path.connect(self.v6, config("cubic")))
        } else {
            path.stack.listen(PORT, Arc::new(config("cubic")));
            let kernel = Kernel::start("connect", OURS[version], self.bytes);
            (kernel, path.accept(config("cubic")))
        };
        let data = pattern(self.bytes);
        let (got, took) = path.exchange(id, &data);
        assert!(got == data, "{} bytes from the kernel", got.len());
        assert_eq!(kernel.finish(), (self.bytes, true));
        let corrupt = path.stack.counters().corrupt;
        assert!(corrupt > 0, "the checksum caught something");
        println!("{self:?}: whole after {:.1} s, {corrupt} corrupt packets dropped", took.as_secs_f64());
    }
}

#[test]
fn streams_are_whole_if_we_open_over_ipv4() {
    if inside("streams_are_whole_if_we_open_over_ipv4") {
        QUICK.run();
    }
}

#[test]
fn streams_are_whole_if_the_kernel_opens_over_ipv6() {
    if inside("streams_are_whole_if_the_kernel_opens_over_ipv6") {
        Hostile { we_open: false, v6: true, ..QUICK }.run();
    }
}

/// Packets above 1300 bytes are silently lost (RFC 8899).
#[test]
fn a_black_hole_for_large_packets_is_found_out() {
    if !inside("a_black_hole_for_large_packets_is_found_out") {
        return;
    }
    for (version, v6) in [(0, false), (1, true)] {
        let way = || link(QueueConfig::DropTail { limit: Limit::Packets(200) }, 50, Duration::from_millis(5));
        let mut path = Path::new([way(), way()], 0.0, 5);
        path.largest = 1300;
        let kernel = Kernel::start("listen", KERNEL[version], 0);
        let id = path.connect(v6, config("cubic"));
        let (_, took) = path.exchange(id, &pattern(300_000));
        assert_eq!(kernel.finish().0, 300_000);
        println!("IPv{}: found out, and all sent, in {:.1} s", 4 + 2 * version, took.as_secs_f64());
    }
}

/// The kernel's application reads nothing for 65 s.
#[test]
#[ignore = "long"]
fn a_window_of_zero_for_a_minute_is_waited_for() {
    if !inside("a_window_of_zero_for_a_minute_is_waited_for") {
        return;
    }
    let way = || link(QueueConfig::DropTail { limit: Limit::Packets(200) }, 50, Duration::from_millis(5));
    let mut path = Path::new([way(), way()], 0.0, 5);
    let kernel = Kernel::start("pause", KERNEL[0], 0);
    let id = path.connect(false, config("cubic"));
    let (_, took) = path.exchange(id, &pattern(20_000_000));
    let stats = path.stack.connection(id).unwrap().stats();
    assert_eq!(kernel.finish().0, 20_000_000);
    assert!(took > Duration::from_secs(60), "{took}");
    // A closed window is not silence.
    assert_eq!(stats.timeouts, 0, "{stats:?}");
    println!("all sent in {:.1} s", took.as_secs_f64());
}

/// The whole matrix: `scripts/on-wire-matrix`.
#[test]
#[ignore = "long"]
fn streams_are_whole_over_every_link() {
    if !inside("streams_are_whole_over_every_link") {
        return;
    }
    let scale = std::env::var("BENTPIPE_MATRIX").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for (we_open, v6) in [(true, false), (false, true), (true, true), (false, false)] {
        for (loss, bytes, handovers) in [
            (0.001, 40_000_000, false),
            (0.01, 10_000_000, false),
            (0.05, 2_000_000, false),
            (0.001, 20_000_000, true),
        ] {
            Hostile { we_open, v6, rate_mbps: 200, loss, bytes: bytes * scale, handovers }.run();
        }
    }
}

/// Transfer to the kernel over a satellite, with a queue that drops low priority first.
struct Transfer {
    delay_one_way: Duration,
    bytes: usize,
    loss: f64,
}

/// Result of a transfer.
struct Outcome {
    stats: Stats,
    took: Duration,
    /// Probes refused by the queue.
    refused: u64,
}

fn over_satellite(cc: &str, seed: u64, transfer: &Transfer) -> Outcome {
    let &Transfer { delay_one_way, bytes, loss } = transfer;
    let queue = QueueConfig::Threshold { limit: Limit::Packets(50), low_priority_threshold: 3 };
    let out = LinkConfig {
        loss: LossConfig::data(LossModel::Packet { probability: loss }),
        ..link(queue, 10, delay_one_way)
    };
    let back = link(QueueConfig::default(), 10, delay_one_way);
    let mut path = Path::new([out, back], 0.0, seed);
    let kernel = Kernel::start("listen", KERNEL[0], 0);
    let id = path.connect(false, config(cc));
    let (_, took) = path.exchange(id, &pattern(bytes));
    let stats = path.stack.connection(id).unwrap().stats();
    assert_eq!(kernel.finish().0, bytes);
    Outcome { stats, took, refused: path.links[0].stats().dropped_low_priority }
}

/// The kernel does not know probes. It reports each as a duplicate, which serves as the reply.
fn kernel_replies(cc: &str) {
    let transfer = Transfer { delay_one_way: Duration::from_millis(100), bytes: 600_000, loss: 0.0 };
    let Outcome { stats, took, .. } = over_satellite(cc, 3, &transfer);
    assert!(stats.probes_sent >= 20, "{}", stats.probes_sent);
    // A kernel whose program holds the socket lock may merge several answers, especially on a busy machine.
    assert!(
        stats.probes_acked * 3 >= stats.probes_sent * 2,
        "{} of {}",
        stats.probes_acked,
        stats.probes_sent
    );
    // A busy machine may handle a timer late, but an answer never proves a loss.
    assert!(stats.recoveries == 0 || stats.timeouts > 0, "an answer was taken for a sign of loss");
    println!("{cc}: {} of {} probes answered, {took}", stats.probes_acked, stats.probes_sent);
}

#[test]
fn the_kernel_replies_to_peach() {
    if inside("the_kernel_replies_to_peach") {
        kernel_replies("peach");
    }
}

#[test]
fn the_kernel_replies_to_peach_plus() {
    if inside("the_kernel_replies_to_peach_plus") {
        kernel_replies("peach-plus");
    }
}

#[test]
fn the_kernel_replies_to_swift() {
    if inside("the_kernel_replies_to_swift") {
        kernel_replies("swift");
    }
}

/// The table of `docs/peach-without-a-receiver.md`.
#[test]
#[ignore = "minutes of real time"]
fn measured_over_a_geostationary_satellite() {
    if !inside("measured_over_a_geostationary_satellite") {
        return;
    }
    println!(
        "| loss | algorithm | Mbit/s | probes | dropped by the queue | answered | retransmitted | recoveries | timeouts |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut seed = 3;
    let delay_one_way = Duration::from_millis(275);
    for (loss, bytes) in [(0.0, 1_000_000), (0.002, 2_000_000)] {
        for cc in ["peach", "peach-plus", "swift", "reno", "cubic"] {
            seed += 1;
            let transfer = Transfer { delay_one_way, bytes, loss };
            let Outcome { stats, took, refused } = over_satellite(cc, seed, &transfer);
            println!(
                "| {loss} | {cc} | {:.2} | {} | {refused} | {} | {} | {} | {} |",
                bytes as f64 * 8e-6 / took.as_secs_f64(),
                stats.probes_sent,
                stats.probes_acked,
                stats.retransmitted_segments,
                stats.recoveries,
                stats.timeouts
            );
        }
    }
}
