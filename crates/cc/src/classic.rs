//! What Reno and its descendants share: slow start, threshold, reduction and undo, written once.

use bentpipe_base::WindowState;

use crate::control::state;
use crate::windows::Windows;
use crate::{
    Ack, BackOff, Cause, CongestionControl, ConnectionEvent, Loss, Path, Phase, Timeout, Undo, Wants,
};

/// RFC 5681 equation 4: a threshold is never below two segments.
const MIN_SSTHRESH: f64 = 2.0;

/// What a reduction does to windows.
impl Windows {
    /// A new threshold, at least two segments, for a [`Rule::reduce`]: no window stays above it, and a timeout leaves a window of one
    /// segment (RFC 5681 section 3.1).
    pub fn reduce_to(&mut self, threshold: f64, cause: Cause) {
        self.ssthresh = threshold.max(MIN_SSTHRESH);
        self.cwnd = if cause == Cause::Timeout { 1.0 } else { self.cwnd.min(self.ssthresh) };
    }

    /// Reno's reduction: half of what was outstanding (RFC 5681 equation 4).
    pub fn halve(&mut self, loss: &Loss) {
        let outstanding = f64::from(loss.outstanding);
        // What limited transmit sent beyond the window does not count (RFC 5681 section 3.2 step 2).
        let flight = if loss.cause == Cause::Timeout { outstanding } else { outstanding.min(self.cwnd) };
        self.reduce_to(flight / 2.0, loss.cause);
    }

    /// Half of a window that was not used; the threshold leads back to three quarters of it (RFC 7661 section 4.4.3).
    pub fn give_up_unvalidated(&mut self, floor: f64) {
        self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
        self.cwnd = (self.cwnd / 2.0).max(floor);
    }

    /// No rule goes below a window of one and a threshold of two.
    pub fn hold_minima(&mut self) {
        self.cwnd = self.cwnd.max(1.0);
        self.ssthresh = self.ssthresh.max(MIN_SSTHRESH);
    }
}

/// A window law to plug into [`Classic`]: three short functions say how the window grows and to what it shrinks. The others are for laws that
/// measure. All have Reno's defaults (RFC 5681), so a rule states only what it changes.
///
/// A scheme that spaces its segments, reads fields or has another capability is no rule: it implements [`CongestionControl`] around a
/// [`Classic`], and [`forward!`](crate::forward) leaves to that what it does not change.
pub trait Rule: Clone + Send {
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

    /// What a loss, a mark or a timeout leaves of both windows; most laws call [`Windows::reduce_to`]. A further timeout in a row is the same
    /// event: it only leads back to the window that the first one left. Default: half of what was outstanding.
    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        let _ = path;
        windows.halve(loss);
    }

    /// Sees every ACK first, duplicates included: estimators live here. Default: nothing.
    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let _ = (windows, ack, path);
    }

    /// Something happened that happens rarely; [`Classic`] sees to the windows after an idle time and to unused ones. Default: nothing.
    fn on_event(&mut self, windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        let _ = (windows, event, path);
    }

    /// The last reduction was a mistake, and the windows are as they were before it; `before` is the rule as it was. Default: all of
    /// the rule is taken back. A rule that measures keeps what it has learnt since.
    fn undo(&mut self, before: Self) {
        *self = before;
    }

    /// Name of the current phase. Default: slow start below the threshold, congestion avoidance above.
    fn phase(&self, windows: &Windows) -> &'static str {
        windows.phase()
    }
}

/// A classical sender: slow start up to ssthresh, congestion avoidance above, one reduction per loss episode, a window of
/// one after a timeout, and undo. It holds nothing back but by its window, and asks for no delivery rate.
#[derive(Clone, Debug)]
pub struct Classic<R> {
    /// Window and threshold.
    pub windows: Windows,
    /// The law and its state.
    pub rule: R,
    /// State before the last reduction, for [`CongestionControl::on_undo`].
    before: Option<(Windows, R)>,
    /// The window that the last timeout left.
    after_timeout: f64,
}

impl<R: Rule> Classic<R> {
    /// A sender with these initial windows.
    pub fn new(windows: Windows, rule: R) -> Self {
        Self { windows, rule, before: None, after_timeout: 1.0 }
    }

    /// For a scheme that reduces the windows itself: what an undo would take back is as it is now.
    pub fn remember(&mut self) {
        self.before = Some((self.windows, self.rule.clone()));
    }

    /// A timeout of which a scheme decides everything itself: `reduce` gets the rule and the windows, and says what becomes of the timer.
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
        self.windows.cwnd
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.rule.observe(&mut self.windows, ack, path);
        // In fast recovery the window stands still; after a timeout slow start begins at once.
        if ack.acked == 0 || ack.phase == Phase::Recovery || !ack.window_limited {
            return;
        }
        // The ACK that fills a hole after a timeout covers what left the network long ago: it counts once (RFC 3465 section 2.3).
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
        // Consecutive timeouts are one event: the threshold of the first stands (RFC 5681 section 3.1).
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
        // A sender that has outgrown its old window meanwhile keeps what it has (RFC 9438 section 4.9.2).
        if before.cwnd > self.windows.cwnd {
            self.windows.cwnd = before.cwnd;
            self.rule.undo(rule);
        }
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

    fn wants(&self) -> Wants {
        Wants { window_only: true, ..Wants::default() }
    }
}

/// Leaves methods of [`CongestionControl`] to a field that implements it: `forward!(classic: window, on_ack);` within the implementation of
/// the trait.
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
    (@ $field:ident on_event) => {
        fn on_event(&mut self, event: $crate::ConnectionEvent, path: &$crate::Path) {
            $crate::CongestionControl::on_event(&mut self.$field, event, path);
        }
    };
    // What the field shows, with the spacing of the whole.
    (@ $field:ident snapshot) => {
        fn snapshot(&self) -> $crate::WindowState {
            let inner = $crate::CongestionControl::snapshot(&self.$field);
            $crate::state(self, inner.ssthresh, inner.phase)
        }
    };
}
