//! Header prediction in the sender: acknowledgements of new data only, or repeated ones.

use bentpipe_base::{Instant, Segment};
use bentpipe_cc::{Ack, Phase};

use super::outgoing::Prediction;
use super::rack::Delivery;
use super::rtt::Coverage;
use super::{Abilities, Ecn, Limit, Sender};
use crate::context::Context;
use crate::fast_path::FastPath;
use crate::timers::Timers;
use crate::{Config, Pacing, Recovery};

impl Sender {
    /// True if an ACK of only new data may use the fast path. No loss is being repaired, no RTO probe is outstanding, the
    /// algorithm reads no fields, and the peer does not report the number of marks.
    pub fn takes_plain_acks(&self) -> bool {
        self.episode.is_open()
            && self.rto_probe.is_none()
            && !self.algorithm.exchanges_fields
            && self.tail_probe().is_none()
            && self.silence.is_none()
            && self.duplicates == 0
            && !self.rtt.is_backed_off()
            && !self.ecn.is_accurate()
    }

    /// True if losses are known or suspected. The slow path then selects the segments.
    #[inline(always)]
    pub fn is_repairing(&self) -> bool {
        !(self.board.is_empty() || self.episode.is_open() && self.board.is_plain())
    }

    /// True if new data may use the fast path: no other segment must leave before, and the algorithm does not handle each
    /// segment.
    pub fn sends_plainly(&self, config: &Config, timers: &Timers) -> bool {
        let probing = self.rto_probe.is_some() || self.algorithm.withheld || self.ecn == Ecn::Reduced;
        let repairs = !self.episode.is_open() || !self.board.is_plain();
        let asks = self.algorithm.exchanges_fields
            || self.algorithm.abilities.intersects(Abilities::PROBES.union(Abilities::SEES_DEPARTURES));
        let quiet = self.extra.is_none() && self.duplicates == 0 && timers.persist == Instant::FAR_FUTURE;
        !probing && !repairs && !asks && quiet && config.sender.max_burst.is_none() && !self.begins_with_one()
    }

    /// True if only the congestion window limits the sender, so that neither pacer nor algorithm is asked.
    pub fn is_held_by_window_only(&self, config: &Config) -> bool {
        let unpaced = match config.sender.pacing {
            Pacing::Off => true,
            Pacing::Algorithm => self.una >= self.spaced_until && self.recovery != Recovery::Snack,
            Pacing::Window { .. } => false,
        };
        self.algorithm.has(Abilities::WINDOW_ONLY) && unpaced && config.sender.rate_limit.is_none()
    }

    /// Sends a full segment of new data if the slow path in `transmit` would do so, or decides that nothing may leave. Nothing
    /// changes if it is unclear.
    #[inline(always)]
    pub fn predicted_departure(&mut self, cx: &mut Context, fast_path: FastPath) -> Prediction {
        if self.board.is_empty() {
            if self.nxt < self.stream.end_with_fin() {
                return Prediction::Unclear;
            }
            self.limit = Limit::Application;
            return Prediction::Nothing;
        }
        let held = || !fast_path.contains(FastPath::WINDOW_ONLY) && self.is_held_back(cx);
        if !fast_path.contains(FastPath::DEPARTURES) || held() {
            return Prediction::Unclear;
        }
        let window = self.algorithm.window() as u32;
        if self.board.outstanding() >= window {
            self.limit = Limit::Window;
            return Prediction::Nothing;
        }
        let len = u64::from(self.mss);
        let usable = self.peer.edge.saturating_sub(self.nxt);
        if self.stream.end <= self.nxt + len || (0 < usable && usable < len) {
            return Prediction::Unclear;
        }
        if usable == 0 {
            self.limit = Limit::Receiver;
            return Prediction::Nothing;
        }
        let seq = self.nxt;
        self.record_departure(cx, self.mss, false);
        let last = self.board.outstanding() >= window;
        if last {
            self.limit = Limit::Window;
        }
        self.burst += 1;
        Prediction::Full { seq, last }
    }

    /// Handles the acknowledgement in a data segment if it repeats known information and nothing is outstanding. Otherwise
    /// returns false without a change. A sender that is already `resting` has nothing more to do.
    #[inline]
    pub fn predicted_echo(&mut self, cx: &mut Context, segment: &Segment, resting: bool) -> bool {
        let known = segment.ack == self.una && segment.window == self.peer.bytes;
        if !known || self.una != self.nxt {
            return false;
        }
        if !resting {
            self.burst = 0;
            self.stop_timers(cx);
        }
        self.update_window(segment);
        true
    }

    /// Handles an empty acknowledgement of whole segments sent once, while none is known to be lost or to have overtaken another.
    /// Otherwise returns false without a change.
    #[inline]
    pub fn predicted_ack(&mut self, cx: &mut Context, segment: &Segment) -> bool {
        if segment.ack <= self.una || segment.ack > self.nxt {
            return false;
        }
        let Some((acked, record)) = self.board.plain_below(segment.ack) else { return false };
        let (sent_at, order) = (record.sent_at, record.order);
        let rtt = cx.now.since(sent_at);
        if self.recovery == Recovery::Rack {
            // All outstanding segments left later, so their age gives no information.
            let rack = self.rack.get_or_insert_default();
            let newer = rack.is_newest(order) && self.board.is_free_of_repairs();
            if !newer {
                return false;
            }
            rack.deliver(rtt, Delivery { order, lowest: self.una, end: segment.ack });
            cx.timers.reorder = Instant::FAR_FUTURE;
        }
        let delivered_bytes = segment.ack - self.una;
        self.note_delivered(cx.now, delivered_bytes);
        if !rtt.is_zero() {
            let coverage = Coverage { acked, flight: self.board.outstanding() };
            self.rtt.sample(rtt, coverage, &cx.config.sender.rto);
        }
        let ack = Ack {
            acked,
            counted: cx.config.sender.ack_counting.count(acked),
            sacked: 0,
            delivered_bytes,
            lost: 0,
            rtt: Some(rtt),
            peer_clock: self.peer_clock(segment),
            rate: self.sample_rate(self.board.front_index() + u64::from(acked) - 1, sent_at),
            phase: Phase::Open,
            ends_episode: false,
            window_limited: self.limit == Limit::Window,
            ecn_echo: false,
            marks: 0,
            dsack: false,
        };
        self.board.remove_plain(acked);
        self.forget_stamps();
        self.una = segment.ack;
        self.update_window(segment);
        self.burst = 0;
        let path = self.path(cx.now);
        self.algorithm.cc.on_ack(&ack, &path);
        if self.algorithm.has(Abilities::DETECTS) {
            self.ask_detector(&path);
        }
        self.after_progress(cx);
        true
    }
}
