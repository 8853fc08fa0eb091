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
    /// Controller of the newest path on which a packet left; before that, the first controller.
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

    /// Makes a factory for another end, which has paths of its own.
    pub(crate) fn for_another_end(&self) -> Self {
        Self { newest: Arc::default(), ..self.clone() }
    }

    /// Returns the algorithm of the newest path.
    pub(crate) fn newest(&self) -> Option<Shared> {
        lock(&self.newest).clone()
    }

    fn initial_window(&self, datagram_bytes: u16) -> u64 {
        u64::from(self.settings.initial_window) * u64::from(datagram_bytes)
    }

    fn controller(&self, datagram_bytes: u16) -> Adapter {
        let settings = Settings { datagram_bytes: datagram_bytes.into(), ..self.settings.clone() };
        let control = PacketControl::new(&self.algorithm, &settings).expect("`new` has made one before");
        let shared = Arc::new(Mutex::new(control));
        lock(&self.newest).get_or_insert_with(|| shared.clone());
        let mut adapter = Adapter {
            factory: self.clone(),
            control: shared,
            datagram_bytes,
            window: 0,
            pacing_rate: None,
            in_flight: VecDeque::new(),
            sent: 0,
            settled: 0,
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

/// Number of packets in which a handshake is over. Until they are settled, the window is at least the initial one: the stack panics
/// if a smaller window stops its handshake.
const HANDSHAKE_PACKETS: u64 = 10;

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
    /// Number of packets acknowledged or lost.
    settled: u64,
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
        let shakes_hands = self.settled < HANDSHAKE_PACKETS;
        let least = if shakes_hands { self.factory.initial_window(self.datagram_bytes) } else { 0 };
        self.window = control.window().max(least);
        self.pacing_rate = control.pacing_rate().map(|rate| (rate.bps() / 8).max(1));
    }

    /// Settles a packet, and returns its number among all packets. `sent` distinguishes packets of different spaces.
    fn settle(&mut self, stack_number: u64, sent: Option<time::Instant>) -> Option<u64> {
        // Packets are in the order of their departure. Those that departed together are few.
        let first = sent.map_or(0, |sent| self.in_flight.partition_point(|packet| packet.sent < sent));
        let departed = |packet: &&mut InFlight| sent.is_none_or(|sent| packet.sent == sent);
        let mut candidates = self.in_flight.range_mut(first..).take_while(departed);
        let packet = candidates.find(|packet| !packet.is_settled && packet.stack_number == stack_number)?;
        packet.is_settled = true;
        self.settled += 1;
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
        if self.sent == 0 {
            // Copies that a program asks for to look at them send nothing, and belong to no path.
            *lock(&self.factory.newest) = Some(self.control.clone());
        }
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
        self.factory.initial_window(self.datagram_bytes)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::to_stack;

    fn adapter(algorithm: &str) -> Adapter {
        let algorithm = Algorithm::from_name(algorithm).unwrap();
        Factory::new(algorithm, Settings::default()).unwrap().controller(1200)
    }

    fn at(ms: u64) -> time::Instant {
        to_stack(Instant::ZERO + bentpipe_base::Duration::from_millis(ms))
    }

    #[test]
    fn a_path_begins_with_its_first_packet_and_a_copy_that_sends_none_is_no_path() {
        let mut first = adapter("hybla");
        let factory = first.factory.clone();
        let is_newest = |control: &Shared| Arc::ptr_eq(&factory.newest().unwrap(), control);
        assert!(is_newest(&first.control));
        first.on_packet_sent(at(0), 1200, 0);
        let mut copy = first.factory.controller(1200);
        assert!(is_newest(&first.control));
        copy.on_packet_sent(at(1), 1200, 0);
        assert!(is_newest(&copy.control));
    }

    /// Hybla's first window is about two segments at an RTT of 40 ms.
    #[test]
    fn no_algorithm_stops_the_handshake() {
        let mut adapter = adapter("hybla");
        for number in 0..HANDSHAKE_PACKETS {
            adapter.on_packet_sent(at(0), 1200, number);
        }
        let mut acknowledge = |number| {
            let settled = adapter.settle(number, Some(at(0))).unwrap();
            lock(&adapter.control).on_acked(settled);
            adapter.newest_acked = Some(at(0));
            adapter.on_end_acks(at(40), 12_000, false, None);
            let window = adapter.window();
            (window, window > lock(&adapter.control).window())
        };
        let first = acknowledge(0);
        assert_eq!(first, (12_000, true), "the window is the initial one");
        let last = (1..HANDSHAKE_PACKETS).map(acknowledge).last();
        assert!(last.is_some_and(|(_, is_raised)| !is_raised), "{last:?}");
    }

    #[test]
    fn a_packet_is_found_behind_a_hole_and_among_those_of_other_spaces() {
        let mut adapter = adapter("cubic");
        for (ms, stack_number) in [(0, 0), (1, 0), (1, 1), (2, 2), (2, 3)] {
            adapter.on_packet_sent(at(ms), 1200, stack_number);
        }
        assert_eq!(adapter.settle(3, Some(at(2))), Some(4));
        assert_eq!(adapter.settle(0, Some(at(1))), Some(1));
        assert_eq!(adapter.settle(3, Some(at(2))), None, "it is settled");
        assert_eq!(adapter.settle(2, Some(at(1))), None, "it departed later");
        assert_eq!(adapter.settle(1, None), Some(2));
        assert_eq!(adapter.in_flight.len(), 5, "the first packet is missing");
        assert_eq!(adapter.settle(0, Some(at(0))), Some(0));
        assert_eq!(adapter.in_flight.len(), 2);
    }
}
