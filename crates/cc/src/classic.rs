//! Common code of Reno and its descendants: slow start, ssthresh, reduction and undo.

use bentpipe_base::WindowState;

use crate::windows::Windows;
use crate::{
    Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Loss, Path, Phase, Requirements, Timeout, Undo,
    state,
};

/// RFC 5681 equation 4: ssthresh is at least two segments.
const MIN_SSTHRESH: f64 = 2.0;

/// Reductions of window and ssthresh.
impl Windows {
    /// Sets ssthresh, at least two segments, and bounds the window by it; for use in [`Rule::reduce`]. A timeout sets the window
    /// to one segment (RFC 5681 section 3.1).
    pub fn reduce_to(&mut self, threshold: f64, cause: Cause) {
        self.ssthresh = threshold.max(MIN_SSTHRESH);
        self.cwnd = if cause == Cause::Timeout { 1.0 } else { self.cwnd.min(self.ssthresh) };
    }

    /// Reno's reduction: half of the outstanding segments (RFC 5681 equation 4).
    pub fn halve(&mut self, loss: &Loss) {
        let outstanding = f64::from(loss.outstanding);
        // Segments sent by limited transmit beyond the window do not count (RFC 5681 section 3.2 step 2).
        let flight = if loss.cause == Cause::Timeout { outstanding } else { outstanding.min(self.cwnd) };
        self.reduce_to(flight / 2.0, loss.cause);
    }

    /// Halves a window that was not used. Slow start leads back to 3/4 of the old window (RFC 7661 section 4.4.3).
    pub fn give_up_unvalidated(&mut self, floor: f64) {
        self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
        self.cwnd = (self.cwnd / 2.0).max(floor);
    }

    /// Enforces a window of at least 1 and an ssthresh of at least 2 segments.
    pub fn hold_minima(&mut self) {
        self.cwnd = self.cwnd.max(1.0);
        self.ssthresh = self.ssthresh.max(MIN_SSTHRESH);
    }
}

/// Window law for [`Classic`]. Three short functions define growth and reduction; the others serve laws that measure. All default
/// to Reno (RFC 5681), so a rule states only its differences.
///
/// A scheme with pacing, header fields or another capability is not a rule. It implements [`CongestionControl`] around a
/// [`Classic`], and delegates unchanged methods with [`forward!`](crate::forward).
pub trait Rule: Clone + Send {
    /// False while ACKs do not grow the window, for example because routers set it. Default: true.
    fn grows(&self) -> bool {
        true
    }

    /// Growth in slow start for an ACK of `ack.acked` segments. Default: one segment per segment acknowledged.
    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let _ = path;
        windows.cwnd += f64::from(ack.acked);
    }

    /// Growth in congestion avoidance. Default: one segment per window acknowledged.
    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let _ = path;
        windows.cwnd += f64::from(ack.acked) / windows.cwnd;
    }

    /// Sets both windows after a loss, a mark or a timeout; most laws call [`Windows::reduce_to`]. Further consecutive timeouts
    /// do not call it: they restore the window that the first one set. Default: half of the outstanding segments.
    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        let _ = path;
        windows.halve(loss);
    }

    /// Receives every ACK first, duplicates included; for estimators. Default: nothing.
    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let _ = (windows, ack, path);
    }

    /// Handles a rare event. [`Classic`] itself handles windows that were idle or unused. Default: nothing.
    fn on_event(&mut self, windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        let _ = (windows, event, path);
    }

    /// Handles the undo of a spurious reduction, after the windows were restored. `before` is the rule before the reduction.
    /// Default: restores the whole rule. A rule with estimators keeps their newer values.
    fn undo(&mut self, before: Self) {
        *self = before;
    }

    /// Name of the current phase. Default: slow start below the threshold, congestion avoidance above.
    fn phase(&self, windows: &Windows) -> &'static str {
        windows.phase()
    }
}

/// A classical sender: slow start up to ssthresh, then congestion avoidance. It makes one reduction per loss episode, uses a
/// window of one after a timeout, and supports undo. Only its window limits it, and it needs no delivery rate.
#[derive(Clone, Debug)]
pub struct Classic<R> {
    /// Window and threshold.
    pub windows: Windows,
    /// The law and its state.
    pub rule: R,
    /// State before the last reduction, for [`CongestionControl::on_undo`].
    before: Option<(Windows, R)>,
    /// Window set by the last timeout.
    after_timeout: f64,
}

impl<R: Rule> Classic<R> {
    /// A sender with these initial windows.
    pub fn new(windows: Windows, rule: R) -> Self {
        Self { windows, rule, before: None, after_timeout: 1.0 }
    }

    /// Stores the present state for an undo, for a scheme that reduces the windows itself.
    pub fn remember(&mut self) {
        self.before = Some((self.windows, self.rule.clone()));
    }

    /// Handles a timeout for a scheme with its own reaction. `reduce` receives the rule and the windows, and returns the
    /// back-off.
    pub fn time_out(
        &mut self,
        timeout: &Timeout,
        reduce: impl FnOnce(&mut R, &mut Windows) -> BackOff,
    ) -> BackOff {
        if timeout.consecutive == 1 {
            self.remember();
        }
        let back_off = reduce(&mut self.rule, &mut self.windows);
        self.windows.hold_minima();
        back_off
    }

    fn reduce(&mut self, loss: &Loss, path: &Path) {
        self.remember();
        self.rule.reduce(&mut self.windows, loss, path);
        self.windows.hold_minima();
    }
}

impl<R: Rule> CongestionControl for Classic<R> {
    #[inline]
    fn window(&self) -> f64 {
        debug_assert!(self.windows.are_sound(), "{:?}", self.windows);
        self.windows.cwnd
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.rule.observe(&mut self.windows, ack, path);
        // In fast recovery the window is constant; after a timeout slow start begins at once.
        if ack.acked == 0 || ack.phase == Phase::Recovery || !ack.window_limited || !self.rule.grows() {
            return;
        }
        // The ACK that fills a hole after a timeout covers segments that left the network earlier: it counts as one (RFC 3465
        // section 2.3).
        let counted = if ack.phase == Phase::Loss { 1 } else { ack.counted };
        let fewer;
        let ack = if counted == ack.acked {
            ack
        } else {
            fewer = Ack { acked: counted, ..*ack };
            &fewer
        };
        if self.windows.in_slow_start() {
            self.rule.slow_start(&mut self.windows, ack, path);
        } else {
            self.rule.avoid(&mut self.windows, ack, path);
        }
    }

    fn on_loss(&mut self, loss: &Loss, path: &Path) {
        self.reduce(loss, path);
    }

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> BackOff {
        // Consecutive timeouts are one event: the ssthresh of the first remains (RFC 5681 section 3.1).
        if timeout.consecutive == 1 {
            self.reduce(&timeout.as_loss(path), path);
            self.after_timeout = self.windows.cwnd;
        } else {
            self.windows.cwnd = self.after_timeout;
        }
        BackOff::Double
    }

    fn on_undo(&mut self, undo: Undo, _path: &Path) {
        let Some((before, rule)) = self.before.take() else { return };
        if undo == Undo::Threshold {
            self.windows.ssthresh = self.windows.ssthresh.max(before.threshold_to_restore());
            return;
        }
        self.windows.ssthresh = self.windows.ssthresh.max(before.ssthresh);
        // A sender whose window has outgrown the old one keeps its present window (RFC 9438 section 4.9.2).
        if before.cwnd > self.windows.cwnd {
            self.windows.cwnd = before.cwnd;
            self.rule.undo(rule);
        }
    }

    fn adopt(&mut self, windows: Windows) {
        self.windows = windows;
        self.windows.hold_minima();
        self.before = None;
    }

    fn on_event(&mut self, event: ConnectionEvent, path: &Path) {
        self.rule.on_event(&mut self.windows, event, path);
        match event {
            ConnectionEvent::Established | ConnectionEvent::Closed => {}
            ConnectionEvent::Idle { restart } => {
                self.windows.cwnd = self.windows.cwnd.min(restart);
                self.windows.hold_minima();
            }
            ConnectionEvent::Unvalidated { floor } => self.windows.give_up_unvalidated(floor),
            ConnectionEvent::Abandoned => self.before = None,
        }
    }

    fn snapshot(&self) -> WindowState {
        state(self, self.windows.ssthresh, self.rule.phase(&self.windows))
    }

    fn requirements(&self) -> Requirements {
        Requirements { window_only: true, ..Requirements::default() }
    }
}

/// Delegates methods of [`CongestionControl`] to a field that implements it. Use it within the trait's implementation:
/// `forward!(classic: window, on_ack);`.
#[macro_export]
macro_rules! forward {
    ($field:ident: $($method:ident),+ $(,)?) => { $($crate::forward!(@ $field $method);)+ };
    (@ $field:ident window) => {
        #[inline]
        fn window(&self) -> f64 {
            $crate::CongestionControl::window(&self.$field)
        }
    };
    (@ $field:ident on_ack) => {
        fn on_ack(&mut self, ack: &$crate::Ack, path: &$crate::Path) {
            $crate::CongestionControl::on_ack(&mut self.$field, ack, path);
        }
    };
    (@ $field:ident on_loss) => {
        fn on_loss(&mut self, loss: &$crate::Loss, path: &$crate::Path) {
            $crate::CongestionControl::on_loss(&mut self.$field, loss, path);
        }
    };
    (@ $field:ident on_rto) => {
        fn on_rto(&mut self, timeout: &$crate::Timeout, path: &$crate::Path) -> $crate::BackOff {
            $crate::CongestionControl::on_rto(&mut self.$field, timeout, path)
        }
    };
    (@ $field:ident on_undo) => {
        fn on_undo(&mut self, undo: $crate::Undo, path: &$crate::Path) {
            $crate::CongestionControl::on_undo(&mut self.$field, undo, path);
        }
    };
    (@ $field:ident adopt) => {
        fn adopt(&mut self, windows: $crate::Windows) {
            $crate::CongestionControl::adopt(&mut self.$field, windows);
        }
    };
    (@ $field:ident on_event) => {
        fn on_event(&mut self, event: $crate::ConnectionEvent, path: &$crate::Path) {
            $crate::CongestionControl::on_event(&mut self.$field, event, path);
        }
    };
    // The field's snapshot, with the spacing of the whole sender.
    (@ $field:ident snapshot) => {
        fn snapshot(&self) -> $crate::WindowState {
            let inner = $crate::CongestionControl::snapshot(&self.$field);
            $crate::state(self, inner.ssthresh, inner.phase)
        }
    };
}
