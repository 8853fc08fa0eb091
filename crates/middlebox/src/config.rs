//! Kinds of middleboxes and their parameters.

use bentpipe_base::Duration;

/// Name and meaning of every middlebox.
pub const MIDDLEBOXES: &[(&str, &str)] = &[
    (
        "ack-filter",
        "keeps only the latest pure ACK of a connection in the queue behind it (RFC 3449 section 5.2.1)",
    ),
    ("ack-decimator", "forwards one of `every` pure ACKs (RFC 3449 section 5.2.2)"),
    ("snoop", "repairs losses behind it and hides them from the sender"),
    ("wtcp", "repairs losses behind it, and removes the repair time from the sender's RTT samples"),
    ("spoofing", "acknowledges data in the receiver's name, stores it and delivers it with its own window"),
    ("satpep", "as spoofing, with windows that follow the utilisation of the link behind it"),
    ("xcp", "XCP router: writes the allowed rate change into each packet of `xcp`"),
    ("p-xcp", "as xcp, and offers the unused shares of rate-limited senders to the others"),
    ("ba-tcp", "BA-TCP router: writes propagation delay and fair share for `ba-tcp`"),
    ("link-notices", "reports errors, outages and their ends on its links to the hosts (SCPS-TP, PBS)"),
    ("fuzzy", "signals congestion or drops packets, by fuzzy rules on queue length and its change"),
    ("dvegas", "tells the senders of `dvegas` in front of it whether its queue has room"),
];

/// A middlebox and its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MiddleboxConfig {
    /// Filters ACKs that would wait in a queue (RFC 3449 section 5.2.1).
    AckFilter,
    /// Passes every n-th ACK (RFC 3449 section 5.2.2).
    AckDecimator(AckDecimatorConfig),
    /// Repairs losses on the next link (Balakrishnan et al. 1995).
    Snoop(SnoopConfig),
    /// Repairs losses on the next link and hides the repair time from the sender (Ratnam, Matta 1998).
    Wtcp(WtcpConfig),
    /// Acknowledges data before its delivery and guarantees the delivery (TCP spoofing).
    Spoofing(SpoofingConfig),
    /// TCP spoofing with windows that follow the link's utilisation (Velenis et al. 2002).
    SatPep(SatPepConfig),
    /// An XCP router (Katabi et al. 2002), or with its compensation a P-XCP router (Zhou et al. 2004).
    Xcp(XcpConfig),
    /// A BA-TCP router (Gerla et al. 1999).
    BaTcp(BaTcpConfig),
    /// Fuzzy congestion control with ECN, BECN or losses.
    Fuzzy(FuzzyConfig),
    /// The queue of DVegas (Wu et al. 2004).
    DVegas(DVegasConfig),
    /// A ground station that reports outages and errors of its links (CCSDS 714.0, Xu and Wu 2005).
    LinkNotices(LinkNoticesConfig),
}

/// Recipient of a ground station's reports about transmission errors. Reports about outages always go to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Told {
    /// The sender, at once and in a separate message.
    #[default]
    Sender,
    /// The receiver, in the next segment of the connection. The receiver's ACKs relay the report.
    Receiver,
}

/// Parameters of a ground station that reports outages and errors of its links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkNoticesConfig {
    /// Recipient of reports about transmission errors.
    pub errors_to: Told,
    /// Minimum time between two messages to a connection during an outage. Repetition covers lost messages.
    pub repeat: Duration,
}

impl Default for LinkNoticesConfig {
    fn default() -> Self {
        Self { errors_to: Told::Sender, repeat: Duration::from_millis(500) }
    }
}

/// Parameters of a Snoop agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnoopConfig {
    /// Queue length in packets from which it keeps no copies: a drop there is congestion, which the sender must see.
    pub congested_at: u32,
    /// Maximum number of repairs of a segment; after that the sender sees the loss.
    pub most_repairs: u32,
    /// Minimum time without an ACK before the oldest segment is repaired.
    pub least_timeout: Duration,
    /// Time of a crash, which loses all copies. The node then only forwards.
    pub dies_at: Option<Duration>,
}

impl Default for SnoopConfig {
    /// Limits as in ns-2; copies are kept until a default queue has one place left.
    fn default() -> Self {
        Self { congested_at: 49, most_repairs: 10, least_timeout: Duration::from_millis(100), dies_at: None }
    }
}

/// Parameters of a WTCP base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WtcpConfig {
    /// Buffer per connection in bytes. With a full buffer, packets pass as at a router.
    pub buffer: u64,
}

impl Default for WtcpConfig {
    /// Same buffer as a proxy.
    fn default() -> Self {
        Self { buffer: 2_000_000 }
    }
}

/// Parameters of a spoofing gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpoofingConfig {
    /// Buffer per connection in bytes.
    pub buffer: u64,
    /// Initial window in segments.
    pub initial_window: u32,
    /// Time of a crash, which loses all held data. The node then only forwards.
    pub dies_at: Option<Duration>,
}

impl Default for SpoofingConfig {
    /// Same buffer as a proxy, and the initial window of RFC 6928.
    fn default() -> Self {
        Self { buffer: 2_000_000, initial_window: 10, dies_at: None }
    }
}

/// Parameters of a SaTPEP gateway.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SatPepConfig {
    /// Buffer per connection in bytes.
    pub buffer: u64,
    /// Fraction of the link's capacity to distribute, above 0 and at most 1.
    pub utilisation: f64,
    /// Same as [`SpoofingConfig::dies_at`].
    pub dies_at: Option<Duration>,
}

impl Default for SatPepConfig {
    fn default() -> Self {
        Self { buffer: 2_000_000, utilisation: 0.95, dies_at: None }
    }
}

/// Parameters of an XCP router.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct XcpConfig {
    /// Fraction of the spare bandwidth distributed per round trip, above 0 (α).
    pub alpha: f64,
    /// Fraction of the persistent queue drained per round trip, above 0 (β).
    pub beta: f64,
    /// Fraction of the traffic redistributed for fairness (γ).
    pub gamma: f64,
    /// Multiplies the offered spare bandwidth, so that senders that are not rate-limited can use all of it (P-XCP).
    pub compensates: bool,
}

impl Default for XcpConfig {
    /// The values of the paper, with which XCP is stable for any delay.
    fn default() -> Self {
        Self { alpha: 0.4, beta: 0.226, gamma: 0.1, compensates: false }
    }
}

/// Parameters of a BA-TCP router.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BaTcpConfig {
    /// Fraction of the rate to distribute, above 0 and at most 1.
    pub utilisation: f64,
}

impl Default for BaTcpConfig {
    fn default() -> Self {
        Self { utilisation: 0.95 }
    }
}

/// Recipient of congestion signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tells {
    /// The receiver, by the packet's ECN field. The sender learns of it a round trip later (RFC 3168).
    Receiver,
    /// The sender, by the next ACK that passes in the reverse direction (backward ECN).
    Sender,
    /// The sender if the queue is long, else the receiver.
    #[default]
    Graded,
}

/// Parameters of fuzzy control.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FuzzyConfig {
    /// Capacity of the queue behind the node in packets, above 0.
    pub room: u32,
    /// Target queue length as a fraction of the capacity, above 0 and at most 1.
    pub target: f64,
    /// Interval between two decisions.
    pub interval: Duration,
    /// Maximum fraction of the data packets that signal congestion, above 0.
    pub most: f64,
    /// Recipient of the signals.
    pub tells: Tells,
    /// Drop packets that cannot be marked. While the queue is long, also drop all low-priority packets.
    pub drops: bool,
}

impl Default for FuzzyConfig {
    /// The default queue of a link, and 20 % of the packets: less than one mark per window would not stop its growth.
    fn default() -> Self {
        let interval = Duration::from_millis(50);
        Self { room: 50, target: 0.3, interval, most: 0.2, tells: Tells::default(), drops: false }
    }
}

/// Parameters of the queue of DVegas.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DVegasConfig {
    /// Interval between two decisions: one MAC frame.
    pub frame: Duration,
    /// Queue length per active sender, in packets, below which the queue signals room.
    pub low: f64,
    /// Queue length per active sender, in packets, above which the queue signals a reduction.
    pub high: f64,
    /// Capacity of the queue in packets. When it is nearly full, the senders stop.
    pub room: u32,
}

/// Parameters of an ACK decimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckDecimatorConfig {
    /// One of `every` bare ACKs passes; at least 1.
    pub every: u32,
    /// A held ACK leaves after this time if no other followed, so that a window's last ACK passes.
    pub patience: Duration,
}

impl Default for AckDecimatorConfig {
    /// Every fourth ACK. No ACK is held longer than a host's maximum ACK delay (RFC 9293 section 3.8.6.3).
    fn default() -> Self {
        Self { every: 4, patience: Duration::from_millis(500) }
    }
}

impl Default for DVegasConfig {
    /// Vegas's thresholds, plus the packets that a frame serves.
    fn default() -> Self {
        Self { frame: Duration::from_millis(24), low: 2.0, high: 6.0, room: 50 }
    }
}

impl MiddleboxConfig {
    /// Returns the name of the middlebox in [`MIDDLEBOXES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::AckFilter => "ack-filter",
            Self::AckDecimator(_) => "ack-decimator",
            Self::Snoop(_) => "snoop",
            Self::Wtcp(_) => "wtcp",
            Self::Spoofing(_) => "spoofing",
            Self::SatPep(_) => "satpep",
            Self::Xcp(config) if config.compensates => "p-xcp",
            Self::Xcp(_) => "xcp",
            Self::BaTcp(_) => "ba-tcp",
            Self::Fuzzy(_) => "fuzzy",
            Self::DVegas(_) => "dvegas",
            Self::LinkNotices(_) => "link-notices",
        }
    }

    /// Returns the middlebox of this name with default parameters.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "ack-filter" => Self::AckFilter,
            "ack-decimator" => Self::AckDecimator(AckDecimatorConfig::default()),
            "snoop" => Self::Snoop(SnoopConfig::default()),
            "satpep" => Self::SatPep(SatPepConfig::default()),
            "wtcp" => Self::Wtcp(WtcpConfig::default()),
            "spoofing" => Self::Spoofing(SpoofingConfig::default()),
            "xcp" => Self::Xcp(XcpConfig::default()),
            "p-xcp" => Self::Xcp(XcpConfig { compensates: true, ..XcpConfig::default() }),
            "ba-tcp" => Self::BaTcp(BaTcpConfig::default()),
            "fuzzy" => Self::Fuzzy(FuzzyConfig::default()),
            "dvegas" => Self::DVegas(DVegasConfig::default()),
            "link-notices" => Self::LinkNotices(LinkNoticesConfig::default()),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_a_kind() {
        for (name, _) in MIDDLEBOXES {
            assert_eq!(MiddleboxConfig::from_name(name).map(|config| config.name()), Some(*name));
        }
        assert_eq!(MiddleboxConfig::from_name("host"), None);
    }
}
