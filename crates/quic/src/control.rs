//! Bentpipe's algorithms as congestion controllers of the stack.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time;

use bentpipe_base::Instant;
use bentpipe_cc::Algorithm;
use bentpipe_cc::packets::{AckInfo, PacketControl, Refused, Settings};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::clock::{from_stack, span};

/// Makes a controller for each path of a connection.
#[derive(Clone, Debug)]
pub struct Factory {
    algorithm: Algorithm,
    settings: Settings,
    /// Controller of the newest path.
    newest: Arc<Mutex<Option<Shared>>>,
}

/// An algorithm, shared by the stack's controller and the owner of the connection, who calls it at its timeouts.
pub(crate) type Shared = Arc<Mutex<PacketControl>>;

/// Returns the content of a mutex. A panic of another holder ends the program or leaves a usable state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Factory {
    /// Makes a factory of controllers with an algorithm. The stack replaces `settings.datagram_bytes`.
    ///
    /// # Errors
    /// [`Refused`] if the algorithm needs what no transport with packet numbers serves.
    pub fn new(algorithm: Algorithm, settings: Settings) -> Result<Self, Refused> {
        PacketControl::new(&algorithm, &settings)?;
        Ok(Self { algorithm, settings, newest: Arc::default() })
    }

    /// Returns the algorithm of the newest path.
    pub(crate) fn newest(&self) -> Option<Shared> {
        lock(&self.newest).clone()
    }

    fn controller(&self, datagram_bytes: u16) -> Adapter {
        let settings = Settings { datagram_bytes: datagram_bytes.into(), ..self.settings.clone() };
        let control = PacketControl::new(&self.algorithm, &settings).expect("`new` has made one before");
        let shared = Arc::new(Mutex::new(control));
        *lock(&self.newest) = Some(shared.clone());
        let mut adapter = Adapter {
            factory: self.clone(),
            control: shared,
            datagram_bytes,
            window: 0,
            pacing_rate: None,
            in_flight: VecDeque::new(),
            sent: 0,
            newest_acked: None,
            is_established: false,
            now: Instant::ZERO,
        };
        adapter.note_limits();
        adapter
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _: time::Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.controller(current_mtu))
    }
}

/// A packet that is neither acknowledged nor lost.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// Number in its space of the stack. The three spaces of a handshake use the same numbers.
    stack_number: u64,
    sent: time::Instant,
    /// Number among all packets.
    number: u64,
    is_settled: bool,
}

/// An algorithm as a controller of the stack.
#[derive(Debug)]
struct Adapter {
    factory: Factory,
    control: Shared,
    datagram_bytes: u16,
    /// Window in bytes and rate in bytes per second after the last event.
    window: u64,
    pacing_rate: Option<u64>,
    in_flight: VecDeque<InFlight>,
    /// Number of packets sent.
    sent: u64,
    /// Departure of the newest packet acknowledged by the ACK in progress.
    newest_acked: Option<time::Instant>,
    is_established: bool,
    /// Time of the last event.
    now: Instant,
}

impl Adapter {
    fn at(&mut self, now: time::Instant) -> Instant {
        self.now = from_stack(now);
        self.now
    }

    fn note_limits(&mut self) {
        let control = lock(&self.control);
        self.window = control.window();
        self.pacing_rate = control.pacing_rate().map(|rate| (rate.bps() / 8).max(1));
    }

    /// Settles a packet, and returns its number among all packets. `sent` distinguishes packets of different spaces.
    fn settle(&mut self, stack_number: u64, sent: Option<time::Instant>) -> Option<u64> {
        let is_it = |packet: &&mut InFlight| {
            !packet.is_settled
                && packet.stack_number == stack_number
                && sent.is_none_or(|sent| packet.sent == sent)
        };
        let packet = self.in_flight.iter_mut().find(is_it)?;
        packet.is_settled = true;
        let number = packet.number;
        while self.in_flight.front().is_some_and(|packet| packet.is_settled) {
            self.in_flight.pop_front();
        }
        Some(number)
    }

    /// Forgets the oldest packets until at most `bytes` are in flight. The stack reports neither packets of a space whose keys it
    /// discards nor lost probes of the path MTU.
    fn forget_beyond(&mut self, bytes: u64) {
        while lock(&self.control).in_flight() > bytes {
            let Some(oldest) = self.in_flight.iter().find(|packet| !packet.is_settled).copied() else {
                return;
            };
            self.settle(oldest.stack_number, Some(oldest.sent));
            lock(&self.control).on_discarded(oldest.number);
        }
    }
}

impl Controller for Adapter {
    fn on_packet_sent(&mut self, now: time::Instant, bytes: u16, number: u64) {
        let at = self.at(now);
        let packet = InFlight { stack_number: number, sent: now, number: self.sent, is_settled: false };
        self.in_flight.push_back(packet);
        let rises = lock(&self.control).on_sent(at, self.sent, bytes.into());
        debug_assert!(rises.is_ok(), "the numbers are counted here");
        self.sent += 1;
        self.note_limits();
    }

    fn on_ack(
        &mut self,
        now: time::Instant,
        sent: time::Instant,
        _: u64,
        number: u64,
        _: bool,
        _: &RttEstimator,
    ) {
        self.at(now);
        let Some(number) = self.settle(number, Some(sent)) else { return };
        lock(&self.control).on_acked(number);
        self.newest_acked = self.newest_acked.max(Some(sent));
    }

    fn on_end_acks(&mut self, now: time::Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        let at = self.at(now);
        let rtt = self.newest_acked.take().map(|sent| span(now.saturating_duration_since(sent)));
        self.forget_beyond(in_flight);
        let mut control = lock(&self.control);
        if !std::mem::replace(&mut self.is_established, true) {
            control.established(at, rtt);
        }
        control.end_ack(at, AckInfo { rtt, app_limited, marks: 0 });
        drop(control);
        self.note_limits();
    }

    fn on_packet_lost(&mut self, _: u16, number: u64, now: time::Instant) {
        self.at(now);
        if let Some(number) = self.settle(number, None) {
            lock(&self.control).on_lost(number);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: time::Instant,
        _: time::Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _: u64,
        _: u64,
    ) {
        let at = self.at(now);
        let mut control = lock(&self.control);
        if is_ecn {
            // The stack reports marks after the packets of their ACK.
            control.end_ack(at, AckInfo { rtt: None, app_limited: false, marks: 1 });
        } else if is_persistent_congestion {
            control.on_persistent_congestion(at);
        } else {
            control.end_losses(at);
        }
        drop(control);
        self.note_limits();
    }

    fn on_spurious_congestion_event(&mut self) {
        lock(&self.control).on_spurious(self.now);
        self.note_limits();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        lock(&self.control).set_datagram_bytes(new_mtu.into());
        self.note_limits();
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics.pacing_rate = self.pacing_rate;
        metrics
    }

    /// Returns a new controller: the stack asks for one when a path changes.
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.factory.controller(self.datagram_bytes))
    }

    fn initial_window(&self) -> u64 {
        u64::from(self.factory.settings.initial_window) * u64::from(self.datagram_bytes)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
