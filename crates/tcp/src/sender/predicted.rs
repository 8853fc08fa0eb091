//! The sender's part of header prediction: acknowledgements that bring no news but progress, or none at all.

use bentpipe_base::{Instant, Segment};
use bentpipe_cc::{Ack, Phase};

use super::{Limit, Sender};
use crate::Recovery;
use crate::context::Context;

/// What leaves next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prediction {
    /// Only the long way can tell.
    Unclear,
    /// No data.
    Nothing,
    /// A full segment of new data; whether it is the last for now.
    Full { seq: u64, last: bool },
}

impl Sender {
    /// No loss is being repaired, no question is open, and the peer's fields mean nothing to the algorithm.
    #[inline]
    fn is_calm(&self) -> bool {
        self.episode.is_open() && self.asked.is_none() && !self.feedback && self.rack.tail_probe.is_none()
    }

    /// Sends a full segment of new data if that is what the long way in `transmit` would do, or finds that nothing may leave.
    /// Nothing has changed if it is unclear.
    #[inline]
    pub fn predicted_departure(&mut self, cx: &mut Context) -> Prediction {
        let idle = self.board.is_empty() && self.nxt >= self.stream_end();
        if idle && !self.window_probe && !self.wants.probes {
            self.limit = Limit::Application;
            return Prediction::Nothing;
        }
        let asked = self.window_probe || self.asked.is_some() || self.withheld || self.congestion_reduced;
        let repairs = !self.episode.is_open() || self.board.lost() > 0 || self.forced > 0;
        let asks = self.wants.probes || self.wants.sent || self.wants.low_priority || self.feedback;
        if asked
            || repairs
            || asks
            || self.question.is_some()
            || self.beyond_window > 0
            || self.cc.withholds()
        {
            return Prediction::Unclear;
        }
        if self.board.is_empty() || cx.config.max_burst.is_some() || self.pacing_rate(cx).is_some() {
            return Prediction::Unclear;
        }
        let (used, window) = (self.used(cx.config), self.window());
        if used >= window {
            self.limit = Limit::Window;
            return Prediction::Nothing;
        }
        let len = u64::from(self.mss);
        let usable = self.edge.saturating_sub(self.nxt);
        if self.written <= self.nxt + len || (0 < usable && usable < len) {
            return Prediction::Unclear;
        }
        if usable == 0 {
            self.limit = Limit::Receiver;
            return Prediction::Nothing;
        }
        let seq = self.nxt;
        self.depart(cx, self.mss, false);
        let last = self.used(cx.config) >= window;
        if last {
            self.limit = Limit::Window;
        }
        self.burst += 1;
        Prediction::Full { seq, last }
    }

    /// Takes the acknowledgement in a data segment if it repeats what is known already and nothing is under way.
    /// False, with nothing changed, otherwise.
    #[inline]
    pub fn predicted_echo(&mut self, cx: &mut Context, segment: &Segment) -> bool {
        let known = segment.ack == self.una && segment.window == self.peer_window;
        if !known || self.una != self.nxt || !self.is_calm() {
            return false;
        }
        self.burst = 0;
        self.unanswered = 0;
        self.update_window(segment);
        self.rest(cx);
        true
    }

    /// Takes an empty acknowledgement of whole segments that were sent once, while none is known to be lost or to have overtaken
    /// another. False, with nothing changed, for any other.
    #[inline]
    pub fn predicted_ack(&mut self, cx: &mut Context, segment: &Segment) -> bool {
        if segment.ack <= self.una || segment.ack > self.nxt || !self.is_calm() {
            return false;
        }
        let Some((acked, newest)) = self.board.plain_below(segment.ack) else { return false };
        let rtt = cx.now.since(newest.sent_at);
        if self.recovery == Recovery::Rack {
            // Then everything still under way left later, and time says nothing of it.
            let newer = self.rack.is_news(newest.sent_at, segment.ack) && self.board.is_free_of_repairs();
            if !newer {
                return false;
            }
            self.rack.deliver(rtt, (newest.sent_at, self.una, segment.ack));
            cx.timers.reorder = Instant::FAR_FUTURE;
        }
        let delivered_bytes = segment.ack - self.una;
        self.rate.deliver(cx.now, delivered_bytes);
        if !rtt.is_zero() {
            self.rtt.sample(rtt);
            self.rtt.reset_back_off();
        }
        let rate = self.rate.sample(newest, self.rtt.min, self.board.total_lost);
        self.board.remove_plain(acked);
        self.una = segment.ack;
        self.update_window(segment);
        (self.burst, self.unanswered) = (0, 0);
        (self.timeouts, self.questions, self.persists) = (0, 0, 0);
        self.duplicates = 0;
        self.refresh(cx.now);
        let ack = Ack {
            acked,
            counted: cx.config.ack_counting.count(acked),
            sacked: 0,
            delivered_bytes,
            lost: 0,
            rtt: Some(rtt),
            rate,
            phase: Phase::Open,
            ends_episode: false,
            window_limited: self.limit == Limit::Window,
            ecn_echo: false,
            dsack: false,
        };
        self.cc.on_ack(&ack, &self.path);
        if self.wants.doubts {
            self.ask_doubt();
        }
        self.after_progress(cx);
        true
    }
}
