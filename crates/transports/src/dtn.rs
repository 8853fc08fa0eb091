//! A bundle layer (RFC 4838, RFC 5050). Every agent on the path stores a bundle until the next agent has it. The hops need never
//! be up at the same time.
//!
//! The source cuts application data into bundles of equal size (proactive fragmentation, section 5.8). A bundle cut by the end of
//! a contact is sent again, not fragmented. Agents at hosts and bundle routers forward bundles hop by hop over a convergence
//! layer. It is LTP (RFC 5326) with reports of missing data, bare datagrams, or TCP with any congestion control and one
//! connection per contact. Contacts are known in advance. With custody, an agent that accepts a bundle keeps it until the next
//! custodian or the destination has acknowledged it, and resends it after a timeout. Without custody, a bundle is deleted after
//! its transmission. The destination reports delivered bundles to the source: the only end-to-end acknowledgement. Security and
//! multipath routing are not implemented.

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
pub use node::{Counters, Node, Stop};

/// Bundle options of a flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Policy {
    /// Payload of a bundle in bytes, at least one.
    pub bundle_bytes: u32,
    /// Lifetime of a bundle from its creation.
    pub lifetime: Duration,
    /// True if bundles request custody.
    pub custody: bool,
    /// Contact time without a custody signal after which a bundle is sent again.
    pub custody_timer: Duration,
    /// True if the source requests delivery reports.
    pub report: bool,
    /// Bytes of bundles stored at the source; further data waits in the application.
    pub store_bytes: u64,
    /// Convergence layer between agents.
    pub convergence: Convergence,
    /// Sending rate of bundles; `None` for the rate of the hop's slowest link.
    pub rate: Option<Rate>,
}

impl Default for Policy {
    /// Bundles of 64 KiB with custody and a lifetime of one hour. The custody timer of 10 s is about 18 round trips of a
    /// geostationary satellite.
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

/// Convergence layer between agents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Convergence {
    /// LTP: the last segment of a block requests a report, and missing data is sent again.
    Ltp,
    /// LTP's segments without reports: the loss of one segment loses the bundle.
    Udp,
    /// A stream of bundles in both directions (after TCPCL, RFC 9174) over the [`Tcp`] of each hop, at TCP's rate.
    Tcp,
}

/// Configuration of a bundle router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterConfig {
    /// Maximum bytes of bundles stored per flow.
    pub store_bytes: u64,
    /// True if the router becomes custodian of bundles that request one.
    pub custody: bool,
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self { store_bytes: 64 << 20, custody: true }
    }
}

/// TCP at an end of a hop.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// TCP configuration, with its algorithm.
    pub config: Arc<bentpipe_tcp::Config>,
    /// Header bytes (IP and TCP) of a segment.
    pub header_bytes: u32,
}

/// Hop to the next agent.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Times of the contacts.
    pub contacts: Contacts,
    /// Sending rate of packets.
    pub rate: Rate,
    /// Round-trip delay of the link.
    pub round_trip: Duration,
    /// TCP of [`Convergence::Tcp`]; `None` for other layers.
    pub tcp: Option<Tcp>,
}

#[cfg(test)]
mod tests;
