use bentpipe_base::{Instant, Segment, WindowState};
use serde::Serialize;

/// Why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropCause {
    /// The queue had no room, or active queue management chose this packet.
    Queue,
    /// A low-priority packet was refused or pushed out by a priority discipline.
    LowPriority,
    /// Transmission error.
    Error,
    /// The link was out.
    Outage,
    /// A shared medium let no transmission of it through: all of them collided.
    Access,
}

/// One thing that happened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// A connection sent a segment.
    Sent(Segment),
    /// A connection received a segment.
    Received(Segment),
    /// Window, threshold, rate or phase changed.
    Window(WindowState),
    /// A round-trip sample in nanoseconds, with the smoothed value after it.
    Rtt {
        /// Latest sample.
        sample_ns: u64,
        /// Smoothed round-trip time.
        srtt_ns: u64,
    },
    /// Loss recovery began.
    RecoveryEntered,
    /// Loss recovery ended.
    RecoveryLeft,
    /// The retransmission timer expired; consecutive expiries counted from 1.
    Timeout {
        /// 1 for the first expiry of an episode.
        consecutive: u32,
    },
    /// A reduction was taken back because the loss or timeout turned out to be none.
    Undone,
    /// A link was offered a packet of so many bytes; a drop follows at once if it was refused.
    Offered {
        /// Packets waiting after it.
        waiting: u32,
        /// Size on the wire.
        bytes: u32,
    },
    /// A link dropped a packet of so many bytes.
    Dropped {
        /// Why.
        cause: DropCause,
        /// Size on the wire.
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

    /// What the event is called.
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

/// An event with its time and its place: a flow or a link by its index in the world.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// Index of the connection end or link, in the namespace that the driver documents.
    pub source: u32,
    /// What.
    pub event: Event,
}

/// Takes records. The drivers are generic over it, so that a world without a trace pays nothing.
pub trait Sink {
    /// Takes one record.
    fn record(&mut self, record: &Record);
}

impl<F: FnMut(&Record)> Sink for F {
    fn record(&mut self, record: &Record) {
        self(record);
    }
}
