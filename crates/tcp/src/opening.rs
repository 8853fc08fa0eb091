//! Opening of a connection: active, passive and simultaneous (RFC 9293 section 3.5), with option negotiation.

use bentpipe_base::{Duration, EcnField, Flags, Instant, Segment, SynOptions};
use bentpipe_trace::Event;

use crate::accurate_ecn::{self, Agreement, Echo, Reported};
use crate::connection::Connection;
use crate::handshake::{EarlyData, Handshake};
use crate::sender::{Ecn, Fate};
use crate::state::Reports;
use crate::timestamp::clock_ms;
use crate::{Events, Recovery, State};

/// Maximum payload to a peer that sent no MSS option (RFC 9293 section 3.7.1).
const DEFAULT_MSS: u32 = 536;

impl Connection {
    fn handshaking(&mut self) -> &mut Handshake {
        self.handshake.as_mut().expect("it is kept until the handshake is over")
    }

    pub(crate) fn begin_handshake(&mut self, now: Instant) {
        self.handshaking().make_due();
        self.timers.retransmit = now + self.sender.rto(&self.config);
    }

    /// LISTEN: handles a SYN; other segments open nothing.
    pub(crate) fn on_syn(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            self.refuse(segment);
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            self.note_syn(segment);
            self.state = State::SynReceived;
            self.begin_handshake(now);
        }
    }

    /// SYN-SENT: a SYN-ACK completes the handshake, a bare SYN is a simultaneous open.
    pub(crate) fn on_syn_ack(&mut self, now: Instant, segment: &Segment) {
        let acks = segment.flags.contains(Flags::ACK);
        if acks && segment.ack != self.sender.nxt {
            self.refuse(segment);
            return;
        }
        if segment.flags.contains(Flags::RST) {
            if acks {
                self.become_closed(now, Events::RESET);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.note_syn(segment);
        if acks {
            self.sender.una = segment.ack;
            self.establish(now, segment);
            self.receiver.ack_now();
        } else {
            self.state = State::SynReceived;
            self.begin_handshake(now);
        }
    }

    /// Records the offers of the peer's SYN.
    fn note_syn(&mut self, segment: &Segment) {
        self.receiver.synchronise();
        let ecn = Agreement::of(self.config.ecn, segment);
        let handshake = self.handshaking();
        handshake.peer = segment.syn_options;
        handshake.ecn = ecn;
        handshake.early = EarlyData { len: segment.len, fin: segment.flags.contains(Flags::FIN) };
        if let Some((value, _)) = segment.timestamps {
            handshake.peer_timestamps = true;
            self.receiver.ts_recent = value;
        }
        self.timestamps = self.config.timestamps && segment.timestamps.is_some();
        if segment.syn_options.is_none_or(|options| options.window_scale.is_none()) {
            self.receiver.scale = 0;
        }
    }

    /// Returns the SYN or SYN-ACK that is due, if there is one.
    pub(crate) fn next_syn(&mut self, now: Instant) -> Option<Segment> {
        let answers = self.state == State::SynReceived;
        let handshake = self.handshaking();
        if !handshake.take_due(now) {
            return None;
        }
        let retries = handshake.retries();
        let Handshake { ecn, peer_timestamps, peer, .. } = *handshake;
        self.sender.nxt = 1;
        let flags = Flags::SYN
            | if answers { Flags::ACK | ecn.answer() } else { accurate_ecn::offer(self.config.ecn, retries) };
        let timestamps = self.config.timestamps && (!answers || peer_timestamps);
        let window = self.receiver.syn_window();
        if answers {
            self.receiver.note_acknowledged();
        }
        Some(Segment {
            seq: 0,
            ack: if answers { self.receiver.nxt } else { 0 },
            window,
            flags,
            timestamps: timestamps.then(|| (clock_ms(now), self.receiver.ts_recent)),
            syn_options: Some(self.offer(peer.filter(|_| answers))),
            ..Segment::default()
        })
    }

    /// Returns the options of this end's SYN; in a SYN-ACK only those that the `peer` also offered.
    fn offer(&mut self, peer: Option<SynOptions>) -> SynOptions {
        let wanted_receiver = self.sender.wanted_receiver();
        let config = &self.config;
        let agreed = |ours: bool, theirs: fn(&SynOptions) -> bool| ours && peer.as_ref().is_none_or(theirs);
        let reflected = |peer: SynOptions| {
            self.config
                .receiver
                .reflection
                .map_or(0, |r| if r.number == peer.feedback { r.number } else { 0 })
        };
        SynOptions {
            mss: Some(config.mss.saturating_add(config.timestamps_len).min(65_535) as u16),
            window_scale: agreed(config.window_scaling, |peer| peer.window_scale.is_some())
                .then_some(self.receiver.scale),
            sack_permitted: agreed(config.sender.recovery.uses_sack(), |peer| peer.sack_permitted),
            snack_permitted: agreed(config.sender.recovery == Recovery::Snack, |peer| peer.snack_permitted),
            best_effort: agreed(self.offers_best_effort(), |peer| peer.best_effort),
            probes_permitted: agreed(config.receiver.probe_replies, |peer| peer.probes_permitted),
            feedback: peer.map_or(wanted_receiver, reflected),
        }
    }

    /// SYN-RECEIVED: the ACK of this end's SYN completes the handshake. Returns false if the segment must be dropped.
    #[cold]
    pub(crate) fn complete_passive(&mut self, now: Instant, segment: &Segment) -> bool {
        if segment.ack == 0 || segment.ack > self.sender.nxt {
            self.refuse(segment);
            return false;
        }
        self.sender.una = segment.ack.min(1);
        self.establish(now, segment);
        true
    }

    fn establish(&mut self, now: Instant, segment: &Segment) {
        let Some(handshake) = self.handshake.take() else { return };
        let peer = handshake.peer.unwrap_or_default();
        self.state = State::Established;
        self.timers.retransmit = Instant::FAR_FUTURE;
        self.reports = self.agree_on_reports(peer);
        self.sender.timestamps = self.timestamps;
        self.sender.expect(self.reports);
        if self.reports == Reports::Snack && self.offers_best_effort() && peer.best_effort {
            self.receiver.accept_gaps();
        }
        self.sender.reset_back_off();
        if !self.time_handshake(now, segment, &handshake) {
            self.sender.syn_was_lost(&self.config);
        }
        self.agree_on_mss(peer, handshake.seed);
        self.sender.open_window(segment.seq, segment.window);
        self.agree_on_ecn(segment, &handshake);
        self.agree_on_probes_and_feedback(peer);
        self.last_heard = now;
        self.events |= Events::ESTABLISHED;
        self.sender.established(now);
        if self.sender.stream.finished {
            self.state = State::FinWait1;
        }
        self.guard_life(now);
        self.take_early(now, handshake.early);
    }

    /// Starts ECN. `completing` is the segment that completed the handshake.
    fn agree_on_ecn(&mut self, completing: &Segment, handshake: &Handshake) {
        // After a SYN without ECN it is uncertain if the peer knows marks (RFC 9768 section 3.1.5).
        let field = if handshake.plain_syn { EcnField::NotCapable } else { self.sender.capable() };
        self.sender.ecn = match handshake.ecn {
            Agreement::Off => Ecn::Off,
            Agreement::Classic => Ecn::On,
            Agreement::Accurate(received) => {
                // Only the end that received a SYN-ACK reflects its field.
                let syn_ack = completing.flags.contains(Flags::SYN).then_some(received);
                self.echo = Echo::accurate(syn_ack);
                Ecn::Accurate(Reported::new(completing, field))
            }
        };
    }

    /// Sets the size of full segments: the minimum of both MSS options, minus the options in each segment (RFC 6691).
    fn agree_on_mss(&mut self, peer: SynOptions, seed: u64) {
        let config = &self.config;
        let allowed = peer.mss.map_or(DEFAULT_MSS, u32::from);
        let ours = config.mss.saturating_add(config.timestamps_len);
        let options = if self.timestamps { config.timestamps_len } else { 0 };
        let mss = allowed.min(ours).saturating_sub(options).max(config.least_mss.min(config.mss));
        self.sender.set_mss(config, mss.max(1), seed);
    }

    /// Handles data and FIN of the peer's SYN as if they were in the next segment.
    fn take_early(&mut self, now: Instant, early: EarlyData) {
        let EarlyData { len, fin } = early;
        let mut flags = Flags::ACK;
        flags.set(Flags::FIN, fin);
        if len > 0 || fin {
            self.take_data(now, &Segment { seq: 1, len, flags, ..Segment::default() });
        }
    }

    /// Takes the first round-trip sample. If the SYN was repeated, only timestamps identify the answered one. Returns true if it
    /// was the first: none was lost, and the timeout was too short (RFC 3522).
    fn time_handshake(&mut self, now: Instant, segment: &Segment, handshake: &Handshake) -> bool {
        let echo = segment.timestamps.map(|(_, echo)| echo).filter(|echo| self.timestamps && *echo != 0);
        let first = handshake.first_sent_at.unwrap_or(Instant::ZERO);
        let longest = now.since(first);
        if !handshake.was_repeated() || echo == Some(clock_ms(first)) {
            self.sender.handshake_rtt(longest, &self.config);
            return true;
        }
        let by_echo = echo.map(|echo| Duration::from_millis(clock_ms(now).wrapping_sub(echo).into()));
        match by_echo.filter(|rtt| !rtt.is_zero() && *rtt <= longest) {
            Some(rtt) => self.sender.handshake_rtt(rtt, &self.config),
            None => self.sender.guess_rtt(longest, &self.config),
        }
        false
    }

    /// True if best effort is offered. It requires SNACK, because the timer that repeats SNACK reports also skips holes.
    fn offers_best_effort(&self) -> bool {
        self.config.sender.recovery == Recovery::Snack && self.config.receiver.best_effort.is_some()
    }

    /// Returns SNACK if both ends permit it, else SACK if both ends permit that.
    fn agree_on_reports(&self, peer: SynOptions) -> Reports {
        match self.config.sender.recovery {
            Recovery::Snack if peer.snack_permitted => Reports::Snack,
            recovery if recovery.uses_sack() && peer.sack_permitted => Reports::Sack,
            _ => Reports::None,
        }
    }

    fn agree_on_probes_and_feedback(&mut self, peer: SynOptions) {
        if self.config.receiver.probe_replies && peer.probes_permitted {
            self.sender.peer_answers_probes();
        } else if self.reports == Reports::Sack {
            self.sender.peer_may_report_probes();
        }
        let wanted = self.sender.wanted_receiver();
        self.sender.agree_on_fields(wanted != 0 && peer.feedback == wanted);
        let asked = self.config.receiver.reflection.filter(|reflection| reflection.number == peer.feedback);
        self.reflector = asked.map(|reflection| (reflection.build)());
    }

    /// Repeats an unanswered SYN or SYN-ACK, up to the configured number of times.
    pub(crate) fn handshake_timeout(&mut self, now: Instant) -> Fate {
        let most = self.config.lifetime.syn_retries;
        if !self.handshaking().retry(most) {
            return Fate::GiveUp;
        }
        self.stats.rare().timeouts += 1;
        let consecutive = self.handshaking().retries();
        self.trace(now, Event::Timeout { consecutive });
        self.sender.back_off();
        self.begin_handshake(now);
        Fate::GoOn
    }

    /// Repeats the SYN-ACK, because the peer repeated its SYN. It reflects the ECN field of the latest SYN.
    #[cold]
    pub(crate) fn repeat_syn_ack(&mut self, syn: &Segment) {
        let handshake = self.handshaking();
        handshake.retry(u32::MAX);
        if let Agreement::Accurate(field) = &mut handshake.ecn {
            *field = syn.ecn;
            handshake.plain_syn |= syn.flags.ace() == 0;
        }
    }
}
