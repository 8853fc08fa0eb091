//! Contract between the engine and a congestion control algorithm.
//!
//! The engine reports ACKs, losses, timeouts and departures; the algorithm answers with a window and a spacing.

mod ack;
mod capabilities;
mod departure;
mod loss;
mod path;
mod probe;

use bentpipe_base::{Rate, WindowState};

use crate::Windows;

pub use ack::{Ack, Phase, RateSample};
pub use capabilities::{
    Accounting, Detector, EarlyRetransmit, Feedback, Prober, Reflector, Requirements, Sleeper, Wake,
};
pub use departure::{Priority, Sent, Spacing};
pub use loss::{BackOff, Cause, Loss, Timeout, Undo};
pub use path::{Path, PeerProbes, Start};
pub use probe::{ProbeKind, ProbeMoment, ProbeReply, ProbeRequest, TimeoutProbe};

/// A congestion control algorithm.
///
/// The engine calls the `on_*` methods, then reads [`window`](Self::window) and [`spacing`](Self::spacing). Four methods are
/// required: `window`, `on_ack`, `on_loss` and `on_rto`; most algorithms need no others. All times come from [`Path::now`].
///
/// The last four methods return optional capabilities. The engine asks for them once, when a connection begins. An algorithm with
/// a capability returns `Some(self)`, and its answer must stay the same for the connection's life.
pub trait CongestionControl: Send {
    /// Congestion window in segments, at least 1.
    fn window(&self) -> f64;

    /// Handles an ACK of new data (`ack.acked > 0`) or a duplicate ACK. The reply to a probe is reported here only if it
    /// acknowledges new data.
    fn on_ack(&mut self, ack: &Ack, path: &Path);

    /// Handles the start of a loss or mark episode; further losses of the episode make no call. A mark, or a loss repaired by a
    /// tail loss probe, opens no recovery: the next ACK reports [`Phase::Open`].
    fn on_loss(&mut self, loss: &Loss, path: &Path);

    /// Handles an expiry of the retransmission timer: everything outstanding counts as lost. Returns the timer's back-off.
    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff;

    /// Returns the probe to send after an expiry of the retransmission timer (if [`Requirements::timeout_probes`]). `None` believes
    /// the timeout, and the engine calls [`on_rto`](Self::on_rto). After a probe, no data leaves before its answer or its timeout.
    fn timeout_probe(&mut self, timeout: &Timeout, path: &Path) -> Option<ProbeKind> {
        let _ = (timeout, path);
        None
    }

    /// Spacing of segments (not read if [`Requirements::window_only`]).
    fn spacing(&self) -> Spacing {
        Spacing::None
    }

    /// Handles a data segment that leaves (if [`Requirements::sent`]). Returns its drop priority; retransmissions always leave at normal
    /// priority.
    fn on_sent(&mut self, sent: &Sent, path: &Path) -> Priority {
        let _ = (sent, path);
        Priority::Normal
    }

    /// Reverts the last `on_loss` or `on_rto`, which proved spurious.
    fn on_undo(&mut self, undo: Undo, path: &Path) {
        let _ = (undo, path);
    }

    /// Takes over windows that something else has proved, such as [Careful Resume](crate::careful_resume). An algorithm that does
    /// not keep window and threshold ignores them.
    fn adopt(&mut self, windows: Windows) {
        let _ = windows;
    }

    /// Handles a rare event.
    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        let _ = (event, path);
    }

    /// State for traces and figures: window and slow-start threshold in segments (infinite if there is none yet). The phase has
    /// its name in the paper.
    fn snapshot(&self) -> WindowState {
        state(self, f64::INFINITY, "slow-start")
    }

    /// Services needed from the engine.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }

    /// Capability: sends probes.
    fn prober(&mut self) -> Option<&mut dyn Prober> {
        None
    }

    /// Capability: reads fields that the receiver or routers write.
    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        None
    }

    /// Capability of an algorithm that detects losses by its own rules.
    fn detector(&mut self) -> Option<&mut dyn Detector> {
        None
    }

    /// Capability of an algorithm that sets its own timer.
    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        None
    }
}

/// Returns a [`CongestionControl::snapshot`] with this threshold and this phase.
pub fn state<C: CongestionControl + ?Sized>(cc: &C, ssthresh: f64, phase: &'static str) -> WindowState {
    WindowState { cwnd: cc.window(), ssthresh, pacing_bps: cc.spacing().rate().map_or(0, Rate::bps), phase }
}

/// Rare events in the life of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ConnectionEvent {
    /// The handshake is complete; [`Path::srtt`] holds its round trip.
    Established,
    /// The sender was idle for longer than a retransmission timeout and is about to send.
    Idle {
        /// The restart window of RFC 5681 section 4.1 in segments.
        restart: f64,
    },
    /// The window was unused for too long to describe the path (RFC 7661 section 4.4.3). The algorithm halves it.
    Unvalidated {
        /// Lower limit of the halved window, in segments.
        floor: f64,
    },
    /// All data and the FIN are acknowledged. The algorithm may store what it learnt for later connections.
    Closed,
    /// The connection ended early and makes no further calls. The algorithm releases its share of common state.
    Abandoned,
}
