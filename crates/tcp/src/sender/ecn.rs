//! Explicit congestion notification.

/// ECN state of the sender (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ecn {
    /// Not agreed on.
    Off,
    /// The peer echoes marks, and this end reacts to them.
    On,
    /// As `On`, and the next new segment confirms a reduction to the peer.
    Reduced,
}

impl Ecn {
    /// Records a window reduction of any cause.
    pub fn reduce(&mut self) {
        if *self == Self::On {
            *self = Self::Reduced;
        }
    }

    /// Records that the reduction was confirmed or undone. Returns true if there was one.
    pub fn settle(&mut self) -> bool {
        let reduced = *self == Self::Reduced;
        if reduced {
            *self = Self::On;
        }
        reduced
    }
}
