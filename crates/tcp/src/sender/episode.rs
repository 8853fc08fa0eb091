//! Recovery episodes, and the checks for spurious timeouts.

use bentpipe_base::Instant;

use super::scoreboard::Index;

/// Recovery episode of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) enum Episode {
    /// No loss is known.
    Open,
    /// Fast recovery until `recover` is acknowledged.
    Recovery {
        recover: u64,
        /// Index from which holes may still be filled early by RFC 6675 rule 3.
        early_from: Index,
    },
    /// After a timeout, until `recover` is acknowledged.
    Loss { recover: u64, check: TimeoutCheck },
}

impl Episode {
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

/// Check for a spurious timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimeoutCheck {
    /// No check: the timeout is believed.
    None,
    /// F-RTO waits for the first ACK after the retransmission (RFC 5682 step 2).
    AwaitFirst,
    /// F-RTO has sent new data and waits for the second ACK (step 3).
    AwaitSecond,
    /// Eifel compares the echo of the first ACK with the time of the retransmission (RFC 3522), in milliseconds.
    AwaitEcho(u32),
    /// Enhanced TCP compares the time of the first ACK with that of the retransmission.
    AwaitTiming(Instant),
}
