//! Requirements of an algorithm to the engine, and the optional capabilities of algorithms.

use bentpipe_base::{Extension, Instant, Segment};

use super::departure::Sent;
use super::path::Path;
use super::probe::{ProbeMoment, ProbeReply, ProbeRequest};

/// Services that an algorithm needs from the engine. The engine asks once per connection and skips the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requirements {
    /// Window arithmetic during recovery.
    pub accounting: Accounting,
    /// True if the engine must call [`CongestionControl::on_sent`](crate::CongestionControl::on_sent).
    pub sent: bool,
    /// True if [`CongestionControl::spacing`](crate::CongestionControl::spacing) may return [`Spacing::Withheld`](crate::Spacing::Withheld). The engine then checks it before it selects a
    /// segment.
    pub withholds: bool,
    /// True if only the window limits the sender and delivery rates are not used. The engine then skips
    /// [`CongestionControl::spacing`](crate::CongestionControl::spacing) and [`Ack::rate`](crate::Ack::rate).
    pub window_only: bool,
    /// True if [`CongestionControl::spacing`](crate::CongestionControl::spacing) always sets a rate. Pacing is part of the law: without it, the host runs a
    /// different algorithm.
    pub pacing: bool,
    /// True if the algorithm reacts to the number of marks (a scalable congestion control, RFC 9331). With Accurate ECN, the engine
    /// sends its data as ECT(1), reports marks only by [`Ack::marks`](crate::Ack::marks), and counts unmarked segments for growth.
    pub scalable: bool,
    /// True if the engine must call [`CongestionControl::timeout_probe`](crate::CongestionControl::timeout_probe). The engine's own
    /// probe before a timeout is then off.
    pub timeout_probes: bool,
}

/// Quantity that the engine compares with the window during loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Accounting {
    /// [`Path::in_flight`] (RFC 6675): each SACKed or lost segment makes room. The window is constant in fast recovery, so the
    /// engine may spread its reduction over the round trip (PRR, RFC 9937). After a reduction by a mark, the engine does not
    /// report a loss in the same window of data (RFC 3168 section 6.1.2).
    #[default]
    Pipe,
    /// [`Path::in_flight`] without PRR: the algorithm sets its window in fast recovery itself, or only its rate limits the
    /// sender.
    Own,
    /// [`Path::outstanding`] (RFC 5681, RFC 6582): the algorithm inflates its own window on duplicate ACKs.
    Outstanding,
}

/// An algorithm that sends probes: dummies, or copies of outstanding segments (TCP-Peach, TCP-Swift). The handshake then offers
/// probes.
pub trait Prober {
    /// Returns the next probe to send now, or `None`. The engine repeats the call until it returns `None`.
    fn next_probe(&mut self, moment: &ProbeMoment, path: &Path) -> Option<ProbeRequest>;

    /// True if probes may also leave between two data segments.
    fn follows_each_segment(&self) -> bool {
        false
    }

    /// Handles the reply to a probe.
    fn on_probe_acked(&mut self, reply: &ProbeReply, path: &Path);

    /// True while duplicate ACKs without new SACK blocks must not count as loss. They may be the answers of a receiver that does
    /// not know probes.
    fn distrusts_duplicates(&self) -> bool {
        false
    }

    /// True if a D-SACK report (RFC 2883) of a probe's range counts as its reply. It applies if the handshake did not agree on
    /// replies; the engine asks once.
    fn takes_reports(&self) -> bool {
        false
    }
}

/// An algorithm that writes fields into its segments and reads the answers of receiver or routers (XCP, TCP Real).
pub trait Feedback {
    /// Registry number of the receiver half that the peer must run. Zero means none: only notices from the network are read. The
    /// engine asks once.
    fn receiver(&self) -> u8;

    /// Returns the fields of a data segment that leaves (if the peer agreed to [`receiver`](Self::receiver)).
    fn stamp(&mut self, sent: &Sent, path: &Path) -> Extension {
        let _ = (sent, path);
        Extension::None
    }

    /// Handles the fields of an ACK (if the peer agreed to [`receiver`](Self::receiver)), or a [`Notice`](bentpipe_base::Notice)
    /// that the network sent by itself.
    fn on_feedback(&mut self, fields: &Extension, path: &Path);
}

/// An algorithm that detects losses by its own rules (TCP Vegas, WestwoodBR).
pub trait Detector {
    /// Returns the segments to retransmit before the usual evidence; called on every ACK and every timer event. `oldest_sent` is
    /// the last transmission time of the oldest outstanding segment.
    fn early_retransmit(&mut self, oldest_sent: Instant, path: &Path) -> EarlyRetransmit;

    /// True if the window law assumes these retransmissions. A transport with only its own loss detection then refuses the
    /// algorithm.
    fn is_essential(&self) -> bool {
        false
    }
}

/// Verdict of a [`Detector`] about the oldest outstanding segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EarlyRetransmit {
    /// No retransmission except by the usual rules of loss detection.
    None,
    /// Retransmit the oldest segment now, before the usual evidence (Vegas's fine-grained timeout).
    Oldest,
    /// Retransmit everything that is neither acknowledged nor SACKed (WestwoodBR's bulk repeat).
    Everything,
}

/// An algorithm that sets its own timer.
pub trait Sleeper {
    /// Time of the next timer event, read after every call; [`Instant::FAR_FUTURE`] for none.
    fn wake_at(&self) -> Instant;

    /// Handles the timer event. The result says whether an empty segment asks the peer for an ACK, even if data is withheld.
    fn on_wake(&mut self, path: &Path) -> Wake;
}

/// Action after a timer event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// No segment is sent.
    Quiet,
    /// An empty segment asks the peer for an ACK.
    AskForAck,
}

/// The receiver half of an algorithm.
pub trait Reflector: Send {
    /// Handles a data segment that arrived. `duplicate` is true if the receiver already had every byte.
    fn on_data(&mut self, now: Instant, segment: &Segment, duplicate: bool);

    /// Returns the fields of the ACK that leaves next.
    fn reply(&mut self, now: Instant) -> Extension;
}
