//! Network namespaces in a row (client, proxy, server), with a proxy in the middle one.

// Each test program uses a part of this module.
#![allow(dead_code)]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub const SERVER_V4: &str = "10.71.2.2";
pub const SERVER_V6: &str = "fd71:2::2";
pub const PATIENCE: Duration = Duration::from_secs(20);

/// State in `/proc/net/tcp` of a socket that only handles late segments.
const TIME_WAIT: &str = " 06 ";

/// Three network namespaces in a row; the middle one forwards.
pub struct World {
    prefix: String,
    pub folder: tempfile::TempDir,
}

fn try_ip(line: &str) -> bool {
    let output =
        Command::new("ip").args(line.split(' ')).stderr(Stdio::null()).stdout(Stdio::null()).status();
    output.is_ok_and(|status| status.success())
}

pub fn ip(line: &str) {
    assert!(try_ip(line), "ip {line}");
}

/// Makes the namespaces, or prints the reason why it cannot.
pub fn world() -> Option<World> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("bpp{}n{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let folder = tempfile::tempdir().unwrap();
    let world = World { prefix, folder };
    let proxy = world.name("p");
    if !try_ip(&format!("netns add {proxy}")) {
        println!("skipped: this needs root and the program `ip`");
        return None;
    }
    // The kernel must support everything that the rules use.
    let wanted = "table inet t { chain c { type filter hook prerouting priority raw - 1; \
        socket transparent 1 meta mark set 1 notrack accept\n meta nfproto ipv4 meta l4proto tcp fib daddr type unicast tproxy ip to 127.0.0.1:1\n }\n }\n";
    let possible =
        Command::new("ip").args(["netns", "exec", &proxy, "nft", wanted]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) || !fs::exists("/dev/net/tun").unwrap() {
        println!("skipped: this needs nft, a kernel with tproxy, and /dev/net/tun");
        return None;
    }
    assert!(world.proxy_output(&["nft", "delete", "table", "inet", "t"]).is_empty());
    ip(&format!("netns add {}", world.name("c")));
    ip(&format!("netns add {}", world.name("s")));
    for place in ["c", "p", "s"] {
        // Linux asks no neighbour before it knows that its own link-local address is unique, which takes a second. SYNs would be repeated meanwhile.
        world.inside(place, || fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0").unwrap());
    }
    for (device, peer) in [("eth0", "c"), ("sat0", "s")] {
        ip(&format!("-n {proxy} link add {device} type veth peer name eth0 netns {}", world.name(peer)));
    }
    for (place, device, v4, v6) in [
        ("c", "eth0", "10.71.1.2/24", "fd71:1::2/64"),
        ("p", "eth0", "10.71.1.1/24", "fd71:1::1/64"),
        ("p", "sat0", "10.71.2.1/24", "fd71:2::1/64"),
        ("s", "eth0", "10.71.2.2/24", "fd71:2::2/64"),
    ] {
        let place = world.name(place);
        ip(&format!("-n {place} addr add {v4} dev {device}"));
        ip(&format!("-n {place} addr add {v6} dev {device} nodad"));
        ip(&format!("-n {place} link set {device} up"));
        ip(&format!("-n {place} link set lo up"));
    }
    for (place, v4, v6) in [("c", "10.71.1.1", "fd71:1::1"), ("s", "10.71.2.1", "fd71:2::1")] {
        ip(&format!("-n {} route add default via {v4}", world.name(place)));
        ip(&format!("-n {} -6 route add default via {v6}", world.name(place)));
    }
    world.inside("p", || {
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
    });
    Some(world)
}

impl Drop for World {
    fn drop(&mut self) {
        for place in ["c", "p", "s", "x"] {
            try_ip(&format!("netns del {}", self.name(place)));
        }
    }
}

impl World {
    pub fn name(&self, place: &str) -> String {
        format!("{}{place}", self.prefix)
    }

    /// Starts `work` on a thread in the namespace of the client (c), the proxy (p) or the server (s).
    pub fn start<T: Send + 'static>(
        &self,
        place: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = File::open(format!("/run/netns/{}", self.name(place))).unwrap();
        thread::spawn(move || {
            setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
            work()
        })
    }

    pub fn inside<T: Send + 'static>(&self, place: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.start(place, work).join().unwrap()
    }

    pub fn command(&self, command: &[&str]) -> Command {
        let mut whole = Command::new("ip");
        whole.args(["netns", "exec", &self.name("p")]).args(command);
        whole
    }

    pub fn proxy_output(&self, command: &[&str]) -> String {
        let output = self.command(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn config(&self, classes: &str) -> PathBuf {
        let path = self.folder.path().join("pep.toml");
        let rest = "[interfaces]\nclients = \"eth0\"\nsatellite = \"sat0\"\n[daemon]\nthreads = 2\ndrain = \"5 s\"\n";
        fs::write(&path, format!("{rest}{classes}")).unwrap();
        path
    }

    /// Starts the proxy and waits until its rules are installed.
    pub fn proxy(&self, classes: &str) -> Proxy {
        self.proxy_with(classes, &[], &[])
    }

    /// As above, with a program that starts the proxy and further options.
    pub fn proxy_with(&self, classes: &str, by: &[&str], options: &[&str]) -> Proxy {
        let path = self.config(classes);
        let path = path.to_str().unwrap();
        let run = [env!("CARGO_BIN_EXE_bentpipe"), "pep", "run", "--config", path];
        let mut command = self.command(&[by, &run, options].concat());
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut proxy = Proxy { child };
        let begin = Instant::now();
        while !(self.is_installed() && proxy.has_said("proxying")) {
            assert!(begin.elapsed() < PATIENCE, "the proxy does not start");
        }
        proxy
    }

    pub fn is_installed(&self) -> bool {
        self.proxy_output(&["nft", "list", "tables"]).contains("bentpipe-pep")
    }

    /// True if nothing of the proxy is in the packet filter and the routing tables.
    pub fn assert_clean(&self) {
        assert!(!self.is_installed());
        for family in ["-4", "-6"] {
            let rules = self.proxy_output(&["ip", family, "rule"]);
            assert!(!rules.contains("/0x3f000000"), "{rules}");
            for table in ["6270", "6271", "6272", "6273", "6280", "6288"] {
                let output = self.command(&["ip", family, "route", "show", "table", table]).output().unwrap();
                assert!(output.stdout.is_empty(), "{output:?}");
            }
        }
    }

    /// Returns the proxy's kernel sockets with this server port.
    pub fn sockets_at(&self, port: u16) -> usize {
        let hex = format!(":{port:04X} ");
        self.inside("p", move || {
            let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"]
                .map(|path| fs::read_to_string(path).unwrap());
            tables
                .iter()
                .flat_map(|table| table.lines())
                .filter(|line| line.contains(&hex) && !line.contains(TIME_WAIT))
                .count()
        })
    }

    /// Passes a script to the packet filter of a namespace.
    pub fn nft(&self, place: &str, script: &str) {
        let namespace = self.name(place);
        let done = Command::new("ip").args(["netns", "exec", &namespace, "nft", script]).status();
        assert!(done.unwrap().success(), "{script}");
    }

    /// Returns the counters of a namespace in the order of their table.
    pub fn counters(&self, place: &str) -> Vec<u64> {
        let namespace = self.name(place);
        let command = ["netns", "exec", &namespace, "nft", "list", "counters"];
        let output = Command::new("ip").args(command).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let packets = |rest: &str| rest.split(' ').next().unwrap().parse().unwrap();
        text.split("packets ").skip(1).map(packets).collect()
    }

    /// Returns the first of them.
    pub fn counted(&self, place: &str) -> u64 {
        self.counters(place)[0]
    }

    /// Returns the body that the proxy's HTTP server sends for a path.
    pub fn ask(&self, path: &'static str) -> String {
        self.inside("p", move || {
            let mut stream = TcpStream::connect("127.0.0.1:9464").unwrap();
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        })
    }

    /// Returns the value of a metric of the proxy.
    pub fn metric(&self, name: &str) -> Option<u64> {
        let text = self.ask("/metrics");
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    /// Writes a setting of the kernel below `/proc/sys/net/ipv4`.
    pub fn set(&self, place: &str, name: &'static str, value: &'static str) {
        self.inside(place, move || fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap());
    }

    pub fn setting(&self, name: &'static str) -> String {
        self.inside("p", move || fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap())
            .trim()
            .to_owned()
    }

    /// Waits until the condition is true.
    pub fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < PATIENCE, "{what}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until this number of connections to the port have two halves. With `early` the second half follows the
    /// client's connection.
    pub fn assert_split(&self, port: u16, connections: usize) {
        let begin = Instant::now();
        while self.sockets_at(port) != 2 * connections {
            assert!(
                begin.elapsed() < PATIENCE,
                "{} sockets of {connections} connections",
                self.sockets_at(port)
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn listen(&self, address: &str, port: u16) -> TcpListener {
        let address = SocketAddr::new(address.parse().unwrap(), port);
        self.inside("s", move || TcpListener::bind(address).unwrap())
    }

    /// A connection of the client to the server, both ends.
    pub fn pair(&self, address: &str, port: u16) -> (TcpStream, TcpStream) {
        let listener = self.listen(address, port);
        let client = self.connect(address, port).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        (client, server)
    }

    pub fn connect(&self, address: &str, port: u16) -> io::Result<TcpStream> {
        let address = SocketAddr::new(address.parse::<IpAddr>().unwrap(), port);
        self.inside("c", move || {
            let stream = TcpStream::connect_timeout(&address, Duration::from_secs(3))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        })
    }
}

pub struct Proxy {
    pub child: Child,
}

impl Proxy {
    /// Reads the proxy's output until `word` appears.
    pub fn has_said(&mut self, word: &str) -> bool {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut line = Vec::new();
        let mut byte = [0];
        while !String::from_utf8_lossy(&line).contains(word) {
            if stderr.read(&mut byte).unwrap() == 0 {
                panic!("the proxy has ended: {}", String::from_utf8_lossy(&line));
            }
            line.push(byte[0]);
        }
        true
    }

    pub fn signal(&self, signal: Signal) {
        // The process of `ip netns exec` has become the proxy.
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub fn end(mut self, signal: Signal) {
        self.signal(signal);
        self.child.wait().unwrap();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub const EARLY: &str = "[[class]]\nsyn = \"early\"\n";
pub const SERVER_FIRST: &str = "[[class]]\nsyn = \"server-first\"\n";

/// Returns bytes that depend on their position.
pub fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}
