//! Selection of the next segment, and of its send time.

use bentpipe_base::{Extension, Instant, Rate};
use bentpipe_cc::delivery_rate::Totals;
use bentpipe_cc::{Accounting, Priority, Sent, Spacing, window_rate};

use super::episode::{Episode, TimeoutCheck};
use super::outgoing::Outgoing;
use super::scoreboard::{Index, Scoreboard};
use super::timer::Deadline;
use super::{Abilities, Limit, Sender};
use crate::context::Context;
use crate::{Pacing, Recovery};

/// The segment selected for transmission.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pick {
    /// The retransmission of a segment.
    Again(Index),
    /// New data of this length, and the FIN if it follows them.
    New { len: u32, fin: bool },
}

impl Sender {
    /// Returns the next data segment, or an empty one that requests an ACK.
    pub fn next_segment(&mut self, cx: &mut Context) -> Option<Outgoing> {
        if self.extra.ask {
            self.extra.ask = false;
            return Some(Outgoing::plain(self.una.saturating_sub(1), 0));
        }
        if let Some(index) = self.extra.again.take()
            && self.board.get(index).is_some()
        {
            return Some(self.send_again(cx, index));
        }
        let Some((pick, pace)) = self.pick_unless_withheld(cx) else {
            self.idle_pacer();
            return None;
        };
        if self.algorithm.has(Abilities::PROBES)
            && let Some(probe) = self.probe_between_segments(cx)
        {
            return Some(probe);
        }
        if cx.timers.pace < cx.now {
            // The driver polls before it has handled the pacing timer.
            let due = std::mem::replace(&mut cx.timers.pace, Instant::FAR_FUTURE);
            self.on_pace(cx.now, due);
        }
        if let Some(rate) = pace.rate() {
            let pacer = self.pacer.get_or_insert_default();
            let ready = pacer.ready_at(cx.now);
            if ready > cx.now {
                pacer.rest();
                cx.timers.pace = ready;
                return None;
            }
            match pace {
                Spacing::Pairs { gap, .. } => pacer.begin_in_pair(cx.now, gap),
                Spacing::At { quantum, .. } => pacer.begin(quantum),
                Spacing::None | Spacing::Withheld => {}
            }
            // A small segment uses a share of the rate in proportion to its size. Counted as a full segment, it would slow down
            // a peer with a small window.
            let bytes = match pick {
                Pick::Again(index) => self.board.get(index).map_or(0, |record| record.seq_len),
                Pick::New { len, .. } => len,
            };
            pacer.sent(cx.now, bytes, rate);
        } else if let Some(pacer) = &mut self.pacer {
            pacer.end_pair();
        }
        let mut outgoing = match pick {
            Pick::Again(index) => self.send_again(cx, index),
            Pick::New { len, fin } => self.send_new(cx, len, fin),
        };
        outgoing.last = self.count_departure(cx);
        if outgoing.last {
            self.idle_pacer();
        }
        Some(outgoing)
    }

    /// Handles the pacing timer of a segment.
    pub fn on_pace(&mut self, now: Instant, due: Instant) {
        if let Some(pacer) = &mut self.pacer {
            pacer.wake(now, due);
        }
    }

    fn idle_pacer(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.rest();
        }
    }

    /// Selects the next segment and its spacing, unless the algorithm withholds all data or an RTO probe is outstanding.
    fn pick_unless_withheld(&mut self, cx: &mut Context) -> Option<(Pick, Spacing)> {
        if self.rto_probe.is_some() {
            return None;
        }
        let own = self.algorithm.withholds.then(|| self.own_spacing());
        if own == Some(Spacing::Withheld) {
            self.algorithm.withheld = true;
            return None;
        }
        if std::mem::take(&mut self.algorithm.withheld) {
            self.arm_retransmission(cx);
        }
        let pick = self.pick(cx)?;
        Some((pick, self.pace(own.unwrap_or_else(|| self.own_spacing()), cx)))
    }

    /// Selects the next segment without sending it; records the limit if none may leave.
    fn pick(&mut self, cx: &mut Context) -> Option<Pick> {
        if self.extra.forced > 0 {
            if let Some(index) = self.board.next_lost() {
                return Some(Pick::Again(index));
            }
            self.extra.forced = 0;
        }
        if self.board.is_empty() && self.nxt >= self.stream.end_with_fin() {
            self.limit = Limit::Application;
            return None;
        }
        let fits_burst = cx.config.max_burst.is_none_or(|burst| self.burst < burst);
        let room = fits_burst && self.has_room(cx);
        if room
            && !self.withholds_retransmissions()
            && let Some(index) = self.board.next_lost()
        {
            return Some(Pick::Again(index));
        }
        if !room && self.extra.beyond_window == 0 {
            self.limit = Limit::Window;
            return None;
        }
        match self.next_new(cx) {
            Ok(pick) => Some(pick),
            Err(limit) => {
                self.note_limit(cx, limit);
                self.early_hole().filter(|_| room).map(Pick::Again)
            }
        }
    }

    /// True if the congestion window has room for one more segment, or a pair has begun.
    fn has_room(&self, cx: &Context) -> bool {
        match self.episode {
            _ if self.begins_with_one() => self.used(cx.config) == 0,
            Episode::Recovery { .. } if self.reduces_proportionally(cx.config) => {
                self.reductions.as_ref().is_some_and(|reductions| reductions.prr.budget() > 0)
            }
            _ => {
                self.used(cx.config) < self.window()
                    || self.pacer.as_ref().is_some_and(|pacer| pacer.is_amid_pair())
            }
        }
    }

    /// True while F-RTO judges a timeout: only new data may leave.
    fn withholds_retransmissions(&self) -> bool {
        matches!(self.episode, Episode::Loss { check: TimeoutCheck::AwaitSecond, .. })
    }

    /// Returns the next new segment allowed by application and receiver.
    pub(super) fn next_new(&self, cx: &Context) -> Result<Pick, Limit> {
        let unsent = self.stream.end.saturating_sub(self.nxt);
        let fin = self.stream.finished && self.nxt < self.stream.end_with_fin();
        if unsent == 0 && !fin {
            return Err(Limit::Application);
        }
        if self.withholds_retransmissions() && self.extra.prefer_new == 0 {
            return Err(Limit::Window);
        }
        let full = u64::from(self.mss);
        let len = unsent.min(full);
        let usable = self.peer.edge.saturating_sub(self.nxt);
        if len > usable {
            // Silly window avoidance (RFC 9293 section 3.8.6.2.1): a partial segment must have at least half of the window.
            let worthwhile =
                usable > 0 && (self.extra.may_be_small || usable >= u64::from(self.peer.largest / 2));
            return if worthwhile {
                Ok(Pick::New { len: usable as u32, fin: false })
            } else {
                Err(Limit::Receiver)
            };
        }
        let last = len == unsent;
        if cx.config.nagle && len < full && !self.board.is_empty() && !(last && fin) {
            return Err(Limit::Application);
        }
        // The FIN also uses a sequence number of the peer's window.
        let fits = len < usable;
        if len == 0 && !fits {
            return Err(Limit::Receiver);
        }
        Ok(Pick::New { len: len as u32, fin: last && fin && fits })
    }

    /// Records the limit of new data although the congestion window has room.
    fn note_limit(&mut self, cx: &mut Context, limit: Limit) {
        self.limit = limit;
        if limit == Limit::Application
            && let Some(rate) = &mut self.rate
        {
            rate.app_limited(self.delivered, self.nxt - self.una);
        }
        if limit == Limit::Receiver && self.board.is_empty() {
            self.arm_persist(cx);
        }
    }

    /// RFC 6675 `NextSeg` rule 3: without new data to send, holes not yet proven lost may be filled.
    fn early_hole(&mut self) -> Option<Index> {
        let Episode::Recovery { early_from, .. } = &mut self.episode else { return None };
        if self.recovery != Recovery::Sack || self.algorithm.accounting == Accounting::Outstanding {
            return None;
        }
        let index = self.board.next_unsacked_hole(*early_from)?;
        // Pacing may delay the segment, so the next search begins with it; once retransmitted it is skipped.
        *early_from = index;
        Some(index)
    }

    fn send_again(&mut self, cx: &mut Context, index: Index) -> Outgoing {
        self.stamp(index, cx.now);
        let early = self.recovery == Recovery::Sack && !self.episode.is_open();
        self.board.retransmit(index, cx.now, early);
        self.extra.forced = self.extra.forced.saturating_sub(1);
        // The timer was restarted at the detection of the loss, and pacing may have delayed the segment since.
        if index == self.board.front_index() {
            self.arm_retransmission(cx);
        }
        let (seq, len, fin) = match self.board.get(index).copied() {
            Some(record) => {
                self.watch_repair(cx, record);
                let fin = record.has(super::scoreboard::Mark::FIN);
                (record.start, record.seq_len - u32::from(fin), fin)
            }
            None => (self.una, 0, false),
        };
        cx.stats.sent_segments += 1;
        cx.stats.sent_bytes += u64::from(len);
        cx.stats.rare().retransmitted_segments += 1;
        self.last_segment = (seq, len);
        let (extension, _) = self.notify_sent(Sent { seq, len, retransmission: true }, cx.now);
        Outgoing { fin, extension, ..Outgoing::plain(seq, len) }
    }

    fn send_new(&mut self, cx: &mut Context, len: u32, fin: bool) -> Outgoing {
        if self.board.is_empty() {
            self.restart_after_idle(cx.now, cx.config);
            self.silence.since = cx.now;
        }
        let duplicates = self.duplicates > 0 || self.board.sacked() > 0;
        if duplicates && self.episode.is_open() && self.board.outstanding() >= self.window() {
            self.reductions().limited += 1;
        }
        let seq = self.nxt;
        self.record_departure(cx, len, fin);
        let (extension, priority) = self.notify_sent(Sent { seq, len, retransmission: false }, cx.now);
        Outgoing {
            fin,
            ecn_capable: true,
            congestion_reduced: self.ecn.settle(),
            extension,
            low_priority: priority == Priority::Low,
            ..Outgoing::plain(seq, len)
        }
    }

    /// Records a new segment in scoreboard, timers and counters.
    #[inline]
    pub(super) fn record_departure(&mut self, cx: &mut Context, len: u32, fin: bool) {
        let seq = self.nxt;
        self.stamp(self.board.next_index(), cx.now);
        let mut record = Scoreboard::record(seq, len + u32::from(fin), cx.now);
        record.marks.set(super::scoreboard::Mark::FIN, fin);
        self.nxt = record.end();
        self.board.push(record);
        self.last_segment = (seq, len);
        self.last_sent = cx.now;
        self.extra.new_data_left();
        cx.timers.persist = Instant::FAR_FUTURE;
        if len > 0 {
            cx.stats.sent_segments += 1;
            cx.stats.sent_bytes += u64::from(len);
        }
        if cx.timers.retransmit == Instant::FAR_FUTURE {
            self.arm_retransmission(cx);
        } else if self.timer.meaning == Deadline::TailLossProbe {
            // New data delays the probe, but never the timeout (RFC 8985 section 7.2, RFC 6298 rule 5.1).
            self.arm_tail_probe(cx);
        }
    }

    /// Stores the counters for the delivery rate at the segment's acknowledgement, if the algorithm uses it.
    #[inline]
    fn stamp(&mut self, index: Index, now: Instant) {
        if let Some(rate) = &mut self.rate {
            let totals = Totals { delivered: self.delivered, lost: self.board.total_lost };
            rate.stamp(index, now, totals, self.board.in_flight());
        }
    }

    /// Informs the algorithm of a departing segment. Returns its fields for the segment, and its priority.
    fn notify_sent(&mut self, sent: Sent, now: Instant) -> (Extension, Priority) {
        let sees = self.algorithm.has(Abilities::SEES_DEPARTURES);
        if !sees && !self.algorithm.exchanges_fields {
            return (Extension::None, Priority::Normal);
        }
        let path = self.path(now);
        let priority = if sees { self.algorithm.cc.on_sent(&sent, &path) } else { Priority::Normal };
        let exchanges = self.algorithm.exchanges_fields;
        let stamper = if exchanges { self.algorithm.cc.feedback() } else { None };
        (stamper.map_or(Extension::None, |feedback| feedback.stamp(&sent, &path)), priority)
    }

    /// Counts a departing segment. Returns true if the window is certainly full.
    fn count_departure(&mut self, cx: &mut Context) -> bool {
        self.burst += 1;
        if matches!(self.episode, Episode::Recovery { .. }) {
            self.reductions().prr.sent(1);
        }
        if cx.timers.retransmit == Instant::FAR_FUTURE {
            self.arm_retransmission(cx);
        }
        let full = !self.has_room(cx);
        if full {
            self.limit = Limit::Window;
        }
        // Withheld data during recovery is detected when the next segment is selected.
        let more = self.extra.forced > 0 || self.extra.beyond_window > 0;
        full && !more && (self.episode.is_open() || !self.withholds())
    }

    /// True if the algorithm or the configuration delays data that the windows allow.
    #[inline]
    pub(super) fn is_held_back(&self, cx: &Context) -> bool {
        let own = self.own_spacing();
        own == Spacing::Withheld
            || cx.config.rate_limit.is_some()
            || self.wanted_rate(own.rate(), cx).is_some()
    }

    /// Returns the spacing that results from `own`, that of the algorithm, and the configuration.
    #[inline]
    fn pace(&self, own: Spacing, cx: &Context) -> Spacing {
        let (rate, limit) = (self.wanted_rate(own.rate(), cx), cx.config.rate_limit);
        match (rate.into_iter().chain(limit).min(), own) {
            (Some(rate), Spacing::Pairs { gap, .. }) => Spacing::Pairs { rate, gap },
            (Some(rate), Spacing::At { quantum, .. }) => Spacing::At { rate, quantum },
            (rate, _) => Spacing::at(rate),
        }
    }

    /// Returns the rate before the configured limit; `own` is the algorithm's rate, where zero means none.
    #[inline]
    fn wanted_rate(&self, own: Option<Rate>, cx: &Context) -> Option<Rate> {
        let (slow_start_gain, avoidance_gain) = match cx.config.pacing {
            Pacing::Off => return None,
            Pacing::Algorithm if self.una < self.spaced_until => (1.0, 1.0),
            // One paced ACK covers half a window. Sent at once, it would build a queue, which distorts the delay measurements of
            // algorithms.
            Pacing::Algorithm if self.recovery == Recovery::Snack => Pacing::USUAL_GAINS,
            Pacing::Algorithm => return own.filter(|rate| *rate != Rate::ZERO),
            Pacing::Window { slow_start_gain, avoidance_gain } => (slow_start_gain, avoidance_gain),
        };
        if let Some(rate) = own {
            return Some(rate).filter(|rate| *rate != Rate::ZERO);
        }
        self.window_rate(slow_start_gain, avoidance_gain)
    }

    /// Returns the algorithm's spacing.
    #[inline]
    fn own_spacing(&self) -> Spacing {
        let window_only = self.algorithm.has(Abilities::WINDOW_ONLY);
        let spacing = if window_only { Spacing::None } else { self.algorithm.cc.spacing() };
        debug_assert!(!window_only || self.algorithm.cc.spacing() == Spacing::None, "the window says it all");
        debug_assert!(
            spacing != Spacing::Withheld || self.algorithm.withholds,
            "it said that it never would"
        );
        spacing
    }

    /// True if the algorithm withholds all data.
    #[inline]
    fn withholds(&self) -> bool {
        self.algorithm.withholds && self.own_spacing() == Spacing::Withheld
    }

    /// Returns one window per smoothed RTT, times a gain.
    fn window_rate(&self, slow_start_gain: f64, avoidance_gain: f64) -> Option<Rate> {
        let window = self.algorithm.window();
        let gain =
            if window < self.algorithm.cc.snapshot().ssthresh { slow_start_gain } else { avoidance_gain };
        window_rate(gain * window * f64::from(self.mss), self.rtt.srtt)
    }
}
