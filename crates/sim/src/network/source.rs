//! Sources of the packets of a link: several links, or one link alone.

use bentpipe_scenario::LinkId;

/// Source of a link's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Nowhere,
    /// This link alone, whose departures are known in advance.
    One(LinkId),
    /// Several links of that kind.
    Several,
    /// Also other sources.
    Elsewhere,
}

impl Source {
    /// Combines both sources.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nowhere, other) => other,
            (Self::Elsewhere, _) | (_, Self::Elsewhere) => Self::Elsewhere,
            _ if self == other => self,
            _ => Self::Several,
        }
    }
}
