//! Ledger of a link: every packet that enters leaves once, not too early, and not too close to the previous one.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_net::{Link, LinkConfig, Opportunities, Packet, Quantity, Schedule};

use crate::event::{LinkActivity, SeenPacket};
use crate::violations::Violations;

/// Packets that entered and left one direction of a link.
#[derive(Debug)]
pub struct LinkBook {
    name: String,
    least_delay: Duration,
    greatest_rate: Rate,
    /// Recorded delivery times, which replace a rate on a link without duplication.
    opportunities: Option<Opportunities>,
    /// True if arrivals are spaced by the transmission times.
    keeps_distance: bool,
    /// Arrival times of the packets on the link.
    inside: BTreeMap<u32, Instant>,
    last_delivery: Instant,
    entered: Tally,
    delivered: Tally,
    lost: Tally,
    copied: u64,
    /// The packet that is delivered next without having entered: a copy.
    expected_copy: Option<u32>,
}

/// Number of packets and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Tally {
    packets: u64,
    bytes: u64,
}

impl Tally {
    fn add(&mut self, packet: &SeenPacket) {
        self.packets += 1;
        self.bytes += u64::from(packet.bytes);
    }

    fn remove(&mut self, packet: &SeenPacket) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.bytes);
    }
}

/// Returns the minimum and maximum of a schedule.
fn bounds<T: Quantity>(schedule: &Schedule<T>) -> (u64, u64) {
    match schedule {
        Schedule::Constant(value) => (value.raw(), value.raw()),
        Schedule::Table { points, .. } => points
            .iter()
            .fold((u64::MAX, 0), |(low, high), (_, value)| (low.min(value.raw()), high.max(value.raw()))),
        Schedule::Sine { mean, amplitude, .. } => {
            (mean.raw().saturating_sub(amplitude.raw()), mean.raw() + amplitude.raw())
        }
    }
}

impl LinkBook {
    /// Makes the ledger of one direction of a link.
    pub fn new(name: String, config: &LinkConfig) -> Self {
        let (least_delay, greatest_delay) = bounds(&config.delay_one_way);
        Self {
            name,
            least_delay: match config.jitter {
                Some(_) => Duration::ZERO,
                None => Duration::from_nanos(least_delay),
            },
            // Two delivery times may be equal.
            greatest_rate: Rate::from_bps(match config.opportunities {
                Some(_) => u64::MAX,
                None => bounds(&config.rate).1,
            }),
            // A copy needs no transmission time.
            opportunities: config.opportunities.clone().filter(|_| config.duplicate_probability <= 0.0),
            keeps_distance: least_delay == greatest_delay
                && config.opportunities.is_none()
                && config.jitter.is_none()
                && config.reordering.is_none()
                && config.arq.is_none()
                && config.fec.is_none(),
            inside: BTreeMap::new(),
            last_delivery: Instant::ZERO,
            entered: Tally::default(),
            delivered: Tally::default(),
            lost: Tally::default(),
            copied: 0,
            expected_copy: None,
        }
    }

    /// Records an event.
    pub fn note(&mut self, now: Instant, activity: &LinkActivity, violations: &mut Violations) {
        match activity {
            LinkActivity::Offered { packet, .. } => {
                self.entered.add(packet);
                let before = self.inside.insert(packet.number, now);
                violations.unless(before.is_none(), now, || format!("{}: a packet entered twice", self.name));
            }
            LinkActivity::Copied { original, copy } => {
                let present = self.inside.contains_key(original);
                violations.unless(present, now, || format!("{}: copied what it does not hold", self.name));
                self.copied += 1;
                self.expected_copy = Some(*copy);
            }
            LinkActivity::TakenBack(packet) => {
                self.entered.remove(packet);
                let present = self.inside.remove(&packet.number).is_some();
                violations.unless(present, now, || format!("{}: took back what it does not hold", self.name));
            }
            LinkActivity::Delivered(packet) => self.note_delivery(now, packet, violations),
            LinkActivity::Lost { packet, .. } => {
                self.lost.add(packet);
                let present = self.inside.remove(&packet.number).is_some();
                violations.unless(present, now, || format!("{}: lost what it does not hold", self.name));
            }
        }
    }

    fn note_delivery(&mut self, now: Instant, packet: &SeenPacket, violations: &mut Violations) {
        self.delivered.add(packet);
        if self.expected_copy.take() == Some(packet.number) {
            return violations
                .unless(packet.is_copy, now, || format!("{}: a copy is not marked as one", self.name));
        }
        let sending = self.greatest_rate.time_for(u64::from(packet.bytes));
        match self.inside.remove(&packet.number) {
            None => {
                violations.unless(false, now, || format!("{}: delivered what it does not hold", self.name));
            }
            Some(entered) => {
                let in_time = now >= entered + self.least_delay + sending;
                violations.unless(in_time, now, || {
                    format!("{}: a packet of {:?} arrived before it could", self.name, entered)
                });
            }
        }
        if let Some(opportunities) = &self.opportunities {
            let offered = opportunities.bytes_until(now - self.least_delay);
            violations.unless(self.delivered.bytes <= offered, now, || {
                format!(
                    "{}: {} bytes delivered with opportunities for {offered}",
                    self.name, self.delivered.bytes
                )
            });
        }
        if self.keeps_distance && self.last_delivery > Instant::ZERO {
            let distance = now.since(self.last_delivery);
            violations.unless(distance >= sending, now, || {
                format!("{}: above its rate: {} after the last packet, not {sending}", self.name, distance)
            });
        }
        self.last_delivery = now;
    }

    /// Compares with the link's own counters at the end of the run.
    pub fn close<P: Packet>(&self, now: Instant, link: &Link<P>, violations: &mut Violations) {
        let Self { entered, delivered, lost, copied, .. } = *self;
        let inside = self.inside.len() as u64;
        let balance = entered.packets + copied == delivered.packets + lost.packets + inside;
        violations.unless(balance, now, || format!("{}: packets are not conserved: {self:?}", self.name));
        let stats = link.stats();
        let theirs = [
            (stats.enqueued_packets, stats.enqueued_bytes),
            (stats.delivered_packets, stats.delivered_bytes),
            (stats.dropped_packets(), lost.bytes),
            (stats.duplicated_packets, link.packets_inside() as u64),
        ];
        let tally = |tally: Tally| (tally.packets, tally.bytes);
        let ours = [tally(entered), tally(delivered), tally(lost), (copied, inside)];
        violations.unless(ours == theirs, now, || {
            format!("{}: seen {ours:?}, but the link says {theirs:?}", self.name)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_net::{Backlog, Limit, QueueConfig};
    use bentpipe_trace::DropCause;

    fn packet(number: u32) -> SeenPacket {
        SeenPacket { number, bytes: 1000, to: 1, is_copy: false, segment: None }
    }

    fn offered(number: u32) -> LinkActivity {
        LinkActivity::Offered { packet: packet(number), backlog: Backlog::default() }
    }

    fn delivered(number: u32) -> LinkActivity {
        LinkActivity::Delivered(packet(number))
    }

    /// Returns the violations of a link of 8 Mbit/s and 10 ms with these events, in milliseconds. A packet takes 1 ms
    /// to send.
    fn verdict(activities: &[(u64, LinkActivity)]) -> String {
        let queue = QueueConfig::DropTail { limit: Limit::Packets(10) };
        let config = LinkConfig::new(Rate::from_mbps(8), Duration::from_millis(10), queue);
        let (mut book, mut violations) = (LinkBook::new("link".to_owned(), &config), Violations::default());
        for (ms, activity) in activities {
            book.note(Instant::ZERO + Duration::from_millis(*ms), activity, &mut violations);
        }
        violations.into_vec().join("; ")
    }

    #[test]
    fn a_link_that_keeps_the_rules_breaks_none() {
        assert_eq!(verdict(&[(0, offered(1)), (0, offered(2)), (11, delivered(1)), (12, delivered(2))]), "");
    }

    #[test]
    fn what_comes_too_soon_or_too_close_or_from_nowhere_is_found() {
        assert!(verdict(&[(0, offered(1)), (10, delivered(1))]).contains("arrived before it could"));
        let close = [(0, offered(1)), (0, offered(2)), (11, delivered(1)), (11, delivered(2))];
        assert!(verdict(&close).contains("above its rate"));
        assert!(verdict(&[(20, delivered(1))]).contains("delivered what it does not hold"));
        let lost = LinkActivity::Lost { packet: packet(3), cause: DropCause::Error, at: Instant::ZERO };
        assert!(verdict(&[(0, lost)]).contains("lost what it does not hold"));
        assert!(verdict(&[(0, offered(1)), (1, offered(1))]).contains("entered twice"));
    }
}
