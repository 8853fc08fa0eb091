//! Selection of algorithms for connections by control group, interface and its network namespace, destination, and
//! route.
//!
//! The tests need root, `ip`, `nsenter`, `python3`, and a kernel with congestion control in BPF; otherwise they print
//! a reason and pass.
#![cfg(feature = "bpf")]

use std::path::{Path, PathBuf};
use std::process::Command;

use bentpipe_kernel::{Error, Match, Options, find, load, loaded, rules, unload, use_for};

/// Opens a connection to an address over the loopback device, and prints the client's algorithm.
const ASK: &str = "import socket, sys
listener = socket.create_server(('0.0.0.0', 0))
client = socket.create_connection((sys.argv[1], listener.getsockname()[1]))
print(client.getsockopt(6, 13, 16).rstrip(b'\\0').decode())";

/// Two network namespaces joined by a link, and a control group; dropping removes them.
struct World {
    name: String,
    group: PathBuf,
}

impl World {
    /// Returns `None` with a printed reason if the machine lacks something.
    fn new() -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let groups = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            (fields.get(2) == Some(&"cgroup2")).then(|| PathBuf::from(fields[1]))
        });
        let Some(groups) = groups else {
            eprintln!("skipped: control groups of version 2 are not mounted");
            return None;
        };
        let name = format!("bp-choose-{}", std::process::id());
        let world = Self { group: groups.join(&name), name };
        let steps = [
            format!("ip netns add {0}-a && ip netns add {0}-b", world.name),
            format!("ip link add sat0 netns {0}-a type veth peer name sat0 netns {0}-b", world.name),
            format!(
                "ip -n {0}-a addr add 10.97.0.1/24 dev sat0; ip -n {0}-b addr add 10.97.0.2/24 dev sat0",
                world.name
            ),
            format!(
                "for n in a b; do ip -n {0}-$n link set lo up; ip -n {0}-$n link set sat0 up; done",
                world.name
            ),
            format!("mkdir {}", world.group.display()),
        ];
        for step in steps {
            let done = Command::new("sh").args(["-c", &step]).output().expect("a shell");
            if !done.status.success() {
                eprintln!("skipped: {step}: {}", String::from_utf8_lossy(&done.stderr).trim());
                return None;
            }
        }
        Some(world)
    }

    fn run(&self, end: &str, words: &[&str]) -> String {
        let place = format!("--net=/run/netns/{}-{end}", self.name);
        let output = Command::new("nsenter").arg(place).args(words).output().expect("nsenter");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Returns the algorithm of a client at one end with a server at the other.
    fn over_the_link(&self, from: &str, to: &str) -> String {
        self.towards(from, to, if to == "a" { "10.97.0.1" } else { "10.97.0.2" })
    }

    /// As above, for a given address of the server.
    fn towards(&self, from: &str, to: &str, address: &str) -> String {
        let serve = "import socket\nl = socket.create_server(('0.0.0.0', 7001))\nprint('ready', flush=True)\nl.accept()[0].recv(1)";
        let place = format!("--net=/run/netns/{}-{to}", self.name);
        let mut server = Command::new("nsenter")
            .args([&place, "python3", "-c", serve])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("nsenter");
        let mut ready = [0; 6];
        std::io::Read::read_exact(server.stdout.as_mut().expect("piped"), &mut ready).expect("it listens");
        let ask = "import socket, sys
client = socket.create_connection((sys.argv[1], 7001))
print(client.getsockopt(6, 13, 16).rstrip(b'\\0').decode())";
        let used = self.run(from, &["python3", "-c", ask, address]);
        server.wait().expect("it ends");
        used
    }
}

impl World {
    /// Makes the interfaces of the link again. Other interfaces get their numbers.
    fn renew_link(&self) {
        let shown = self.run("a", &["ip", "-o", "link", "show", "sat0"]);
        let number = shown.split(':').next().expect("it begins with a number").to_owned();
        let name = &self.name;
        let link = |interface: &str, number: &str, network: &str| {
            format!(
                "ip link add {interface} index {number} netns {name}-a type veth peer name {interface} index {number} netns {name}-b &&
                 ip -n {name}-a addr add {network}.1/24 dev {interface} && ip -n {name}-b addr add {network}.2/24 dev {interface} &&
                 ip -n {name}-a link set {interface} up && ip -n {name}-b link set {interface} up"
            )
        };
        let steps = [
            format!("ip -n {name}-a link del sat0"),
            link("other0", &number, "10.98.0"),
            link("sat0", "97", "10.97.0"),
        ];
        for step in steps {
            let done = Command::new("sh").args(["-c", &step]).output().expect("a shell");
            assert!(done.status.success(), "{step}: {}", String::from_utf8_lossy(&done.stderr));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for end in ["a", "b"] {
            let _ = Command::new("ip").args(["netns", "delete", &format!("{}-{end}", self.name)]).status();
        }
        let _ = std::fs::remove_dir(&self.group);
        // Leftovers of a failure; nothing was loaded before.
        let _ = std::fs::remove_dir_all("/sys/fs/bpf/bentpipe");
    }
}

/// Returns the algorithm of processes outside these namespaces.
fn outside(group: Option<&Path>) -> String {
    let enter = group.map_or(String::new(), |group| format!("echo $$ > {}/cgroup.procs; ", group.display()));
    let script = format!("{enter}exec python3 -c \"$1\" 127.0.0.1");
    let output = Command::new("sh").args(["-c", &script, "sh", ASK]).output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs in the network namespace of one end, as with `nsenter`.
fn inside<R: Send>(world: &World, work: impl FnOnce() -> R + Send) -> R {
    let place = format!("/run/netns/{}-a", world.name);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let namespace = std::fs::File::open(place).expect("the world has it");
            nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).expect("root may");
            work()
        });
        thread.join().expect("it ends")
    })
}

#[test]
fn only_what_was_named_gets_the_algorithm() {
    if loaded().map_or(true, |there| !there.is_empty()) || rules().map_or(true, |rules| !rules.is_empty()) {
        return eprintln!("skipped: no right to look, or algorithms are loaded on this machine already");
    }
    let Some(world) = World::new() else { return };
    let [star, veno] = ["star", "veno"].map(|name| find(name).expect("listed"));
    match load(&[star, veno], &Options::default()) {
        Err(Error::Missing(words)) => return eprintln!("skipped: {words}"),
        done => done.map(|_| ()).expect("the kernel takes them"),
    }
    let usual = outside(None);

    let by_group = Match { group: Some(world.group.clone()), ..Match::default() };
    use_for(Some(star), &by_group).expect("a rule of a group");
    assert_eq!(outside(Some(&world.group)), "bp_star");
    assert_eq!(outside(None), usual, "a process of another group");
    use_for(None, &by_group).expect("it is there");
    assert_eq!(outside(Some(&world.group)), usual);

    let by_interface = Match { interface: Some("sat0".into()), ..Match::default() };
    assert!(matches!(use_for(Some(veno), &by_interface), Err(Error::Request(words)) if words.contains("lo")));
    inside(&world, || use_for(Some(veno), &by_interface)).expect("a rule of an interface");
    assert_eq!(world.over_the_link("a", "b"), "bp_veno");
    assert_eq!(world.run("a", &["python3", "-c", ASK, "127.0.0.1"]), usual, "another interface");

    // It returns with another number, and another interface gets its number.
    let there = rules().expect("root may look").remove(0);
    assert_eq!((there.interface.as_deref(), there.is_there), (Some("sat0"), true));
    world.renew_link();
    assert_eq!(world.over_the_link("a", "b"), "bp_veno", "the interface of the rule has come again");
    assert_eq!(world.towards("a", "b", "10.98.0.2"), usual, "another interface has its number");

    // The other end has a different interface with the same name and number.
    let number =
        |end| world.run(end, &["ip", "-o", "link", "show", "sat0"]).split(':').next().map(str::to_owned);
    assert_eq!(number("a"), number("b"));
    assert_eq!(world.over_the_link("b", "a"), usual, "another namespace");

    let both = Match { to: vec![("10.97.0.2".parse().expect("an address"), 32)], ..by_interface.clone() };
    inside(&world, || use_for(Some(star), &both)).expect("a rule of both");
    assert_eq!(world.over_the_link("a", "b"), "bp_star", "the longer prefix");
    inside(&world, || use_for(None, &both)).expect("it is there");
    inside(&world, || use_for(None, &by_interface)).expect("it is there");
    assert_eq!(world.over_the_link("a", "b"), usual);
    assert!(rules().expect("root may look").is_empty());

    // A control that is the default of another network namespace cannot be unloaded.
    world.run("a", &["sysctl", "-qw", "net.ipv4.tcp_congestion_control=bp_star"]);
    let name = world.name.clone();
    assert!(matches!(unload(star), Err(Error::Request(words)) if words.contains(&name)));
    world.run("a", &["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"]);

    world.run(
        "a",
        &["ip", "route", "change", "10.97.0.0/24", "dev", "sat0", "src", "10.97.0.1", "congctl", "bp_star"],
    );
    assert_eq!(world.over_the_link("a", "b"), "bp_star", "by the route");
    for control in [star, veno] {
        unload(control).expect("it goes");
    }
    assert!(!Path::new("/sys/fs/bpf/bentpipe").exists(), "a folder is left behind");
}
