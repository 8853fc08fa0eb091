//! What a scheme adds to the common sender.

use bentpipe_base::Extension;
use serde::{Deserialize, Serialize};

use crate::parts::mode::Mode;
use crate::{Ack, Path, ProbeKind, Windows};

/// How the window is held against what was sent during recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The listing of TCP-Swift: `pipe` begins as cwnd0 - 3 + 1, which counts the lost segment beside its retransmission.
    Listing,
    /// RFC 6675: a lost segment is not in the network.
    Pipe,
    /// RFC 5681: each duplicate ACK inflates the window, which is held against all unacknowledged data.
    Inflation,
    /// RFC 9937: the reduction is spread over the round trip. Probes leave beside data, each a copy of the segment before it, two with a
    /// segment of new data: in recovery and at the start, which begins with the initial window of the host. What hosts do whose kernel
    /// reduces the window itself and can send copies only beside data.
    BesideData,
}

/// Parameters that the three schemes have in common.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Terms {
    pub mode: Mode,
    pub form: Form,
    /// Most probes of one train in safe mode.
    pub max_probes: u32,
    /// Count the duplicates that an unmodified receiver reports (RFC 2883) as replies.
    pub dsack_replies: bool,
}

/// What a scheme calls its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Words {
    pub start: &'static str,
    pub recovery: &'static str,
}

/// What a scheme adds to [`Inquirer`](super::Inquirer).
pub(crate) trait Law: Clone + Send {
    fn words(&self) -> Words;
    fn terms(&self) -> Terms;

    /// What the next probe carries.
    fn pick(&mut self, path: &Path) -> ProbeKind;

    /// Window in which a new connection begins.
    fn first_window(&self, path: &Path) -> f64 {
        let _ = path;
        1.0
    }

    /// Probes that one recovery may send.
    fn allowance(&self, cwnd0: u32) -> u32 {
        cwnd0
    }

    /// Segments by which an ACK of new data opens the window outside recovery. An ACK never adds more than one segment here,
    /// however many it covers: the window is one segment when a timeout's hole is filled.
    fn growth(&mut self, windows: &Windows, ack: &Ack, path: &Path) -> f64 {
        let _ = path;
        (f64::from(ack.counted) / windows.cwnd).min(1.0)
    }

    /// Segments by which a partial ACK opens the window in recovery.
    fn partial_growth(&self) -> f64 {
        0.0
    }

    /// A train begins.
    fn starts(&mut self, path: &Path) {
        let _ = path;
    }

    /// A loss was detected or a timer expired; the window just before it.
    fn loses(&mut self, cwnd0: f64) {
        let _ = cwnd0;
    }

    /// A recovery ended.
    fn recovers(&mut self, path: &Path) {
        let _ = path;
    }

    /// A reply opened the window.
    fn opens(&mut self) {}

    /// The loss of the oldest segment is known to be no sign of congestion.
    fn excuses(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Registry number of the receiver half; zero if none.
    fn feedback(&self) -> u8 {
        0
    }

    /// Fields came back with an ACK. True if they excuse the loss being repaired.
    fn hears(&mut self, fields: &Extension, path: &Path) -> bool {
        let _ = (fields, path);
        false
    }
}
