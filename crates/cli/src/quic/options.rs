//! Arguments of an end, as the configuration of the stack.

use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_cc::packets::{PacketControl, Settings};
use bentpipe_host::Network;
use bentpipe_quic::{Control, Factory};
use bentpipe_scenario::{Error, LEAST_QUIC_WINDOW, connection_config};
use bentpipe_tcp::Config;
use noq_proto::{MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::failure::Failure;
use crate::transfer::{self, End};
use crate::transfer_args::{ADDRESS_VARIABLE, OnWire, USUAL_ADDRESSES};

/// Headers of UDP and of either IP version.
const IPV4_HEADERS: u16 = 28;
const IPV6_HEADERS: u16 = 48;
/// Smallest UDP payload of a path, and the size of the first packets (RFC 9000, section 14).
const LEAST_PAYLOAD: u16 = 1200;
/// Largest receive window in bytes. The stack ends a connection if more than 2,048 packets wait behind a lost one, and the smallest full
/// packets have 1,200 bytes.
const MOST_WINDOW: u64 = 1_900 * LEAST_PAYLOAD as u64;
/// Settings of TCP that QUIC has, too.
const KEYS: [&str; 3] = ["tcp.initial-window", "tcp.receive-window", "tcp.careful-resume"];
/// Interval of packets on a quiet connection. The stack gives up a peer that is silent for 30 s.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Configuration of one end.
pub struct Options {
    /// Algorithm, windows and memory, as for TCP. Its algorithm is unused if `stack` is one.
    pub config: Config,
    /// Congestion control of the stack, if it is one.
    stack: Option<Control>,
    mtu: u16,
}

impl Options {
    /// Checks the arguments.
    pub fn of(args: &OnWire, end: End) -> Result<Self, Failure> {
        refuse_options_of_tcp(args)?;
        let stack = args.cc.as_deref().and_then(Control::of_stack);
        let config = match &stack {
            None => transfer::config(args, end).map_err(|failure| with_stack(args, failure))?,
            Some(_) => {
                if let Some(found) = args.set.iter().find(|setting| setting.starts_with("cc.")) {
                    let cc = args.cc.as_deref().unwrap_or_default();
                    let why = format!("--set {found}: found `{cc}`, which has no parameters here");
                    return Err(Failure::Request(why));
                }
                connection_config("cubic", args.set.iter().map(String::as_str))?
            }
        };
        let options = Self { config, stack, mtu: args.mtu };
        if options.segments() < LEAST_QUIC_WINDOW {
            let found = options.segments();
            let why = format!(
                "--set tcp.initial-window: found {found} packets over QUIC, accepted: at least {LEAST_QUIC_WINDOW}"
            );
            return Err(Failure::Request(why));
        }
        let found = options.config.receiver.receive_window.limit();
        if found > MOST_WINDOW && args.set.iter().any(|setting| setting.starts_with("tcp.receive-window")) {
            let why = format!(
                "--set tcp.receive-window: found {found} bytes over QUIC, accepted: at most {MOST_WINDOW}, because the stack \
                 ends a connection if 2,048 packets wait behind a lost one"
            );
            return Err(Failure::Request(why));
        }
        options.control()?;
        Ok(options)
    }

    /// True if the congestion control is one of the stack.
    pub fn is_of_stack(&self) -> bool {
        self.stack.is_some()
    }

    /// Initial window in packets.
    fn segments(&self) -> u32 {
        self.config.sender.initial_window.segments(LEAST_PAYLOAD.into())
    }

    /// Returns the congestion control of a new connection.
    pub fn control(&self) -> Result<Control, Failure> {
        if let Some(control) = &self.stack {
            return Ok(control.clone());
        }
        let sender = &self.config.sender;
        let settings = Settings {
            initial_window: self.segments(),
            ecn: true,
            seed: RandomState::new().build_hasher().finish(),
            memory: sender.memory.clone(),
            careful_resume: sender.careful_resume,
            ..Settings::default()
        };
        let refuse = |why: &dyn Display| Failure::Request(format!("--cc: {why}"));
        let made = PacketControl::new(&sender.cc, &settings).map_err(|refused| refuse(&refused))?;
        if made.is_scalable() {
            let why = "does not run over QUIC: it needs packets sent as ECT(1), and the stack sends ECT(0)";
            return Err(refuse(&format!("`{}` {why}", made.name())));
        }
        let factory = Factory::new(sender.cc.clone(), settings).map_err(|refused| refuse(&refused))?;
        Ok(Control::Own(Box::new(factory)))
    }

    /// Returns the largest UDP payload for the smaller of the IP headers.
    pub fn most_payload(&self) -> u16 {
        self.mtu - IPV4_HEADERS
    }

    /// Returns the configuration of a connection to `peer`.
    pub fn transport(&self, control: &Control, peer: SocketAddr) -> TransportConfig {
        let mut config = TransportConfig::default();
        let window = varint(self.config.receiver.receive_window.limit().min(MOST_WINDOW));
        config.receive_window(window).stream_receive_window(window);
        config.max_concurrent_bidi_streams(1_u32.into()).max_concurrent_uni_streams(0_u32.into());
        config.datagram_receive_buffer_size(None);
        config.keep_alive_interval(Some(KEEP_ALIVE));
        let headers = if peer.ip().to_canonical().is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS };
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(self.mtu - headers);
        config.initial_mtu(LEAST_PAYLOAD).mtu_discovery_config(Some(discovery));
        let initial = u64::from(self.segments()) * u64::from(LEAST_PAYLOAD);
        config.congestion_controller_factory(control.controllers(initial));
        config
    }
}

fn varint(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

/// Refuses options that have no meaning over QUIC.
fn refuse_options_of_tcp(args: &OnWire) -> Result<(), Failure> {
    let refuse = |found: &str, accepted: &str| {
        Err(Failure::Request(format!("found {found} with --transport quic, accepted: {accepted}")))
    };
    if args.tun.is_some() {
        return refuse("--tun", "no such option, because QUIC uses a socket of the kernel");
    }
    if is_given(&args.address) {
        return refuse("--address", "no such option, because QUIC uses the addresses of the kernel");
    }
    if args.scenario.is_some() {
        return refuse("--scenario", "--cc NAME and --set KEY=VALUE");
    }
    if args.mtu < LEAST_PAYLOAD + IPV6_HEADERS {
        let least = LEAST_PAYLOAD + IPV6_HEADERS;
        return refuse(&format!("--mtu {}", args.mtu), &format!("at least {least} (RFC 9000, section 14)"));
    }
    if let Some(cc) = args.cc.as_deref().filter(|cc| cc.contains('+')) {
        return refuse(&format!("--cc {cc}"), "a name without recovery, because QUIC has its own");
    }
    let is_of_tcp = |setting: &&String| {
        let key = setting.split('=').next().unwrap_or_default().trim();
        let is_known = KEYS.iter().any(|known| key == *known || key.starts_with(&format!("{known}.")));
        key.starts_with("tcp.") && !is_known
    };
    match args.set.iter().find(is_of_tcp) {
        Some(found) => refuse(&format!("--set {found}"), &format!("cc.KEY=VALUE, and {}", KEYS.join(", "))),
        None => Ok(()),
    }
}

/// True if the command line has these addresses: they are neither the default nor those of the environment, which are for TCP.
fn is_given(address: &[Network]) -> bool {
    let parsed = |texts: &mut dyn Iterator<Item = &str>| -> Vec<Network> {
        texts.filter_map(|text| text.parse().ok()).collect()
    };
    let ambient = std::env::var(ADDRESS_VARIABLE).unwrap_or_default();
    address != parsed(&mut USUAL_ADDRESSES.into_iter()) && address != parsed(&mut ambient.split(','))
}

/// Adds the controls of the stack to the accepted names.
fn with_stack(args: &OnWire, failure: Failure) -> Failure {
    let cc = args.cc.clone().unwrap_or_default();
    match bentpipe_scenario::resolve_cc(&cc) {
        Err(Error::UnknownAlgorithm { name, mut known }) => {
            known.extend(Control::stack_names().map(str::to_owned));
            Error::UnknownAlgorithm { name, known }.into()
        }
        _ => failure,
    }
}
