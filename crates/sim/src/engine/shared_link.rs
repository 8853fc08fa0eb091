//! Shared links: links that the packets of several logical processes pass.

use bentpipe_base::{Duration, Instant};
use bentpipe_net::Link;
use bentpipe_scenario::LinkId;

use crate::engine::key::{Class, Tie};
use crate::engine::message::{Crossing, Message, Onward};
use crate::ids::FlowId;
use crate::packet::handle::{Marks, PacketHandle};
use crate::packet::pool::PacketPool;

/// A shared link, with the messages before and behind it.
#[derive(Debug)]
pub(crate) struct SharedLink {
    /// Its number in the world, and its index among the shared links.
    pub id: LinkId,
    number: u32,
    pub link: Link<PacketHandle>,
    tie: Tie,
    pool: PacketPool,
    /// Messages that come to the link in a later window.
    waiting: Vec<Message>,
    /// Empty between windows; kept for their memory.
    coming: Vec<Message>,
    keys: Vec<(Instant, u64, u32)>,
    /// Messages that were let through in this window, by the process that they go to, in the order in which they arrive.
    passed: Vec<Vec<Message>>,
    /// Messages that were let through to other shared links.
    onward: Vec<Message>,
    /// Arrivals at the next shared link.
    pub events: u64,
    /// The flow of each data packet that was lost.
    pub lost: Vec<FlowId>,
}

impl SharedLink {
    /// A shared link, whose events have this salt.
    pub fn new(number: u32, (id, link): (LinkId, Link<PacketHandle>), salt: u32, processes: usize) -> Self {
        Self {
            id,
            number,
            link,
            tie: Tie { class: Class::Arrival, salt },
            pool: PacketPool::default(),
            waiting: Vec::new(),
            coming: Vec::new(),
            keys: Vec::new(),
            passed: (0..processes).map(|_| Vec::new()).collect(),
            onward: Vec::new(),
            events: 0,
            lost: Vec::new(),
        }
    }

    /// Time of the first message that has not been taken in behind the link, or waits before it.
    pub fn first_time(&self) -> Instant {
        let waiting = self.waiting.iter().map(|message| message.at);
        let passed = self.passed.iter().filter_map(|messages| Some(messages.first()?.at));
        waiting.chain(passed).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The messages of this window for a process.
    pub fn passed_to(&self, process: u32) -> &[Message] {
        &self.passed[process as usize]
    }

    /// Takes a message in that will be let through later.
    pub fn push(&mut self, message: Message) {
        self.waiting.push(message);
    }

    /// Takes out the messages for other shared links.
    pub fn take_onward(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.onward)
    }

    /// Lets all packets through that come before `limit`: of those that waited, and of those that each process has sent in this window.
    /// Packets that would arrive after `until` stay on the link.
    pub fn let_through(
        &mut self,
        (sent, crossings): (&[Vec<Message>], &[Crossing]),
        (limit, until): (Instant, Instant),
    ) {
        let is_for_this =
            |message: &&Message| crossings[message.crossing as usize].shared_link == self.number;
        let mut coming = std::mem::take(&mut self.coming);
        coming.append(&mut self.waiting);
        coming.extend(sent.iter().flatten().filter(is_for_this).cloned());
        // Of the same process and the same event, the packet that was sent first comes first.
        let mut keys = std::mem::take(&mut self.keys);
        keys.extend((0..).zip(&coming).map(|(place, message)| (message.at, message.rank, place)));
        keys.sort_unstable();
        self.passed.iter_mut().for_each(Vec::clear);
        for (at, _, place) in keys.drain(..) {
            let message = std::mem::take(&mut coming[place as usize]);
            if at < limit { self.pass(message, crossings, until) } else { self.waiting.push(message) }
        }
        coming.clear();
        (self.coming, self.keys) = (coming, keys);
        self.lose(crossings, until.min(limit - Duration::from_nanos(1)));
    }

    fn pass(&mut self, message: Message, crossings: &[Crossing], until: Instant) {
        let Message { at, crossing, handle, packet, .. } = message;
        let handle = handle.at((self.pool.insert(packet), crossing));
        if let Some(passing) = self.link.pass(at, handle, until) {
            let (at, handle) = (passing.at, passing.packet);
            let packet = self.pool.take(handle.index());
            let message = Message { at, rank: self.tie.rank(at), crossing, handle, packet };
            match crossings[crossing as usize].onward {
                Onward::Process(process, _) => self.passed[process as usize].push(message),
                Onward::Crossing(_) => {
                    self.events += 1;
                    self.onward.push(message);
                }
            }
        } else {
            self.reclaim_dropped(crossings);
        }
    }

    /// Counts and releases the packets that the link dropped.
    fn reclaim_dropped(&mut self, crossings: &[Crossing]) {
        while let Some(dropped) = self.link.poll_dropped() {
            let handle = dropped.packet;
            self.pool.release(handle.index());
            if handle.has(Marks::DATA) {
                self.lost.push(crossings[handle.position()].flow);
            }
        }
    }

    /// Loses the packets that would have arrived by `now`, were it not for a transmission error. All others were let through.
    fn lose(&mut self, crossings: &[Crossing], now: Instant) {
        let arrival = self.link.deliver(now);
        debug_assert_eq!(arrival, None, "a packet that arrives was let through");
        self.reclaim_dropped(crossings);
    }

    /// Nothing is executed after `now`.
    pub fn end(&mut self, crossings: &[Crossing], now: Instant) {
        self.link.backlog(now);
        self.lose(crossings, now);
        debug_assert_eq!(self.pool.used(), self.link.packets_inside(), "every packet is on the link");
    }
}
