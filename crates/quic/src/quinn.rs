//! Bentpipe's algorithms as congestion controllers of `quinn`, by the traits of `quinn-proto`.
//!
//! A controller of `quinn` sets only a window. The stack paces by this window itself, so algorithms that set a rate are refused.
//! Give a [`Factory`] to [`TransportConfig::congestion_controller_factory`](quinn_proto::TransportConfig::congestion_controller_factory).
//!
//! The stack reports neither packet numbers nor single lost packets. This module infers them from departure times and sizes. It does
//! not report that losses were spurious.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time;

use bentpipe_base::Instant;
use bentpipe_cc::Algorithm;
use bentpipe_cc::packets::{self, AckInfo, PacketControl, Settings};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};

use crate::clock::{from_stack, span};

/// Makes a controller for each path of a connection.
#[derive(Clone, Debug)]
pub struct Factory {
    algorithm: Algorithm,
    settings: Settings,
}

/// An algorithm or a setting that `quinn` cannot serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No transport with packet numbers serves the algorithm.
    Packets(packets::Refused),
    /// The algorithm sets a pacing rate.
    Rate {
        /// Name of the algorithm.
        algorithm: &'static str,
    },
    /// Careful Resume paces the packets of its jump.
    CarefulResume,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(refused) => refused.fmt(f),
            Self::Rate { algorithm } => write!(
                f,
                "`{algorithm}` does not run in quinn: it sets a pacing rate, and a controller of quinn sets only a window"
            ),
            Self::CarefulResume => {
                f.write_str("Careful Resume does not run in quinn: it sets a pacing rate, and a controller of quinn sets only a window")
            }
        }
    }
}

impl std::error::Error for Refused {}

impl Factory {
    /// Makes a factory of controllers with an algorithm. The stack replaces `settings.datagram_bytes`, and its pacing
    /// `settings.paced`.
    ///
    /// # Errors
    /// [`Refused`] if the stack cannot serve the algorithm or the settings.
    pub fn new(algorithm: Algorithm, settings: Settings) -> Result<Self, Refused> {
        let settings = Settings { paced: false, ..settings };
        let control = PacketControl::new(&algorithm, &settings).map_err(Refused::Packets)?;
        if control.needs_pacing() {
            return Err(Refused::Rate { algorithm: algorithm.name() });
        }
        if settings.careful_resume.is_some() {
            return Err(Refused::CarefulResume);
        }
        Ok(Self { algorithm, settings })
    }

    fn controller(&self, datagram_bytes: u16) -> Window {
        let settings = Settings { datagram_bytes: datagram_bytes.into(), ..self.settings.clone() };
        let control = PacketControl::new(&self.algorithm, &settings).expect("`new` has made one before");
        let window = control.window();
        Window {
            factory: self.clone(),
            name: control.name(),
            control: Mutex::new(control),
            datagram_bytes,
            window,
            in_flight: VecDeque::new(),
            sent: 0,
            newest_acked: None,
            is_established: false,
        }
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
    sent: time::Instant,
    bytes: u32,
    /// Number among all packets.
    number: u64,
    is_settled: bool,
}

/// An algorithm as a controller of the stack. A program finds it by [`Controller::into_any`].
pub struct Window {
    factory: Factory,
    /// The stack requires a type that threads may share; it locks its connection itself.
    control: Mutex<PacketControl>,
    name: &'static str,
    datagram_bytes: u16,
    /// Window in bytes after the last event.
    window: u64,
    /// Packets in the order of their departure.
    in_flight: VecDeque<InFlight>,
    /// Number of packets sent.
    sent: u64,
    /// Departure of the newest packet acknowledged by the ACK in progress.
    newest_acked: Option<time::Instant>,
    is_established: bool,
}

impl Window {
    /// Returns the algorithm's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn control(&mut self) -> &mut PacketControl {
        unlocked(&mut self.control)
    }

    fn push(&mut self, now: time::Instant, bytes: u32) {
        let packet = InFlight { sent: now, bytes, number: self.sent, is_settled: false };
        self.in_flight.push_back(packet);
        let number = self.sent;
        let rises = self.control().on_sent(from_stack(now), number, bytes);
        debug_assert!(rises.is_ok(), "the numbers are counted here");
        self.sent += 1;
    }

    /// Settles the oldest packet that left at `sent`, and returns its number.
    fn settle(&mut self, sent: time::Instant) -> Option<u64> {
        let first = self.in_flight.partition_point(|packet| packet.sent < sent);
        let of_batch = self.in_flight.range_mut(first..).take_while(|packet| packet.sent == sent);
        let packet = of_batch.into_iter().find(|packet| !packet.is_settled)?;
        packet.is_settled = true;
        let number = packet.number;
        self.forget_settled();
        Some(number)
    }

    fn forget_settled(&mut self) {
        while self.in_flight.front().is_some_and(|packet| packet.is_settled) {
            self.in_flight.pop_front();
        }
    }

    /// Declares the oldest packets up to the departure `newest` lost, until these are `bytes`.
    fn lose(&mut self, newest: time::Instant, bytes: u64) {
        let control = unlocked(&mut self.control);
        let mut lost = 0;
        for packet in &mut self.in_flight {
            if lost >= bytes || packet.sent > newest {
                break;
            }
            if !std::mem::replace(&mut packet.is_settled, true) {
                lost += u64::from(packet.bytes);
                control.on_lost(packet.number);
            }
        }
        self.forget_settled();
    }

    /// Forgets the oldest packets until at most `bytes` are in flight. The stack also reports the departure of packets that the peer
    /// does not acknowledge, and counts those of a handshake twice if they share a datagram.
    fn forget_beyond(&mut self, bytes: u64) {
        while self.control().in_flight() > bytes {
            self.forget_settled();
            let Some(oldest) = self.in_flight.pop_front() else { return };
            self.control().on_discarded(oldest.number);
        }
    }
}

/// Returns the content of a mutex. A panic of another holder ends the program or leaves a usable state.
fn unlocked(control: &mut Mutex<PacketControl>) -> &mut PacketControl {
    control.get_mut().unwrap_or_else(PoisonError::into_inner)
}

impl Controller for Window {
    fn on_sent(&mut self, now: time::Instant, bytes: u64, _: u64) {
        // The stack reports a batch of datagrams at once.
        let mut left = bytes;
        while left > 0 {
            let one = left.min(self.datagram_bytes.into());
            self.push(now, one as u32);
            left -= one;
        }
        self.window = self.control().window();
    }

    fn on_ack(&mut self, _: time::Instant, sent: time::Instant, _: u64, _: bool, _: &RttEstimator) {
        let Some(number) = self.settle(sent) else { return };
        self.control().on_acked(number);
        self.newest_acked = self.newest_acked.max(Some(sent));
    }

    fn on_end_acks(&mut self, now: time::Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        let at: Instant = from_stack(now);
        let rtt = self.newest_acked.take().map(|sent| span(now.saturating_duration_since(sent)));
        self.forget_beyond(in_flight);
        if !std::mem::replace(&mut self.is_established, true) {
            self.control().established(at, rtt);
        }
        self.control().end_ack(at, AckInfo { rtt, app_limited, marks: 0 });
        self.window = self.control().window();
    }

    fn on_congestion_event(
        &mut self,
        now: time::Instant,
        sent: time::Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let at = from_stack(now);
        self.lose(sent, lost_bytes);
        if is_persistent_congestion {
            self.control().on_persistent_congestion(at);
        } else if lost_bytes == 0 {
            // The stack reports marks as an event without lost bytes, after the packets of their ACK.
            self.control().end_ack(at, AckInfo { rtt: None, app_limited: false, marks: 1 });
        } else {
            self.control().end_losses(at);
        }
        self.window = self.control().window();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.datagram_bytes = new_mtu;
        self.control().set_datagram_bytes(new_mtu.into());
        self.window = self.control().window();
    }

    /// The stack sends only below the window, so a window of one datagram would let none leave.
    fn window(&self) -> u64 {
        self.window.max(2 * u64::from(self.datagram_bytes))
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
