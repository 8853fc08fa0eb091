//! CoDel: Nichols, Jacobson, McGregor, Iyengar, "Controlled Delay Active Queue Management", RFC 8289, 2018.
//!
//! | symbol (section 5) | here |
//! |---|---|
//! | TARGET, INTERVAL | [`CoDelConfig`] |
//! | first_above_time | `Control::first_above` |
//! | drop_next, count, lastcount, dropping | the same |
//! | maxpacket | largest packet seen by the queue |

use bentpipe_base::{Duration, Instant};
use bentpipe_trace::DropCause;

use super::backlog::{Backlog, Limit};
use super::timed_fifo::TimedFifo;
use crate::error::ConfigError;
use crate::ledger::{Ledger, Verdict};
use crate::packet::Packet;

/// Parameters of CoDel.
///
/// The defaults suit paths of up to a few hundred milliseconds. Over a geostationary satellite the interval should be
/// the round-trip time, and the target 5 to 10 % of it (RFC 8289 sections 4.2 and 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Acceptable standing delay, more than 0 s.
    pub target: Duration,
    /// Time for which the delay must exceed the target before CoDel acts; also the first distance between drops.
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for CoDelConfig {
    /// 5 ms, 100 ms (RFC 8289 section 4.4), no ECN.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

impl CoDelConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.target.is_zero() {
            return Err(ConfigError::new("target", self.target, "more than 0 s"));
        }
        if self.interval < self.target {
            return Err(ConfigError::new("interval", self.interval, "at least the target"));
        }
        Ok(())
    }
}

/// A bounded first-in-first-out queue with CoDel.
#[derive(Clone, Debug)]
pub(crate) struct CoDel<P> {
    limit: Limit,
    fifo: TimedFifo<P>,
    control: Control,
}

impl<P: Packet> CoDel<P> {
    pub fn new(limit: Limit, config: CoDelConfig) -> Self {
        Self { limit, fifo: TimedFifo::new(), control: Control::new(config) }
    }

    pub fn enqueue(&mut self, now: Instant, packet: P, ledger: &mut Ledger<P>) -> Verdict {
        if !self.limit.has_room(self.fifo.backlog(), packet.size()) {
            return ledger.refuse(packet, DropCause::Queue, now);
        }
        self.fifo.push(now, packet);
        Verdict::Accepted
    }

    pub fn dequeue(&mut self, now: Instant, ledger: &mut Ledger<P>) -> Option<P> {
        self.control.dequeue(&mut self.fifo, now, ledger)
    }

    pub fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

/// CoDel's state for one queue (RFC 8289 section 5).
#[derive(Clone, Debug)]
pub(crate) struct Control {
    config: CoDelConfig,
    /// Time at which the delay will have exceeded the target for one interval; `None` while it is below.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    /// Drops (or marks) since the start of the dropping state.
    count: u32,
    /// `count` at the last start of the dropping state.
    last_count: u32,
}

/// Packet at the head; true if its delay allows to drop it.
struct Head<P> {
    packet: P,
    ok_to_drop: bool,
}

impl Control {
    pub fn new(config: CoDelConfig) -> Self {
        Self { config, first_above: None, dropping: false, drop_next: Instant::ZERO, count: 0, last_count: 0 }
    }

    /// Returns the next packet to send at `now`; `None` only if the queue is empty.
    pub fn dequeue<P: Packet>(
        &mut self,
        fifo: &mut TimedFifo<P>,
        now: Instant,
        ledger: &mut Ledger<P>,
    ) -> Option<P> {
        let head = self.pop(fifo, now);
        let ok_to_drop = head.as_ref().is_some_and(|head| head.ok_to_drop);
        let head = match (self.dropping, ok_to_drop) {
            (true, true) => self.keep_dropping(head, fifo, now, ledger),
            (true, false) => {
                self.dropping = false;
                head
            }
            (false, true) => self.start_dropping(head, fifo, now, ledger),
            (false, false) => head,
        };
        head.map(|head| head.packet)
    }

    /// `dodequeue` of the RFC: removes the head and tracks how long the delay has exceeded the target.
    fn pop<P: Packet>(&mut self, fifo: &mut TimedFifo<P>, now: Instant) -> Option<Head<P>> {
        let Some(stamped) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        let delay = now.since(stamped.arrived);
        let ok_to_drop = if delay < self.config.target || fifo.backlog().bytes <= u64::from(fifo.largest()) {
            self.first_above = None;
            false
        } else {
            let first_above = *self.first_above.get_or_insert(now + self.config.interval);
            now >= first_above
        };
        Some(Head { packet: stamped.packet, ok_to_drop })
    }

    /// Drops all heads that the control law requires by `now`.
    fn keep_dropping<P: Packet>(
        &mut self,
        mut head: Option<Head<P>>,
        fifo: &mut TimedFifo<P>,
        now: Instant,
        ledger: &mut Ledger<P>,
    ) -> Option<Head<P>> {
        while self.dropping && now >= self.drop_next {
            self.count += 1;
            head = match self.mark(head?, ledger) {
                Ok(marked) => {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(marked);
                }
                Err(victim) => self.replace(victim, fifo, now, ledger),
            };
            if head.as_ref().is_some_and(|head| head.ok_to_drop) {
                self.drop_next = self.control_law(self.drop_next);
            } else {
                self.dropping = false;
            }
        }
        head
    }

    /// Drops (or marks) one head and enters the dropping state. Soon after the last dropping state it continues at
    /// that state's drop rate.
    fn start_dropping<P: Packet>(
        &mut self,
        head: Option<Head<P>>,
        fifo: &mut TimedFifo<P>,
        now: Instant,
        ledger: &mut Ledger<P>,
    ) -> Option<Head<P>> {
        let head = match self.mark(head?, ledger) {
            Ok(marked) => Some(marked),
            Err(victim) => self.replace(victim, fifo, now, ledger),
        };
        self.dropping = true;
        let earlier_drops = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < self.config.interval * 16;
        self.count = if earlier_drops > 1 && recent { earlier_drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        head
    }

    /// Marks the packet if configured and possible, otherwise returns it to be dropped.
    fn mark<P: Packet>(&self, mut head: Head<P>, ledger: &mut Ledger<P>) -> Result<Head<P>, Head<P>> {
        if !(self.config.ecn && head.packet.ecn_capable()) {
            return Err(head);
        }
        ledger.mark(&mut head.packet);
        Ok(head)
    }

    /// Drops `victim` and removes the packet after it.
    fn replace<P: Packet>(
        &mut self,
        victim: Head<P>,
        fifo: &mut TimedFifo<P>,
        now: Instant,
        ledger: &mut Ledger<P>,
    ) -> Option<Head<P>> {
        ledger.drop_packet(victim.packet, DropCause::Queue, now);
        self.pop(fifo, now)
    }

    /// Returns the time of the next drop after one at `time`: interval / sqrt(count) later.
    fn control_law(&self, time: Instant) -> Instant {
        time + self.config.interval.mul_f64(1.0 / libm::sqrt(f64::from(self.count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_law_shrinks_with_the_square_root_of_the_count() {
        let mut control = Control::new(CoDelConfig::default());
        let after = |control: &Control| control.control_law(Instant::ZERO).as_nanos();
        control.count = 1;
        assert_eq!(after(&control), 100_000_000);
        control.count = 4;
        assert_eq!(after(&control), 50_000_000);
        control.count = 2;
        assert_eq!(after(&control), 70_710_678);
    }

    #[derive(Clone)]
    struct Plain;

    impl Packet for Plain {
        fn size(&self) -> u32 {
            1000
        }
    }

    /// Returns CoDel's `count` when the dropping state starts again. Before, it started with count 2 and ended with
    /// count 6; `after` is the time since the next drop would have been due.
    fn count_when_dropping_again(after: Duration) -> u32 {
        let mut fifo = TimedFifo::new();
        (0..5).for_each(|_| fifo.push(Instant::ZERO, Plain));
        let mut control = Control::new(CoDelConfig::default());
        (control.count, control.last_count) = (6, 2);
        control.drop_next = Instant::ZERO + Duration::from_secs(1);
        control.first_above = Some(control.drop_next);
        let now = control.drop_next + after;
        let mut ledger = Ledger::new();
        assert!(control.dequeue(&mut fifo, now, &mut ledger).is_some());
        assert_eq!(ledger.stats().dropped_by_queue, 1);
        assert_eq!(control.last_count, control.count);
        control.count
    }

    #[test]
    fn dropping_resumes_at_the_earlier_pace_within_sixteen_intervals() {
        assert_eq!(count_when_dropping_again(Duration::from_millis(1599)), 4);
        assert_eq!(count_when_dropping_again(Duration::from_millis(1600)), 1);
    }
}
