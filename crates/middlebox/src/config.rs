//! The kinds of middlebox and their parameters.

use bentpipe_base::Duration;

/// Name and meaning of every middlebox.
pub const MIDDLEBOXES: &[(&str, &str)] = &[
    (
        "ack-filter",
        "while the queue behind it is not empty, holds one bare ACK of each connection, the latest",
    ),
    ("ack-decimator", "lets one of so many bare ACKs pass"),
    ("snoop", "repairs losses behind it and keeps them from the sender"),
    ("wtcp", "repairs losses behind it and hides from the sender's clock how long that took"),
    ("spoofing", "acknowledges data in the receiver's name, keeps them and answers for their delivery"),
    ("satpep", "the same, with windows that follow how much of the link behind it is used"),
    ("xcp", "tells XCP's senders how much they may change their rate"),
    ("p-xcp", "the same, and offers what rate-limited senders leave to the others"),
    ("ba-tcp", "tells BA-TCP's receivers the length of the path and their share of it"),
    ("link-notices", "tells the ends when its links lose to errors, go out, and are back (SCPS-TP, PBS)"),
    (
        "fuzzy",
        "tells ends of congestion, or drops, by rules in words on how full a queue is and how fast it fills",
    ),
    ("dvegas", "tells DVegas's senders beside it whether its queue has room"),
];

/// A middlebox and its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MiddleboxConfig {
    /// Thins ACKs out where they would wait (RFC 3449 section 5.2.1).
    AckFilter,
    /// Thins ACKs out regularly (RFC 3449 section 5.2.2).
    AckDecimator(AckDecimatorConfig),
    /// Repairs losses behind it (Balakrishnan et al. 1995).
    Snoop(SnoopConfig),
    /// Repairs losses behind it and hides the time that it takes (Ratnam, Matta 1998).
    Wtcp(WtcpConfig),
    /// Acknowledges early and answers for it (TCP spoofing).
    Spoofing(SpoofingConfig),
    /// The same with windows that follow the use of the link (Velenis et al. 2002).
    SatPep(SatPepConfig),
    /// An XCP router (Katabi et al. 2002), or with its compensation a P-XCP router (Zhou et al. 2004).
    Xcp(XcpConfig),
    /// A BA-TCP router (Gerla et al. 1999).
    BaTcp(BaTcpConfig),
    /// Fuzzy control of congestion, with ECN, BECN or losses.
    Fuzzy(FuzzyConfig),
    /// The queue of DVegas (Wu et al. 2004).
    DVegas(DVegasConfig),
    /// A ground station that says what becomes of its links (CCSDS 714.0, Xu and Wu 2005).
    LinkNotices(LinkNoticesConfig),
}

/// Whom a ground station tells of transmission errors. Of outages it always tells the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Told {
    /// The sender, at once and by a message of its own.
    #[default]
    Sender,
    /// The receiver, in the next segment of the connection, to be passed on with its ACKs.
    Receiver,
}

/// Parameters of a ground station that says what becomes of its links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkNoticesConfig {
    /// Who hears of transmission errors.
    pub errors_to: Told,
    /// Least time between two messages to a connection during one outage: a message may be lost.
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
    /// With so many packets waiting behind the agent it keeps no copies: what the queue drops is congestion, and the sender's business.
    pub congested_at: u32,
    /// Times that a segment is repaired before the sender hears of it.
    pub most_repairs: u32,
    /// Least time without an ACK after which the oldest segment is repaired.
    pub least_timeout: Duration,
    /// When it crashes, with all copies; it forwards what comes then.
    pub dies_at: Option<Duration>,
}

impl Default for SnoopConfig {
    /// Limits as in ns-2; copies until the default queue of a link is full but for one place.
    fn default() -> Self {
        Self { congested_at: 49, most_repairs: 10, least_timeout: Duration::from_millis(100), dies_at: None }
    }
}

/// Parameters of a WTCP base station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WtcpConfig {
    /// Bytes that it keeps for each connection; what comes when they are full passes as at a router.
    pub buffer: u64,
}

impl Default for WtcpConfig {
    /// Room as a proxy has it.
    fn default() -> Self {
        Self { buffer: 2_000_000 }
    }
}

/// Parameters of a spoofing gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpoofingConfig {
    /// Bytes that it keeps for each connection.
    pub buffer: u64,
    /// Window in segments with which it begins to send.
    pub initial_window: u32,
    /// When it crashes, with all that it keeps; it forwards what comes then.
    pub dies_at: Option<Duration>,
}

impl Default for SpoofingConfig {
    /// Room as a proxy has it, and the initial window of RFC 6928.
    fn default() -> Self {
        Self { buffer: 2_000_000, initial_window: 10, dies_at: None }
    }
}

/// Parameters of a SaTPEP gateway.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SatPepConfig {
    /// Bytes that it keeps for each connection.
    pub buffer: u64,
    /// Part of the link that is given away, above 0 and at most 1.
    pub utilisation: f64,
    /// As [`SpoofingConfig::dies_at`].
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
    /// Part of the spare bandwidth that is given away within a round trip, above 0 (α).
    pub alpha: f64,
    /// Part of the persistent queue that is drained within a round trip, above 0 (β).
    pub beta: f64,
    /// Part of the traffic that changes hands for fairness (γ).
    pub gamma: f64,
    /// Spare bandwidth is offered so many times over that those who are not rate-limited can take it all (P-XCP).
    pub compensates: bool,
}

impl Default for XcpConfig {
    /// The values of the paper, which make XCP stable whatever the delay.
    fn default() -> Self {
        Self { alpha: 0.4, beta: 0.226, gamma: 0.1, compensates: false }
    }
}

/// Parameters of a BA-TCP router.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BaTcpConfig {
    /// Part of the rate that is given away, above 0 and at most 1.
    pub utilisation: f64,
}

impl Default for BaTcpConfig {
    fn default() -> Self {
        Self { utilisation: 0.95 }
    }
}

/// Who hears of congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tells {
    /// The receiver, by the ECN field of the packet, and by it the sender a round trip later (RFC 3168).
    Receiver,
    /// The sender, by the next ACK that passes on its way back (backward ECN).
    Sender,
    /// The sender where the queue is rather long than right, else the receiver.
    #[default]
    Graded,
}

/// Parameters of fuzzy control.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FuzzyConfig {
    /// Packets that the queue behind it holds, above 0.
    pub room: u32,
    /// Part of the room that is right, above 0 and at most 1.
    pub target: f64,
    /// Time between two judgements.
    pub interval: Duration,
    /// Most of the data packets that hear of congestion, as a part, above 0.
    pub most: f64,
    /// Who is told.
    pub tells: Tells,
    /// What cannot be marked is dropped instead, and where the queue is rather long than right all of low priority.
    pub drops: bool,
}

impl Default for FuzzyConfig {
    /// The default queue of a link, and a fifth of the packets: less than one a window stops no window from growing.
    fn default() -> Self {
        let interval = Duration::from_millis(50);
        Self { room: 50, target: 0.3, interval, most: 0.2, tells: Tells::default(), drops: false }
    }
}

/// Parameters of the queue of DVegas.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DVegasConfig {
    /// Time between two judgements: a frame of the MAC.
    pub frame: Duration,
    /// With fewer packets waiting for each active sender there is room.
    pub low: f64,
    /// With more there are too many.
    pub high: f64,
    /// Packets that the queue holds; when it is nearly full the senders stop.
    pub room: u32,
}

/// Parameters of an ACK decimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckDecimatorConfig {
    /// One of so many bare ACKs passes, at least 1.
    pub every: u32,
    /// An ACK that was held back leaves after this time if none followed, so that the last ones of a window are not lost.
    pub patience: Duration,
}

impl Default for AckDecimatorConfig {
    /// Every fourth, and no ACK held back for longer than the longest delayed ACK of a host would be (RFC 9293 section 3.8.6.3).
    fn default() -> Self {
        Self { every: 4, patience: Duration::from_millis(500) }
    }
}

impl Default for DVegasConfig {
    /// Vegas's thresholds, widened by what a frame serves.
    fn default() -> Self {
        Self { frame: Duration::from_millis(24), low: 2.0, high: 6.0, room: 50 }
    }
}

impl MiddleboxConfig {
    /// Name of the middlebox in [`MIDDLEBOXES`].
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

    /// The middlebox of this name with its default parameters.
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
