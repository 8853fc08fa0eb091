//! A layer of bundles (RFC 4838, RFC 5050): every agent on the path keeps what it is given until the next one has it, over hops
//! that need never be up at the same time.
//!
//! The source cuts what the application sends into bundles of one size (proactive fragmentation, section 5.8); a bundle that is cut by the end of a contact is
//! sent anew, not fragmented again. Agents at hosts and at the bundle routers between them pass bundles on, hop by hop, over a convergence layer: LTP (RFC 5326), which
//! reports what is missing of a block, bare datagrams, or TCP with any congestion control, a connection for each contact. Contacts are known in advance. With custody, whoever accepts a bundle keeps it until the next
//! custodian or the destination has said so, and sends it again after a time; without, it is forgotten when it left. The destination reports what it
//! delivered to the source: the only end-to-end acknowledgement. Security and routing over several ways are not part of it.

mod adapter;
mod blocks;
mod bundle;
mod contacts;
mod line;
mod node;
mod sessions;
mod stream;

use std::sync::Arc;

use bentpipe_base::{Duration, Rate};

pub use bundle::{Bundle, Name, Payload, Pdu, Record};
pub use contacts::Contacts;
pub use node::{Counters, Node};

/// How a flow uses bundles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Policy {
    /// Payload of a bundle, at least one byte.
    pub bundle_bytes: u32,
    /// For how long a bundle is of use, from when it is made.
    pub lifetime: Duration,
    /// Custodians are asked for.
    pub custody: bool,
    /// After so long with contact and without a word of the next custodian, a bundle is sent again.
    pub custody_timer: Duration,
    /// The source wants to know what was delivered.
    pub report: bool,
    /// Bytes of bundles that the source keeps; what the application has besides waits there.
    pub store_bytes: u64,
    /// What carries bundles from agent to agent.
    pub convergence: Convergence,
    /// Rate at which bundles leave; none for that of the slowest link of the hop.
    pub rate: Option<Rate>,
}

impl Default for Policy {
    /// Bundles of 64 KiB for an hour with custody, repeated after 10 s: a few round trips of a geostationary satellite.
    fn default() -> Self {
        Self {
            bundle_bytes: 1 << 16,
            lifetime: Duration::from_secs(3600),
            custody: true,
            custody_timer: Duration::from_secs(10),
            report: true,
            store_bytes: 64 << 20,
            convergence: Convergence::Ltp,
            rate: None,
        }
    }
}

/// What carries bundles from agent to agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Convergence {
    /// LTP: the last segment of a block asks for a report, what that misses is sent again.
    Ltp,
    /// The same segments without reports: a bundle of which one is lost is lost.
    Udp,
    /// A stream of bundles in both directions (after TCPCL, RFC 9174) over the [`Tcp`] of each hop; it leaves as fast as that allows.
    Tcp,
}

/// What an agent on the path has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterConfig {
    /// Bytes of bundles that it keeps for a flow.
    pub store_bytes: u64,
    /// Becomes the custodian of bundles that ask for one.
    pub custody: bool,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self { store_bytes: 64 << 20, custody: true }
    }
}

/// How an end of a hop runs TCP.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// Its algorithm and all else.
    pub config: Arc<bentpipe_tcp::Config>,
    /// IP and TCP headers of a segment.
    pub header_bytes: u32,
}

/// The hop to the next agent.
#[derive(Clone, Debug)]
pub struct Hop {
    /// When it is there.
    pub contacts: Contacts,
    /// Rate at which packets leave.
    pub rate: Rate,
    /// Delay there and back.
    pub round_trip: Duration,
    /// What carries bundles under [`Convergence::Tcp`]; none under the others.
    pub tcp: Option<Tcp>,
}

#[cfg(test)]
mod tests;
