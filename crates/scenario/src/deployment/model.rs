use std::net::{IpAddr, SocketAddr};

use bentpipe_base::Duration;

use crate::split::{ClientPrefix, Split};

/// A proxy between clients and a satellite link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Deployment {
    /// Where clients and the satellite link are.
    pub interfaces: Interfaces,
    /// Kinds of connections, the first match wins. What matches none is forwarded untouched.
    pub classes: Vec<Class>,
    /// What the proxy may use at most.
    pub limits: Limits,
    /// How the proxy can be watched.
    pub watch: Watch,
    /// How the proxy works.
    pub workings: Workings,
}

/// Names of network interfaces, or patterns for them: `ppp*` stands for all names that begin with `ppp`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interfaces {
    /// Those that lead to clients.
    pub clients: Vec<String>,
    /// Those that lead to the satellite link.
    pub satellite: Vec<String>,
}

/// True if the name of an interface is `pattern`, or fits it.
pub fn interface_fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

/// A kind of connections, and what is done with them.
#[derive(Clone, PartialEq, Debug)]
pub struct Class {
    /// Its name in metrics and logs.
    pub name: String,
    /// Which connections belong to it.
    pub matches: Match,
    /// Whether they are split; forwarded untouched otherwise.
    pub proxy: bool,
    /// What is done with them if they are.
    pub split: Split,
}

/// Which connections belong to a class: those for which all of this holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Match {
    /// Ports of the server; any if empty.
    pub ports: Vec<PortRange>,
    /// Networks of the client; any if empty.
    pub from: Vec<Prefix>,
    /// Networks of the server; any if empty.
    pub to: Vec<Prefix>,
    /// Interfaces over which the client's SYN leaves, or patterns for them; any if empty.
    pub out: Vec<String>,
    /// Who opens the connection.
    pub opener: Opener,
}

/// On which side of the proxy the end stands that opens a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Opener {
    /// On the side of the clients.
    #[default]
    Clients,
    /// Beyond the satellite link.
    Satellite,
}

/// Ports from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    /// The smallest.
    pub first: u16,
    /// The largest.
    pub last: u16,
}

/// A network: an address and how many of its bits count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// An address in it; bits that do not count are zero.
    pub address: IpAddr,
    /// Bits that count.
    pub length: u8,
}

/// What the proxy may use at most. At a limit new connections are forwarded untouched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: u32,
    /// Bytes in all buffers, those of the kernel included.
    pub memory: u64,
    /// Connections at a time that one client has opened; no limit if absent.
    pub per_client: Option<u32>,
    /// Connections at a time whose server has not answered.
    pub half_open: u32,
    /// The same of one client.
    pub half_open_per_client: u32,
    /// What counts as one client.
    pub client: ClientPrefix,
    /// How long one half of a connection may go without progress with the bytes that came before a reset of the other half.
    pub reset_after: Duration,
}

/// How the proxy can be watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// Where metrics and health are served over HTTP; nowhere if absent.
    pub listen: Option<SocketAddr>,
    /// File to which a line of JSON is added for each finished connection.
    pub connections: Option<String>,
}

/// How the proxy works.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workings {
    /// Threads that move bytes; as many as there are cores if absent.
    pub threads: Option<u32>,
    /// How long connections may go on after the proxy was told to end.
    pub drain: Duration,
    /// User whose rights the proxy keeps after its start.
    pub user: Option<String>,
    /// Bits of the packet mark that belong to the proxy: six in a row.
    pub marks: u32,
}

/// A connection as its SYN shows it on its way through the router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened<'a> {
    /// On which side of the proxy the end stands that opens it.
    pub opener: Opener,
    /// Address and port of who opens it.
    pub client: SocketAddr,
    /// Address and port of who is asked.
    pub server: SocketAddr,
    /// Name of the interface over which the SYN leaves.
    pub out: &'a str,
}

impl Default for Class {
    fn default() -> Self {
        Self { name: String::new(), matches: Match::default(), proxy: true, split: Split::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 50_000,
            memory: 1 << 30,
            per_client: None,
            half_open: 16_384,
            half_open_per_client: 512,
            client: ClientPrefix::default(),
            reset_after: Duration::from_secs(60),
        }
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self { listen: Some(([127, 0, 0, 1], 9464).into()), connections: None }
    }
}

impl Default for Workings {
    fn default() -> Self {
        Self { threads: None, drain: Duration::from_secs(30), user: None, marks: 0x3f00_0000 }
    }
}

impl Prefix {
    /// True if `address` is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                self.length == 0 || (own.to_bits() ^ other.to_bits()) >> (32 - self.length) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                self.length == 0 || (own.to_bits() ^ other.to_bits()) >> (128 - self.length) == 0
            }
            _ => false,
        }
    }
}

impl Prefix {
    /// Sorts a network before those that lie in it, and these before all that lie behind it.
    pub(super) fn order(&self) -> (bool, u128, u8) {
        match self.address {
            IpAddr::V4(address) => (false, address.to_bits().into(), self.length),
            IpAddr::V6(address) => (true, address.to_bits(), self.length),
        }
    }

    /// The same addresses as sorted networks of which none lies in another.
    pub fn minimal(networks: &[Self]) -> Vec<Self> {
        let mut sorted = networks.to_vec();
        sorted.sort_unstable_by_key(Self::order);
        let mut kept: Vec<Self> = Vec::new();
        for network in sorted {
            if kept.last().is_none_or(|last| !last.contains(network.address)) {
                kept.push(network);
            }
        }
        kept
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl std::fmt::Display for PortRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl Match {
    /// True if a connection belongs to the class.
    pub fn holds(&self, opened: &Opened<'_>) -> bool {
        let among = |networks: &[Prefix], address: IpAddr| {
            networks.is_empty() || networks.iter().any(|network| network.contains(address))
        };
        let port = opened.server.port();
        self.opener == opened.opener
            && (self.ports.is_empty()
                || self.ports.iter().any(|range| (range.first..=range.last).contains(&port)))
            && among(&self.from, opened.client.ip())
            && among(&self.to, opened.server.ip())
            && (self.out.is_empty() || self.out.iter().any(|pattern| interface_fits(pattern, opened.out)))
    }
}

impl Deployment {
    /// The class of a connection, if it belongs to one.
    pub fn class_of(&self, opened: &Opened<'_>) -> Option<usize> {
        self.classes.iter().position(|class| class.matches.holds(opened))
    }
}
