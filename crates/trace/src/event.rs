use bentpipe_base::{Instant, Segment, WindowState};
use serde::Serialize;

/// Reason why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropCause {
    /// The queue was full, or active queue management dropped the packet.
    Queue,
    /// A priority queue refused or pushed out a low-priority packet.
    LowPriority,
    /// The packet was lost by a transmission error.
    Error,
    /// Outage of the link.
    Outage,
    /// All transmissions of the packet on a shared medium collided.
    Access,
}

/// An event in the simulated network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// A connection sent a segment.
    Sent(Segment),
    /// A connection received a segment.
    Received(Segment),
    /// Congestion window, slow-start threshold, pacing rate or phase changed.
    Window(WindowState),
    /// A round-trip sample, with the smoothed RTT after it.
    Rtt {
        /// The round-trip sample in nanoseconds.
        sample_ns: u64,
        /// Smoothed round-trip time in nanoseconds.
        srtt_ns: u64,
    },
    /// Loss recovery began.
    RecoveryEntered,
    /// Loss recovery ended.
    RecoveryLeft,
    /// The retransmission timer expired.
    Timeout {
        /// Number of consecutive expiries, starting at 1.
        consecutive: u32,
    },
    /// A reduction was undone, because the loss or timeout was spurious.
    Undone,
    /// A packet arrived at a link. If the link refuses it, a drop event follows immediately.
    Offered {
        /// Number of packets in the queue after this arrival.
        waiting: u32,
        /// Size of the packet on the wire, in bytes.
        bytes: u32,
    },
    /// A link dropped a packet.
    Dropped {
        /// Reason for the drop.
        cause: DropCause,
        /// Size of the packet on the wire, in bytes.
        bytes: u32,
    },
}

impl Event {
    /// The names of all events.
    pub const NAMES: [&'static str; 10] = [
        "sent",
        "received",
        "window",
        "rtt",
        "recovery-entered",
        "recovery-left",
        "timeout",
        "undone",
        "offered",
        "dropped",
    ];

    /// Returns the event's name.
    pub const fn name(&self) -> &'static str {
        let index = match self {
            Self::Sent(_) => 0,
            Self::Received(_) => 1,
            Self::Window(_) => 2,
            Self::Rtt { .. } => 3,
            Self::RecoveryEntered => 4,
            Self::RecoveryLeft => 5,
            Self::Timeout { .. } => 6,
            Self::Undone => 7,
            Self::Offered { .. } => 8,
            Self::Dropped { .. } => 9,
        };
        Self::NAMES[index]
    }
}

/// An event with its time and source. The source is a flow or link, by its index in the world.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record {
    /// Time of the event.
    pub at: Instant,
    /// Index of the connection's end or of the link, as documented by the driver.
    pub source: u32,
    /// The event itself.
    pub event: Event,
}

/// Receiver of records. The drivers are generic over it, so a simulation without a trace has no
/// cost for tracing.
pub trait Sink {
    /// Processes one record.
    fn record(&mut self, record: &Record);
}

impl<F: FnMut(&Record)> Sink for F {
    fn record(&mut self, record: &Record) {
        self(record);
    }
}
