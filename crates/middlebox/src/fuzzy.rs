//! Fuzzy congestion control. Fuzzy rules on queue length and its change set the fraction of packets that signal congestion. The
//! signal goes to the receiver (ECN) or directly to the sender (BECN), or is a drop.
//!
//! The study of proxies names it among the implemented methods for satellites: fuzzy control that combines ECN and BECN, and
//! intelligent packet dropping. `papers/fuzzy.md` lists the reconstructed parts. The rules have the form of M. Sugeno and of
//! Fuzzy Explicit Marking (C. Chrysostomou et al., "Fuzzy Logic Congestion Control in TCP/IP Best-Effort Networks", 2003).

use std::collections::BTreeMap;

use bentpipe_base::{EcnField, Flags, Instant, Probe};

use crate::table::Table;
use crate::{FuzzyConfig, Passing, Port, Tells, Verdict};

/// A node with fuzzy queues.
#[derive(Clone, Debug)]
pub struct Fuzzy {
    config: FuzzyConfig,
    outlets: BTreeMap<u32, Outlet>,
    /// Senders with a pending signal, by the direction of their data.
    owed: [Table<bool>; 2],
    forward: u64,
    backward: u64,
    dropped: u64,
}

/// Queue of an outgoing link.
#[derive(Clone, Copy, Debug)]
struct Outlet {
    /// State at the last packet.
    port: Port,
    /// Queue length at the last decision as a fraction of the capacity, and the time of that decision.
    before: f64,
    judged: Instant,
    /// Fraction of the data packets that signal congestion, and the accumulated fraction of the next signal.
    told_of: f64,
    due: f64,
    /// True if signals go to the sender instead of the receiver.
    severe: bool,
}

/// Degrees to which a value is small, medium and large; their sum is one.
type Degrees = [f64; 3];

/// Conclusions as fractions of the maximum. Rows: the queue is short, right or long. Columns: it falls, is stable or rises.
const RULES: [[f64; 3]; 3] = [[0.0, 0.0, 0.05], [0.0, 0.2, 0.5], [0.2, 0.6, 1.0]];

/// Triangular membership functions with peaks at these three values.
fn degrees(value: f64, [small, middling, large]: [f64; 3]) -> Degrees {
    if value <= middling {
        let degree = ((value - small) / (middling - small)).clamp(0.0, 1.0);
        [1.0 - degree, degree, 0.0]
    } else {
        let degree = ((value - middling) / (large - middling)).clamp(0.0, 1.0);
        [0.0, 1.0 - degree, degree]
    }
}

/// Returns the mean of the conclusions, weighted by the degrees of their conditions.
fn conclude(length: Degrees, change: Degrees) -> f64 {
    let mut sum = 0.0;
    for (row, held) in RULES.iter().zip(length) {
        for (conclusion, moving) in row.iter().zip(change) {
            sum += conclusion * held * moving;
        }
    }
    sum
}

impl Outlet {
    fn judge(&mut self, config: &FuzzyConfig, now: Instant) {
        let waiting = f64::from(self.port.waiting_packets) / f64::from(config.room);
        let length = degrees(waiting, [0.0, config.target, 1.0]);
        let change = degrees(waiting - self.before, [-config.target, 0.0, config.target]);
        self.told_of = config.most * conclude(length, change);
        self.severe = length[2] > length[1];
        (self.before, self.judged) = (waiting, now);
    }

    /// Returns true for the required fraction of packets, evenly spread.
    fn tells_this_one(&mut self) -> bool {
        self.due += self.told_of;
        let tells = self.due >= 1.0;
        self.due -= f64::from(u8::from(tells));
        tells
    }
}

impl Fuzzy {
    /// Makes a node without state.
    pub(crate) fn new(config: FuzzyConfig) -> Self {
        let owed = Default::default();
        Self { config, outlets: BTreeMap::new(), owed, forward: 0, backward: 0, dropped: 0 }
    }

    pub(crate) fn handle(&mut self, now: Instant, passing: &mut Passing<'_>) -> Verdict {
        if passing.segment.flags.contains(Flags::SYN) {
            // A set ECE would change the number of marks: without this flag the ends agree on classic ECN (RFC 9768 table 2).
            passing.segment.flags.remove(Flags::AE);
        }
        self.pay(passing);
        if passing.segment.len == 0 || passing.segment.probe != Probe::No {
            return Verdict::Forward;
        }
        let port = passing.port;
        let outlet = self.outlets.entry(port.link).or_insert(Outlet {
            port,
            before: 0.0,
            judged: now,
            told_of: 0.0,
            due: 0.0,
            severe: false,
        });
        outlet.port = port;
        if now >= outlet.judged + self.config.interval {
            outlet.judge(&self.config, now);
        }
        let severe = outlet.severe;
        // Low-priority packets are dropped first, and the drop itself is the signal.
        if self.config.drops && severe && passing.segment.low_priority {
            self.dropped += 1;
            return Verdict::Absorb;
        }
        if outlet.tells_this_one() { self.tell(now, passing, severe) } else { Verdict::Forward }
    }

    /// Signals congestion to this packet's connection.
    fn tell(&mut self, now: Instant, passing: &mut Passing<'_>, severe: bool) -> Verdict {
        let backward = match self.config.tells {
            Tells::Receiver => false,
            Tells::Sender => true,
            Tells::Graded => severe,
        };
        match (passing.segment.ecn, passing.connection) {
            (EcnField::NotCapable, _) if self.config.drops => {
                self.dropped += 1;
                return Verdict::Absorb;
            }
            (EcnField::NotCapable, _) => {}
            (_, Some(connection)) if backward => {
                *self.owed[passing.direction as usize].heard(connection, now) = true;
            }
            _ => {
                passing.segment.ecn = EcnField::Congested;
                self.forward += 1;
            }
        }
        Verdict::Forward
    }

    /// Adds a pending signal to an ACK on its way to the sender.
    fn pay(&mut self, passing: &mut Passing<'_>) {
        let data = passing.direction.opposite() as usize;
        let acknowledges =
            passing.segment.flags.contains(Flags::ACK) && !passing.segment.flags.contains(Flags::SYN);
        let Some(connection) = passing.connection.filter(|_| acknowledges) else { return };
        let told = self.owed[data].get_mut(connection).is_some_and(std::mem::take);
        if told {
            passing.segment.flags.set(Flags::ECE, true);
            self.backward += 1;
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("marked_forward", self.forward),
            ("marked_backward", self.backward),
            ("dropped_by_rule", self.dropped),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use crate::ack::bare;
    use crate::fixture::{at_ms, pass};
    use bentpipe_base::Segment;

    const CONFIG: FuzzyConfig = FuzzyConfig {
        room: 100,
        target: 0.5,
        interval: bentpipe_base::Duration::from_millis(10),
        most: 0.2,
        tells: Tells::Receiver,
        drops: false,
    };

    #[test]
    fn degrees_add_up_to_one_and_peak_where_they_should() {
        let peaks = [0.0, 0.5, 1.0];
        for (value, expected) in [
            (-1.0, [1.0, 0.0, 0.0]),
            (0.0, [1.0, 0.0, 0.0]),
            (0.25, [0.5, 0.5, 0.0]),
            (0.5, [0.0, 1.0, 0.0]),
            (0.75, [0.0, 0.5, 0.5]),
            (2.0, [0.0, 0.0, 1.0]),
        ] {
            assert_eq!(degrees(value, peaks), expected, "{value}");
        }
    }

    /// Half right, half long, and stable: (0.2 + 0.6) / 2 of the maximum. With half stable and half rising: (0.2 + 0.5 + 0.6 + 1)
    /// / 4.
    #[test]
    fn the_rules_are_weighted_by_how_far_they_apply() {
        let length = degrees(0.75, [0.0, 0.5, 1.0]);
        assert!((conclude(length, [0.0, 1.0, 0.0]) - 0.4).abs() < 1e-12);
        assert!((conclude(length, [0.0, 0.5, 0.5]) - 0.575).abs() < 1e-12);
        assert_eq!(conclude([1.0, 0.0, 0.0], [0.5, 0.5, 0.0]), 0.0, "a short queue that falls");
    }

    /// Passes 1000 data packets, one per millisecond from `second` on, before a queue of `waiting` packets. Returns the numbers
    /// forwarded and marked.
    fn told(fuzzy: &mut Fuzzy, second: u64, waiting: u32, packet: Segment) -> (usize, usize) {
        let (mut passed, mut marked) = (0, 0);
        for ms in 1000 * second..1000 * (second + 1) {
            let mut segment = packet;
            if fuzzy.handle(at_ms(ms), &mut pass(&mut segment, Direction::Forward, waiting))
                == Verdict::Forward
            {
                passed += 1;
                marked += usize::from(segment.ecn == EcnField::Congested);
            }
        }
        (passed, marked)
    }

    fn data(ecn: EcnField) -> Segment {
        Segment { seq: 1, len: 1000, flags: Flags::ACK, ecn, ..Segment::default() }
    }

    /// A queue at its target is right and stable: 20 % of the maximum of 20 %.
    #[test]
    fn a_queue_at_its_target_marks_a_twenty_fifth() {
        let mut fuzzy = Fuzzy::new(CONFIG);
        let (passed, marked) = told(&mut fuzzy, 0, 50, data(EcnField::Capable));
        // At the first decision the queue rises from zero.
        assert!(passed == 1000 && (39..=42).contains(&marked), "{marked}");
        assert_eq!(told(&mut fuzzy, 2, 0, data(EcnField::Capable)).1, 0, "a short queue");
        assert_eq!(told(&mut fuzzy, 4, 100, data(EcnField::NotCapable)), (1000, 0), "who knows no marks");
    }

    #[test]
    fn the_sender_is_told_by_the_next_ack_and_once() {
        let mut fuzzy = Fuzzy::new(FuzzyConfig { tells: Tells::Graded, ..CONFIG });
        assert_eq!(
            told(&mut fuzzy, 0, 100, data(EcnField::Capable)).1,
            0,
            "severe: none through the receiver"
        );
        let echoes = [(); 2].map(|()| {
            let mut ack = bare(1001);
            fuzzy.handle(at_ms(1000), &mut pass(&mut ack, Direction::Reverse, 0));
            ack.flags.contains(Flags::ECE)
        });
        assert_eq!(echoes, [true, false]);
        let mut mild = Fuzzy::new(FuzzyConfig { tells: Tells::Graded, ..CONFIG });
        assert!(told(&mut mild, 0, 50, data(EcnField::Capable)).1 > 30);
        assert_eq!(mild.counters()[1].1, 0);
    }

    #[test]
    fn what_cannot_be_marked_is_dropped_and_what_is_worth_little_first() {
        let mut fuzzy = Fuzzy::new(FuzzyConfig { drops: true, ..CONFIG });
        let (passed, _) = told(&mut fuzzy, 0, 100, data(EcnField::NotCapable));
        assert!((870..=890).contains(&passed), "{passed}: long and steady, 0.6 of a fifth are dropped");
        let low = Segment { low_priority: true, ..data(EcnField::NotCapable) };
        assert!(told(&mut fuzzy, 1, 100, low).0 < 15);
        assert_eq!(told(&mut Fuzzy::new(CONFIG), 0, 100, low).0, 1000);
    }
}
