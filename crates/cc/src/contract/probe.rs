//! Probes and their replies.

use bentpipe_base::ProbeTag;
use serde::{Deserialize, Serialize};

use super::ack::Phase;

/// Content of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeKind {
    /// A copy of the data segment sent last (Peach's dummy segment). It carries nothing new for the receiver.
    Dummy,
    /// A copy of one outstanding segment (Swift, Peach+). The index counts from the oldest, modulo the number outstanding. The
    /// copy repairs the loss of that segment.
    Outstanding(u32),
    /// A copy of the oldest segment that is missing by SACK and not yet retransmitted, else of the newest outstanding one. The
    /// copy of a missing segment always repairs a loss.
    Hole,
    /// The newest outstanding segment as an ordinary retransmission (STAR's acknowledgement error notification).
    Newest,
    /// One old byte just below the first unacknowledged one, which makes the receiver send an ACK.
    AckPath,
}

/// Probe sent before a timeout is believed. Its answer shows whether data or only ACKs were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutProbe {
    /// The newest outstanding segment. It repairs no older loss, so that the answer shows whether one happened.
    #[default]
    Newest,
    /// The segment that timed out.
    Oldest,
    /// No data, just below the first unacknowledged byte.
    Keepalive,
}

impl TimeoutProbe {
    /// Returns the content of the probe for the engine.
    pub fn kind(self) -> ProbeKind {
        match self {
            Self::Newest => ProbeKind::Newest,
            Self::Oldest => ProbeKind::Outstanding(0),
            Self::Keepalive => ProbeKind::AckPath,
        }
    }
}

/// A probe to send now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeRequest {
    /// Content of the probe.
    pub kind: ProbeKind,
    /// Tag that the reply echoes.
    pub tag: ProbeTag,
}

/// State of the sender when the engine asks for probes. It asks after all data that the window allows, and after each data
/// segment if [`Prober::follows_each_segment`](crate::Prober::follows_each_segment) is true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeMoment {
    /// Data segments (new or retransmitted) sent since the last arrival or timer event.
    pub data_sent: u32,
    /// True if the last of these carried new data.
    pub sent_newest: bool,
}

/// The reply to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeReply {
    /// Tag of the probe.
    pub tag: ProbeTag,
    /// Segments that the reply acknowledged cumulatively. A copy of an outstanding segment may fill a hole.
    pub acked: u32,
    /// Recovery state on arrival of the reply.
    pub phase: Phase,
}
