//! Header prediction: a fast path for the typical segments of a transfer, in both directions.
//!
//! Nearly every segment is the next data on a connection without outstanding data, or an empty acknowledgement of new data
//! without other information (V. Jacobson, "4BSD TCP header prediction", Computer Communication Review 20(1), 1990). With
//! frequent losses, data is rarely the next of the stream, but nearly always continues the previous arrival. Such segments change
//! few fields. The fast path has the same effect as the slow path in `arrival` and `sender/ack`. A traced connection uses only
//! the slow path, so runs with and without a trace test that both agree.
//!
//! The conditions of the fast path are not checked for each segment: [`FastPath`] holds their result until the next use of the
//! slow path.

use bentpipe_base::{EcnField, Flags, Instant, Probe, Segment, precedes};

use crate::accurate_ecn::Echo;
use crate::connection::Connection;
use crate::fast_path::FastPath;
use crate::receiver::Arrival;
use crate::sender::{Abilities, Ecn, Prediction};
use crate::{DelayedAck, Events, State, Transmit};

/// Result of [`Connection::exchange`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exchange {
    /// The segment was handled. The driver continues as after [`Connection::handle_segment`], and takes the events first.
    Taken,
    /// The segment was handled without events. Readable data was read, and [`Connection::transmit_into`] was called once.
    Answered {
        /// Result of that call.
        transmit: Transmit,
        /// True if [`Connection::next_timeout`] may be earlier than before.
        earlier: bool,
    },
}

impl Connection {
    /// Handles a segment. If it uses the fast path and the application `reads_at_once`, the connection also reads for the
    /// application. It then writes the first departing segment into `segment`.
    #[inline]
    pub fn exchange(&mut self, now: Instant, segment: &mut Segment, reads_at_once: bool) -> Exchange {
        let deadline = self.timers.retransmit;
        let simple = reads_at_once
            && is_usual(segment)
            && self.events.is_empty()
            && self.fast_path().contains(FastPath::WAKELESS);
        if !simple || !self.predict_usual(now, segment) {
            self.handle_segment(now, segment);
            return Exchange::Taken;
        }
        if self.events == Events::READABLE {
            self.events = Events::empty();
            self.read(now, u64::MAX);
        }
        if !self.events.is_empty() {
            return Exchange::Taken;
        }
        let Some(transmit) = self.predicted_segment(now, segment) else { return Exchange::Taken };
        let earlier = self.timers.retransmit < deadline || self.timers.delayed_ack != Instant::FAR_FUTURE;
        Exchange::Answered { transmit, earlier }
    }

    /// Returns the allowed fast paths, computed again after the slow path was used.
    #[inline(always)]
    fn fast_path(&mut self) -> FastPath {
        if self.fast_path.is_empty() {
            self.fast_path = self.allowed_fast_paths();
            self.resting = false;
        }
        self.fast_path
    }

    #[inline(never)]
    fn allowed_fast_paths(&self) -> FastPath {
        let flows =
            matches!(self.state, State::Established | State::FinWait1 | State::FinWait2 | State::CloseWait);
        let open = matches!(self.state, State::Established | State::CloseWait | State::FinWait1);
        let abilities = self.sender.abilities();
        let untraced = self.tracer.is_none();
        let no_departure = open
            && untraced
            && self.reset.is_none()
            && !self.receiver.owes_probe_reply()
            && !self.sender.extra.ask
            && !abilities.contains(Abilities::PROBES);
        let arrivals = flows && untraced && self.sender.takes_plain_acks();
        let each = self.config.receiver.delayed_ack == DelayedAck::Off && self.ack_pace().is_none();
        let wakeless = !abilities.intersects(Abilities::WAKES.union(Abilities::PROBES))
            && self.timers.algorithm == Instant::FAR_FUTURE;
        let mut fast_path = FastPath::KNOWN;
        fast_path.set(FastPath::ARRIVALS, arrivals);
        let data = arrivals && self.state.receives() && !self.receiver.knows_end() && !self.released;
        fast_path.set(FastPath::DATA, data && !self.receiver.has_holes());
        fast_path.set(FastPath::ABOVE_HOLE, data);
        fast_path.set(FastPath::NO_DEPARTURE, no_departure);
        fast_path
            .set(FastPath::DEPARTURES, no_departure && self.sender.sends_plainly(&self.config, &self.timers));
        fast_path.set(FastPath::WINDOW_ONLY, self.sender.is_held_by_window_only(&self.config));
        fast_path.set(FastPath::ACK_EACH, each);
        fast_path.set(FastPath::WAKELESS, untraced && wakeless);
        fast_path
    }

    /// Handles a segment by the fast path. Returns false without a change if that is not allowed.
    #[inline(always)]
    pub(crate) fn predict(&mut self, now: Instant, segment: &Segment) -> bool {
        is_usual(segment) && self.predict_usual(now, segment)
    }

    /// Same as `predict`, for a segment that [`is_usual`].
    #[inline(always)]
    fn predict_usual(&mut self, now: Instant, segment: &Segment) -> bool {
        let is_next = segment.seq == self.receiver.nxt;
        let is_expected = is_next || self.receiver.continues_at(segment.seq);
        if !is_expected || !self.fast_path().contains(FastPath::ARRIVALS) {
            return false;
        }
        let timestamp = segment.timestamps.filter(|_| self.timestamps);
        let current = match timestamp {
            Some((value, _)) => !precedes(value, self.receiver.ts_recent),
            None => !self.timestamps,
        };
        if !current {
            return false;
        }
        let arrival = if is_next { Arrival::InOrder } else { Arrival::OutOfOrder };
        let taken = if segment.len > 0 {
            self.take_next(now, segment, arrival)
        } else {
            is_next && self.take_ack(now, segment)
        };
        if taken {
            self.last_heard = now;
            if let Some((value, _)) = timestamp {
                self.receiver.note_timestamp(value, segment.seq);
            }
        }
        taken
    }

    /// Writes the next segment if it is a full segment within the stream or a pure ACK, or decides that there is none. Returns
    /// `None` without a change if only the slow path can decide.
    #[inline(always)]
    pub(crate) fn predicted_segment(&mut self, now: Instant, out: &mut Segment) -> Option<Transmit> {
        let fast_path = self.fast_path();
        if !fast_path.contains(FastPath::NO_DEPARTURE) {
            return None;
        }
        let (sender, mut cx) = self.split(now);
        match sender.predicted_departure(&mut cx, fast_path) {
            Prediction::Unclear => None,
            Prediction::Nothing if self.receiver.must_ack_now() => {
                self.acknowledge(now, out);
                Some(Transmit::Last)
            }
            Prediction::Nothing => Some(Transmit::Nothing),
            Prediction::Full { seq, last } => {
                self.resting = false;
                self.header(now, out);
                out.seq = seq;
                out.len = self.sender.mss;
                out.ecn = self.sender.ecn.field();
                Some(if last { Transmit::Last } else { Transmit::More })
            }
        }
    }

    /// Handles an empty acknowledgement of new data.
    #[inline]
    fn take_ack(&mut self, now: Instant, segment: &Segment) -> bool {
        let (sender, mut cx) = self.split(now);
        if !sender.predicted_ack(&mut cx, segment) {
            return false;
        }
        self.after_our_fin(now);
        true
    }

    /// Handles the next in-order data, or data that continues the highest range above a hole, while this end has nothing
    /// outstanding.
    #[inline(always)]
    fn take_next(&mut self, now: Instant, segment: &Segment, arrival: Arrival) -> bool {
        let end = segment.seq + u64::from(segment.len);
        let in_order = arrival == Arrival::InOrder;
        let needed = if in_order { FastPath::DATA } else { FastPath::ABOVE_HOLE };
        if !self.fast_path.contains(needed) || end > self.receiver.granted_edge() {
            return false;
        }
        let resting = self.resting;
        let (sender, mut cx) = self.split(now);
        if !sender.predicted_echo(&mut cx, segment, resting) {
            return false;
        }
        self.resting = true;
        self.after_our_fin(now);
        if in_order {
            self.receiver.extend(end);
            self.events |= Events::READABLE;
        } else {
            self.receiver.extend_last(end);
        }
        self.stats.received_segments += 1;
        self.stats.received_bytes += u64::from(segment.len);
        if let Some(reflector) = &mut self.reflector {
            reflector.on_data(now, segment, false);
        }
        if self.sender.ecn != Ecn::Off && segment.ecn == EcnField::Congested {
            self.echo = Echo::Classic(true);
        }
        if self.fast_path.contains(FastPath::ACK_EACH) {
            self.receiver.ack_now();
        } else {
            self.schedule_ack(now, arrival, segment);
        }
        true
    }
}

/// True for a segment with no flags but ACK and PSH, without SACK blocks, that is not a probe.
#[inline(always)]
fn is_usual(segment: &Segment) -> bool {
    segment.flags.difference(Flags::PSH) == Flags::ACK
        && segment.sack.is_empty()
        && segment.probe == Probe::No
}
