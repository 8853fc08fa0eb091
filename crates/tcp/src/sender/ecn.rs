//! Explicit congestion notification.

use bentpipe_base::{EcnField, Flags};

use crate::accurate_ecn::Reported;

/// ECN state of the sender (RFC 3168, RFC 9768).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ecn {
    /// ECN was not agreed on in the handshake.
    Off,
    /// Classic ECN: the peer echoes marks, and this end reacts to them.
    On,
    /// Classic ECN is on, and the next new segment confirms a reduction to the peer (CWR).
    Reduced,
    /// Accurate ECN: the peer reports the number of marks.
    Accurate(Reported),
}

impl Ecn {
    /// Returns the ECN field of new data.
    #[inline]
    pub fn field(self) -> EcnField {
        match self {
            Self::Off => EcnField::NotCapable,
            Self::On | Self::Reduced => EcnField::Capable,
            Self::Accurate(reported) => reported.field,
        }
    }

    /// True with Accurate ECN.
    pub fn is_accurate(self) -> bool {
        matches!(self, Self::Accurate(_))
    }

    /// Returns the marks reported by an ACK with these flags that shows the arrival of `arrived` packets; 1 for an echo of
    /// classic ECN. With Accurate ECN, an ACK without news may be older than the last one, and reports nothing.
    pub fn take_marks(&mut self, flags: Flags, arrived: u32) -> u32 {
        match self {
            Self::Accurate(reported) if arrived > 0 => reported.take(flags, arrived),
            Self::Accurate(_) => 0,
            _ => u32::from(flags.contains(Flags::ECE)),
        }
    }

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
