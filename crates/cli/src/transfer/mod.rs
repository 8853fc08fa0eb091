//! What `send` and `receive` have in common: the stack of our own, and what there is to tell of a connection.

mod drain;
mod feed;
mod progress;
mod report;

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use bentpipe_base::Duration;
use bentpipe_cc::REGISTRY;
use bentpipe_host::{DeviceConfig, Driver, Limits, Network};
use bentpipe_scenario::{Draft, changed_config, connection_config};
use bentpipe_tcp::{Config, Reflection, State};

use crate::failure::Failure;
use crate::transfer_args::OnWire;

pub use drain::{Drain, Output};
pub use feed::{Feed, Input};
pub use progress::Progress;
pub use report::Report;

/// How long one turn waits at most: so often progress is shown, and Ctrl-C is heard.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// Bytes moved in one piece between a file and a connection, at most.
const PIECE: usize = 256 << 10;
/// The standard streams in place of a file.
const STANDARD: &str = "-";

/// What algorithms that have such a mode use in networks that belong to others.
const SAFE: &str = "cc.mode=safe";

/// The algorithm where nothing names one.
const USUAL: &str = "cubic";

/// Which end of a flow we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The one that sends.
    Sender,
    /// The one that receives.
    Receiver,
}

/// The configuration of our ends: with the receiver half of the algorithm, if it has one.
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
    let entry = REGISTRY.iter().find(|entry| entry.name == config.cc.name());
    let half = entry.and_then(|entry| entry.receiver);
    config.reflection = half.map(|half| Reflection { number: half.number, build: half.build });
    Ok(config)
}

/// What an end of the flows under comparison is in a scenario, and the name of its algorithm.
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

/// An address of ours that no other stack of ours in this network namespace may have meanwhile: two would answer each other's packets.
pub struct Claim {
    _names: Vec<UnixListener>,
}

impl Claim {
    /// Claims the addresses, by names that the kernel forgets with their owner.
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

/// The device and the stack, and the claim to its addresses.
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

/// Both streams have ended, as far as this end can know.
pub const fn is_over(state: State) -> bool {
    matches!(state, State::TimeWait | State::Closed)
}
