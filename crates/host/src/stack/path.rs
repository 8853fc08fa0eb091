//! Path MTU. It is lowered at a router's report of a too large packet (RFC 1191, RFC 8201), and after repeated timeouts, which
//! suggest silent loss of large packets. It is raised again when probes of larger packets arrive (RFC 4821, RFC 8899).

use std::ops::Range;

use bentpipe_base::{Duration, Instant};

/// Maximum packet size to a peer in bytes, IP header included.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathLimit {
    mtu: u16,
    /// Maximum packet size of the device.
    device: u16,
    /// Consecutive timeouts without progress.
    timeouts: u32,
    progress: u64,
    search: Search,
}

/// Search for a larger path MTU after a reduction: single larger packets are sent as probes.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Smallest size known to fail; above the device's maximum if none is known.
    too_large: u16,
    /// Probe in flight.
    probe: Option<SizeProbe>,
    /// Earliest time of the next probe.
    next_at: Instant,
    /// Stream position below which all data was sent at least once.
    sent_to: u64,
}

/// Packet in flight that exceeds the path MTU.
#[derive(Clone, Copy, Debug)]
struct SizeProbe {
    /// Start of the packet's range in the byte stream.
    start: u64,
    end: u64,
    /// Size of the packet in bytes, IP header included.
    size: u16,
}

/// Consecutive retransmission timeouts after which large packets are assumed to be lost.
const SUSPICIOUS_TIMEOUTS: u32 = 2;
/// Path MTU values used then: first one that fits nearly all paths including tunnels (RFC 8899 section 5.1.2), then the minimum
/// that all paths must support.
const LADDER_V4: [u16; 2] = [1240, 576];
const LADDER_V6: [u16; 1] = [1280];
/// Minimum path MTU accepted from a report, as in Linux (`ip_rt_min_pmtu`). Real paths are rarely smaller, and a forged report
/// would slow the connection.
const LEAST_V4: u16 = 552;
/// Interval between probes: each failed probe counts as a loss (RFC 8899 section 5.1.1, PROBE_TIMER).
const PROBE_INTERVAL: Duration = Duration::from_secs(15);
/// Time after which the path may have changed (RFC 8899 section 5.1.1, PMTU_RAISE_TIMER; RFC 8201 section 4).
pub(super) const RAISE_INTERVAL: Duration = Duration::from_secs(600);
/// Difference in bytes between working and failing size at which the search ends (chosen: 2 % of a usual packet).
const CLOSE_ENOUGH: u16 = 32;

impl PathLimit {
    pub const fn new(mtu: u16) -> Self {
        let search =
            Search { too_large: mtu.saturating_add(1), probe: None, next_at: Instant::ZERO, sent_to: 0 };
        Self { mtu, device: mtu, timeouts: 0, progress: 0, search }
    }

    /// Returns the payload bytes that fit after headers of `headers` bytes.
    pub fn room(&self, headers: usize) -> u32 {
        u32::from(self.mtu).saturating_sub(headers as u32).max(32)
    }

    /// Handles a segment with this stream range that is about to leave. If its first packet must probe a larger size, returns the
    /// payload bytes of that packet after headers of `headers` bytes.
    pub fn probe(&mut self, now: Instant, range: Range<u64>, headers: usize) -> Option<u32> {
        let Range { start: from, end: to } = range;
        let search = self.search;
        let fresh = from >= search.sent_to;
        self.note_sent(to);
        if search.probe.is_some_and(|probe| (probe.start..probe.end).contains(&from)) {
            self.probe_failed(now);
            return None;
        }
        if !fresh || self.mtu >= self.device || search.probe.is_some() || now < search.next_at {
            return None;
        }
        let size = if search.too_large > self.device {
            self.device
        } else {
            self.mtu + (search.too_large - self.mtu) / 2
        };
        let room = u64::from(size).saturating_sub(headers as u64).min(to - from);
        if room as u32 <= self.room(headers) {
            return None;
        }
        self.search.probe = Some(SizeProbe { start: from, end: from + room, size });
        Some(room as u32)
    }

    /// Records that all data below `to` was sent at least once.
    pub fn note_sent(&mut self, to: u64) {
        self.search.sent_to = self.search.sent_to.max(to);
    }

    fn probe_failed(&mut self, now: Instant) {
        if let Some(probe) = self.search.probe.take() {
            self.search.too_large = probe.size;
            self.schedule(now);
        }
    }

    /// Schedules the next probe: at once after a success, later after a failure.
    fn schedule(&mut self, now: Instant) {
        let over = self.search.too_large.saturating_sub(self.mtu) <= CLOSE_ENOUGH;
        self.search.next_at = now + if over { RAISE_INTERVAL } else { PROBE_INTERVAL };
        if over {
            // The next search begins at the maximum.
            self.search.too_large = self.device.saturating_add(1);
        }
    }

    /// Handles the acknowledgement of all data below `progress`.
    pub fn note_progress(&mut self, now: Instant, progress: u64) {
        if progress <= self.progress {
            return;
        }
        self.progress = progress;
        self.timeouts = 0;
        if let Some(probe) = self.search.probe.take_if(|probe| probe.end <= progress) {
            self.mtu = self.mtu.max(probe.size);
            self.schedule(now);
        }
    }

    /// Handles an expiry of the retransmission timer.
    pub fn note_timeout(&mut self, now: Instant, is_v6: bool) {
        self.timeouts += 1;
        let ladder: &[u16] = if is_v6 { &LADDER_V6 } else { &LADDER_V4 };
        if self.timeouts.is_multiple_of(SUSPICIOUS_TIMEOUTS)
            && let Some(next) = ladder.iter().find(|next| **next < self.mtu)
        {
            self.lower(now, *next);
        }
    }

    /// Returns the maximum packet size of the path, as far as it is known.
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Returns the maximum packet size of the device.
    pub const fn device(&self) -> u16 {
        self.device
    }

    /// Handles a router's report of its next link's MTU. Returns true if the path MTU decreased.
    pub fn learn(&mut self, now: Instant, mtu: u32, is_v6: bool) -> bool {
        let least = if is_v6 { LADDER_V6[0] } else { LEAST_V4 };
        let mtu = u16::try_from(mtu).unwrap_or(u16::MAX).max(least);
        let smaller = mtu < self.mtu;
        if smaller {
            self.lower(now, mtu);
            // The router reported the exact size, so no search is needed.
            self.search.too_large = mtu + 1;
            self.schedule(now);
        }
        smaller
    }

    fn lower(&mut self, now: Instant, mtu: u16) {
        self.search = Search { too_large: self.mtu, probe: None, ..self.search };
        self.mtu = mtu;
        self.search.next_at = now + PROBE_INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn silence_makes_packets_smaller_and_progress_keeps_them() {
        let mut limit = PathLimit::new(1500);
        limit.note_timeout(at(1), false);
        limit.note_progress(at(1), 1000);
        limit.note_timeout(at(2), false);
        assert_eq!(limit.room(52), 1448, "one timeout is a loss like any other");
        limit.note_timeout(at(3), false);
        assert_eq!(limit.room(52), 1188);
        limit.note_timeout(at(4), false);
        limit.note_timeout(at(5), false);
        assert_eq!(limit.room(52), 524);
        (0..10).for_each(|_| limit.note_timeout(at(6), false));
        assert_eq!(limit.room(52), 524);
    }

    #[test]
    fn routers_can_lower_the_limit_within_reason() {
        let mut limit = PathLimit::new(1500);
        assert!(limit.learn(at(0), 1400, false));
        assert!(!limit.learn(at(0), 9000, false));
        assert_eq!(limit.room(52), 1348);
        limit.learn(at(0), 68, false);
        assert_eq!(limit.room(52), 500);
        let mut limit = PathLimit::new(1500);
        limit.learn(at(0), 500, true);
        assert_eq!(limit.room(72), 1208);
    }

    /// Sends a segment of 1448 bytes per second over a path with a maximum of `largest`, from second `from` on. Returns the
    /// number of failed probes.
    fn run(limit: &mut PathLimit, seconds: std::ops::Range<u64>, largest: u32) -> u32 {
        let mut failed = 0;
        for second in seconds {
            let segment = second * 1448..(second + 1) * 1448;
            match limit.probe(at(second), segment.clone(), 52) {
                Some(room) if room + 52 > largest => {
                    failed += 1;
                    // A lost size probe is sent again in packets of the usual size.
                    assert_eq!(limit.probe(at(second), segment.clone(), 52), None);
                }
                _ => {}
            }
            limit.note_progress(at(second), segment.end);
        }
        failed
    }

    #[test]
    fn probes_find_what_the_path_takes_and_notice_when_it_takes_more() {
        let mut limit = PathLimit::new(1500);
        (0..2).for_each(|_| limit.note_timeout(at(0), false));
        assert_eq!(limit.room(0), 1240);
        assert_eq!(run(&mut limit, 1..15, 1400), 0, "it is quiet for a while");
        let failed = run(&mut limit, 15..120, 1400);
        assert!((1369..=1400).contains(&limit.room(0)), "{}", limit.room(0));
        assert!((1..=3).contains(&failed), "{failed}");
        // The path's MTU changes without a report (ICMP message).
        run(&mut limit, 120..1000, 1500);
        assert_eq!(limit.room(0), 1500);
    }

    /// Packets of 1500 bytes were lost and those of 1240 arrive, so the first probe is in the middle.
    #[test]
    fn the_search_begins_between_what_failed_and_what_works() {
        let mut limit = PathLimit::new(1500);
        (0..2).for_each(|_| limit.note_timeout(at(0), false));
        assert_eq!(limit.probe(at(15), 0..1448, 52), Some(1370 - 52));
    }

    #[test]
    fn a_router_is_believed_for_ten_minutes() {
        let mut limit = PathLimit::new(1500);
        limit.learn(at(1), 1300, false);
        run(&mut limit, 1..600, 1500);
        assert_eq!(limit.room(0), 1300);
        run(&mut limit, 600..700, 1500);
        assert_eq!(limit.room(0), 1500);
    }
}
