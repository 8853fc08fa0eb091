//! The simulation: its state, and the event loop that calls the other rooms.

use bentpipe_base::{Duration, Instant};
use bentpipe_net::Link;
use bentpipe_outcome::{GoodputSampler, convergence};
use bentpipe_scenario::{LinkId, Transport};

use crate::app::session::AgentPacket;
use crate::engine::key::{EventKey, EventTarget};
use crate::engine::message::Message;
use crate::engine::queue::EventQueue;
use crate::engine::targets::Targets;
use crate::ids::EndId;
use crate::network::core::NetworkCore;
use crate::network::hop::Hop;
use crate::network::port::Port;
use crate::observe::monitor::Monitor;
use crate::options::{Ended, RunOptions};
use crate::packet::handle::PacketHandle;
use crate::packet::pool::{PacketContents, PacketPool};
use crate::world::{End, Flow, World};

/// Events between two looks at the stop flag, the event budget and the progress report.
const EVENTS_PER_CHECK: u64 = 1 << 14;

/// A world, or a logical process of one, while it is executed.
pub(crate) struct Simulation<M> {
    pub links: Vec<Link<PacketHandle>>,
    pub routes: Vec<Hop>,
    pub flows: Vec<Flow>,
    pub ends: Vec<End>,
    /// Pairs of ends that no connection uses, by their sending end.
    pub vacant: Vec<EndId>,
    pub core: NetworkCore,
    /// Where packets of other logical processes come in, and the packets that go out to them.
    pub ports: Vec<Port>,
    pub sent: Vec<Message>,
    /// Packets of agents, by the indices of their contents.
    pub packets: Vec<Option<AgentPacket>>,
    pub pool: PacketPool,
    /// The packet that is being written or read.
    pub scratch: PacketContents,
    pub queue: EventQueue,
    pub targets: Targets,
    pub until: Instant,
    /// No packet is offered to a link ahead of time that would arrive after this: the end, or the next change of the routes.
    pub horizon: Instant,
    pub now: Instant,
    /// The event that is being executed.
    pub key: EventKey,
    /// Arrivals at the far ends of links, and deadlines.
    pub events: u64,
    /// Samples the goodput of each flow.
    pub goodput: GoodputSampler,
    /// Bytes that all flows had delivered at each sample.
    pub delivered: Vec<u64>,
    pub monitor: M,
}

/// What a simulation leaves when it has ended, with the books of its flows closed.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    pub now: Instant,
    pub ended: Ended,
    pub links: Vec<Link<PacketHandle>>,
    pub flows: Vec<Flow>,
    pub core: NetworkCore,
    pub goodput: GoodputSampler,
    /// Bytes that all flows had delivered at each sample.
    pub delivered: Vec<u64>,
    pub events: u64,
    /// Packets on links.
    pub packets: usize,
}

impl<M: Monitor> Simulation<M> {
    /// A world at rest that will run until `until`. If it `chains` links, packets are offered to some of them ahead of time.
    pub fn new(world: World, until: Instant, monitor: M, chains: bool) -> Self {
        let World { links, salts, routes, ports, entries, flows, core, .. } = world;
        let mut queue = EventQueue::new(until);
        let targets = Targets::add(&mut queue, (&flows, &core), (&ports, salts));
        targets.schedule(&mut queue, &core);
        for (flow, state) in (0..).zip(&flows).filter(|(_, state)| state.sides[0]) {
            queue.schedule(flow, state.start);
        }
        // What grows bit by bit would leave holes in memory behind it.
        let connections = flows.iter().filter(|flow| flow.transport == Transport::Tcp).count();
        let ends = Vec::with_capacity(2 * (connections + core.legs.len()));
        let mut simulation = Self {
            links,
            routes,
            flows,
            ends,
            vacant: Vec::new(),
            core,
            ports: ports.iter().map(|_| Port::default()).collect(),
            sent: Vec::new(),
            packets: Vec::new(),
            pool: PacketPool::default(),
            scratch: PacketContents::default(),
            queue,
            targets,
            until,
            horizon: until,
            now: Instant::ZERO,
            key: EventKey::NEVER,
            events: 0,
            goodput: GoodputSampler::default(),
            delivered: Vec::new(),
            monitor,
        };
        if chains {
            simulation.prepare_chains(entries);
        }
        simulation
    }

    /// Executes all events until the end.
    pub fn run(&mut self, options: &RunOptions<'_>) -> Ended {
        let budget = options.max_events.unwrap_or(u64::MAX);
        let mut turns = 0;
        loop {
            let pause_at = (turns + EVENTS_PER_CHECK).min(budget);
            while turns < pause_at {
                let Some(key) = self.queue.pop_before(Instant::FAR_FUTURE) else {
                    self.now = self.until;
                    return Ended::InTime;
                };
                turns += 1;
                self.dispatch(key);
            }
            if options.is_stopped() {
                return Ended::Stopped;
            }
            if turns >= budget {
                return Ended::OutOfEvents;
            }
            if let Some(progress) = options.progress {
                progress(self.now.as_secs_f64());
            }
        }
    }

    /// Executes all events before a time.
    pub fn run_until(&mut self, limit: Instant) {
        while let Some(key) = self.queue.pop_before(limit) {
            self.dispatch(key);
        }
    }

    /// Time of the next event.
    pub fn next_time(&mut self) -> Instant {
        self.queue.next_time()
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Executes an event.
    fn dispatch(&mut self, key: EventKey) {
        (self.now, self.key) = (key.time, key);
        let Targets { first_port, first_link, first_end, .. } = self.targets;
        match key.target {
            end if end >= first_end => self.check_deadline(end - first_end),
            link if link >= first_link => self.deliver(link - first_link),
            port if port >= first_port => self.deliver_port(port - first_port),
            other => self.dispatch_rare(other),
        }
    }

    /// An event of an application, a middlebox, a proxy, a shared medium or the routes, or a sample of goodput.
    fn dispatch_rare(&mut self, target: EventTarget) {
        if target == self.targets.sampler {
            return self.sample_goodput(target);
        }
        self.events += 1;
        if target < self.targets.first_middlebox {
            self.wake(target);
        } else if target < self.targets.first_proxy {
            self.wake_middlebox(target - self.targets.first_middlebox);
        } else if target < self.targets.routing {
            self.kill_proxy(target - self.targets.first_proxy);
        } else if target >= self.targets.first_medium {
            self.deliver_medium(target - self.targets.first_medium);
        } else {
            self.change_routes(self.now);
        }
    }

    /// Brings links and media up to date and closes the books of the flows: nothing is executed after `now`.
    pub fn finish(mut self, now: Instant, ended: Ended) -> (Finished, M) {
        self.now = now;
        for link in 0..self.links.len() {
            // Queues decide when they are asked.
            self.links[link].backlog(now);
            self.reclaim_dropped(link as LinkId);
        }
        self.settle_media(now);
        let packets = self.pool.used() - self.core.media.packets_inside();
        let on_links: usize = self.links.iter().map(Link::packets_inside).sum();
        let coming: usize = self.ports.iter().map(|port| port.coming.len()).sum();
        debug_assert_eq!(packets, on_links + coming, "every packet is on a link or comes in by a port");
        self.close_books();
        let Self { links, flows, core, goodput, delivered, events, monitor, .. } = self;
        (Finished { now, ended, links, flows, core, goodput, delivered, events, packets }, monitor)
    }

    /// Adds what the present connections counted to the books of their flows.
    fn close_books(&mut self) {
        let vacant = std::mem::take(&mut self.vacant);
        let mut ends = std::mem::take(&mut self.ends);
        let mut used = vec![true; ends.len()];
        for sender in vacant {
            used[sender as usize] = false;
            used[sender as usize + 1] = false;
        }
        // The books take memory, too: each end goes as soon as it is not needed any more, and its room soon after. The first are taken first.
        ends.reverse();
        for (index, used) in used.into_iter().enumerate() {
            let Some(end) = ends.pop() else { break };
            if used {
                self.keep_books_of(&end, index % 2);
            }
            if ends.len() < ends.capacity() - ends.capacity() / 16 {
                ends.shrink_to_fit();
            }
        }
    }
}

impl Finished {
    /// Takes the goodput over of the flows that have their receivers in a part of the world, where `flows` are their numbers here.
    pub fn add_goodput(&mut self, part: &mut Self, flows: &[u32]) {
        for (there, here) in flows.iter().enumerate().filter(|(there, _)| part.flows[*there].sides[1]) {
            self.goodput.take_over(*here as usize, (&mut part.goodput, there));
        }
        self.delivered.resize(self.delivered.len().max(part.delivered.len()), 0);
        self.delivered.iter_mut().zip(&part.delivered).for_each(|(all, part)| *all += part);
    }

    /// Time from the start of the first flow until the goodput of all flows together had settled.
    pub fn convergence(&self) -> Option<Duration> {
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or(Instant::ZERO);
        convergence(first, &self.delivered)
    }
}
