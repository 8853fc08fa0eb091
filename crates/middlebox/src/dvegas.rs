//! The queue of DVegas: in each frame it signals to the adjacent sender of a split connection if there is room.
//!
//! L. Wu, F. Peng, V. C. M. Leung, "Dynamic congestion control to improve performance of TCP split-connections over satellite links",
//! IEEE PIMRC 2004.
//!
//! Signals are carried by ACKs that pass to the sender, so this node must be adjacent to the sending proxy. Only abstracts were
//! available: `papers/dvegas.md` lists the reconstructed parts.

use std::collections::BTreeMap;

use bentpipe_base::{Extension, Instant};
use bentpipe_cc::dvegas::Signal;

use crate::passing::DataStream;
use crate::table::Table;
use crate::{DVegasConfig, Direction, Passing, Port, Verdict};

/// Fraction of the capacity from which the senders must stop.
const NEARLY_FULL: f64 = 0.9;

/// A node with DVegas queues.
#[derive(Clone, Debug)]
pub struct DVegas {
    config: DVegasConfig,
    outlets: BTreeMap<u32, Outlet>,
    /// Outgoing link of each connection's data, by direction of the data.
    ways: [Table<Option<u32>>; 2],
    signals: u64,
}

/// Queue of an outgoing link.
#[derive(Clone, Debug)]
struct Outlet {
    /// State at the last packet, which is included.
    port: Port,
    seen: Instant,
    /// Senders of data, with the time of their last packet.
    active: BTreeMap<DataStream, Instant>,
    frame_ends: Instant,
    signal: Signal,
    stopped: bool,
}

impl Outlet {
    /// Returns the queued packets, assuming no arrivals since the last one.
    fn waiting(&self, now: Instant) -> f64 {
        let drained = self.port.rate.bytes_in(now.since(self.seen)) as f64;
        let bytes = self.port.waiting_bytes as f64;
        if bytes <= 0.0 {
            return 0.0;
        }
        f64::from(self.port.waiting_packets) * (1.0 - drained / bytes).max(0.0)
    }

    /// Decides on the signal at the end of a frame.
    fn judge(&mut self, config: &DVegasConfig, now: Instant) {
        // A sender that was silent for a round trip of the satellite has nothing to send.
        let silent = self.port.delay_one_way * 2 + config.frame * 2;
        self.active.retain(|_, heard| *heard + silent > now);
        let waiting = self.waiting(now);
        let active = self.active.len().max(1) as f64;
        let share = waiting / active;
        self.signal = if share < config.low {
            Signal::Up
        } else if share > config.high {
            Signal::Down
        } else {
            Signal::Hold
        };
        self.stopped &= waiting >= config.high * active;
        self.frame_ends = now + config.frame;
    }
}

impl DVegas {
    /// Makes a node without state.
    pub(crate) fn new(config: DVegasConfig) -> Self {
        Self { config, outlets: BTreeMap::new(), ways: Default::default(), signals: 0 }
    }

    pub(crate) fn handle(&mut self, now: Instant, passing: &mut Passing<'_>) -> Verdict {
        let Some(connection) = passing.connection else { return Verdict::Forward };
        let reverse = passing.direction == Direction::Reverse;
        if passing.segment.len > 0 {
            self.note_data(now, DataStream { connection, reverse }, passing);
        } else if passing.segment.extension == Extension::Value(0) {
            let way = self.ways[usize::from(!reverse)].get_mut(connection).copied().flatten();
            if let Some(outlet) = way.and_then(|link| self.outlets.get_mut(&link)) {
                if now >= outlet.frame_ends {
                    outlet.judge(&self.config, now);
                }
                let signal = if outlet.stopped { Signal::Stop } else { outlet.signal };
                passing.segment.extension = Extension::Value(signal.value());
                self.signals += 1;
            }
        }
        Verdict::Forward
    }

    fn note_data(&mut self, now: Instant, stream: DataStream, passing: &Passing<'_>) {
        let port = passing.port;
        *self.ways[usize::from(stream.reverse)].heard(stream.connection, now) = Some(port.link);
        let outlet = self.outlets.entry(port.link).or_insert_with(|| Outlet {
            port,
            seen: now,
            active: BTreeMap::new(),
            frame_ends: now,
            signal: Signal::Up,
            stopped: false,
        });
        outlet.active.insert(stream, now);
        outlet.port = Port {
            waiting_bytes: port.waiting_bytes + u64::from(passing.size),
            waiting_packets: port.waiting_packets + 1,
            ..port
        };
        outlet.seen = now;
        if now >= outlet.frame_ends {
            outlet.judge(&self.config, now);
        }
        let nearly_full = NEARLY_FULL * f64::from(self.config.room);
        outlet.stopped |= f64::from(port.waiting_packets) > nearly_full;
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("signals", self.signals)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Connection;
    use crate::fixture::{at_ms, pass};
    use bentpipe_base::Segment;

    /// Returns the signal on a connection's ACK, after `flows` connections sent one packet each to a queue of `waiting` packets.
    fn signal(flows: u64, waiting: u32) -> Option<Signal> {
        let mut node = DVegas::new(DVegasConfig::default());
        for connection in 0..flows {
            let mut data = Segment { len: 960, ..Segment::default() };
            let mut passing = pass(&mut data, Direction::Forward, waiting - 1);
            passing.connection = Some(Connection(connection));
            node.handle(at_ms(100), &mut passing);
        }
        let mut ack = Segment { extension: Extension::Value(0), ..Segment::default() };
        let mut passing = pass(&mut ack, Direction::Reverse, 0);
        passing.connection = Some(Connection(0));
        // One frame later; the queue of 1 Mbit/s has sent three packets in it.
        node.handle(at_ms(124), &mut passing);
        match ack.extension {
            Extension::Value(value) => Signal::from_value(value),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_share_of_each_sender_decides() {
        assert_eq!(signal(2, 6), Some(Signal::Up));
        assert_eq!(signal(2, 12), Some(Signal::Hold));
        assert_eq!(signal(2, 25), Some(Signal::Down));
        assert_eq!(signal(1, 50), Some(Signal::Stop));
    }
}
