//! End of a connection: in order, by a reset, by a release, or because the peer is gone.

use bentpipe_base::{Flags, Instant, Segment};

use crate::connection::Connection;
use crate::timers::Timers;
use crate::{Events, KeepAlive, State};

impl Connection {
    /// Closes the sending direction: a FIN follows the queued data.
    pub fn close(&mut self, now: Instant) {
        match self.state {
            State::Listen => self.become_closed(now, Events::CLOSED),
            State::SynSent if self.sender.stream.end == 1 => self.become_closed(now, Events::CLOSED),
            // Data written before the handshake is complete is still sent.
            State::SynSent | State::SynReceived | State::Established | State::CloseWait => {
                self.sender.stream.finished = true;
                self.state = match self.state {
                    State::CloseWait => State::LastAck,
                    State::Established => State::FinWait1,
                    other => other,
                };
            }
            _ => {}
        }
        self.finish(now);
    }

    /// Aborts the connection and informs the peer by a RST.
    pub fn abort(&mut self, now: Instant) {
        if self.state == State::Closed {
            return;
        }
        if self.state.is_synchronised() && self.state != State::TimeWait || self.state == State::SynReceived {
            self.reset_peer(now);
        }
        self.become_closed(now, Events::CLOSED);
        self.finish(now);
    }

    /// Releases the connection: the application neither writes nor reads any more. Queued data is still sent, followed by a FIN
    /// as after [`close`](Self::close). Unread data, now or later, resets the connection (RFC 9293 section 3.6.1, SHLD-3).
    /// [`orphan_timeout`](crate::LifetimeConfig::orphan_timeout) and [`fin_wait_2`](crate::LifetimeConfig::fin_wait_2) bound the wait for the
    /// peer.
    pub fn release(&mut self, now: Instant) {
        if self.released || matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        if self.receiver.readable() > 0 {
            return self.abort(now);
        }
        self.released = true;
        self.close(now);
        self.guard_life(now);
        self.finish(now);
    }

    /// Handles a report that the peer's port is unreachable or the peer does not speak TCP (RFC 1122 section 4.2.3.9, a "hard"
    /// error). It ends an attempt to connect (RFC 9293, SHLD-26). An established connection ignores reports of third parties (RFC
    /// 5927 section 5.2).
    pub fn handle_unreachable(&mut self, now: Instant) {
        if self.state == State::SynSent {
            self.become_closed(now, Events::RESET);
            self.finish(now);
        }
    }

    /// Handles a router's report of an error that may pass, such as a missing route: a "soft" error. The connection goes on, and
    /// [`Stats::path_errors`](crate::Stats::path_errors) tells the application (RFC 9293, SHLD-25).
    pub fn handle_temporary_error(&mut self) {
        self.stats.rare().path_errors += 1;
    }

    /// Handles a router's report that the path allows at most `len` payload bytes per packet. Larger outstanding segments are
    /// sent again at once, in packets that fit. The report is not a congestion signal, so the congestion window does not change
    /// (RFC 1191 section 6.3).
    pub fn handle_packet_too_big(&mut self, now: Instant, len: u32) {
        if self.state.is_synchronised() {
            self.sender.repeat_larger(len);
            self.finish(now);
        }
    }

    /// Answers a segment for a connection that does not exist with a RST (RFC 9293 section 3.10.7.1).
    #[cold]
    pub(crate) fn refuse(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let reset = if segment.flags.contains(Flags::ACK) {
            Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() }
        } else {
            Segment { ack: segment.seq_end(), flags: Flags::RST | Flags::ACK, ..Segment::default() }
        };
        self.reset = Some(Box::new(reset));
    }

    /// Makes a RST for the peer the next segment to leave.
    fn reset_peer(&mut self, now: Instant) {
        self.reset = Some(Box::new(Segment {
            seq: self.sender.nxt,
            ack: self.receiver.nxt,
            flags: Flags::RST | Flags::ACK,
            timestamps: self.current_timestamps(now),
            ..Segment::default()
        }));
    }

    #[cold]
    pub(crate) fn become_closed(&mut self, now: Instant, why: Events) {
        self.state = State::Closed;
        self.timers = Timers::OFF;
        self.events |= why;
        if why != Events::CLOSED {
            self.sender.abandoned(now);
        }
    }

    pub(crate) fn give_up(&mut self, now: Instant) {
        if self.state.is_synchronised() {
            self.reset_peer(now);
        }
        self.become_closed(now, Events::TIMED_OUT);
    }

    /// Handles the timer that limits the life of the connection.
    pub(crate) fn on_life_timer(&mut self, now: Instant) {
        let una = self.sender.una;
        match self.state {
            State::TimeWait => self.become_closed(now, Events::CLOSED),
            State::FinWait2 if self.released => self.become_closed(now, Events::CLOSED),
            state if self.released && state.is_synchronised() => {
                match self.upkeep.as_ref().is_some_and(|upkeep| upkeep.una_at_release == una) {
                    true => self.give_up(now),
                    false => self.guard_life(now),
                }
            }
            _ => self.keep_alive(now),
        }
    }

    /// Starts the timer that limits the life of the connection in its present state.
    pub(crate) fn guard_life(&mut self, now: Instant) {
        if self.released && self.state.is_synchronised() {
            self.upkeep.get_or_insert_default().una_at_release = self.sender.una;
            let closed = self.state == State::FinWait2;
            self.timers.life = now
                + if closed { self.config.lifetime.fin_wait_2 } else { self.config.lifetime.orphan_timeout };
        } else if let Some(keep_alive) = self.keep_alive_policy() {
            self.timers.life = now + keep_alive.idle;
        }
    }

    /// Returns the probing of a silent peer. In FIN-WAIT-2 the peer is always probed, because no other timer ends a connection
    /// whose peer is gone. Three probes leave in the last quarter of [`fin_wait_2`](crate::LifetimeConfig::fin_wait_2) (chosen).
    fn keep_alive_policy(&self) -> Option<KeepAlive> {
        let half_closed = (self.state == State::FinWait2).then(|| {
            let quarter = self.config.lifetime.fin_wait_2 / 4;
            KeepAlive { idle: quarter * 3, interval: quarter / 3, probes: 3 }
        });
        let configured = self.config.lifetime.keep_alive.filter(|_| self.state.is_synchronised());
        half_closed.into_iter().chain(configured).min_by_key(|policy| policy.idle)
    }

    /// Probes a silent peer, or gives up the connection if the peer answered none of the earlier probes.
    fn keep_alive(&mut self, now: Instant) {
        let Some(keep_alive) = self.keep_alive_policy() else { return };
        let idle_until = self.last_heard + keep_alive.idle;
        if now < idle_until {
            self.timers.life = idle_until;
            return;
        }
        let upkeep = self.upkeep.get_or_insert_default();
        if self.last_heard > upkeep.keep_alive_at {
            upkeep.keep_alives = 0;
        }
        if upkeep.keep_alives >= keep_alive.probes {
            self.give_up(now);
        } else {
            upkeep.keep_alives += 1;
            upkeep.keep_alive_at = now;
            self.sender.extra.ask = true;
            self.timers.life = now + keep_alive.interval;
        }
    }
}
