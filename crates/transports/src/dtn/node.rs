use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bentpipe_base::{Duration, Instant};

use super::adapter::Adapter;
use super::bundle::{Bundle, Name, Payload, Pdu, Record};
use super::{Hop, Policy, RouterConfig};
use crate::counts::Counts;
use crate::outbox::{Fragment, Message, Outbox};
use crate::ranges::Ranges;
use crate::{Config, Progress};

/// Index of the hop towards the source, and of its port.
const BACK: usize = 0;
/// Index of the hop towards the destination, and of its port.
const ONWARD: usize = 1;
/// Position of the source.
const SOURCE: u8 = 0;

/// Counters of an agent for application bundles.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Number of bundles created at this node.
    pub made: u64,
    /// Bundles received completely, repetitions included.
    pub received: u64,
    /// Bundles sent and released from the store.
    pub released: u64,
    /// Bundles delivered to the application.
    pub delivered: u64,
    /// Sum of the times from creation to delivery.
    pub transfer_sum: Duration,
    /// Bundles whose delivery is confirmed at the source.
    pub confirmed: u64,
    /// Sum of the times from creation to confirmation.
    pub confirmation_sum: Duration,
    /// Bundles whose custody was taken over from another custodian.
    pub accepted: u64,
    /// Bundles refused for lack of storage.
    pub refused: u64,
    /// Bundles dropped for lack of storage.
    pub dropped: u64,
    /// Bundles deleted at the end of their lifetime.
    pub expired: u64,
    /// Bundles sent again because no custodian answered.
    pub sent_again: u64,
    /// Maximum number of bytes stored.
    pub most_stored_bytes: u64,
}

/// A stored bundle.
#[derive(Clone, Copy, Debug)]
struct Stored {
    bundle: Bundle,
    /// Time at which it is sent again.
    retry_at: Instant,
}

impl Stored {
    fn due(&self) -> (Instant, Name) {
        (self.retry_at.min(self.bundle.expires), self.bundle.name)
    }
}

/// An agent of the bundle layer.
#[derive(Debug)]
pub struct Node {
    policy: Policy,
    place: u8,
    last: u8,
    router: RouterConfig,
    ways: [Option<Adapter>; 2],
    outbox: Outbox,
    next_number: u64,
    stored: BTreeMap<Name, Stored>,
    stored_bytes: u64,
    /// Times at which bundles need action.
    due: BTreeSet<(Instant, Name)>,
    /// Application bundles taken into custody or delivered at this node.
    taken: Ranges,
    delivered: VecDeque<Fragment>,
    /// Bundles at the source without a final state, with their creation time and the time after which no report can arrive.
    unsettled: BTreeMap<u64, (Instant, Instant)>,
    /// Bundles about which no report can arrive any more.
    lost: BTreeSet<u64>,
    counters: Counters,
}

/// A stop of a path.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// Position on the path, counted from 0.
    pub place: u8,
    /// The last position of the path.
    pub last: u8,
    /// Configuration of the router at the stop.
    pub router: RouterConfig,
}

impl Node {
    /// Makes the agent at a stop of a path, with the hops back and onward.
    pub fn new(config: Config, policy: Policy, stop: Stop, hops: [Option<Hop>; 2]) -> Self {
        let Stop { place, last, router } = stop;
        let [back, onward] = hops;
        let adapter = |hop: Option<Hop>, opens| {
            hop.map(|hop| Adapter::new(hop, config.packet_bytes, policy.convergence, opens))
        };
        Self {
            policy,
            place,
            last,
            router,
            ways: [adapter(back, false), adapter(onward, true)],
            outbox: Outbox::default(),
            next_number: 0,
            stored: BTreeMap::new(),
            stored_bytes: 0,
            due: BTreeSet::new(),
            taken: Ranges::default(),
            delivered: VecDeque::new(),
            unsettled: BTreeMap::new(),
            lost: BTreeSet::new(),
            counters: Counters::default(),
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn progress(&self) -> Progress {
        let mut counts = Counts::default();
        self.ways.iter().flatten().for_each(|way| counts += way.counts());
        let settled = self.outbox.is_empty() && self.unsettled.is_empty();
        Progress {
            sent_packets: counts.sent_packets,
            repeated_packets: counts.repeated_packets,
            timeouts: counts.timeouts + self.counters.sent_again,
            fresh_packets: counts.fresh_packets,
            control_packets: counts.control_packets,
            control_bytes: counts.control_bytes,
            srtt: self.ways[ONWARD].as_ref().and_then(Adapter::srtt),
            all_acknowledged: settled && self.lost.is_empty(),
            incomplete: (settled && !self.lost.is_empty()).then_some("expired"),
            failed: None,
        }
    }

    pub(crate) fn write(&mut self, now: Instant, message: Message) {
        self.outbox.push(message);
        self.load(now);
    }

    /// Creates bundles at the source while there is storage.
    fn load(&mut self, now: Instant) {
        let most = u64::from(self.policy.bundle_bytes);
        while self.stored_bytes == 0 || self.stored_bytes + most <= self.policy.store_bytes {
            let Some(fragment) = self.outbox.fragment(self.policy.bundle_bytes) else { return };
            self.counters.made += 1;
            let custodian = self.policy.custody.then_some(SOURCE);
            let bundle = self.make(now, self.last, Payload::Data(fragment));
            let bundle = Bundle { custodian, wants_report: self.policy.report, ..bundle };
            let forgotten_at = bundle.expires + self.policy.lifetime;
            self.unsettled.insert(bundle.name.number, (now, forgotten_at));
            self.keep(bundle);
        }
    }

    fn make(&mut self, now: Instant, to: u8, payload: Payload) -> Bundle {
        let name = Name { source: self.place, number: self.next_number };
        self.next_number += 1;
        let expires = now + self.policy.lifetime;
        Bundle { name, to, created: now, expires, custodian: None, wants_report: false, payload }
    }

    /// Stores a bundle until it was sent.
    fn keep(&mut self, bundle: Bundle) {
        let stored = Stored { bundle, retry_at: Instant::FAR_FUTURE };
        self.due.insert(stored.due());
        if self.stored.insert(bundle.name, stored).is_none() && bundle.is_data() {
            self.stored_bytes += u64::from(bundle.bytes());
            self.counters.most_stored_bytes = self.counters.most_stored_bytes.max(self.stored_bytes);
        }
        let side = self.side(bundle.to);
        if let Some(way) = &mut self.ways[side] {
            way.offer(bundle);
        }
    }

    fn side(&self, to: u8) -> usize {
        if to > self.place { ONWARD } else { BACK }
    }

    /// Removes a bundle from the store, if it is there.
    fn forget(&mut self, name: Name) -> Option<Bundle> {
        let stored = self.stored.remove(&name)?;
        self.due.remove(&stored.due());
        if stored.bundle.is_data() {
            self.stored_bytes -= u64::from(stored.bundle.bytes());
        }
        let side = self.side(stored.bundle.to);
        if let Some(way) = &mut self.ways[side] {
            way.withdraw(name);
        }
        Some(stored.bundle)
    }

    /// Releases a bundle that need not be stored any more.
    fn release(&mut self, now: Instant, name: Name) {
        let Some(bundle) = self.forget(name) else { return };
        self.counters.released += u64::from(bundle.is_data());
        if self.place == SOURCE && name.source == SOURCE && !bundle.wants_report {
            self.unsettled.remove(&name.number);
        }
        self.load(now);
    }

    /// Sends a record about a bundle to another agent, or handles its own.
    fn tell(&mut self, now: Instant, to: u8, record: Record) {
        if to == self.place {
            self.read(now, record);
        } else {
            let bundle = self.make(now, to, Payload::Record(record));
            self.keep(bundle);
        }
    }

    /// Deletes a bundle.
    fn give_up(&mut self, now: Instant, bundle: Bundle) {
        if bundle.is_data() && (bundle.wants_report || self.place == SOURCE) {
            self.tell(now, bundle.name.source, Record::Deleted(bundle.name));
        }
    }

    /// Handles a record from another agent.
    fn read(&mut self, now: Instant, record: Record) {
        match record {
            Record::Accepted(name) => self.release(now, name),
            Record::Refused(name) => self.retry_later(now, name),
            Record::Delivered(name, _) => {
                self.lost.remove(&name.number);
                if let Some((created, _)) = self.unsettled.remove(&name.number) {
                    self.counters.confirmed += 1;
                    self.counters.confirmation_sum += now.since(created);
                }
            }
            Record::Deleted(name) => {
                if self.unsettled.remove(&name.number).is_some() {
                    self.lost.insert(name.number);
                }
            }
        }
    }

    fn retry_later(&mut self, now: Instant, name: Name) {
        let Some(stored) = self.stored.get_mut(&name) else { return };
        let side = if stored.bundle.to > self.place { ONWARD } else { BACK };
        let Some(way) = &self.ways[side] else { return };
        self.due.remove(&stored.due());
        stored.retry_at = way.after(now, self.policy.custody_timer);
        self.due.insert(stored.due());
    }

    pub(crate) fn handle(&mut self, now: Instant, port: u8, pdu: &Pdu) {
        let Some(way) = self.ways.get_mut(usize::from(port)).and_then(Option::as_mut) else { return };
        way.handle(now, pdu);
        self.settle(now);
    }

    /// Handles arrivals and completed transmissions of the hops.
    fn settle(&mut self, now: Instant) {
        for side in [BACK, ONWARD] {
            while let Some(bundle) = self.ways[side].as_mut().and_then(|way| way.poll_arrival(now)) {
                self.take(now, bundle);
            }
            while let Some(name) = self.ways[side].as_mut().and_then(Adapter::poll_done) {
                let has_custody = |stored: &Stored| stored.bundle.custodian == Some(self.place);
                if self.stored.get(&name).is_some_and(has_custody) {
                    self.retry_later(now, name);
                } else {
                    self.release(now, name);
                }
            }
        }
    }

    /// Handles the complete arrival of a bundle.
    fn take(&mut self, now: Instant, mut bundle: Bundle) {
        self.counters.received += u64::from(bundle.is_data());
        if bundle.expires <= now {
            self.counters.expired += u64::from(bundle.is_data());
            return self.give_up(now, bundle);
        }
        if bundle.to == self.place {
            return match bundle.payload {
                Payload::Data(fragment) => self.deliver(now, bundle, fragment),
                Payload::Record(record) => self.read(now, record),
            };
        }
        if let Some(custodian) = bundle.custodian.filter(|_| self.router.custody) {
            let name = bundle.name;
            if self.taken.contains(name.number) {
                return self.tell(now, custodian, Record::Accepted(name));
            }
            if self.stored_bytes + u64::from(bundle.bytes()) > self.router.store_bytes {
                self.counters.refused += 1;
                return self.tell(now, custodian, Record::Refused(name));
            }
            self.taken.insert(name.number);
            self.counters.accepted += 1;
            self.tell(now, custodian, Record::Accepted(name));
            bundle.custodian = Some(self.place);
        } else if self.stored.contains_key(&bundle.name) {
            return;
        } else if bundle.is_data() && !self.make_room(now, &bundle) {
            self.counters.dropped += 1;
            return self.give_up(now, bundle);
        }
        self.keep(bundle);
    }

    /// Delivers a bundle to the application once, and reports it at every arrival.
    fn deliver(&mut self, now: Instant, bundle: Bundle, fragment: Fragment) {
        if self.taken.insert(bundle.name.number) {
            self.delivered.push_back(fragment);
            self.counters.delivered += 1;
            self.counters.transfer_sum += now.since(bundle.created);
        }
        if let Some(custodian) = bundle.custodian {
            self.tell(now, custodian, Record::Accepted(bundle.name));
        }
        if bundle.wants_report {
            self.tell(now, bundle.name.source, Record::Delivered(bundle.name, now));
        }
    }

    /// Drops bundles without custody to store another one, those that expire first. Returns false if the new bundle would be
    /// dropped.
    fn make_room(&mut self, now: Instant, bundle: &Bundle) -> bool {
        while self.stored_bytes + u64::from(bundle.bytes()) > self.router.store_bytes {
            let kept = self.stored.values().map(|stored| stored.bundle);
            let free = kept.filter(|kept| kept.is_data() && kept.custodian != Some(self.place));
            let first = free.min_by_key(|kept| (kept.expires, kept.name));
            let Some(victim) = first.filter(|victim| victim.expires < bundle.expires) else { return false };
            self.forget(victim.name);
            self.counters.dropped += 1;
            self.give_up(now, victim);
        }
        true
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for way in self.ways.iter_mut().flatten() {
            way.handle_timeout(now);
        }
        while let Some(&(at, name)) = self.due.first()
            && at <= now
        {
            self.come_due(now, name);
        }
        // Bundles are forgotten in the order of their creation.
        while let Some((&number, &(_, forgotten_at))) = self.unsettled.first_key_value()
            && forgotten_at <= now
        {
            self.unsettled.remove(&number);
            self.lost.insert(number);
        }
        self.settle(now);
    }

    /// Handles a bundle that must be sent again or has expired.
    fn come_due(&mut self, now: Instant, name: Name) {
        let Some(stored) = self.stored.get_mut(&name) else { return };
        if stored.bundle.expires <= now {
            if let Some(bundle) = self.forget(name) {
                self.counters.expired += u64::from(bundle.is_data());
                self.give_up(now, bundle);
            }
            return self.load(now);
        }
        self.due.remove(&stored.due());
        stored.retry_at = Instant::FAR_FUTURE;
        self.due.insert(stored.due());
        let bundle = stored.bundle;
        self.counters.sent_again += 1;
        let side = self.side(bundle.to);
        if let Some(way) = &mut self.ways[side] {
            way.offer_again(bundle);
        }
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        let ways = self.ways.iter().flatten().map(Adapter::next_timeout);
        let due = self.due.first().map(|(at, _)| *at);
        let forgotten = self.unsettled.first_key_value().map(|(_, (_, at))| *at);
        ways.chain(due).chain(forgotten).min().unwrap_or(Instant::FAR_FUTURE)
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<(u8, Pdu)> {
        let sides = [BACK, ONWARD];
        let sent = sides.into_iter().find_map(|side| {
            let pdu = self.ways[side].as_mut()?.poll_transmit(now)?;
            Some((side as u8, pdu))
        });
        // Over bare datagrams a bundle is done when it was sent.
        self.settle(now);
        sent
    }

    pub(crate) fn poll_delivery(&mut self) -> Option<Fragment> {
        self.delivered.pop_front()
    }
}
