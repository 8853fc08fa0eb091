//! An arriving segment on a connection past LISTEN and SYN-SENT (RFC 9293 section 3.10.7.4).

use bentpipe_base::{Duration, EcnField, Extension, Flags, Instant, Probe, Segment, precedes};

use crate::accurate_ecn::Echo;
use crate::connection::Connection;
use crate::fast_path::FastPath;
use crate::receiver::Arrival;
use crate::sender::{AckField, Ecn};
use crate::{Events, State};

/// Shortest time between two challenge ACKs for segments without data, as in Linux (`tcp_invalid_ratelimit`).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

/// After this time without a segment the last timestamp is no longer compared, because the peer's clock may have wrapped (RFC 7323
/// section 5.5: 24 days).
const TIMESTAMP_LIFETIME: Duration = Duration::from_secs(24 * 24 * 3600);

impl Connection {
    pub(crate) fn on_segment(&mut self, now: Instant, segment: &Segment) {
        if !self.is_acceptable(now, segment) {
            return;
        }
        self.last_heard = now;
        if !segment.flags.contains(Flags::ACK) {
            if let (Extension::Notice(notice), true) = (segment.extension, segment.flags.is_empty()) {
                let (sender, mut cx) = self.split(now);
                sender.on_notice(&mut cx, notice);
            }
            return;
        }
        if self.state == State::SynReceived && !self.complete_passive(now, segment) {
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            // The SYN-ACK of a simultaneous open only completes the handshake.
            self.receiver.ack_now();
            return;
        }
        let (sender, mut cx) = self.split(now);
        if sender.on_ack(&mut cx, segment) == AckField::Unacceptable {
            self.challenge(now, segment);
            return;
        }
        if segment.seq_len() == 0 && segment.seq < self.receiver.nxt && segment.probe == Probe::No {
            // Window probes and keep-alives require an answer.
            self.receiver.ack_now();
        }
        if let (Some((value, _)), true) = (segment.timestamps, self.timestamps) {
            self.receiver.note_timestamp(value, segment.seq);
        }
        self.after_our_fin(now);
        self.take_probe(segment);
        if segment.seq_len() > 0 && self.state.receives() {
            self.take_data(now, segment);
        } else if segment.seq_len() > 0 && self.state != State::Closed {
            // The peer retransmits data of a finished stream: the ACK was lost.
            if segment.probe == Probe::No || !self.config.receiver.probe_replies {
                self.receiver.ack_now();
            }
            if self.state == State::TimeWait {
                self.timers.life = now + self.config.lifetime.time_wait;
            }
        }
        if self.echo.count(segment) {
            self.receiver.ack_now();
        }
    }

    /// RFC 7323 section 5.3 (PAWS) and section 3.2, if timestamps were agreed on: segments with an old timestamp are answered and
    /// dropped. Segments without a timestamp are dropped silently. A notice of a link has none, and a SYN is answered by a
    /// challenge ACK in any case.
    fn has_current_timestamp(&mut self, now: Instant, segment: &Segment) -> bool {
        match segment.timestamps {
            _ if !self.timestamps => true,
            Some((value, _)) => {
                let current = !precedes(value, self.receiver.ts_recent)
                    || now.since(self.last_heard) > TIMESTAMP_LIFETIME;
                if !current {
                    self.challenge(now, segment);
                }
                current
            }
            None => segment.flags.is_empty() || segment.flags.contains(Flags::SYN),
        }
    }

    /// Executes steps one to four of RFC 9293: timestamps, sequence number, RST, SYN. A segment that fails one of them changes
    /// nothing, but may cause a challenge ACK.
    fn is_acceptable(&mut self, now: Instant, segment: &Segment) -> bool {
        let reset = segment.flags.contains(Flags::RST);
        if !reset && !self.has_current_timestamp(now, segment) {
            return false;
        }
        if reset {
            // RFC 5961 section 3.2: only the exact number resets; others in the window are challenged.
            if segment.seq == self.receiver.nxt {
                // In TIME-WAIT both streams are complete, and the peer may be gone when a late ACK of this end arrives there.
                let complete = self.state == State::TimeWait;
                self.become_closed(now, if complete { Events::CLOSED } else { Events::RESET });
            } else if segment.seq > self.receiver.nxt && segment.seq < self.receiver.granted_edge() {
                self.challenge(now, segment);
            }
            return false;
        }
        if segment.flags.contains(Flags::SYN) {
            if self.state == State::SynReceived && segment.seq == 0 {
                if segment.flags.contains(Flags::ACK) {
                    return true;
                }
                self.repeat_syn_ack(segment);
            } else if self.challenge(now, segment) && segment.flags.contains(Flags::ACK) {
                self.echo.reflect(segment.ecn);
            }
            return false;
        }
        if !self.receiver.is_near_window(segment) {
            self.challenge(now, segment);
            return false;
        }
        true
    }

    /// Sends a challenge ACK (RFC 5961). Two ends that disagree must not answer each other forever. Therefore the rate of
    /// challenge ACKs for segments without data is limited (RFC 5961 section 7).
    /// Returns true if one leaves.
    #[cold]
    fn challenge(&mut self, now: Instant, segment: &Segment) -> bool {
        let upkeep = self.upkeep.get_or_insert_default();
        let may = segment.len > 0 || now.since(upkeep.challenged_at) >= CHALLENGE_INTERVAL;
        if may {
            upkeep.challenged_at = now;
            self.receiver.ack_now();
        }
        may
    }

    /// Handles a probe: it is answered at once whatever it carries, and never counts for delayed ACKs.
    fn take_probe(&mut self, segment: &Segment) {
        if let Probe::Probe(tag) = segment.probe {
            if self.config.receiver.probe_replies {
                self.receiver.owe_probe_reply(tag);
            } else {
                self.receiver.ack_now();
            }
        }
    }

    pub(crate) fn take_data(&mut self, now: Instant, segment: &Segment) {
        let before = self.receiver.readable();
        let fin = segment.flags.contains(Flags::FIN);
        if self.released && segment.seq + u64::from(segment.len) > self.receiver.nxt {
            // The application will not read the data, and the peer must be informed (RFC 9293 section 3.6.1, SHLD-3).
            self.refuse(segment);
            return self.become_closed(now, Events::CLOSED);
        }
        let arrival = self.receiver.take(segment.seq, segment.seq_end(), fin);
        self.receiver.watch_hole(now);
        let is_probe = self.config.receiver.probe_replies && segment.probe != Probe::No;
        if segment.len > 0 {
            self.stats.received_segments += 1;
            self.stats.received_bytes += u64::from(segment.len);
            if arrival == Arrival::Duplicate {
                self.stats.rare().duplicate_segments += 1;
            }
        }
        if arrival == Arrival::Duplicate && !is_probe && segment.seq_end() <= self.receiver.nxt {
            self.receiver.acknowledge_at_once(self.config.receiver.delayed_ack);
        }
        if let Some(reflector) = &mut self.reflector {
            reflector.on_data(now, segment, arrival == Arrival::Duplicate);
        }
        self.note_marks(segment);
        if is_probe {
            if matches!(arrival, Arrival::InOrder | Arrival::OutOfOrder) {
                self.stats.rare().probe_repairs += 1;
            }
            self.receiver.forget_duplicate();
        } else if arrival == Arrival::OutsideWindow
            || (arrival == Arrival::Duplicate && self.ack_pace().is_none())
        {
            self.receiver.ack_now();
        } else {
            self.schedule_ack(now, arrival, segment);
        }
        if self.receiver.readable() > before {
            self.events |= Events::READABLE;
        }
        if self.receiver.finished() {
            self.after_their_fin(now);
        }
    }

    /// RFC 3168 section 6.1.3: congestion marks are echoed until the sender confirms a reduction.
    fn note_marks(&mut self, segment: &Segment) {
        let (Ecn::On | Ecn::Reduced, Echo::Classic(echo)) = (self.sender.ecn, &mut self.echo) else {
            return;
        };
        if segment.flags.contains(Flags::CWR) {
            *echo = false;
        }
        if segment.ecn == EcnField::Congested {
            *echo = true;
        }
    }

    #[inline(always)]
    pub(crate) fn after_our_fin(&mut self, now: Instant) {
        if self.sender.stream.finished && self.sender.all_acked() {
            self.our_fin_is_acked(now);
        }
    }

    #[cold]
    fn our_fin_is_acked(&mut self, now: Instant) {
        self.fast_path = FastPath::empty();
        if matches!(self.state, State::FinWait1 | State::Closing | State::LastAck) {
            self.sender.closed(now);
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.guard_life(now);
            }
            State::Closing => self.begin_time_wait(now),
            State::LastAck => self.become_closed(now, Events::CLOSED),
            _ => {}
        }
    }

    #[cold]
    pub(crate) fn after_their_fin(&mut self, now: Instant) {
        self.receiver.ack_now();
        self.events |= Events::PEER_CLOSED;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.begin_time_wait(now),
            _ => {}
        }
    }

    #[cold]
    fn begin_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timers.retransmit = Instant::FAR_FUTURE;
        self.timers.persist = Instant::FAR_FUTURE;
        self.timers.life = now + self.config.lifetime.time_wait;
    }
}
