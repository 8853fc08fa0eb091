//! PETRA (M. Marchese, M. Rossi, G. Morabito, *PETRA: Performance Enhancing Transport Architecture for Satellite Communications*, IEEE JSAC 22(2),
//! 2004): a transport in two layers, split at relay entities, that still acknowledges from end to end.
//!
//! The lower transport layer carries units from agent to agent, by TCP on the ground and by STP at a rate of its own between two relay entities; its
//! acknowledgements mean no more than that the next agent has a unit. The upper layer runs between the hosts over all of them: the source keeps what it
//! sends until the destination has confirmed it, so that a relay entity may crash and lose what it holds.

mod lower;
mod node;
mod stp_end;
mod unit;
mod upper;

use std::sync::Arc;

use bentpipe_base::{Duration, Rate};

pub use node::{Counters, Node, Place};
pub use unit::{Pdu, Unit};

/// How a flow uses the upper layer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Bytes that the source keeps until they are confirmed; none for four times the bandwidth-delay product of the path.
    pub retention_bytes: Option<u64>,
    /// The destination confirms after so many bytes at the latest.
    pub confirm_bytes: u64,
    /// And so long after the first of them.
    pub confirm_after: Duration,
    /// The source sends again what is not confirmed after so long without a confirmation, or after twenty round trips if that is longer.
    pub timeout: Duration,
    /// Rate between relay entities; none for the flow's share of the slowest link.
    pub rate: Option<Rate>,
}

impl Default for Options {
    /// A confirmation every 64 kB or every second; the source sends again after ten seconds.
    fn default() -> Self {
        Self {
            retention_bytes: None,
            confirm_bytes: 64_000,
            confirm_after: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            rate: None,
        }
    }
}

/// A relay entity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RelayConfig {
    /// Bytes of a flow that it keeps, for which it reckons back-pressure; none for twice the bandwidth-delay product of its hop by satellite.
    pub buffer: Option<u64>,
    /// Takes nothing more from this part of the buffer on.
    pub high: f64,
    /// Until it holds less than this part.
    pub low: f64,
    /// When it crashes with all that it holds.
    pub dies_at: Option<Duration>,
    /// How long after that it is back, without memory; none for never.
    pub back_after: Option<Duration>,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self { buffer: None, high: 0.9, low: 0.5, dies_at: None, back_after: None }
    }
}

impl RelayConfig {
    /// Bytes that a relay entity keeps for a flow on a hop by satellite: by default twice the bandwidth-delay product.
    pub fn buffer_bytes(&self, rate: Rate, round_trip: Duration) -> u64 {
        self.buffer.unwrap_or_else(|| 2 * rate.bytes_in(round_trip)).max(1)
    }
}

/// What carries units to the neighbour.
#[derive(Clone, Debug)]
pub enum Layer {
    /// TCP, with this configuration and so many bytes of headers in each packet.
    Tcp(Arc<bentpipe_tcp::Config>, u32),
    /// STP at a rate of its own.
    Stp {
        /// On the wire.
        rate: Rate,
        /// Payload of a packet, the header of the unit included.
        packet_bytes: u32,
        /// Packets that the receiver holds at most.
        window: u32,
    },
}

#[cfg(test)]
mod tests;
