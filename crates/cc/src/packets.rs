//! Congestion control for transports that number their packets: QUIC, or a protocol over UDP.
//!
//! [`PacketControl`] runs one [`Algorithm`] for one path of one connection. It does what the TCP engine does for an algorithm: it
//! counts the data in flight, measures round trips and delivery rate, finds the episodes of loss, spreads reductions (PRR) and paces.
//! The transport detects losses, by RFC 9002 or by its own rules, and sends lost data again in packets with new numbers.
//!
//! The transport makes one call per event, with its own clock's time:
//!
//! | event | call |
//! |---|---|
//! | the handshake is complete | [`established`](PacketControl::established) |
//! | data wait | [`departure`](PacketControl::departure) says when a packet may leave |
//! | a packet leaves | [`on_sent`](PacketControl::on_sent) |
//! | an ACK arrives | [`on_acked`](PacketControl::on_acked) for each packet it newly acknowledges, [`on_lost`](PacketControl::on_lost) for each newly lost one, then [`end_ack`](PacketControl::end_ack) once |
//! | a timer declares packets lost | [`on_lost`](PacketControl::on_lost) for each, then [`end_losses`](PacketControl::end_losses) once |
//! | persistent congestion (RFC 9002 section 7.6), or a timeout that declares everything lost | [`on_lost`](PacketControl::on_lost) for each, then [`on_persistent_congestion`](PacketControl::on_persistent_congestion) |
//! | every packet of the last episode was only late | [`on_spurious`](PacketControl::on_spurious) |
//! | a packet counts no longer | [`on_discarded`](PacketControl::on_discarded) |
//! | the path MTU changes | [`set_datagram_bytes`](PacketControl::set_datagram_bytes) |
//! | the time [`timeout`](PacketControl::timeout) has come | [`on_timeout`](PacketControl::on_timeout) |
//!
//! A probe timeout (RFC 9002 section 6.2) is no event: it declares nothing lost, and its packets are reported by `on_sent`. They may
//! exceed the window.
//!
//! **Episodes.** An episode of loss begins with the loss of a packet sent after the last one began. It ends as in TCP, when all its
//! losses are repaired: a packet sent after the newest of them was found is acknowledged. RFC 9002 section 7.3.2 ends it earlier, with
//! the first packet sent during it.
//!
//! **Segments.** Algorithms count in segments of [`Settings::datagram_bytes`], for the whole life of the connection. A packet of
//! another size counts by its bytes, and a change of the path MTU leaves window and rate in bytes as they are.
//!
//! **Sequence numbers.** [`Path::snd_nxt`] and [`Sent::seq`] count the bytes of all packets sent, and begin with 1.
//! [`Path::snd_una`] is the first byte of the oldest packet in flight.
//!
//! **What is refused.** [`PacketControl::new`] refuses algorithms with a [`Need`] that no packet transport serves.
//! The loss detection of the transport replaces an inessential [`Detector`](crate::Detector), and its probe timeout replaces
//! [`timeout_probe`](CongestionControl::timeout_probe). The drop priority of packets is not used.

mod episode;
mod ledger;
mod needs;
mod round_trip;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::fmt;

use bentpipe_base::{Duration, Extension, Instant, Notice, Rate, WindowState};

use crate::delivery_rate::{Sampler, Totals};
use crate::prr::PrrAck;
use crate::{
    Accounting, Ack, Algorithm, Cause, CongestionControl, ConnectionEvent, Loss, PACING_GAINS, Pacer, Path,
    PathMemory, PeerProbes, RateSample, Requirements, Sent, Spacing, Start, Timeout, Undo, Wake,
    careful_resume, window_rate,
};
use episode::Episodes;
use ledger::{Ledger, Packet};
pub use needs::{Need, Refused, supported};
use round_trip::RoundTrip;

/// Round trips in which at least one segment leaves, whatever the algorithm's rate.
const LEAST_RATE_ROUND_TRIPS: f64 = 8.0;

/// Bytes that wait while the window limits the sender: how many, the transport does not say.
const UNKNOWN_UNSENT: u64 = 1 << 30;

/// Properties of a path and of its transport.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes of a full datagram, as [`PacketControl::on_sent`] counts them. It is the algorithm's segment. Default: 1200.
    pub datagram_bytes: u32,
    /// Initial window in datagrams. Default: 10 (RFC 9002 section 7.2).
    pub initial_window: u32,
    /// True to pace algorithms that set only a window: two windows per round trip in slow start, 1.2 windows later. Default: true.
    pub paced: bool,
    /// True if packets leave ECN-capable and the transport reports marks. Default: false.
    pub ecn: bool,
    /// Seed of the algorithm's random numbers, different for each connection. Default: 0.
    pub seed: u64,
    /// State shared by the connections to this destination (RFC 9040). Default: none.
    pub memory: Option<PathMemory>,
    /// Careful Resume (RFC 9959), if there is a memory. The transport must obey [`PacketControl::departure`]. Default: off.
    pub careful_resume: Option<careful_resume::Config>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            datagram_bytes: 1200,
            initial_window: 10,
            paced: true,
            ecn: false,
            seed: 0,
            memory: None,
            careful_resume: None,
        }
    }
}

/// Properties of one acknowledgement, besides the packets that it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckInfo {
    /// Round-trip sample, without the delay that the peer reports; `None` if the newest acknowledged packet gives none.
    pub rtt: Option<Duration>,
    /// True if the application or the peer's flow control, not the window or the pacer, limited the sender since the last ACK.
    pub app_limited: bool,
    /// Packets newly reported with a congestion mark (ECN-CE).
    pub marks: u32,
}

/// A packet number that is not above all earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotRising {
    /// The number.
    pub number: u64,
    /// Lowest number that is accepted; `u64::MAX` itself is never accepted.
    pub least: u64,
}

impl fmt::Display for NotRising {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet number {}: at least {} and below 2^64 - 1 is accepted", self.number, self.least)
    }
}

impl core::error::Error for NotRising {}

/// Packets of the ACK in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    acked_bytes: u64,
    /// Newest packet acknowledged.
    newest: Option<Packet>,
}

/// Congestion control of one path of a connection that numbers its packets. See the [module](self).
pub struct PacketControl {
    cc: Box<dyn CongestionControl>,
    name: &'static str,
    requirements: Requirements,
    /// Bytes of the algorithm's segment.
    segment: u32,
    initial_window: u32,
    paced: bool,
    ecn: bool,
    /// Bytes of a full datagram now.
    datagram: u32,
    ledger: Ledger,
    episodes: Episodes,
    batch: Batch,
    round_trip: RoundTrip,
    sampler: Sampler,
    pacer: Pacer,
    /// Time for which a departure was announced.
    due: Option<Instant>,
    /// Bytes delivered and lost since the connection began.
    delivered: u64,
    lost: u64,
    /// Bytes lost and reported to the algorithm.
    reported_lost: u64,
    last_sent: Option<Instant>,
    app_limited: bool,
    /// Declarations of persistent congestion since the last progress.
    timeouts: u32,
    ignored: u64,
}

impl PacketControl {
    /// Makes the sender of one path.
    ///
    /// # Errors
    /// [`Refused`] if the algorithm needs what no packet transport serves.
    pub fn new(algorithm: &Algorithm, settings: &Settings) -> Result<Self, Refused> {
        let segment = settings.datagram_bytes.max(1);
        let start = Start {
            mss: segment,
            initial_window: f64::from(settings.initial_window.max(1)),
            initial_ssthresh: f64::INFINITY,
            paced: settings.paced,
            seed: settings.seed,
            memory: settings.memory.clone(),
        };
        let mut cc = algorithm.build(&start);
        if let Some(need) = needs::unserved(&mut *cc) {
            return Err(Refused { algorithm: algorithm.name(), need });
        }
        if let Some(resume) = &settings.careful_resume {
            cc = resume.around(cc, &start);
        }
        Ok(Self {
            requirements: cc.requirements(),
            cc,
            name: algorithm.name(),
            segment,
            initial_window: settings.initial_window.max(1),
            paced: settings.paced,
            ecn: settings.ecn,
            datagram: segment,
            ledger: Ledger::default(),
            episodes: Episodes::default(),
            batch: Batch::default(),
            round_trip: RoundTrip::default(),
            sampler: Sampler::default(),
            pacer: Pacer::default(),
            due: None,
            delivered: 0,
            lost: 0,
            reported_lost: 0,
            last_sent: None,
            app_limited: false,
            timeouts: 0,
            ignored: 0,
        })
    }

    /// Handles the complete handshake and its round trip, if it gave a sample.
    pub fn established(&mut self, now: Instant, rtt: Option<Duration>) {
        self.sample_rtt(rtt, 0);
        let path = self.path(now);
        self.cc.on_event(ConnectionEvent::Established, &path);
    }

    /// Returns the time at which a packet of `bytes` may leave, at least `now`; `None` while the window is full. To be asked
    /// before each packet.
    pub fn departure(&mut self, now: Instant, bytes: u32) -> Option<Instant> {
        let in_flight = self.ledger.bytes();
        let has_room = in_flight == 0 || in_flight + u64::from(bytes) <= self.window();
        if !has_room && !self.pacer.is_amid_pair() {
            self.pacer.rest();
            return None;
        }
        if self.pacing_rate().is_none() {
            return Some(now);
        }
        if let Some(due) = self.due.take().filter(|due| *due <= now) {
            self.pacer.wake(now, due);
        }
        let ready = self.pacer.ready_at(now);
        if ready > now {
            self.pacer.rest();
            self.due = Some(ready);
        }
        Some(ready)
    }

    /// Handles the departure of a packet that the peer must acknowledge. A packet of ACKs only is not reported.
    ///
    /// # Errors
    /// [`NotRising`] if `number` is not above all earlier numbers; nothing then changes.
    pub fn on_sent(&mut self, now: Instant, number: u64, bytes: u32) -> Result<(), NotRising> {
        let least = self.ledger.next_number();
        if number < least || number == u64::MAX {
            return Err(NotRising { number, least });
        }
        self.restart_after_idle(now);
        self.pace(now, bytes);
        let in_flight = self.segments(self.ledger.bytes());
        let stamp = self.sampler.stamp(now, self.totals(), in_flight);
        let seq = self.ledger.push(Packet { number, bytes, sent_at: now, seq: 0, stamp });
        self.episodes.sent(bytes);
        self.last_sent = Some(now);
        if self.requirements.sent {
            let path = self.path(now);
            self.cc.on_sent(&Sent { seq, len: bytes, retransmission: false }, &path);
        }
        Ok(())
    }

    /// Handles a packet that an ACK newly acknowledges; [`end_ack`](Self::end_ack) follows. An unknown or settled number is
    /// ignored and counted.
    pub fn on_acked(&mut self, number: u64) {
        let Some(packet) = self.ledger.settle(number) else {
            self.ignored += 1;
            return;
        };
        self.batch.acked_bytes += u64::from(packet.bytes);
        self.episodes.acked(number);
        if self.batch.newest.is_none_or(|newest| newest.number < number) {
            self.batch.newest = Some(packet);
        }
    }

    /// Handles a packet that the transport declares lost. [`end_ack`](Self::end_ack), [`end_losses`](Self::end_losses) or
    /// [`on_persistent_congestion`](Self::on_persistent_congestion) follows. An unknown or settled number is ignored and counted.
    pub fn on_lost(&mut self, number: u64) {
        let Some(packet) = self.ledger.settle(number) else {
            self.ignored += 1;
            return;
        };
        self.lost += u64::from(packet.bytes);
        self.episodes.lost(number, packet.bytes, self.ledger.next_number());
    }

    /// Handles a packet that counts no longer, because its keys were discarded (RFC 9002 section 6.4) or because it was a lost probe
    /// of the path MTU. An unknown or settled number is ignored and counted.
    pub fn on_discarded(&mut self, number: u64) {
        self.ignored += u64::from(self.ledger.settle(number).is_none());
    }

    /// Handles the end of an ACK, after all its [`on_acked`](Self::on_acked) and [`on_lost`](Self::on_lost).
    pub fn end_ack(&mut self, now: Instant, info: AckInfo) {
        let batch = core::mem::take(&mut self.batch);
        let arrived = self.measure(now, &batch, &info);
        let lost = self.segments_between(self.reported_lost, self.lost);
        let marked = info.marks > 0;
        let began = self.begin_episode(now, batch.acked_bytes, marked);
        if marked && !began && !self.requirements.scalable {
            self.on_marks(now, batch.acked_bytes);
        }
        let phase = self.episodes.phase();
        self.spread_reduction(&batch, lost);
        let ends_episode = !began && self.episodes.end(self.ledger.oldest());
        if arrived > 0 || marked && self.requirements.scalable {
            let counted = match info.marks {
                0 => arrived,
                marks if self.requirements.scalable => arrived.saturating_sub(marks),
                // A mark allows no growth (RFC 3168 section 6.1.2).
                _ => 0,
            };
            self.reported_lost = self.lost;
            let ack = Ack {
                acked: arrived,
                counted,
                sacked: 0,
                delivered_bytes: batch.acked_bytes,
                lost,
                rtt: info.rtt,
                peer_clock: None,
                rate: self.sample_rate(&batch),
                phase,
                ends_episode,
                window_limited: !info.app_limited,
                ecn_echo: marked,
                marks: info.marks,
                dsack: false,
            };
            let path = self.path(now);
            self.cc.on_ack(&ack, &path);
        }
        if ends_episode {
            // Packets sent during the episode may also be lost.
            self.begin_episode(now, 0, marked);
        }
    }

    /// Handles the end of losses that a timer found, after all its [`on_lost`](Self::on_lost). They may also follow an
    /// [`end_ack`](Self::end_ack).
    pub fn end_losses(&mut self, now: Instant) {
        self.begin_episode(now, 0, false);
    }

    /// Handles persistent congestion, or a timeout that declares everything in flight lost.
    pub fn on_persistent_congestion(&mut self, now: Instant) {
        self.timeouts += 1;
        self.episodes.time_out(self.ledger.next_number());
        let outstanding = self.segments(self.ledger.bytes() + self.lost - self.reported_lost).max(1);
        let timeout = Timeout { consecutive: self.timeouts, outstanding, answered: false };
        let path = self.path(now);
        self.cc.on_rto(&timeout, &path);
    }

    /// Handles the proof that every packet of the last episode had arrived: its reduction is undone, once.
    pub fn on_spurious(&mut self, now: Instant) {
        if self.episodes.undo(self.ledger.oldest()) {
            // The reduced window has set the pacing rate since: the next packet would wait for most of a round trip.
            self.pacer.forgive(now);
            let path = self.path(now);
            self.cc.on_undo(Undo::Reduction, &path);
        }
    }

    /// Sets the bytes of a full datagram, after a change of the path MTU. Window and rate in bytes stay as they are; the window
    /// still has room for one datagram.
    pub fn set_datagram_bytes(&mut self, bytes: u32) {
        self.datagram = bytes.max(1);
    }

    /// Handles a notice of the satellite link, such as an outage, for the algorithms that read them.
    pub fn on_notice(&mut self, now: Instant, notice: Notice) {
        let path = self.path(now);
        if let Some(feedback) = self.cc.feedback() {
            feedback.on_feedback(&Extension::Notice(notice), &path);
        }
    }

    /// Returns the time of the algorithm's next timer event; [`Instant::FAR_FUTURE`] for none. To be read after every call.
    pub fn timeout(&mut self) -> Instant {
        self.cc.sleeper().map_or(Instant::FAR_FUTURE, |sleeper| sleeper.wake_at())
    }

    /// Handles the algorithm's timer event. [`Wake::AskForAck`] requests a packet that the peer acknowledges, such as a PING.
    pub fn on_timeout(&mut self, now: Instant) -> Wake {
        let path = self.path(now);
        self.cc.sleeper().map_or(Wake::Quiet, |sleeper| sleeper.on_wake(&path))
    }

    /// Handles the end of the connection. The algorithm stores what it learnt in [`Settings::memory`], unless packets are in
    /// flight.
    pub fn close(&mut self, now: Instant) {
        let path = self.path(now);
        let all_acked = path.outstanding == 0;
        let event = if all_acked { ConnectionEvent::Closed } else { ConnectionEvent::Abandoned };
        self.cc.on_event(event, &path);
    }

    /// Returns the bytes that may be in flight, at least one datagram. In recovery they follow the bytes delivered (PRR, RFC
    /// 9937), if the algorithm leaves the window constant there.
    pub fn window(&self) -> u64 {
        let window = match self.episodes.budget().filter(|_| self.uses_prr()) {
            Some(budget) => self.ledger.bytes() + budget,
            None => self.algorithm_window(),
        };
        window.max(u64::from(self.datagram))
    }

    /// Returns the bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.ledger.bytes()
    }

    /// Returns the pacing rate, at least one segment in eight round trips; `None` if only the window limits the sender.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.spacing().rate()
    }

    /// Returns the bytes that may leave back to back at the pacing rate, at least one datagram.
    pub fn burst(&self) -> u64 {
        let datagrams = match self.spacing() {
            Spacing::At { quantum, .. } => quantum.max(1),
            Spacing::Pairs { .. } => 2,
            Spacing::None | Spacing::Withheld => 1,
        };
        u64::from(datagrams) * u64::from(self.datagram)
    }

    /// Returns window, ssthresh and phase for traces, in segments of [`Settings::datagram_bytes`].
    pub fn state(&self) -> WindowState {
        self.cc.snapshot()
    }

    /// Returns the algorithm's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the bytes of the algorithm's segment: [`Settings::datagram_bytes`].
    pub fn segment_bytes(&self) -> u32 {
        self.segment
    }

    /// True if packets must leave as ECT(1), because the algorithm reacts to the number of marks (RFC 9331).
    pub fn is_scalable(&self) -> bool {
        self.requirements.scalable
    }

    /// True if pacing is part of the algorithm's law: without its rate, the transport runs a different algorithm.
    pub fn needs_pacing(&self) -> bool {
        self.requirements.pacing
    }

    /// Returns the smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        Some(self.round_trip.smoothed).filter(|srtt| !srtt.is_zero())
    }

    /// Returns the number of acknowledgements and losses of unknown or settled packets.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Takes the measurements of an ACK. Returns the segments that arrived, at least one if a packet did.
    fn measure(&mut self, now: Instant, batch: &Batch, info: &AckInfo) -> u32 {
        self.sample_rtt(info.rtt, batch.acked_bytes);
        let before = self.delivered;
        if batch.newest.is_some() {
            self.delivered += batch.acked_bytes;
            self.sampler.deliver(now, self.delivered);
            self.timeouts = 0;
        }
        self.app_limited = info.app_limited;
        if info.app_limited {
            self.sampler.app_limited(self.delivered, self.ledger.bytes());
            self.pacer.rest();
        }
        self.segments_between(before, self.delivered).max(u32::from(batch.newest.is_some()))
    }

    /// Returns the delivery rate sample of an ACK.
    fn sample_rate(&mut self, batch: &Batch) -> Option<RateSample> {
        let totals = self.totals();
        let newest = batch.newest.as_ref()?;
        self.sampler.sample((&newest.stamp, newest.sent_at), self.round_trip.min, totals)
    }

    /// Opens an episode if a loss of a packet sent since the last one is known. `acked` bytes arrived in the same ACK.
    fn begin_episode(&mut self, now: Instant, acked: u64, marked: bool) -> bool {
        let Some(lost_bytes) = self.episodes.take_losses() else { return false };
        let in_flight = self.ledger.bytes() + lost_bytes;
        let loss = Loss {
            cause: Cause::Loss,
            lost: self.segments(lost_bytes).max(1),
            outstanding: self.segments(in_flight + acked).max(1),
            in_flight: self.segments(in_flight).max(1),
            validated: None,
        };
        let path = self.path(now);
        self.cc.on_loss(&loss, &path);
        let flight = in_flight + acked;
        self.episodes.begin(self.ledger.next_number(), (flight, self.datagram), !marked);
        true
    }

    /// Handles marks: one reduction per window of data (RFC 3168 section 6.1.2).
    fn on_marks(&mut self, now: Instant, acked: u64) {
        if !self.episodes.mark_reduces() {
            return;
        }
        let loss = Loss {
            cause: Cause::Mark,
            lost: 0,
            outstanding: self.segments(self.ledger.bytes() + acked),
            in_flight: self.segments(self.ledger.bytes() + acked),
            validated: None,
        };
        let before = self.cc.window();
        let path = self.path(now);
        self.cc.on_loss(&loss, &path);
        let reduced = self.uses_prr() && self.cc.window() < before;
        self.episodes.mark(self.ledger.next_number(), reduced);
    }

    /// Allows bytes in proportion to those that an ACK in recovery delivered.
    fn spread_reduction(&mut self, batch: &Batch, lost: u32) {
        let ack = PrrAck { delivered: batch.acked_bytes, safe: lost == 0, segment: self.datagram.into() };
        let (in_flight, target) = (self.ledger.bytes(), self.algorithm_window());
        self.episodes.spread(ack, in_flight, target);
    }

    /// Informs an algorithm that paces by its own model of a pause longer than a retransmission timeout.
    fn restart_after_idle(&mut self, now: Instant) {
        let Some(last_sent) = self.last_sent else { return };
        let by_rate = self.requirements.accounting == Accounting::Own && self.cc.spacing().rate().is_some();
        if by_rate && self.ledger.bytes() == 0 && now.since(last_sent) > self.round_trip.timeout() {
            let path = self.path(now);
            let restart = f64::from(self.initial_window);
            self.cc.on_event(ConnectionEvent::Idle { restart }, &path);
        }
    }

    /// Counts a departing packet in the pacer.
    fn pace(&mut self, now: Instant, bytes: u32) {
        let spacing = self.spacing();
        let Some(rate) = spacing.rate() else { return self.pacer.end_pair() };
        match spacing {
            Spacing::Pairs { gap, .. } => self.pacer.begin_in_pair(now, gap),
            Spacing::At { quantum, .. } => self.pacer.begin(quantum),
            Spacing::None | Spacing::Withheld => {}
        }
        self.pacer.sent(now, bytes, rate);
    }

    /// Returns the algorithm's spacing, or that of its window. A rate of zero is none.
    fn spacing(&self) -> Spacing {
        let own = if self.requirements.window_only { Spacing::None } else { self.cc.spacing() };
        let least = self.least_rate();
        match own {
            Spacing::At { rate, quantum } if rate != Rate::ZERO => {
                Spacing::At { rate: rate.max(least), quantum }
            }
            Spacing::Pairs { rate, gap } if rate != Rate::ZERO => {
                Spacing::Pairs { rate: rate.max(least), gap }
            }
            Spacing::None if self.paced => Spacing::at(self.window_rate().map(|rate| rate.max(least))),
            _ => Spacing::None,
        }
    }

    /// Returns the pacing rate of a window. A window below a datagram counts as one, as in `window`.
    fn window_rate(&self) -> Option<Rate> {
        let (slow_start, avoidance) = PACING_GAINS;
        let state = self.cc.snapshot();
        let gain = if state.cwnd < state.ssthresh { slow_start } else { avoidance };
        let window = self.algorithm_window().max(self.datagram.into());
        window_rate(gain * window as f64, self.round_trip.smoothed)
    }

    /// Returns the least pacing rate. A rate measured with small packets would let a full datagram wait for minutes.
    fn least_rate(&self) -> Rate {
        let bytes = f64::from(self.segment) / LEAST_RATE_ROUND_TRIPS;
        window_rate(bytes, self.round_trip.smoothed_or_initial()).unwrap_or_default()
    }

    /// Takes a round-trip sample of an ACK of `acked` bytes.
    fn sample_rtt(&mut self, rtt: Option<Duration>, acked: u64) {
        if let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero()) {
            let flight = self.ledger.bytes() + acked;
            let share = if acked == 0 { 1.0 } else { acked as f64 / flight as f64 };
            self.round_trip.sample(rtt, share);
        }
    }

    /// True if the algorithm leaves its window constant in recovery.
    fn uses_prr(&self) -> bool {
        self.requirements.accounting == Accounting::Pipe
    }

    /// Returns the algorithm's window in bytes.
    fn algorithm_window(&self) -> u64 {
        (self.cc.window() * f64::from(self.segment)) as u64
    }

    /// Returns the segments of `bytes`, rounded up.
    fn segments(&self, bytes: u64) -> u32 {
        self.segments_between(0, bytes)
    }

    /// Returns the segments by which a count of bytes grew, if each count is rounded up.
    fn segments_between(&self, before: u64, after: u64) -> u32 {
        let count = |bytes: u64| bytes.div_ceil(self.segment.into());
        u32::try_from(count(after) - count(before)).unwrap_or(u32::MAX)
    }

    fn totals(&self) -> Totals {
        let lost = self.lost.div_ceil(self.segment.into());
        // Only differences of this count are used, and they wrap.
        Totals { delivered: self.delivered, lost: lost as u32 }
    }

    fn path(&self, now: Instant) -> Path {
        let in_flight = self.segments(self.ledger.bytes());
        Path {
            now,
            mss: self.segment,
            srtt: self.round_trip.smoothed,
            rttvar: self.round_trip.variation,
            min_rtt: self.round_trip.min,
            rto: self.round_trip.timeout(),
            in_flight,
            outstanding: in_flight,
            receive_window: u32::MAX,
            snd_una: self.ledger.oldest_seq(),
            snd_nxt: self.ledger.next_seq(),
            unsent: if self.app_limited { 0 } else { UNKNOWN_UNSENT },
            delivered: self.delivered,
            peer_probes: PeerProbes::Unknown,
            ecn: self.ecn,
        }
    }
}

impl fmt::Debug for PacketControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketControl")
            .field("algorithm", &self.name)
            .field("state", &self.state())
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
