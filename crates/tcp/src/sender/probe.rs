//! Low-priority probes: the algorithm provides them after data, the peer replies, and they never count as data.

use bentpipe_base::{Extension, Instant, Notice, Probe, SackRange};
use bentpipe_cc::{ProbeKind, ProbeMoment, ProbeRequest, Wake};

use super::outgoing::Outgoing;
use super::{Abilities, Sender};
use crate::context::Context;

impl Sender {
    /// Returns the probe to send before the next segment, if the algorithm probes after each segment.
    pub(super) fn probe_between_segments(&mut self, cx: &mut Context) -> Option<Outgoing> {
        self.algorithm.cc.prober().filter(|prober| prober.follows_each_segment())?;
        let probe = self.next_probe(cx);
        self.arm_wake(cx);
        probe
    }

    /// Returns the next probe of the algorithm.
    pub fn next_probe(&mut self, cx: &mut Context) -> Option<Outgoing> {
        if !self.algorithm.has(Abilities::PROBES) || self.rto_probe.is_some() || !self.limit_allows(cx) {
            return None;
        }
        let path = self.path(cx.now);
        let request = match self
            .outstanding_probes
            .as_mut()
            .and_then(|outstanding_probes| outstanding_probes.take_held())
        {
            Some(held) => held,
            None => {
                let (seq, len) = self.last_segment;
                let sent_newest = self.burst > 0 && seq + u64::from(len) >= self.nxt;
                let moment = ProbeMoment { data_sent: self.burst, sent_newest };
                self.algorithm.cc.prober()?.next_probe(&moment, &path)?
            }
        };
        let (seq, len) = self.probe_payload(request)?;
        let beyond_hole = self.board.sacked() > 0 && seq > self.una;
        if let Some(outstanding_probes) = self.outstanding_probes.as_mut().filter(|_| beyond_hole)
            && !outstanding_probes.may_copy_beyond_hole(request, cx.now)
        {
            return None;
        }
        if let Some(limit) = cx.config.sender.rate_limit {
            self.pacer.get_or_insert_default().sent(cx.now, len, limit);
        }
        cx.stats.rare().probes_sent += 1;
        if let Some(outstanding_probes) = self.outstanding_probes.as_mut().filter(|_| len > 0) {
            let end = seq + u64::from(len);
            outstanding_probes.note_sent(SackRange { start: seq, end }, request.tag, cx.now);
        }
        Some(Outgoing { probe: Probe::Probe(request.tag), low_priority: true, ..Outgoing::plain(seq, len) })
    }

    /// True if the configured rate limit allows a probe now. Probes use the rate like segments.
    fn limit_allows(&mut self, cx: &mut Context) -> bool {
        if cx.config.sender.rate_limit.is_none() {
            return true;
        }
        let ready = self.pacer.get_or_insert_default().ready_at(cx.now);
        if ready > cx.now {
            cx.timers.pace = ready;
        }
        ready <= cx.now
    }

    /// Returns sequence number and length of a probe; `None` before any data was sent.
    fn probe_payload(&mut self, request: ProbeRequest) -> Option<(u64, u32)> {
        match request.kind {
            ProbeKind::Dummy => self.dummy_payload(),
            ProbeKind::AckPath => Some((self.una.saturating_sub(1), 0)),
            ProbeKind::Hole => {
                let hole = self.board.next_unsacked_hole(self.board.front_index());
                self.board.copied(hole.or(self.board.back_index())?)
            }
            ProbeKind::Newest => self.copy(u64::from(self.board.outstanding().checked_sub(1)?)),
            ProbeKind::Outstanding(nth) => self.copy(u64::from(nth.checked_rem(self.board.outstanding())?)),
        }
    }

    /// Returns sequence number and length of a dummy probe. For a peer whose D-SACKs serve as replies it repeats acknowledged
    /// data if possible, because duplicates beyond a hole are not always reported.
    fn dummy_payload(&self) -> Option<(u64, u32)> {
        let acknowledged = self.una.saturating_sub(1).min(u64::from(self.mss)) as u32;
        if self.outstanding_probes.is_some() && acknowledged > 0 && self.una <= self.stream.end {
            return Some((self.una - u64::from(acknowledged), acknowledged));
        }
        Some(self.last_segment).filter(|(seq, _)| *seq > 0)
    }

    fn copy(&mut self, nth: u64) -> Option<(u64, u32)> {
        self.board.copied(self.board.front_index() + nth)
    }

    /// Handles the algorithm's timer.
    pub fn on_wake(&mut self, cx: &mut Context) {
        self.burst = 0;
        let path = self.path(cx.now);
        if let Some(sleeper) = self.algorithm.cc.sleeper() {
            self.extra.ask |= sleeper.on_wake(&path) == Wake::AskForAck;
        }
        if self.algorithm.has(Abilities::DETECTS) {
            self.ask_detector(&path);
        }
    }

    /// Handles a notice from a link on the path, whatever was agreed on with the peer.
    #[cold]
    pub fn on_notice(&mut self, cx: &mut Context, notice: Notice) {
        if self.algorithm.has(Abilities::FEEDBACK) {
            self.burst = 0;
            let path = self.path(cx.now);
            if let Some(feedback) = self.algorithm.cc.feedback() {
                feedback.on_feedback(&Extension::Notice(notice), &path);
            }
        }
    }

    /// Sets the algorithm's timer after every call into it.
    #[inline]
    pub fn arm_wake(&mut self, cx: &mut Context) {
        if !self.algorithm.abilities.intersects(Abilities::WAKES.union(Abilities::PROBES)) {
            return;
        }
        let wake_at = self.algorithm.cc.sleeper().map_or(Instant::FAR_FUTURE, |sleeper| sleeper.wake_at());
        let at = wake_at.min(self.held_probe_at(cx));
        cx.timers.algorithm = if at == Instant::FAR_FUTURE { at } else { at.max(cx.now) };
    }

    /// Returns the time at which the waiting probe may leave: never while an RTO probe is outstanding, and not before the rate
    /// limit allows it.
    fn held_probe_at(&self, cx: &Context) -> Instant {
        let probes = self.outstanding_probes.as_ref().filter(|_| self.rto_probe.is_none());
        let at = probes.map_or(Instant::FAR_FUTURE, |probes| probes.held_until());
        let line = self.pacer.as_ref().filter(|_| cx.config.sender.rate_limit.is_some());
        line.map_or(at, |pacer| at.max(pacer.ready_at(cx.now)))
    }
}
