//! One end of a TCP connection: the interface for drivers.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant, SackRange, Segment, WindowState};
use bentpipe_cc::{PathMemory, Reflector};
use bentpipe_trace::Event;

use crate::accurate_ecn::Echo;
use crate::context::{Context, Tracer};
use crate::fast_path::FastPath;
use crate::handshake::Handshake;
use crate::receiver::Receiver;
use crate::sender::{Fate, MAX_SEQ, Sender};
use crate::state::Reports;
use crate::stats::Counts;
use crate::timers::{Timers, expired};
use crate::{Config, Events, State, Stats};

/// One end of a TCP connection: a pure state machine without clock, socket or payload.
///
/// Order of calls:
///
/// 1. one of `handle_segment`, `handle_timeout`, `write`, `read`, `close`, `abort`;
/// 2. [`poll_transmit`](Self::poll_transmit) until it returns `None`;
/// 3. [`take_events`](Self::take_events);
/// 4. [`next_timeout`](Self::next_timeout), and `handle_timeout` no later than then.
///
/// Times must not run backwards.
// Fields that every segment changes come first, on few cache lines.
#[repr(C)]
pub struct Connection {
    pub(crate) config: Arc<Config>,
    /// Allowed fast paths; empty if they must be computed again.
    pub(crate) fast_path: FastPath,
    /// True if nothing was sent since everything was acknowledged and the timers stopped.
    pub(crate) resting: bool,
    pub(crate) events: Events,
    pub(crate) state: State,
    /// True if timestamps were agreed on.
    pub(crate) timestamps: bool,
    /// True after the application released the connection: arriving data is not read.
    pub(crate) released: bool,
    /// Form of the reports above the cumulative ACK.
    pub(crate) reports: Reports,
    /// Congestion marks to report.
    pub(crate) echo: Echo,
    pub(crate) receiver: Receiver,
    /// Time of the last acceptable arrival, for keep-alive.
    pub(crate) last_heard: Instant,
    pub(crate) stats: Counts,
    pub(crate) timers: Timers,
    pub(crate) sender: Sender,
    /// Present until the handshake is complete.
    pub(crate) handshake: Option<Box<Handshake>>,
    pub(crate) reflector: Option<Box<dyn Reflector>>,
    /// Present after a challenge ACK, a keep-alive probe or a release.
    pub(crate) upkeep: Option<Box<Upkeep>>,
    pub(crate) reset: Option<Box<Segment>>,
    pub(crate) tracer: Option<Box<Tracer>>,
}

/// State of challenge ACKs, of keep-alive and of released connections.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// Time of the last challenge ACK for a segment without data.
    pub challenged_at: Instant,
    /// Number of keep-alive probes since the last arrival.
    pub keep_alives: u32,
    /// Time of the last keep-alive probe.
    pub keep_alive_at: Instant,
    /// First unacknowledged sequence number when the timer of a released connection was started.
    pub una_at_release: u64,
}

// A simulation holds tens of thousands of connections: rarely needed state is allocated separately.
const _: () = assert!(size_of::<Connection>() <= 800);

impl Connection {
    /// Makes an end that connects: the first `poll_transmit` returns the SYN. `seed` is for algorithms with random numbers.
    pub fn connect(config: Arc<Config>, seed: u64, now: Instant) -> Self {
        let mut connection = Self::new(config, seed, State::SynSent);
        connection.begin_handshake(now);
        connection
    }

    /// Makes an end that waits for a SYN.
    pub fn listen(config: Arc<Config>, seed: u64) -> Self {
        Self::new(config, seed, State::Listen)
    }

    fn new(config: Arc<Config>, seed: u64, state: State) -> Self {
        Self {
            state,
            sender: Sender::new(&config, seed),
            receiver: Receiver::new(&config),
            handshake: Some(Box::new(Handshake::new(seed))),
            timers: Timers::OFF,
            events: Events::empty(),
            fast_path: FastPath::empty(),
            resting: false,
            stats: Counts::default(),
            reflector: None,
            timestamps: false,
            released: false,
            reports: Reports::None,
            echo: Echo::Classic(false),
            last_heard: Instant::ZERO,
            upkeep: None,
            reset: None,
            tracer: None,
            config,
        }
    }

    /// Borrows the sending half, and separately the other parts that it needs.
    pub(crate) fn split(&mut self, now: Instant) -> (&mut Sender, Context<'_>) {
        let context = Context {
            now,
            config: &self.config,
            stats: &mut self.stats,
            timers: &mut self.timers,
            events: &mut self.events,
            tracer: &mut self.tracer,
        };
        (&mut self.sender, context)
    }

    /// Handles a segment from the peer.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        if self.tracer.is_some() {
            self.trace(now, Event::Received(*segment));
        }
        if self.predict(now, segment) {
            return self.arm_wake(now);
        }
        // Longer than any stream; this bound prevents overflow of later sums.
        if segment.seq > MAX_SEQ || segment.ack > MAX_SEQ {
            return;
        }
        match self.state {
            State::Closed => self.refuse(segment),
            State::Listen => self.on_syn(now, segment),
            State::SynSent => self.on_syn_ack(now, segment),
            _ => self.on_segment(now, segment),
        }
        self.finish(now);
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        // When the pacing time has come, `poll_transmit` does the rest.
        let due = self.timers.pace;
        if expired(&mut self.timers.pace, now) {
            self.sender.on_pace(now, due);
        }
        if expired(&mut self.timers.delayed_ack, now) {
            self.receiver.ack_now();
            self.skip_hole(now);
        }
        let (sender, mut cx) = self.split(now);
        if expired(&mut cx.timers.algorithm, now) {
            sender.on_wake(&mut cx);
        }
        if expired(&mut cx.timers.reorder, now) {
            sender.on_reorder_timer(&mut cx);
        }
        let mut fate = Fate::GoOn;
        if expired(&mut cx.timers.persist, now) {
            fate = sender.on_persist(&mut cx);
        }
        if expired(&mut self.timers.retransmit, now) {
            let of_deadline = if self.state.is_synchronised() {
                let (sender, mut cx) = self.split(now);
                sender.on_deadline(&mut cx)
            } else {
                self.handshake_timeout(now)
            };
            fate = fate.or(of_deadline);
        }
        if fate == Fate::GiveUp {
            self.give_up(now);
        }
        if expired(&mut self.timers.life, now) {
            self.on_life_timer(now);
        }
        self.finish(now);
    }

    /// Skips data that has been missing for too long, in best-effort mode.
    fn skip_hole(&mut self, now: Instant) {
        let Some(patience) = self.config.best_effort.filter(|_| self.state.receives()) else { return };
        let bytes = self.receiver.skip_hole(now, patience);
        if bytes > 0 {
            self.stats.rare().missing_bytes += bytes;
            self.events |= Events::READABLE;
            if self.receiver.finished() {
                self.after_their_fin(now);
            }
        }
    }

    /// Returns the memory that this connection shares with others to the same destination.
    pub fn memory(&self) -> Option<&PathMemory> {
        self.config.memory.as_ref()
    }

    /// Returns the next stream range skipped by best effort, which [`read`](Self::read) counts as received. Call it when data has
    /// become readable, before reading.
    pub fn next_missing(&mut self) -> Option<SackRange> {
        self.receiver.next_gap()
    }

    /// Accepts up to `bytes` bytes from the application. Returns the number that fit into the send buffer.
    pub fn write(&mut self, now: Instant, bytes: u64) -> u64 {
        if self.sender.stream.finished || matches!(self.state, State::Closed | State::TimeWait) {
            return 0;
        }
        let taken = self.sender.write(bytes, &self.config);
        self.arm_and_trace(now);
        taken
    }

    /// Returns the bytes that [`write`](Self::write) would accept.
    pub fn send_room(&self) -> u64 {
        match self.state {
            State::Closed | State::TimeWait => 0,
            _ => self.sender.room(&self.config),
        }
    }

    /// Starts an endless writer: the send buffer is kept full until the application closes.
    pub fn write_endlessly(&mut self, now: Instant) {
        self.sender.write_endlessly(&self.config);
        self.arm_and_trace(now);
    }

    /// Delivers up to `limit` in-order bytes to the application and opens the receive window accordingly.
    pub fn read(&mut self, now: Instant, limit: u64) -> u64 {
        let (bytes, tell_peer) = self.receiver.read(limit, &self.config);
        if tell_peer {
            self.receiver.ack_now();
        }
        let rtt = self.sender.srtt().unwrap_or(Duration::from_millis(100));
        self.receiver.tune(now, rtt, &self.config);
        self.stats.delivered_bytes += self.receiver.present(bytes);
        bytes
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Events {
        std::mem::take(&mut self.events)
    }

    /// Returns the earliest deadline; [`Instant::FAR_FUTURE`] for none.
    pub fn next_timeout(&self) -> Instant {
        self.timers.earliest()
    }

    /// Returns the state of the connection (RFC 9293 section 3.3.2).
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the counters of the connection.
    pub fn stats(&self) -> Stats {
        self.stats.stats()
    }

    /// Returns [`Stats::delivered_bytes`] alone, which is faster than all counters.
    pub fn delivered_bytes(&self) -> u64 {
        self.stats.delivered_bytes
    }

    /// Returns the present window, ssthresh and phase.
    pub fn window_state(&self) -> WindowState {
        self.sender.snapshot()
    }

    /// Returns the smoothed RTT; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.sender.srtt()
    }

    /// Returns the latest round-trip sample once, for drivers that count samples after each call.
    #[inline]
    pub fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.sender.take_rtt_sample()
    }

    /// Returns minRTT; `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.sender.min_rtt()
    }

    /// Returns the smoothed RTT of probes that the peer reports as duplicates; `None` before the first reply.
    pub fn probe_srtt(&self) -> Option<Duration> {
        self.sender.probe_srtt()
    }

    /// True if the path was found to give probes no lower priority than data: the arrival of a probe then proves nothing.
    pub fn probes_are_ordinary(&self) -> bool {
        self.sender.probes_are_ordinary()
    }

    /// True if a driver that handles several segments before it polls should poll now. The next ACK has no room for further SACK
    /// blocks, and the peer may needlessly retransmit data that no ACK reports.
    pub fn reports_are_full(&self) -> bool {
        self.receiver.reports_are_full()
    }

    /// Returns the unread in-order bytes.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// True if the peer's stream has ended and arrived completely, read or not.
    pub fn peer_closed(&self) -> bool {
        self.receiver.finished()
    }

    /// Returns the payload bytes that the peer has acknowledged.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.sender.una.saturating_sub(1).min(self.sender.stream.end - 1)
    }

    /// Returns the payload bytes written and not acknowledged, sent or not.
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.sender.stream.end - self.sender.una.clamp(1, self.sender.stream.end)
    }

    /// Returns the congestion window in bytes.
    pub fn window_bytes(&self) -> u64 {
        self.sender.window_bytes()
    }

    /// Returns the first sequence number of this end that the peer has not acknowledged.
    pub fn oldest_unacknowledged(&self) -> u64 {
        self.sender.una
    }

    /// Returns the next sequence number of this end to send for the first time.
    pub fn next_to_send(&self) -> u64 {
        self.sender.nxt
    }

    /// Returns the next sequence number expected from the peer.
    pub fn next_expected(&self) -> u64 {
        self.receiver.nxt
    }

    /// Returns the last timestamp of the peer; `None` if timestamps were not agreed on.
    pub fn peer_timestamp(&self) -> Option<u32> {
        self.timestamps.then_some(self.receiver.ts_recent)
    }

    /// Returns the right edge of the receive window as the peer knows it. Only a FIN may use the sequence number after it.
    pub fn window_edge(&self) -> u64 {
        self.receiver.granted_edge()
    }

    /// Returns the memory held in bytes, the structure itself included.
    pub fn memory_bytes(&self) -> usize {
        let handshake = self.handshake.as_ref().map_or(0, |handshake| size_of_val(&**handshake));
        let upkeep = self.upkeep.as_ref().map_or(0, |upkeep| size_of_val(&**upkeep));
        let halves = self.sender.heap_bytes() + self.receiver.heap_bytes();
        size_of::<Self>() + halves + handshake + upkeep + self.stats.heap_bytes()
    }

    /// Enables or disables the recording of events, which [`poll_trace`](Self::poll_trace) returns.
    pub fn set_tracing(&mut self, on: bool) {
        self.fast_path = FastPath::empty();
        self.tracer = on.then(Box::default);
    }

    /// Returns the oldest unread event with its time.
    pub fn poll_trace(&mut self) -> Option<(Instant, Event)> {
        self.tracer.as_mut()?.queue.pop_front()
    }

    pub(crate) fn trace(&mut self, now: Instant, event: Event) {
        if let Some(tracer) = &mut self.tracer {
            tracer.queue.push_back((now, event));
        }
    }

    /// Final step of every call on the slow path.
    #[inline(always)]
    pub(crate) fn finish(&mut self, now: Instant) {
        self.fast_path = FastPath::empty();
        self.arm_and_trace(now);
    }

    /// Sets the algorithm's timer, and traces its window if that has changed.
    #[inline(always)]
    fn arm_and_trace(&mut self, now: Instant) {
        self.arm_wake(now);
        if let Some(tracer) = &mut self.tracer {
            tracer.compare(now, self.sender.snapshot());
        }
    }

    #[inline(always)]
    pub(crate) fn arm_wake(&mut self, now: Instant) {
        if self.state.sends() {
            let (sender, mut cx) = self.split(now);
            sender.arm_wake(&mut cx);
        } else {
            // Otherwise the timer of an algorithm that waits to send would expire repeatedly.
            self.timers.algorithm = Instant::FAR_FUTURE;
        }
    }
}
