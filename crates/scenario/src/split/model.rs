use std::net::IpAddr;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::Algorithm;
use bentpipe_tcp::Recovery;

use crate::algorithm::resolve_cc;

/// What stands for the congestion control that would be used without a proxy.
pub(super) const USUAL: &str = "default";
/// Bounds in bytes of what waits for its first transmission where nothing but the path bounds it.
const LEAST_UNSENT: u64 = 256 << 10;
const MOST_UNSENT: u64 = 16 << 20;
/// Bytes kept in a direction where nothing but the path bounds them.
const MOST_KEPT: u64 = 32 << 20;
/// Default of [`Side::keepalive`]: below 4 minutes, the shortest idle timeout of the load balancers in common use, and below the 5 to 30 minutes
/// of stateful firewalls and carrier NATs.
const KEEPALIVE: Duration = Duration::from_secs(180);

/// What a split-connection proxy does with a connection: the same table in a scenario (`[node.NAME]` of kind `proxy`) and in the configuration of
/// a proxy on a real link (`[[class]]`).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Split {
    /// The half over the satellite.
    pub satellite: Side,
    /// The half towards the clients.
    pub clients: Side,
    /// Bytes kept at most in each direction of a connection; by the measured bandwidth-delay product if absent.
    pub buffer: Option<u64>,
    /// When a SYN is answered.
    pub syn: Opening,
}

/// One half of a connection.
#[derive(Clone, PartialEq, Debug)]
pub struct Side {
    /// Congestion control of what the proxy sends there, as the user named it; `default` is what the machine has chosen or, in a
    /// simulation, that of the flow.
    pub cc: String,
    /// The algorithm with its parameters, if the user gave some.
    pub law: Option<Algorithm>,
    /// Which TCP runs there; without effect in a simulation.
    pub datapath: Datapath,
    /// Most that is sent there; as much as congestion control allows if absent.
    pub rate_limit: Option<RateLimit>,
    /// How long a connection is silent before its end there is asked whether it still exists; never if absent. Without effect in a simulation.
    pub keepalive: Option<Duration>,
}

/// A bound of what is sent on one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimit {
    /// Payload and headers of a single connection; payload of several.
    pub rate: Rate,
    /// Which connections share the rate. In a simulation each connection has a limit of its own.
    pub per: Scope,
}

/// Which connections share a rate limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// None: each connection has a limit of its own.
    #[default]
    Connection,
    /// All connections of the class.
    Class,
    /// Connections of the class that one client has opened.
    Client(ClientPrefix),
}

/// How many bits of an address tell clients apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientPrefix {
    /// Bits of an IPv4 address.
    pub v4: u8,
    /// Bits of an IPv6 address.
    pub v6: u8,
}

/// Which TCP runs one half of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Datapath {
    /// The kernel of this machine.
    Kernel,
    /// Our engine, in user space.
    Engine,
}

/// When the proxy answers the SYN of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Opening {
    /// When the server has answered: failures are those of the server.
    #[default]
    ServerFirst,
    /// At once: a round trip over the satellite is saved, and a failure is known only afterwards.
    Early,
}

impl Default for Side {
    fn default() -> Self {
        Self {
            cc: USUAL.into(),
            law: None,
            datapath: Datapath::Kernel,
            rate_limit: None,
            keepalive: Some(KEEPALIVE),
        }
    }
}

impl std::fmt::Display for RateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = self.rate;
        match self.per {
            Scope::Connection => write!(f, "{rate} for each connection"),
            Scope::Class => write!(f, "{rate} for all connections of the class"),
            Scope::Client(prefix) => write!(f, "{rate} for all connections of one client ({prefix})"),
        }
    }
}

impl std::fmt::Display for ClientPrefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}, /{}", self.v4, self.v6)
    }
}

impl Default for ClientPrefix {
    /// An IPv4 address, or the network of an IPv6 address, in which every host has many.
    fn default() -> Self {
        Self { v4: 32, v6: 64 }
    }
}

impl ClientPrefix {
    /// The network that stands for the client with this address: its first address.
    pub fn of(self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.v4.min(32))).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.v6.min(128))).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        }
    }
}

impl Side {
    /// Name of the congestion control in Linux; none for what the machine has chosen.
    pub fn kernel_cc(&self) -> Option<&str> {
        Some(without_kernel(&self.cc)).filter(|name| *name != USUAL)
    }

    /// The algorithm of the engine that stands for the one that is named, and its recovery if the name brings one; none for that of the flow.
    pub fn algorithm(&self) -> Option<(Algorithm, Option<Recovery>)> {
        let name = registered(&self.cc);
        let (usual, recovery) = resolve_cc(name).ok()?;
        // In Linux the name says nothing of how losses are repaired.
        let recovery = recovery.filter(|_| self.datapath == Datapath::Engine || name != "reno");
        Some((self.law.clone().unwrap_or(usual), recovery))
    }
}

/// A name of Linux without the word that says so.
pub(super) fn without_kernel(name: &str) -> &str {
    name.strip_prefix("kernel:").unwrap_or(name)
}

/// The registered algorithm that a name of Linux stands for, among them those that `bentpipe kernel load` brings.
pub(super) fn registered(name: &str) -> &str {
    let name = without_kernel(name);
    name.strip_prefix("bp_").unwrap_or(name)
}

impl Split {
    /// Bytes kept at most in each direction.
    pub fn most_kept(&self) -> u64 {
        self.buffer.unwrap_or(MOST_KEPT)
    }

    /// Bytes that may wait for their first transmission on a path of this bandwidth-delay product (in bytes): two of them with `buffer = "auto"`,
    /// enough for the sender never to run dry and no more, between 256 KiB and 16 MiB.
    pub fn most_unsent(&self, product_bytes: u64) -> u64 {
        match self.buffer {
            Some(bytes) => bytes,
            None => product_bytes.saturating_mul(2).clamp(LEAST_UNSENT, MOST_UNSENT),
        }
    }
}
