//! Needs of algorithms that no packet transport serves.

use core::fmt;

use crate::{Accounting, Algorithm, CongestionControl, Entry, REGISTRY, Start};

/// A service that a packet transport does not offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Probes: copies of data or dummies of low priority, with replies of the receiver.
    Probes,
    /// Fields that a receiver half or routers write.
    ReceiverHalf,
    /// Retransmissions by the algorithm's own rules.
    OwnRetransmissions,
    /// A window that duplicate ACKs inflate.
    DuplicateAcks,
    /// Times at which no data may leave, and the retransmission timer stops.
    Withholding,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Probes => "probes and the receiver's replies to them",
            Self::ReceiverHalf => "header fields written by its receiver half or by routers",
            Self::OwnRetransmissions => "retransmissions by its own rules",
            Self::DuplicateAcks => "duplicate ACKs that inflate its window",
            Self::Withholding => "a retransmission timer that stops while it withholds data",
        })
    }
}

/// An algorithm that does not run over packet transports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// The service that it needs.
    pub need: Need,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { algorithm, need } = self;
        write!(f, "`{algorithm}` does not run over a packet transport: it needs {need}")
    }
}

impl core::error::Error for Refused {}

/// Returns the first need of `cc` that no packet transport serves.
pub(super) fn unserved(cc: &mut dyn CongestionControl) -> Option<Need> {
    let requirements = cc.requirements();
    if cc.prober().is_some() {
        Some(Need::Probes)
    } else if cc.feedback().is_some_and(|feedback| feedback.receiver() != 0) {
        Some(Need::ReceiverHalf)
    } else if cc.detector().is_some_and(|detector| detector.is_essential()) {
        Some(Need::OwnRetransmissions)
    } else if requirements.accounting == Accounting::Outstanding {
        Some(Need::DuplicateAcks)
    } else if requirements.withholds {
        Some(Need::Withholding)
    } else {
        None
    }
}

/// Returns the registered algorithms that run over packet transports with their default parameters.
pub fn supported() -> impl Iterator<Item = &'static Entry> {
    REGISTRY.iter().filter(|entry| {
        let start = Start {
            mss: 1200,
            initial_window: 10.0,
            initial_ssthresh: f64::INFINITY,
            paced: true,
            seed: 0,
            memory: None,
        };
        Algorithm::from_name(entry.name)
            .is_some_and(|algorithm| unserved(&mut *algorithm.build(&start)).is_none())
    })
}
