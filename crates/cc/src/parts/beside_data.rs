//! Probes that leave together with data. Each copies the segment sent before it; a new segment is
//! followed by two.

use super::mode::Mode;
use super::probe_train::most_probes;
use crate::{Path, ProbeMoment};

/// Count of the probes that are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Beside {
    due: u32,
    /// Data segments since the last arrival whose probes have left.
    served: u32,
}

impl Beside {
    /// Returns true if another of `allowed` probes leaves now. Two probes follow each new segment.
    pub fn next(&mut self, moment: &ProbeMoment, allowed: u32) -> bool {
        if moment.data_sent > self.served {
            *self = Self { due: if moment.sent_newest { 2 } else { 0 }, served: moment.data_sent };
        }
        let leaves = self.due.min(allowed) > 0;
        self.due -= u32::from(leaves);
        leaves
    }
}

/// Start of a connection with probes between its data segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StartBesideData {
    /// Probes that may still be sent.
    allowed: u32,
    /// Probes sent.
    sent: u32,
}

impl StartBesideData {
    /// Makes a start with `allowed` probes; `None` if that is zero.
    pub fn of(allowed: u32) -> Option<Self> {
        (allowed > 0).then_some(Self { allowed, sent: 0 })
    }

    /// Returns the number of probes that may leave now.
    pub fn allowed(&self, mode: Mode, path: &Path) -> u32 {
        self.allowed.min(most_probes(mode, path).saturating_sub(self.sent))
    }

    /// Counts one sent probe; `None` after the last.
    pub fn next(self) -> Option<Self> {
        (self.allowed > 1).then_some(Self { allowed: self.allowed - 1, sent: self.sent + 1 })
    }
}
