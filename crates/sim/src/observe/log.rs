//! Puts what happened in the order of events, which is not the order in which a world is executed.

use bentpipe_base::Instant;
use bentpipe_check::{HostEvent, LinkActivity};
use bentpipe_scenario::LinkId;
use bentpipe_trace::Event;

use crate::engine::key::EventKey;
use crate::ids::{EndId, FlowId, PacketIndex};

/// Something that happened somewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Observation {
    AtEnd(EndId, HostEvent),
    OfPlain(FlowId, Event),
    AtLink(LinkId, LinkActivity),
}

/// Keeps what happened until everything before it is known.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    /// The key of each observation and where it lies, in the order in which they were told.
    order: Vec<(EventKey, u32)>,
    observations: Vec<Observation>,
    /// Everything before this has been read.
    read_until: Instant,
    /// So many observations were kept when the log was last read.
    kept: usize,
    /// The number of the packet at each index of the pool. An index is used again by packets of earlier events, a number never is.
    numbers: Vec<PacketIndex>,
    /// So many packets were numbered.
    numbered: PacketIndex,
}

/// Observations are read together when so many have been added to those that were kept.
const READ_TOGETHER: usize = 4096;

impl EventLog {
    /// Notes what happened in an event.
    pub fn push(&mut self, key: EventKey, observation: Observation) {
        debug_assert!(
            key.time >= self.read_until,
            "{key:?} is told too late: everything before {:?} has been read",
            self.read_until
        );
        self.order.push((key, self.observations.len() as u32));
        self.observations.push(observation);
    }

    /// A number of its own for the new packet at an index of the pool.
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
            // Nobody told of its departure.
            LinkActivity::Offered { packet, .. } if packet.segment.is_none() => {
                packet.number = self.number(packet.number);
            }
            LinkActivity::Offered { packet, .. }
            | LinkActivity::Delivered(packet)
            | LinkActivity::TakenBack(packet)
            | LinkActivity::Lost { packet, .. } => packet.number = self.number_of(packet.number),
        }
    }

    /// True if enough has been added that reading pays: what is kept is sorted once for as many that are added.
    pub fn is_due(&self) -> bool {
        self.order.len() >= 2 * self.kept + READ_TOGETHER
    }

    /// Hands over what happened before a time, in order; the rest is kept.
    pub fn read(&mut self, until: Instant, mut reader: impl FnMut(Instant, &Observation)) {
        self.read_until = until;
        // What has the same key keeps the order in which it was told.
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
