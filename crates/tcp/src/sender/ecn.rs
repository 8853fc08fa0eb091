//! Explicit congestion notification.

/// Congestion marks (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ecn {
    /// Not agreed on.
    Off,
    /// The peer echoes marks and this end honours them.
    On,
    /// The same, and the next new segment tells the peer that the window was reduced.
    Reduced,
}

impl Ecn {
    /// The window was reduced for whatever reason.
    pub fn reduce(&mut self) {
        if *self == Self::On {
            *self = Self::Reduced;
        }
    }

    /// The peer has been told of the reduction, or the reduction was undone. True if there was one.
    pub fn settle(&mut self) -> bool {
        let reduced = *self == Self::Reduced;
        if reduced {
            *self = Self::On;
        }
        reduced
    }
}
