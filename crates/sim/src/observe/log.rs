//! Sorts observations in the order of events, which differs from the order of execution.

use bentpipe_base::Instant;
use bentpipe_check::{HostEvent, LinkActivity};
use bentpipe_scenario::LinkId;
use bentpipe_trace::Event;

use crate::ids::{EndId, PacketIndex};
use crate::scheduler::key::EventKey;

/// Something that happened somewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Observation {
    AtEnd(EndId, HostEvent),
    OfPlain(EndId, Event),
    AtLink(LinkId, LinkActivity),
}

/// Keeps observations until all earlier ones are known.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    /// Key and place of each observation, in the order in which they were reported.
    order: Vec<(EventKey, u32)>,
    observations: Vec<Observation>,
    /// Everything before this has been read.
    read_until: Instant,
    /// Number of observations that were kept at the last reading.
    kept: usize,
    /// The number of the packet at each index of the pool. An index is used again by packets of earlier events, a number never is.
    numbers: Vec<PacketIndex>,
    /// Number of packets numbered so far.
    numbered: PacketIndex,
}

/// Number of new observations after which observations are read together.
const READ_TOGETHER: usize = 4096;

impl EventLog {
    /// Adds an observation of an event.
    pub fn push(&mut self, key: EventKey, observation: Observation) {
        debug_assert!(
            key.time >= self.read_until,
            "{key:?} is told too late: everything before {:?} has been read",
            self.read_until
        );
        self.order.push((key, self.observations.len() as u32));
        self.observations.push(observation);
    }

    /// Returns a unique number for the new packet at an index of the pool.
    pub fn number(&mut self, index: PacketIndex) -> PacketIndex {
        let needed = self.numbers.len().max(index as usize + 1);
        self.numbers.resize(needed, 0);
        self.numbered = self.numbered.wrapping_add(1);
        self.numbers[index as usize] = self.numbered;
        self.numbered
    }

    /// The number of the packet at an index of the pool.
    pub fn number_of(&self, index: PacketIndex) -> PacketIndex {
        self.numbers[index as usize]
    }

    /// Gives packets their numbers in place of their indices.
    pub fn identify(&mut self, activity: &mut LinkActivity) {
        match activity {
            LinkActivity::Copied { original, copy } => {
                (*original, *copy) = (self.number_of(*original), self.number(*copy));
            }
            // The departure of this packet was not reported.
            LinkActivity::Offered { packet, .. } if packet.segment.is_none() => {
                packet.number = self.number(packet.number);
            }
            LinkActivity::Offered { packet, .. }
            | LinkActivity::Delivered(packet)
            | LinkActivity::TakenBack(packet)
            | LinkActivity::Lost { packet, .. } => packet.number = self.number_of(packet.number),
        }
    }

    /// True if enough observations were added: the kept ones are sorted once per as many new ones.
    pub fn is_due(&self) -> bool {
        self.order.len() >= 2 * self.kept + READ_TOGETHER
    }

    /// Passes the observations before a time to `reader` in order, and keeps the others.
    pub fn read(&mut self, until: Instant, mut reader: impl FnMut(Instant, &Observation)) {
        self.read_until = until;
        // Observations with the same key keep the order in which they were reported.
        self.order.sort_unstable();
        let count = self.order.partition_point(|(key, _)| key.time < until);
        for (key, place) in &self.order[..count] {
            reader(key.time, &self.observations[*place as usize]);
        }
        let kept = self.order[count..].iter().map(|(_, place)| self.observations[*place as usize]).collect();
        self.observations = kept;
        self.order.drain(..count);
        for (place, (_, kept)) in (0..).zip(&mut self.order) {
            *kept = place;
        }
        self.kept = self.order.len();
    }
}
