use bentpipe_base::Rate;
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
    /// Most that each connection sends there; as much as congestion control allows if absent.
    pub rate_limit: Option<Rate>,
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
        Self { cc: USUAL.into(), law: None, datapath: Datapath::Kernel, rate_limit: None }
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
