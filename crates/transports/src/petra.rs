//! PETRA (M. Marchese, M. Rossi, G. Morabito, *PETRA: Performance Enhancing Transport Architecture for Satellite Communications*, IEEE JSAC 22(2),
//! 2004): a transport in two layers, split at relay entities, that still acknowledges from end to end.
//!
//! The lower layer carries units from agent to agent: by TCP on the ground, by STP at a fixed rate between two relay entities.
//! Its acknowledgements only mean that the next agent has a unit. The upper layer runs end to end between the hosts. The source
//! keeps its data until the destination has confirmed it, so that a relay entity may crash and lose its units.

mod lower;
mod node;
mod stp_end;
mod unit;
mod upper;

use std::sync::Arc;

use bentpipe_base::{Duration, Rate};

pub use node::{Counters, Node, Place};
pub use unit::{Pdu, Unit};

/// Upper-layer options of a flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Bytes that the source keeps until their confirmation; `None` for four times the BDP of the path.
    pub retention_bytes: Option<u64>,
    /// Bytes after which the destination confirms at the latest.
    pub confirm_bytes: u64,
    /// Time after the first unconfirmed byte when the destination confirms at the latest.
    pub confirm_after: Duration,
    /// Timeout without a confirmation after which the source resends unconfirmed data. It is at least 20 round trips.
    pub timeout: Duration,
    /// Rate between relay entities; `None` for the flow's share of the slowest link.
    pub rate: Option<Rate>,
}

impl Default for Options {
    /// A confirmation every 64 kB or every second; the source resends after ten seconds.
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
    /// Buffer per flow in bytes, used for back-pressure; `None` for twice the BDP of the satellite hop.
    pub buffer: Option<u64>,
    /// Fraction of the buffer from which it accepts no more data.
    pub high: f64,
    /// Fraction of the buffer below which it accepts data again.
    pub low: f64,
    /// Time of a crash, which loses all units.
    pub dies_at: Option<Duration>,
    /// Time from the crash to the restart without memory; `None` for no restart.
    pub back_after: Option<Duration>,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self { buffer: None, high: 0.9, low: 0.5, dies_at: None, back_after: None }
    }
}

impl RelayConfig {
    /// Returns the buffer of a relay entity per flow on a satellite hop, in bytes: by default twice the BDP.
    pub fn buffer_bytes(&self, rate: Rate, round_trip: Duration) -> u64 {
        self.buffer.unwrap_or_else(|| 2 * rate.bytes_in(round_trip)).max(1)
    }
}

/// Lower layer to the neighbour.
#[derive(Clone, Debug)]
pub enum Layer {
    /// TCP with this configuration and this many header bytes per packet.
    Tcp(Arc<bentpipe_tcp::Config>, u32),
    /// STP at a fixed rate.
    Stp {
        /// Rate on the wire.
        rate: Rate,
        /// Payload bytes of a packet, unit header included.
        packet_bytes: u32,
        /// Maximum number of packets held by the receiver.
        window: u32,
    },
}

#[cfg(test)]
mod tests;
