//! Notes what a congestion controller is told.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time;

use bentpipe_base::Duration;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::clock::span;

/// Observations of the controllers of a connection.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Last round-trip sample in nanoseconds; zero if there is no new one.
    rtt_ns: AtomicU64,
    /// Declarations of persistent congestion.
    timeouts: AtomicU64,
}

impl Seen {
    /// Takes the last round-trip sample.
    pub fn take_rtt(&self) -> Option<Duration> {
        let sample = self.rtt_ns.swap(0, Ordering::Relaxed);
        (sample > 0).then(|| Duration::from_nanos(sample))
    }

    /// Returns the number of declarations of persistent congestion.
    pub fn timeouts(&self) -> u64 {
        self.timeouts.load(Ordering::Relaxed)
    }
}

/// Makes watched controllers.
pub(crate) struct Watch {
    pub inner: Arc<dyn ControllerFactory + Send + Sync>,
    pub seen: Arc<Seen>,
}

impl ControllerFactory for Watch {
    fn build(self: Arc<Self>, now: time::Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = self.inner.clone().build(now, current_mtu);
        Box::new(Watched { inner, seen: self.seen.clone(), newest_acked: None })
    }
}

/// A controller that is watched.
#[derive(Debug)]
struct Watched {
    inner: Box<dyn Controller>,
    seen: Arc<Seen>,
    /// Departure of the newest packet acknowledged by the ACK in progress.
    newest_acked: Option<time::Instant>,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: time::Instant, bytes: u64, number: u64) {
        self.inner.on_sent(now, bytes, number);
    }

    fn on_packet_sent(&mut self, now: time::Instant, bytes: u16, number: u64) {
        self.inner.on_packet_sent(now, bytes, number);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: time::Instant,
        sent: time::Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.newest_acked = self.newest_acked.max(Some(sent));
        self.inner.on_ack(now, sent, bytes, number, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: time::Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        if let Some(sent) = self.newest_acked.take() {
            let sample = span(now.saturating_duration_since(sent));
            self.seen.rtt_ns.store(sample.as_nanos(), Ordering::Relaxed);
        }
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: time::Instant,
        sent: time::Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost: u64,
    ) {
        self.seen.timeouts.fetch_add(u64::from(is_persistent_congestion), Ordering::Relaxed);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, is_ecn, lost_bytes, largest_lost);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: time::Instant) {
        self.inner.on_packet_lost(bytes, number, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_ack_delay: time::Duration) {
        self.inner.on_ack_frequency_update(threshold, max_ack_delay);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let (inner, seen) = (self.inner.clone_box(), self.seen.clone());
        Box::new(Self { inner, seen, newest_acked: self.newest_acked })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
