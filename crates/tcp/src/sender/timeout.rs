//! Retransmission timeout, tail loss probe, zero-window probe.

use bentpipe_base::{Duration, Instant};
use bentpipe_cc::{BackOff, Cause, Loss};
use bentpipe_trace::Event;

use super::Sender;
use super::episode::Episode;
use super::findings::Findings;
use super::rack::TailProbe;
use super::rto_probe::TimeoutResponse;
use super::timer::{Deadline, Fate};
use crate::context::Context;
use crate::{AckPace, Recovery};

/// Maximum expected ACK delay of a peer (RFC 8985 section 7.2: WCDelAckT).
const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);

/// Probe timeout before the first round-trip sample (RFC 8985 section 7.2).
const PROBE_TIMEOUT_WITHOUT_SAMPLE: Duration = Duration::from_secs(1);

impl Sender {
    /// Restarts the retransmission timer (RFC 6298 section 5), and the probe timer before it.
    pub(super) fn arm_retransmission(&mut self, cx: &mut Context) {
        if self.board.is_empty() {
            cx.timers.retransmit = Instant::FAR_FUTURE;
            return;
        }
        self.timer.expires = cx.now + self.rtt.rto(&cx.config.sender.rto) + self.peer_ack_delay();
        self.arm_tail_probe(cx);
    }

    /// Returns the maximum ACK delay of a peer that paces its ACKs, as agreed on with SNACK. Round-trip samples do not contain
    /// this delay, because they use the newest segment covered by an ACK.
    fn peer_ack_delay(&self) -> Duration {
        match self.recovery {
            Recovery::Snack => AckPace::default().delay(self.rtt.srtt),
            _ => Duration::ZERO,
        }
    }

    /// Sets the deadline: a tail loss probe if one may be sent, at most at the retransmission timeout; else that timeout (RFC
    /// 8985 section 7.2).
    pub(super) fn arm_tail_probe(&mut self, cx: &mut Context) {
        let may = self.recovery == Recovery::Rack
            && self.episode.is_open()
            && self.board.sacked() == 0
            && self.tail_probe().is_none();
        (cx.timers.retransmit, self.timer.meaning) = if may {
            (self.timer.expires.min(cx.now + self.probe_timeout()), Deadline::TailLossProbe)
        } else {
            (self.timer.expires, Deadline::Retransmission)
        };
        if let Some(limit) = cx.config.lifetime.user_timeout {
            cx.timers.retransmit = cx.timers.retransmit.min(self.silence.since + limit);
        }
    }

    /// Returns two round trips, plus the maximum ACK delay if a single segment is outstanding (RFC 8985 section 7.2).
    fn probe_timeout(&self) -> Duration {
        if self.rtt.srtt.is_zero() {
            return PROBE_TIMEOUT_WITHOUT_SAMPLE;
        }
        let extra = if self.board.outstanding() == 1 { WORST_DELAYED_ACK } else { Duration::ZERO };
        self.rtt.srtt * 2 + extra
    }

    /// Handles the retransmission deadline.
    pub fn on_deadline(&mut self, cx: &mut Context) -> Fate {
        if self.board.is_empty() {
            return Fate::GoOn;
        }
        let stopped = self.peer.is_closed();
        if stopped && self.silence.unanswered == 0 {
            self.silence.since = cx.now;
        }
        if self.waited_too_long(cx) {
            return Fate::GiveUp;
        }
        // A retransmission that still waits in the pacer has not left, so the peer is not silent.
        let waits = self.extra.forced > 0 && cx.timers.pace != Instant::FAR_FUTURE;
        if self.algorithm.withheld || waits {
            self.arm_retransmission(cx);
            return Fate::GoOn;
        }
        if self.timer.meaning == Deadline::TailLossProbe {
            self.send_tail_probe(cx);
            return Fate::GoOn;
        }
        // A peer that answers with a closed window is alive, even if it closed the window over data in flight (RFC 9293,
        // MUST-37).
        let silent = if stopped { self.silence.unanswered } else { self.silence.timeouts };
        if silent >= cx.config.lifetime.retries
            && cx.now
                >= self.silence.since + self.rtt.patience(cx.config.lifetime.retries, &cx.config.sender.rto)
        {
            return Fate::GiveUp;
        }
        self.silence.unanswered += 1;
        self.retransmission_timeout(cx, false);
        Fate::GoOn
    }

    fn waited_too_long(&self, cx: &Context) -> bool {
        cx.config.lifetime.user_timeout.is_some_and(|limit| cx.now >= self.silence.since + limit)
    }

    /// Executes the timeout (RFC 6298 section 5.4 to 5.7).
    pub(super) fn retransmission_timeout(&mut self, cx: &mut Context, answered: bool) {
        // The answer to an RTO probe belongs to the expiry that caused it.
        if !answered {
            self.silence.timeouts += 1;
            cx.stats.rare().timeouts += 1;
            cx.trace(Event::Timeout { consecutive: self.silence.timeouts });
        }
        let path = self.path(cx.now);
        match self.react_to_timeout(cx, answered, &path) {
            TimeoutResponse::Retransmit(back_off) => {
                // An algorithm may omit the back-off, but not forever: the peer may be gone.
                if back_off == BackOff::Double || self.silence.timeouts > cx.config.lifetime.retries {
                    self.rtt.back_off();
                }
                let check = self.first_timeout_check(cx);
                self.watch_timeout(cx);
                if self.recovery == Recovery::Rack {
                    let window = self.rack_window(cx.config);
                    self.board.mark_old_lost(cx.now - window);
                } else {
                    self.board.mark_all_lost();
                }
                self.episode = Episode::Loss { recover: self.nxt, check };
                self.extra.forced = 1;
                let nxt = self.nxt;
                self.reductions().lose(nxt);
                self.ecn.reduce();
                self.inflation = 0.0;
                self.extra.prefer_new = 0;
            }
            TimeoutResponse::Probe(kind) => {
                self.rtt.back_off();
                self.send_rto_probe(kind);
            }
        }
        self.duplicates = 0;
        self.burst = 0;
        self.forget_tail_probe();
        self.arm_retransmission(cx);
    }

    /// Returns the tail loss probe in flight.
    pub(super) fn tail_probe(&self) -> Option<TailProbe> {
        self.rack.as_ref().and_then(|rack| rack.tail_probe)
    }

    pub(super) fn forget_tail_probe(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.tail_probe = None;
        }
    }

    /// RFC 8985 section 7.3: sends one new segment if the receive window allows it, else the newest one again.
    fn send_tail_probe(&mut self, cx: &mut Context) {
        let new = self.next_new(cx).is_ok();
        // With new data, the ACK of that data settles the probe.
        let probe = TailProbe { end: self.nxt + u64::from(new), retransmission: !new };
        self.rack.get_or_insert_default().tail_probe = Some(probe);
        if new {
            self.extra.beyond_window = 1;
        } else {
            self.extra.again = self.board.back_index();
        }
        cx.stats.rare().tail_loss_probes += 1;
        self.arm_retransmission(cx);
    }

    /// RFC 8985 section 7.4: handles the acknowledgement of the probe. If it repaired a loss, the window is reduced as for any
    /// loss.
    pub(super) fn settle_tail_probe(&mut self, cx: &mut Context, findings: &Findings) {
        let Some(probe) = self.tail_probe().filter(|probe| self.una >= probe.end) else { return };
        // Nothing was lost if the probe carried new data, or arrived as a duplicate. Receivers without D-SACK show the latter by
        // repeating their ACK.
        let harmless = !probe.retransmission || findings.dsack || findings.repeats;
        if harmless || self.una > probe.end {
            self.forget_tail_probe();
        }
        if harmless || self.una == probe.end || !self.episode.is_open() {
            return;
        }
        let path = self.path(cx.now);
        let loss = Loss {
            cause: Cause::Loss,
            lost: 1,
            outstanding: self.board.outstanding().max(1),
            in_flight: self.board.in_flight().max(1),
            validated: self.validated(cx.config),
        };
        self.algorithm.cc.on_loss(&loss, &path);
        self.stop_watching();
    }

    /// Runs the persist timer while the peer's window blocks all data (RFC 9293 section 3.8.6.1).
    pub(super) fn arm_persist(&mut self, cx: &mut Context) {
        if cx.timers.persist == Instant::FAR_FUTURE {
            let wait = (self.rtt.rto(&cx.config.sender.rto) * (1_u64 << self.silence.persists.min(16)))
                .min(cx.config.sender.rto.ceiling);
            cx.timers.persist = cx.now + wait;
        }
    }

    /// Handles the persist timer: sends a window probe.
    pub fn on_persist(&mut self, cx: &mut Context) -> Fate {
        if !self.board.is_empty() || self.nxt >= self.stream.end_with_fin() {
            return Fate::GoOn;
        }
        if self.peer.edge > self.nxt {
            // Override timer of RFC 9293 section 3.8.6.2.1: the peer may wait for exactly the data that fits.
            self.extra.may_be_small = true;
            return Fate::GoOn;
        }
        // A peer that answers with a closed window is alive; one without any answer is gone.
        if self.silence.unanswered >= cx.config.lifetime.retries || self.waited_too_long(cx) {
            return Fate::GiveUp;
        }
        if self.silence.unanswered == 0 {
            self.silence.since = cx.now;
        }
        self.silence.persists += 1;
        self.silence.unanswered += 1;
        self.extra.ask = true;
        Fate::GoOn
    }
}
