//! What Reno and its descendants share: slow start, threshold, reduction and undo, written once.

use bentpipe_base::{Extension, Instant, Rate};

use crate::{Ack, CongestionControl, Doubt, Loss, Path, Phase, RtoAction, Sent, Timeout, Wants};

/// RFC 5681 equation 4: a threshold is never below two segments.
const MIN_SSTHRESH: f64 = 2.0;

/// The two numbers of every window-based sender, in segments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Windows {
    /// Congestion window, at least one.
    pub cwnd: f64,
    /// Slow-start threshold; infinite until the first loss unless configured.
    pub ssthresh: f64,
}

impl Windows {
    /// True below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The threshold that lets slow start come back to what these windows were: that of congestion avoidance is the window itself.
    pub fn threshold_to_restore(&self) -> f64 {
        if self.in_slow_start() { self.ssthresh } else { self.ssthresh.max(self.cwnd) }
    }

    /// No rule goes below a window of one and a threshold of two.
    fn hold_minima(&mut self) {
        self.cwnd = self.cwnd.max(1.0);
        self.ssthresh = self.ssthresh.max(MIN_SSTHRESH);
    }
}

/// A window law to plug into [`Classic`]: how the window grows and to what it shrinks.
///
/// The defaults are Reno's (RFC 5681), so a rule states only what it changes.
pub trait Rule: Clone + Send {
    /// The handshake is complete; `path.srtt` holds its round trip. Default: nothing changes.
    fn established(&mut self, windows: &mut Windows, path: &Path) {
        let _ = (windows, path);
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

    /// New threshold after a loss episode began; the window falls to it, and stays if it is smaller already. Default: half of
    /// what was outstanding (RFC 5681 equation 4).
    fn reduce(&mut self, windows: &Windows, loss: &Loss, path: &Path) -> f64 {
        let _ = path;
        // What limited transmit sent beyond the window does not count (RFC 5681 section 3.2 step 2).
        f64::from(loss.outstanding).min(windows.cwnd) / 2.0
    }

    /// New threshold after a timeout. Default: half of what was outstanding.
    fn reduce_at_timeout(&mut self, windows: &Windows, timeout: &Timeout, path: &Path) -> f64 {
        let _ = (windows, path);
        f64::from(timeout.outstanding) / 2.0
    }

    /// Window after a timeout; the threshold of [`reduce_at_timeout`](Self::reduce_at_timeout) is set already. Default: one
    /// segment (RFC 5681 section 3.1).
    fn window_after_timeout(&self, windows: &Windows) -> f64 {
        let _ = windows;
        1.0
    }

    /// What a loss or a mark leaves of both windows. Default: the threshold of [`reduce`](Self::reduce), at least two segments,
    /// and no window above it. A rule that tells kinds of losses apart decides here instead.
    fn lose(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        windows.ssthresh = self.reduce(windows, loss, path).max(MIN_SSTHRESH);
        windows.cwnd = windows.cwnd.min(windows.ssthresh);
    }

    /// What a timeout leaves of both windows, and what becomes of the timer. Default: the threshold of
    /// [`reduce_at_timeout`](Self::reduce_at_timeout), at least two segments; the window of
    /// [`window_after_timeout`](Self::window_after_timeout); and the timer doubles.
    fn time_out(&mut self, windows: &mut Windows, timeout: &Timeout, path: &Path) -> RtoAction {
        // Consecutive timeouts are one event: the threshold of the first stands (RFC 5681 section 3.1).
        if timeout.consecutive == 1 {
            windows.ssthresh = self.reduce_at_timeout(windows, timeout, path).max(MIN_SSTHRESH);
        }
        windows.cwnd = self.window_after_timeout(windows);
        RtoAction::Retransmit { back_off: true }
    }

    /// The last reduction was a mistake, and the windows are as they were before it; `before` is the rule as it was. Default: all of
    /// the rule is taken back. A rule that measures keeps what it has learnt since.
    fn undo(&mut self, before: Self) {
        *self = before;
    }

    /// What an idle time leaves of the window; `restart` is the restart window of RFC 5681 section 4.1. Default: not more than that.
    fn restart(&mut self, windows: &mut Windows, restart: f64, path: &Path) {
        let _ = path;
        windows.cwnd = windows.cwnd.min(restart);
    }

    /// See [`CongestionControl::on_closed`].
    fn closed(&mut self, windows: &Windows, path: &Path) {
        let _ = (windows, path);
    }

    /// See [`CongestionControl::on_abandoned`].
    fn abandoned(&mut self) {}

    /// See [`CongestionControl::asks`].
    fn asks(&mut self) -> bool {
        false
    }

    /// See [`CongestionControl::wake_at`].
    fn wake_at(&self) -> Instant {
        Instant::FAR_FUTURE
    }

    /// See [`CongestionControl::on_wake`].
    fn woken(&mut self, windows: &mut Windows, path: &Path) {
        let _ = (windows, path);
    }

    /// See [`CongestionControl::sends_low`].
    fn sends_low(&self, sent: &Sent) -> bool {
        let _ = sent;
        false
    }

    /// See [`CongestionControl::withholds`].
    fn withholds(&self) -> bool {
        false
    }

    /// The sender was idle and is about to send again: what is measured until the next ACK says nothing of the path.
    fn idle(&mut self, path: &Path) {
        let _ = path;
    }

    /// Sees every ACK first, duplicates included: estimators live here.
    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        let _ = (windows, ack, path);
    }

    /// The rate at which to space segments. Default: none of its own.
    fn pacing_rate(&self, windows: &Windows) -> Option<Rate> {
        let _ = windows;
        None
    }

    /// See [`CongestionControl::pacing_quantum`].
    fn pacing_quantum(&self) -> u32 {
        1
    }

    /// Name of the current phase. Default: slow start below the threshold, congestion avoidance above.
    fn phase(&self, windows: &Windows) -> &'static str {
        if windows.in_slow_start() { "slow-start" } else { "congestion-avoidance" }
    }

    /// See [`CongestionControl::wants`]. Probes have no place in a rule.
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// See [`CongestionControl::on_sent`].
    fn sent(&mut self, sent: &Sent, path: &Path) {
        let _ = (sent, path);
    }

    /// See [`CongestionControl::doubt`]; a rule that retransmits on evidence of its own reduces the window itself.
    fn doubt(&mut self, windows: &mut Windows, oldest_sent: Instant, path: &Path) -> Doubt {
        let _ = (windows, oldest_sent, path);
        Doubt::None
    }

    /// See [`CongestionControl::stamp`].
    fn stamp(&mut self, windows: &Windows, sent: &Sent, path: &Path) -> Extension {
        let _ = (windows, sent, path);
        Extension::None
    }

    /// See [`CongestionControl::on_feedback`].
    fn feedback(&mut self, windows: &mut Windows, fields: &Extension, path: &Path) {
        let _ = (windows, fields, path);
    }
}

/// A classical sender: slow start up to ssthresh, congestion avoidance above, one reduction per loss episode, a window of
/// one after a timeout, and undo.
#[derive(Clone, Debug)]
pub struct Classic<R> {
    windows: Windows,
    rule: R,
    /// State before the last reduction, for [`CongestionControl::on_undo`].
    before: Option<(Windows, R)>,
}

impl<R: Rule> Classic<R> {
    /// A sender with these initial windows.
    pub fn new(windows: Windows, rule: R) -> Self {
        Self { windows, rule, before: None }
    }

    /// Current window and threshold.
    pub fn windows(&self) -> Windows {
        self.windows
    }

    /// The rule and its state.
    pub fn rule(&self) -> &R {
        &self.rule
    }
}

impl<R: Rule> CongestionControl for Classic<R> {
    fn window(&self) -> f64 {
        self.windows.cwnd
    }

    fn ssthresh(&self) -> f64 {
        self.windows.ssthresh
    }

    fn phase(&self) -> &'static str {
        self.rule.phase(&self.windows)
    }

    fn wants(&self) -> Wants {
        self.rule.wants()
    }

    fn on_established(&mut self, path: &Path) {
        self.rule.established(&mut self.windows, path);
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rule.pacing_rate(&self.windows)
    }

    fn pacing_quantum(&self) -> u32 {
        self.rule.pacing_quantum()
    }

    fn withholds(&self) -> bool {
        self.rule.withholds()
    }

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
        self.before = Some((self.windows, self.rule.clone()));
        self.rule.lose(&mut self.windows, loss, path);
        self.windows.hold_minima();
    }

    fn on_rto(&mut self, timeout: &Timeout, path: &Path) -> RtoAction {
        if timeout.consecutive == 1 {
            self.before = Some((self.windows, self.rule.clone()));
        }
        let action = self.rule.time_out(&mut self.windows, timeout, path);
        self.windows.hold_minima();
        action
    }

    fn on_undo(&mut self, _path: &Path) {
        if let Some((before, rule)) = self.before.take() {
            self.windows.ssthresh = self.windows.ssthresh.max(before.ssthresh);
            // A sender that has outgrown its old window meanwhile keeps what it has (RFC 9438 section 4.9.2).
            if before.cwnd > self.windows.cwnd {
                self.windows.cwnd = before.cwnd;
                self.rule.undo(rule);
            }
        }
    }

    fn on_undo_threshold(&mut self, _path: &Path) {
        if let Some((before, _)) = self.before.take() {
            self.windows.ssthresh = self.windows.ssthresh.max(before.threshold_to_restore());
        }
    }

    fn on_sent(&mut self, sent: &Sent, path: &Path) {
        self.rule.sent(sent, path);
    }

    fn doubt(&mut self, oldest_sent: Instant, path: &Path) -> Doubt {
        self.rule.doubt(&mut self.windows, oldest_sent, path)
    }

    fn stamp(&mut self, sent: &Sent, path: &Path) -> Extension {
        self.rule.stamp(&self.windows, sent, path)
    }

    fn on_feedback(&mut self, fields: &Extension, path: &Path) {
        self.rule.feedback(&mut self.windows, fields, path);
    }

    fn on_idle_restart(&mut self, restart: f64, path: &Path) {
        self.rule.idle(path);
        self.rule.restart(&mut self.windows, restart, path);
        self.windows.hold_minima();
    }

    fn on_closed(&mut self, path: &Path) {
        self.rule.closed(&self.windows, path);
    }

    fn on_abandoned(&mut self) {
        self.before = None;
        self.rule.abandoned();
    }

    fn asks(&mut self) -> bool {
        self.rule.asks()
    }

    fn wake_at(&self) -> Instant {
        self.rule.wake_at()
    }

    fn on_wake(&mut self, path: &Path) {
        self.rule.woken(&mut self.windows, path);
        self.windows.hold_minima();
    }

    fn sends_low(&self, sent: &Sent) -> bool {
        self.rule.sends_low(sent)
    }

    fn on_unvalidated(&mut self, floor: f64, _path: &Path) {
        self.windows.ssthresh = self.windows.ssthresh.max(0.75 * self.windows.cwnd);
        self.windows.cwnd = (self.windows.cwnd / 2.0).max(floor);
    }
}
