//! Header prediction: a short way for the segments of which a transfer consists, in and out.
//!
//! Nearly every segment is either the next piece of data on a connection that has nothing under way itself, or an empty
//! acknowledgement of new data that brings no other news (V. Jacobson, "4BSD TCP header prediction", Computer Communication
//! Review 20(1), 1990). Both leave most of the state as it is. What happens to them here is what the long way in `arrival` and
//! `sender/ack` does with them; a connection that is traced takes only that one, so that runs with and without a trace
//! compare the two.

use bentpipe_base::{EcnField, Flags, Instant, Probe, Segment};

use crate::arrival::is_older;
use crate::connection::{Connection, Events, State, Transmit};
use crate::receiver::Arrival;
use crate::sender::Prediction;

impl Connection {
    /// Handles a segment if it is one of the two. False, with nothing changed, if it is not.
    #[inline]
    pub(crate) fn predict(&mut self, now: Instant, segment: &Segment) -> bool {
        let plain = segment.flags.difference(Flags::PSH) == Flags::ACK
            && segment.seq == self.receiver.nxt
            && segment.sack.is_empty()
            && segment.probe == Probe::No;
        let flows =
            matches!(self.state, State::Established | State::FinWait1 | State::FinWait2 | State::CloseWait);
        if !plain || !flows || self.tracer.is_some() {
            return false;
        }
        let timestamp = segment.timestamps.filter(|_| self.timestamps);
        if timestamp.is_some_and(|(value, _)| is_older(value, self.receiver.ts_recent)) {
            return false;
        }
        let taken = if segment.len > 0 { self.take_next(now, segment) } else { self.take_ack(now, segment) };
        if taken {
            self.last_heard = now;
            if let Some((value, _)) = timestamp {
                self.receiver.note_timestamp(value, segment.seq);
            }
        }
        taken
    }

    /// The next segment if it is a full one in the middle of a stream, or a mere acknowledgement, or if there is none. Nothing, with
    /// nothing changed, if only the long way can tell.
    #[inline]
    pub(crate) fn predicted_segment(&mut self, now: Instant, out: &mut Segment) -> Option<Transmit> {
        let open = matches!(self.state, State::Established | State::CloseWait | State::FinWait1);
        if !open || self.reset.is_some() || self.tracer.is_some() || self.receiver.owes_probe_reply() {
            return None;
        }
        let (sender, mut cx) = self.split(now);
        match sender.predicted_departure(&mut cx) {
            Prediction::Unclear => None,
            Prediction::Nothing if self.receiver.must_ack_now() => {
                self.acknowledge(now, out);
                Some(Transmit::Last)
            }
            Prediction::Nothing => Some(Transmit::Nothing),
            Prediction::Full { seq, last } => {
                self.header(now, out);
                out.seq = seq;
                out.len = self.sender.mss;
                if self.sender.ecn {
                    out.ecn = EcnField::Capable;
                }
                Some(if last { Transmit::Last } else { Transmit::More })
            }
        }
    }

    /// An empty acknowledgement of new data.
    #[inline]
    fn take_ack(&mut self, now: Instant, segment: &Segment) -> bool {
        let (sender, mut cx) = self.split(now);
        if !sender.predicted_ack(&mut cx, segment) {
            return false;
        }
        self.after_our_fin(now);
        true
    }

    /// The next piece of data, while nothing of ours is under way.
    #[inline]
    fn take_next(&mut self, now: Instant, segment: &Segment) -> bool {
        let end = segment.seq + u64::from(segment.len);
        if !self.state.receives() || !self.receiver.expects_up_to(end) {
            return false;
        }
        let (sender, mut cx) = self.split(now);
        if !sender.predicted_echo(&mut cx, segment) {
            return false;
        }
        self.after_our_fin(now);
        self.receiver.extend(end);
        self.stats.received_segments += 1;
        self.stats.received_bytes += u64::from(segment.len);
        if let Some(reflector) = &mut self.reflector {
            reflector.on_data(now, segment, false);
        }
        if self.sender.ecn && segment.ecn == EcnField::Congested {
            self.receiver.ecn_echo = true;
        }
        self.schedule_ack(now, Arrival::InOrder, segment.len);
        self.events |= Events::READABLE;
        true
    }
}
