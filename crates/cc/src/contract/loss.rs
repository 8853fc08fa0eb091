//! Losses, marks and timeouts, and the undo of a reduction.

use super::path::Path;

/// Reason for a window reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Segments were lost.
    Loss,
    /// A router marked congestion (RFC 3168).
    Mark,
    /// The retransmission timer expired for the first time since an ACK made progress. Only a [`Rule`](crate::Rule) receives this
    /// cause; algorithms use [`CongestionControl::on_rto`](crate::CongestionControl::on_rto).
    Timeout,
}

/// Start of a loss or mark episode, reported once per episode.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loss {
    /// Cause of the episode.
    pub cause: Cause,
    /// Segments marked lost so far in this episode.
    pub lost: u32,
    /// Segments outstanding just before the detection (`FlightSize` of RFC 5681).
    pub outstanding: u32,
    /// In-flight segments just before the detection.
    pub in_flight: u32,
    /// Window use validated within the last round trips, in segments (RFC 7661 `pipeACK`), if validation is on.
    pub validated: Option<f64>,
}

/// An expiry of the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeout {
    /// Number of expiries since an ACK made progress; 1 for the first.
    pub consecutive: u32,
    /// Number of outstanding segments: sent but not cumulatively acknowledged.
    pub outstanding: u32,
    /// True if a [`timeout_probe`](crate::CongestionControl::timeout_probe) was answered without progress. It does not count as a further expiry.
    pub answered: bool,
}

impl Timeout {
    /// Returns the loss of all outstanding segments, for a [`Rule`](crate::Rule).
    pub fn as_loss(&self, path: &Path) -> Loss {
        let Self { outstanding, .. } = *self;
        Loss {
            cause: Cause::Timeout,
            lost: outstanding,
            outstanding,
            in_flight: path.in_flight,
            validated: None,
        }
    }
}

/// Effect of a believed timeout on the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackOff {
    /// The timer doubles (RFC 6298 section 5.5).
    Double,
    /// The retransmission timer keeps its length.
    Keep,
}

impl BackOff {
    /// Returns [`BackOff::Double`] if `doubles`, else [`BackOff::Keep`].
    pub fn if_true(doubles: bool) -> Self {
        if doubles { Self::Double } else { Self::Keep }
    }
}

/// Scope of the undo after a spurious reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undo {
    /// Restores everything that the last reduction changed.
    Reduction,
    /// Restores only the threshold of the last timeout: slow start continues up to the former window (Hasegawa's Enhanced TCP).
    /// An algorithm without a threshold restores everything.
    Threshold,
}
