//! Rules that a scheme adds to the common sender.

use bentpipe_base::Extension;
use serde::{Deserialize, Serialize};

use crate::parts::mode::Mode;
use crate::{Ack, Path, ProbeKind, Windows};

/// Quantity that the window is compared with in recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The listing of TCP-Swift. `pipe` begins as cwnd0 - 3 + 1, which counts the lost segment and its retransmission.
    Listing,
    /// `pipe` of RFC 6675, without the lost segment.
    Pipe,
    /// RFC 5681: each duplicate ACK inflates the window, which bounds all unacknowledged data.
    Inflation,
    /// RFC 9937 (PRR): the reduction is spread over the round trip. Probes leave together with data, in recovery and at the
    /// start. Each copies the segment before it, and two follow a new segment. The start uses the host's initial window. Hosts
    /// use this form if the kernel reduces the window and can send copies only after data.
    BesideData,
}

/// Parameters that the three schemes share.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Terms {
    pub mode: Mode,
    pub form: Form,
    /// Maximum number of probes in one train in safe mode.
    pub max_probes: u32,
    /// True if duplicates reported by an unmodified receiver (RFC 2883) count as replies.
    pub dsack_replies: bool,
}

/// Names of the phases in a scheme's paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Words {
    pub start: &'static str,
    pub recovery: &'static str,
}

/// Rules that a scheme adds to [`Inquirer`](super::Inquirer).
pub(crate) trait Law: Clone + Send {
    fn words(&self) -> Words;
    fn terms(&self) -> Terms;

    /// Returns the content of the next probe.
    fn pick(&mut self, path: &Path) -> ProbeKind;

    /// Initial window of a new connection, in segments.
    fn first_window(&self, path: &Path) -> f64 {
        let _ = path;
        1.0
    }

    /// Maximum number of probes in one recovery.
    fn allowance(&self, cwnd0: u32) -> u32 {
        cwnd0
    }

    /// Window growth in segments on an ACK of new data outside recovery. It is at most 1 per ACK, however many segments the ACK
    /// covers: the window is one segment when the hole of a timeout is filled.
    fn growth(&mut self, windows: &Windows, ack: &Ack, path: &Path) -> f64 {
        let _ = path;
        (f64::from(ack.counted) / windows.cwnd).min(1.0)
    }

    /// Window growth in segments on a partial ACK in recovery.
    fn partial_growth(&self) -> f64 {
        0.0
    }

    /// Handles the start of a train.
    fn starts(&mut self, path: &Path) {
        let _ = path;
    }

    /// Handles a detected loss or a timeout; `cwnd0` is the window just before it.
    fn loses(&mut self, cwnd0: f64) {
        let _ = cwnd0;
    }

    /// Handles the end of a recovery.
    fn recovers(&mut self, path: &Path) {
        let _ = path;
    }

    /// Handles a reply that opened the window.
    fn opens(&mut self) {}

    /// True if the loss of the oldest segment is known not to be congestion.
    fn excuses(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Registry number of the receiver half; 0 if there is none.
    fn feedback(&self) -> u8 {
        0
    }

    /// Handles the fields of an ACK. Returns true if they show that the loss under repair was not congestion.
    fn hears(&mut self, fields: &Extension, path: &Path) -> bool {
        let _ = (fields, path);
        false
    }
}
