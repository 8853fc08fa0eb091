use std::net::{IpAddr, SocketAddr};

use bentpipe_base::{Duration, Rate};

use crate::split::{ClientPrefix, Split};

/// A proxy between clients and a satellite link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Deployment {
    /// Interfaces to the clients and to the satellite link.
    pub interfaces: Interfaces,
    /// Classes of connections; the first match decides. A connection without a class is forwarded untouched.
    pub classes: Vec<Class>,
    /// Queue of the satellite interfaces; unchanged if absent.
    pub queue: Option<FqCodel>,
    /// Limits of the proxy.
    pub limits: Limits,
    /// Outputs for monitoring.
    pub watch: Watch,
    /// Settings of the process.
    pub workings: Workings,
}

/// Network interfaces by name or pattern: `ppp*` matches all names that begin with `ppp`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interfaces {
    /// Interfaces towards the clients.
    pub clients: Vec<String>,
    /// Interfaces towards the satellite link.
    pub satellite: Vec<String>,
}

/// True if the interface name equals `pattern` or matches it.
pub fn interface_fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

/// A class of connections and its treatment.
#[derive(Clone, PartialEq, Debug)]
pub struct Class {
    /// Name in metrics and logs.
    pub name: String,
    /// Connections of the class.
    pub matches: Match,
    /// True if the proxy splits them; otherwise they are forwarded untouched.
    pub proxy: bool,
    /// Treatment of QUIC.
    pub quic: Quic,
    /// Settings of split connections.
    pub split: Split,
}

/// Treatment of packets to UDP port 443 that belong to a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quic {
    /// The kernel forwards them.
    #[default]
    Forward,
    /// New flows are answered with ICMP port unreachable, so that browsers use TCP.
    Refuse,
}

/// Conditions of a class; a connection must fulfil all of them.
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
    /// Side of the end that opens the connection.
    pub opener: Opener,
}

/// Side of the proxy from which a connection is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Opener {
    /// The side of the clients.
    #[default]
    Clients,
    /// Beyond the satellite link.
    Satellite,
}

/// Range of ports, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    /// The lowest port.
    pub first: u16,
    /// The highest port.
    pub last: u16,
}

/// A network: an address and the length of its prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// First address; its host bits are zero.
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub length: u8,
}

/// Limits of the proxy. At a limit new connections are forwarded untouched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of connections.
    pub connections: u32,
    /// Maximum bytes of all buffers, the kernel's included.
    pub memory: u64,
    /// Maximum number of connections that one client opened; no limit if absent.
    pub per_client: Option<u32>,
    /// Maximum number of half-open connections, whose server has not answered.
    pub half_open: u32,
    /// Maximum number of half-open connections of one client.
    pub half_open_per_client: u32,
    /// Prefix lengths that identify a client.
    pub client: ClientPrefix,
    /// Time that one half may acknowledge none of the bytes sent before a reset of the other half.
    pub reset_after: Duration,
}

/// FQ-CoDel (RFC 8290) of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodel {
    /// Rate of a token bucket in front; none if absent.
    pub rate: Option<Rate>,
    /// Accepted standing delay.
    pub target: Duration,
    /// Time for which the delay may exceed `target`.
    pub interval: Duration,
    /// Maximum number of packets in the queue.
    pub limit: u32,
}

/// Outputs for monitoring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// Address of the HTTP server for metrics and health; none if absent.
    pub listen: Option<SocketAddr>,
    /// File that gets one line of JSON for each finished connection.
    pub connections: Option<String>,
}

/// Settings of the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workings {
    /// Number of relay threads; one per core if absent.
    pub threads: Option<u32>,
    /// Time after SIGTERM until open connections are cut.
    pub drain: Duration,
    /// User that the process runs as after its start.
    pub user: Option<String>,
    /// Bits of the packet mark that belong to the proxy: six neighbouring bits.
    pub marks: u32,
}

/// A connection, as its SYN shows it on the router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened<'a> {
    /// Side of the end that opens the connection.
    pub opener: Opener,
    /// Address and port of the client, which opens the connection.
    pub client: SocketAddr,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Name of the interface over which the SYN leaves.
    pub out: &'a str,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            name: String::new(),
            matches: Match::default(),
            proxy: true,
            quic: Quic::default(),
            split: Split::default(),
        }
    }
}

impl Default for FqCodel {
    /// For a GEO link: an interval of two round trips, and a target of a twelfth of it.
    fn default() -> Self {
        Self {
            rate: None,
            target: Duration::from_millis(100),
            interval: Duration::from_millis(1200),
            limit: 10_240,
        }
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
    /// Sort key that puts a network before the networks inside it, and these before all later ones.
    pub(super) fn order(&self) -> (bool, u128, u8) {
        match self.address {
            IpAddr::V4(address) => (false, address.to_bits().into(), self.length),
            IpAddr::V6(address) => (true, address.to_bits(), self.length),
        }
    }

    /// Returns the same addresses as sorted networks that do not overlap.
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
    /// Returns the class of a connection, if it has one.
    pub fn class_of(&self, opened: &Opened<'_>) -> Option<usize> {
        self.classes.iter().position(|class| class.matches.holds(opened))
    }
}
