//! The simulation: its state, and the event loop.

use bentpipe_base::{Duration, Instant};
use bentpipe_net::Link;
use bentpipe_scenario::{LinkId, Transport};

use crate::app::session::AgentPacket;
use crate::engine::key::{EventKey, EventTarget};
use crate::engine::partition::partition;
use crate::engine::process::Processes;
use crate::engine::share::Share;
use crate::engine::shared_link::SharedLink;
use crate::engine::targets::Targets;
use crate::engine::tuning::EVENTS_PER_CHECK;
use crate::engine::wheel::Wheel;
use crate::ids::EndId;
use crate::network::core::NetworkCore;
use crate::network::hop::Hop;
use crate::observe::monitor::Monitor;
use crate::options::{Ended, RunOptions};
use crate::packet::handle::PacketHandle;
use crate::packet::pool::{PacketContents, PacketPool};
use crate::world::{End, Flow, World};

/// A world while it is executed.
pub(crate) struct Simulation<M> {
    pub links: Vec<Link<PacketHandle>>,
    pub routes: Vec<Hop>,
    pub flows: Vec<Flow>,
    pub ends: Vec<End>,
    /// Pairs of ends that no connection uses, by their sending end.
    pub vacant: Vec<EndId>,
    pub core: NetworkCore,
    pub shared_links: Vec<SharedLink>,
    pub processes: Processes,
    /// The part of this thread, if several execute the world.
    pub share: Option<Share>,
    /// Packets of agents, by the indices of their contents.
    pub packets: Vec<Option<AgentPacket>>,
    pub pool: PacketPool,
    /// The packet that is being written or read.
    pub scratch: PacketContents,
    pub wheel: Wheel,
    pub targets: Targets,
    pub until: Instant,
    /// Nothing is followed ahead of time beyond this: the end, or the next change of the routes.
    pub horizon: Instant,
    pub now: Instant,
    /// The event that is being executed, if there is a monitor.
    pub key: EventKey,
    /// The longest lookahead of a shared link.
    pub lookahead: Duration,
    /// Arrivals at the far ends of links, and deadlines.
    pub events: u64,
    /// Iterations of the event loop.
    pub turns: u64,
    pub monitor: M,
}

impl<M: Monitor> Simulation<M> {
    /// A world at rest that will run until `until`.
    pub fn new(world: World, until: Instant, monitor: M, options: &RunOptions<'_>) -> Self {
        let World { mut links, salts, mut routes, flows, mut core, .. } = world;
        // Middleboxes read the queues of links as they are now.
        let goes_ahead = core.is_empty() && !options.event_by_event;
        let (shared_links, processes) =
            if goes_ahead { partition(&mut links, &mut routes, &flows) } else { Default::default() };
        if !options.event_by_event {
            core.set_origins(&flows, &routes);
        }
        let lookahead = shared_links.iter().map(|shared_link| shared_link.lookahead).max();
        let mut wheel = Wheel::new(until);
        let targets = Targets::add(&mut wheel, (&flows, &core), processes.len(), salts);
        targets.schedule(&mut wheel, &core);
        // Vectors that grow step by step would leave holes in memory.
        let connections = flows.iter().filter(|flow| flow.transport == Transport::Tcp).count();
        let ends = Vec::with_capacity(2 * (connections + core.legs.len()));
        if processes.is_empty() {
            wheel.reserve(ends.capacity());
            for (flow, state) in flows.iter().enumerate() {
                wheel.schedule(flow as EventTarget, state.start);
            }
        }
        let mut simulation = Self {
            links,
            routes,
            flows,
            ends,
            vacant: Vec::new(),
            core,
            shared_links,
            processes,
            share: None,
            packets: Vec::new(),
            pool: PacketPool::default(),
            scratch: PacketContents::default(),
            wheel,
            targets,
            until,
            horizon: until,
            now: Instant::ZERO,
            key: EventKey::NEVER,
            lookahead: lookahead.unwrap_or(Duration::ZERO),
            events: 0,
            turns: 0,
            monitor,
        };
        simulation.find_chains(&[]);
        simulation
    }

    /// Executes all events until the end.
    pub fn run(&mut self, options: &RunOptions<'_>) -> Ended {
        if !self.processes.is_empty() {
            self.start_processes();
        }
        let ended = self.run_events(options);
        while let Some(id) = self.shared_links.iter().position(|shared_link| shared_link.batch.len() > 0) {
            self.let_batch_through(id as u32, self.until);
        }
        self.end();
        debug_assert_eq!(
            self.pool.used(),
            self.links.iter().map(Link::packets_inside).sum::<usize>() + self.core.media.packets_inside(),
            "every packet is on a link"
        );
        ended
    }

    /// Brings links and media up to date when nothing will happen any more.
    pub(crate) fn end(&mut self) {
        self.empty_channels();
        for link in 0..self.links.len() {
            // Queues decide when they are asked.
            self.links[link].backlog(self.now);
            self.reclaim_dropped(
                link as LinkId,
                self.wheel.key(self.now, self.targets.first_link + link as LinkId),
            );
        }
        self.settle_media(self.now);
    }

    fn run_events(&mut self, options: &RunOptions<'_>) -> Ended {
        let budget = options.max_events.unwrap_or(u64::MAX);
        loop {
            let pause_at = (self.turns + EVENTS_PER_CHECK).min(budget);
            while self.turns < pause_at {
                let Some((now, target)) = self.wheel.pop() else {
                    self.now = self.until;
                    return Ended::InTime;
                };
                self.now = now;
                self.turns += 1;
                if M::MONITORS {
                    self.key = self.wheel.key(now, target);
                    if self.monitor.is_due() {
                        self.monitor.read(self.told_until());
                    }
                }
                self.happen(target);
            }
            if options.is_stopped() {
                return Ended::Stopped;
            }
            if self.turns >= budget {
                return Ended::OutOfEvents;
            }
            if let Some(progress) = options.progress {
                progress(self.now.as_secs_f64());
            }
        }
    }

    /// Time before which all events were reported to the monitor: earlier packets have passed the shared links, and have been read from
    /// input channels.
    fn told_until(&self) -> Instant {
        self.processes.first_message(&self.pool).min(self.now - self.lookahead)
    }

    /// Packets on links.
    pub fn packets_inside(&self) -> usize {
        self.pool.used() - self.core.media.packets_inside()
    }

    pub(crate) fn happen(&mut self, target: EventTarget) {
        if target >= self.targets.first_end {
            self.check_deadline(target - self.targets.first_end);
        } else if target >= self.targets.first_link {
            self.deliver(target - self.targets.first_link);
        } else if target >= self.targets.first_process {
            self.wake_process(target - self.targets.first_process);
        } else if target == self.targets.window {
            self.happen_between_processes();
        } else {
            self.events += 1;
            self.happen_elsewhere(target);
        }
    }

    /// An event of an application, a middlebox, a proxy, a shared medium or the routes, or a sample of goodput.
    #[inline(never)]
    fn happen_elsewhere(&mut self, target: EventTarget) {
        if target < self.targets.first_middlebox {
            self.wake(target);
        } else if target < self.targets.first_proxy {
            self.wake_middlebox(target - self.targets.first_middlebox);
        } else if target < self.targets.routing {
            self.kill_proxy(target - self.targets.first_proxy);
        } else if target >= self.targets.first_medium {
            self.deliver_medium(target - self.targets.first_medium);
        } else if target == self.targets.sampler {
            self.sample_goodput(target);
        } else {
            self.change_routes(self.now);
        }
    }
}
