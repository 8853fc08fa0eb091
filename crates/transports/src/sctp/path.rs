use bentpipe_base::{Duration, Instant};

use crate::Config;

const RTO_INITIAL: Duration = Duration::from_secs(1);
const RTO_MIN: Duration = Duration::from_secs(1);
const RTO_MAX: Duration = Duration::from_secs(60);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// State of a path at the sender (RFC 9260 section 7.2). Sizes are in bytes.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub cwnd: u64,
    pub ssthresh: u64,
    pub partial: u64,
    pub in_flight: u64,
    pub rto: Duration,
    pub srtt: Option<(Duration, Duration)>,
    /// Consecutive timeouts.
    pub errors: u32,
    /// Expiry time of T3-rtx.
    pub expires_at: Instant,
    pub heartbeat_at: Instant,
    /// In fast recovery: number whose acknowledgement ends it.
    pub recovers_to: Option<u64>,
}

impl Path {
    pub fn new(config: &Config) -> Self {
        Self {
            cwnd: u64::from(config.initial_window * config.packet_bytes),
            ssthresh: u64::MAX,
            partial: 0,
            in_flight: 0,
            rto: RTO_INITIAL,
            srtt: None,
            errors: 0,
            expires_at: Instant::FAR_FUTURE,
            heartbeat_at: Instant::FAR_FUTURE,
            recovers_to: None,
        }
    }

    /// Updates the RTT estimate by RFC 9260 section 6.3.1.
    pub fn sample(&mut self, rtt: Duration) {
        let (srtt, var) = match self.srtt {
            None => (rtt, rtt / 2),
            Some((srtt, var)) => (srtt * 7 / 8 + rtt / 8, var * 3 / 4 + srtt.abs_diff(rtt) / 4),
        };
        self.srtt = Some((srtt, var));
        self.rto = (srtt + var * 4).clamp(RTO_MIN, RTO_MAX);
        self.errors = 0;
    }

    /// Returns the timeout of an INIT after `attempts` earlier ones.
    pub fn first_rto(attempts: u32) -> Duration {
        (RTO_INITIAL * (1 << attempts)).min(RTO_MAX)
    }

    /// Handles a timeout (section 8.1). A suspected path gets one heartbeat after its timeout.
    pub fn fail(&mut self, now: Instant) {
        self.rto = (self.rto * 2).min(RTO_MAX);
        self.errors += 1;
        self.heartbeat_at = self.heartbeat_at.min(now + self.rto);
    }

    /// Schedules the next heartbeat after one that leaves. Their interval on a suspected path grows without an
    /// answer.
    pub fn beat(&mut self, now: Instant) {
        if self.errors > 0 {
            self.heartbeat_at = now + self.rto;
            self.rto = (self.rto * 2).min(RTO_MAX);
        } else {
            self.heartbeat_at = now + HEARTBEAT_INTERVAL + self.rto;
        }
    }

    pub fn halve(&mut self, packet: u64) {
        self.ssthresh = (self.cwnd / 2).max(4 * packet);
        self.partial = 0;
    }

    /// Grows the window (sections 7.2.1 and 7.2.2) for `acknowledged` bytes while it was full.
    pub fn grow(&mut self, acknowledged: u64, packet: u64) {
        if self.cwnd <= self.ssthresh {
            self.cwnd += acknowledged.min(packet);
            return;
        }
        self.partial += acknowledged;
        if self.partial >= self.cwnd {
            self.partial -= self.cwnd;
            self.cwnd += packet;
        }
    }
}
