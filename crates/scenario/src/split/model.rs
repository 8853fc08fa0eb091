use std::net::IpAddr;

use bentpipe_base::{Duration, Rate};
use bentpipe_cc::{Algorithm, careful_resume};
use bentpipe_tcp::Recovery;

use crate::algorithm::resolve_cc;

/// Name of the congestion control that would be used without a proxy.
pub(super) const USUAL: &str = "default";
/// Bounds of [`Split::most_unsent`] in bytes with `buffer = "auto"`.
const LEAST_UNSENT: u64 = 256 << 10;
const MOST_UNSENT: u64 = 16 << 20;
/// Bytes kept in each direction with `buffer = "auto"`.
const MOST_KEPT: u64 = 32 << 20;
/// Default of [`Side::keepalive`]. It is below 4 minutes, the shortest idle timeout of common load balancers, and
/// below the 5 to 30 minutes of stateful firewalls and carrier NATs.
const KEEPALIVE: Duration = Duration::from_secs(180);

/// Settings of a split-connection proxy: a table `[node.NAME]` of kind `proxy` in a scenario, or a `[[class]]` of a
/// proxy on a real link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Split {
    /// Half of a connection over the satellite.
    pub satellite: Side,
    /// Half of a connection towards the clients.
    pub clients: Side,
    /// Maximum bytes kept in each direction of a connection; from the measured bandwidth-delay product if absent.
    pub buffer: Option<u64>,
    /// Time of the answer to a SYN.
    pub syn: Opening,
}

/// Settings of one half of a connection.
#[derive(Clone, PartialEq, Debug)]
pub struct Side {
    /// Congestion control of the proxy's sender, as named by the user. `default` is the machine's choice or, in a
    /// simulation, the flow's algorithm.
    pub cc: String,
    /// The algorithm with its parameters, if the user set some.
    pub law: Option<Algorithm>,
    /// TCP implementation of this half; no effect in a simulation.
    pub datapath: Datapath,
    /// Maximum sending rate; only congestion control limits the rate if absent.
    pub rate_limit: Option<RateLimit>,
    /// Idle time after which the end is probed; never if absent. No effect in a simulation.
    pub keepalive: Option<Duration>,
    /// Careful Resume of the engine (RFC 9959); off if absent. In a simulation that of the flow.
    pub careful_resume: Option<careful_resume::Config>,
}

/// Limit of the sending rate on one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimit {
    /// Rate of payload and headers for a single connection, of payload for several.
    pub rate: Rate,
    /// Connections that share the rate. In a simulation each connection has its own limit.
    pub per: Scope,
}

/// Connections that share a rate limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// Each connection has its own limit.
    #[default]
    Connection,
    /// All connections of the class.
    Class,
    /// Connections of the class from the same client.
    Client(ClientPrefix),
}

/// Prefix lengths that identify a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientPrefix {
    /// Bits of an IPv4 address.
    pub v4: u8,
    /// Bits of an IPv6 address.
    pub v6: u8,
}

/// TCP implementation of one half of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Datapath {
    /// The kernel of this machine.
    Kernel,
    /// Bentpipe's engine, in user space.
    Engine,
}

/// Time at which the proxy answers the SYN of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Opening {
    /// After the server's answer: the client learns of the server's failures.
    #[default]
    ServerFirst,
    /// At once: this saves a round trip over the satellite, but the client learns of a failure only afterwards.
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
            careful_resume: None,
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
    /// A whole IPv4 address, or the /64 of an IPv6 address, because an IPv6 host has many addresses.
    fn default() -> Self {
        Self { v4: 32, v6: 64 }
    }
}

impl ClientPrefix {
    /// Returns the network of the client with this address, as its first address.
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
    /// Returns the Linux name of the congestion control; `None` for the machine's choice.
    pub fn kernel_cc(&self) -> Option<&str> {
        Some(without_kernel(&self.cc)).filter(|name| *name != USUAL)
    }

    /// Returns the engine's algorithm for the name, with the recovery if the name includes one; `None` for the flow's
    /// algorithm.
    pub fn algorithm(&self) -> Option<(Algorithm, Option<Recovery>)> {
        let name = registered(&self.cc);
        let (usual, recovery) = resolve_cc(name).ok()?;
        // A Linux name does not select the loss recovery.
        let recovery = recovery.filter(|_| self.datapath == Datapath::Engine || name != "reno");
        Some((self.law.clone().unwrap_or(usual), recovery))
    }
}

/// Returns a Linux name without the prefix `kernel:`.
pub(super) fn without_kernel(name: &str) -> &str {
    name.strip_prefix("kernel:").unwrap_or(name)
}

/// Returns the registered algorithm for a Linux name, also for names that `bentpipe kernel load` makes.
pub(super) fn registered(name: &str) -> &str {
    let name = without_kernel(name);
    name.strip_prefix("bp_").unwrap_or(name)
}

impl Split {
    /// Returns the maximum bytes kept in each direction.
    pub fn most_kept(&self) -> u64 {
        self.buffer.unwrap_or(MOST_KEPT)
    }

    /// Returns the maximum bytes that wait for their first transmission, for this bandwidth-delay product in bytes.
    /// With `buffer = "auto"` it is two of them, between 256 KiB and 16 MiB: the sender never runs dry.
    pub fn most_unsent(&self, product_bytes: u64) -> u64 {
        match self.buffer {
            Some(bytes) => bytes,
            None => product_bytes.saturating_mul(2).clamp(LEAST_UNSENT, MOST_UNSENT),
        }
    }
}
