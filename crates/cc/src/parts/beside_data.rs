//! Probes that leave beside data: each a copy of the segment before it, two with a segment of new data.

use super::mode::Mode;
use super::probe_train::most_probes;
use crate::{Path, ProbeMoment};

/// The probes that are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Beside {
    due: u32,
    /// Of the segments that have left since the last arrival those that have had their probes.
    served: u32,
}

impl Beside {
    /// Whether another probe leaves, where so many are allowed: two do after each new segment.
    pub fn next(&mut self, moment: &ProbeMoment, allowed: u32) -> bool {
        if moment.data_sent > self.served {
            *self = Self { due: if moment.sent_newest { 2 } else { 0 }, served: moment.data_sent };
        }
        let leaves = self.due.min(allowed) > 0;
        self.due -= u32::from(leaves);
        leaves
    }
}

/// A start that probes beside its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StartBesideData {
    /// Probes that may still be sent.
    allowed: u32,
    /// Probes sent.
    sent: u32,
}

impl StartBesideData {
    /// A start that may send `allowed` probes. `None` if there are none to send.
    pub fn of(allowed: u32) -> Option<Self> {
        (allowed > 0).then_some(Self { allowed, sent: 0 })
    }

    /// How many probes may leave now.
    pub fn allowed(&self, mode: Mode, path: &Path) -> u32 {
        self.allowed.min(most_probes(mode, path).saturating_sub(self.sent))
    }

    /// A probe leaves: what remains.
    pub fn next(self) -> Option<Self> {
        (self.allowed > 1).then_some(Self { allowed: self.allowed - 1, sent: self.sent + 1 })
    }
}
