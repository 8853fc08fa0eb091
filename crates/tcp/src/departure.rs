//! Departing segments: selection and header.

use bentpipe_base::{EcnField, Extension, Flags, Instant, Probe, SackBlocks, Segment};
use bentpipe_trace::Event;

use crate::connection::Connection;
use crate::fast_path::FastPath;
use crate::receiver::Arrival;
use crate::sender::{Abilities, Outgoing};
use crate::state::Reports;
use crate::timestamp::clock_ms;
use crate::{AckDelay, AckPace, State, Transmit};

impl Connection {
    /// Returns the next segment to send; `None` if there is none at the moment.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let mut segment = Segment::default();
        (self.transmit_into(now, &mut segment) != Transmit::Nothing).then_some(segment)
    }

    /// Writes the next segment into `out`, if there is one. Drivers that send millions of segments save a copy of each, and the
    /// call that finds none. Without a segment, `out` holds a valid but meaningless one.
    pub fn transmit_into(&mut self, now: Instant, out: &mut Segment) -> Transmit {
        if !self.sender.is_repairing()
            && let Some(transmit) = self.predicted_segment(now, out)
        {
            return transmit;
        }
        self.fast_path = FastPath::empty();
        let transmit = self.next_segment(now, out);
        if self.tracer.is_some() && transmit != Transmit::Nothing {
            self.trace(now, Event::Sent(*out));
        }
        transmit
    }

    fn next_segment(&mut self, now: Instant, out: &mut Segment) -> Transmit {
        if !self.state.is_synchronised() || self.reset.is_some() {
            return self.next_exception(now, out);
        }
        if self.echo.reflects_next() {
            self.acknowledge(now, out);
            return Transmit::More;
        }
        if let Some(tag) = self.receiver.next_probe_reply() {
            let (timer, owed) = (self.timers.delayed_ack, self.receiver.set_aside());
            self.acknowledge(now, out);
            self.timers.delayed_ack = timer;
            self.receiver.owe_again(owed);
            out.probe = Probe::Reply(tag);
            out.low_priority = true;
            return Transmit::More;
        }
        let sends = self.state.sends();
        let probes = sends && self.sender.abilities().contains(Abilities::PROBES);
        // A keep-alive leaves even without data to send.
        if sends || self.sender.extra.ask {
            let (sender, mut cx) = self.split(now);
            if let Some(outgoing) = sender.next_segment(&mut cx) {
                self.assemble(now, &outgoing, out);
                return if outgoing.last && !probes { Transmit::Last } else { Transmit::More };
            }
        }
        if self.receiver.must_ack_now() {
            self.acknowledge(now, out);
            return if probes { Transmit::More } else { Transmit::Last };
        }
        if probes && self.next_probe(now, out) { Transmit::More } else { Transmit::Nothing }
    }

    /// Writes a RST, a segment of the handshake, or an ACK during it.
    fn next_exception(&mut self, now: Instant, out: &mut Segment) -> Transmit {
        let segment = match self.reset.take() {
            None if matches!(self.state, State::SynSent | State::SynReceived) => self.next_syn(now),
            reset => reset.map(|reset| *reset),
        };
        if let Some(segment) = segment {
            *out = segment;
            return Transmit::More;
        }
        if self.state == State::SynReceived && self.receiver.must_ack_now() {
            self.acknowledge(now, out);
            return Transmit::More;
        }
        Transmit::Nothing
    }

    fn next_probe(&mut self, now: Instant, out: &mut Segment) -> bool {
        let (sender, mut cx) = self.split(now);
        let outgoing = sender.next_probe(&mut cx);
        sender.arm_wake(&mut cx);
        if let Some(outgoing) = &outgoing {
            self.assemble(now, outgoing, out);
        }
        outgoing.is_some()
    }

    fn assemble(&mut self, now: Instant, outgoing: &Outgoing, out: &mut Segment) {
        self.header(now, out);
        out.seq = outgoing.seq;
        out.len = outgoing.len;
        out.flags.set(Flags::FIN, outgoing.fin);
        if outgoing.congestion_reduced {
            out.flags |= Flags::CWR;
        }
        let last = outgoing.seq + u64::from(outgoing.len) == self.sender.stream.end;
        out.flags.set(Flags::PSH, outgoing.len > 0 && last);
        if outgoing.ecn_capable {
            out.ecn = self.sender.ecn.field();
        }
        out.probe = outgoing.probe;
        out.low_priority = outgoing.low_priority;
        out.extension = outgoing.extension;
    }

    /// Writes a pure ACK.
    #[inline]
    pub(crate) fn acknowledge(&mut self, now: Instant, out: &mut Segment) {
        self.stats.acks_sent += 1;
        self.header(now, out);
        if let Some(reflector) = &mut self.reflector {
            out.extension = reflector.reply(now);
        }
    }

    /// Sets all fields of a segment of a synchronised connection to those of a pure ACK.
    #[inline]
    pub(crate) fn header(&mut self, now: Instant, out: &mut Segment) {
        self.timers.delayed_ack = Instant::FAR_FUTURE;
        out.seq = self.sender.nxt;
        out.ack = self.receiver.nxt;
        out.len = 0;
        out.window = self.receiver.acknowledged(&self.config);
        out.flags = Flags::ACK | self.echo.report();
        out.ecn = EcnField::NotCapable;
        out.probe = Probe::No;
        out.low_priority = false;
        out.timestamps = self.current_timestamps(now);
        out.syn_options = None;
        out.extension = Extension::None;
        out.sack.clear();
        match self.reports {
            Reports::None => {}
            Reports::Sack => {
                let room = if self.timestamps { 3 } else { 4 };
                self.receiver.sack_blocks(room, self.config.receiver.dsack, &mut out.sack);
            }
            Reports::Snack => self.report_holes(now, out),
        }
    }

    /// Reports the holes by SNACK, if there are any. The report is repeated while the peer sends, because ACKs may be lost.
    #[inline(never)]
    fn report_holes(&mut self, now: Instant, out: &mut Segment) {
        let Some(snack) = self.receiver.snack(self.sender.mss) else { return };
        out.sack = SackBlocks::Missing(snack);
        if now.since(self.last_heard) < self.config.sender.rto.ceiling {
            let delay = self.ack_pace().unwrap_or_default().delay(self.sender.srtt().unwrap_or_default());
            self.receiver.owe_ack();
            self.timers.delayed_ack = now + delay;
        }
    }

    /// Returns the ACK pacing, if it is in use.
    #[inline]
    pub(crate) fn ack_pace(&self) -> Option<AckPace> {
        match self.config.receiver.ack_delay {
            AckDelay::Auto => (self.reports == Reports::Snack).then(AckPace::default),
            AckDelay::Counted => None,
            AckDelay::Paced(pace) => Some(pace),
        }
    }

    /// Schedules the acknowledgement of a received data segment.
    #[inline]
    pub(crate) fn schedule_ack(&mut self, now: Instant, arrival: Arrival, segment: &Segment) {
        let delay = match self.ack_pace() {
            None => self.receiver.schedule_ack(arrival, segment, self.config.receiver.delayed_ack),
            Some(pace) => self.receiver.pace_ack(arrival, pace.delay(self.sender.srtt().unwrap_or_default())),
        };
        if let Some(delay) = delay {
            self.timers.delayed_ack = now + delay;
        }
    }

    /// Returns the timestamps option of a segment that leaves now, if timestamps were agreed on (RFC 7323 section 3.2).
    #[inline]
    pub(crate) fn current_timestamps(&self, now: Instant) -> Option<(u32, u32)> {
        self.timestamps.then(|| (clock_ms(now), self.receiver.ts_recent))
    }
}
