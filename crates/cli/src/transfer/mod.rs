//! Shared code of `send` and `receive`: the user-space stack, and the report of a connection.

mod drain;
mod feed;
mod incoming;
mod outgoing;
mod progress;
mod report;
mod stream;

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use bentpipe_base::Duration;
use bentpipe_cc::REGISTRY;
use bentpipe_host::{DeviceConfig, Driver, Id, Limits, Network};
use bentpipe_scenario::{Draft, changed_config, connection_config};
use bentpipe_tcp::{Config, Connection, Reflection, State};

use crate::failure::Failure;
use crate::transfer_args::OnWire;

pub use drain::{Drain, Output};
pub use feed::{Feed, Input};
pub use incoming::{Incoming, open_output, verdict};
pub use outgoing::Outgoing;
pub use progress::Progress;
#[cfg(feature = "quic")]
pub use report::Details;
pub use report::Report;
#[cfg(feature = "quic")]
pub use stream::{LEAST_UNSENT, MOST_UNSENT};
pub use stream::{OverTcp, Stream};

/// Maximum wait of one turn, the interval of progress updates and checks for Ctrl-C.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// Maximum bytes moved at once between a file and a connection.
const PIECE: usize = 256 << 10;
/// Name of the standard streams in place of a file.
const STANDARD: &str = "-";

/// Mode of algorithms that have one, for networks shared with others.
const SAFE: &str = "cc.mode=safe";

/// Default algorithm.
pub const USUAL: &str = "cubic";

/// Role in a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Sender.
    Sender,
    /// Receiver.
    Receiver,
}

/// Returns the configuration of the stack's connections, with the receiver half of the algorithm if it has one.
pub fn config(args: &OnWire, end: End) -> Result<Config, Failure> {
    let (base, cc) = match &args.scenario {
        Some(scenario) => end_of_flow(scenario, args.cc.as_deref(), end)?,
        None => {
            let cc = args.cc.as_deref().unwrap_or(USUAL);
            (connection_config(cc, [])?, cc.to_owned())
        }
    };
    let has_safe_mode = connection_config(&cc, [SAFE]).is_ok();
    let settings = has_safe_mode.then_some(SAFE).into_iter().chain(args.set.iter().map(String::as_str));
    let mut config = changed_config(base, &cc, settings)?;
    let entry = REGISTRY.iter().find(|entry| entry.name == config.sender.cc.name());
    let half = entry.and_then(|entry| entry.receiver);
    config.receiver.reflection = half.map(|half| Reflection { number: half.number, build: half.build });
    Ok(config)
}

/// Returns the configuration of an end of the compared flows of a scenario, with the algorithm's name.
fn end_of_flow(scenario: &str, cc: Option<&str>, end: End) -> Result<(Config, String), Failure> {
    let mut draft = Draft::load(scenario)?;
    cc.map_or(Ok(()), |cc| draft.set_cc(cc))?;
    let found = draft.scenario()?;
    let flow = found.compared_flow().ok_or_else(|| {
        Failure::Request(format!("--scenario {scenario}: found no flow group, accepted: a scenario with one"))
    })?;
    let config = match end {
        End::Sender => &flow.sender,
        End::Receiver => &flow.receiver,
    };
    Ok((Config::clone(config), flow.cc.clone()))
}

/// Claim of the stack's addresses in this network namespace. Two stacks with one address would answer each other's
/// packets.
pub struct Claim {
    _names: Vec<UnixListener>,
}

impl Claim {
    /// Claims the addresses by abstract socket names, which the kernel releases with the process.
    fn of(networks: &[Network]) -> Result<Self, Failure> {
        let claim = |network: &Network| {
            let name = SocketAddr::from_abstract_name(format!("bentpipe {}", network.own));
            name.and_then(|name| UnixListener::bind_addr(&name)).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => Failure::Request(format!(
                    "--address: found {}, which another send or receive has at this moment; accepted: a network of its own for each, \
                     such as --address 10.105.0.6/30",
                    network.own
                )),
                _ => Failure::Missing(format!("cannot claim {}: {error}", network.own)),
            })
        };
        Ok(Self { _names: networks.iter().map(claim).collect::<Result<_, _>>()? })
    }
}

/// Makes the device, the stack, and the claim of its addresses.
pub fn driver(args: &OnWire) -> Result<(Driver, Claim), Failure> {
    let mut networks: Vec<Network> = args.address.clone();
    networks.sort_by_key(|network| network.own.is_ipv6());
    if networks.len() == 2 && networks[0].own.is_ipv4() == networks[1].own.is_ipv4() {
        return Err(Failure::Request("found two addresses of one IP version, accepted: one of each".into()));
    }
    let claim = Claim::of(&networks)?;
    let config = DeviceConfig { name: args.tun.clone(), networks, mtu: args.mtu };
    let driver = Driver::new(&config, Limits::default()).map_err(|why| Failure::Missing(why.to_string()))?;
    Ok((driver, claim))
}

/// True if the connection has data that was not read.
pub fn is_readable(driver: &Driver, id: Id) -> bool {
    driver.stack.connection(id).map_or(0, Connection::readable) > 0
}

/// True if both streams have ended, as far as this end can know.
pub const fn is_over(state: State) -> bool {
    matches!(state, State::TimeWait | State::Closed)
}
