//! The simulation: the parts of a world, and the event loop.
//!
//! The way of a packet: [`transmit`](Simulation::transmit) takes a segment from a connection end and `depart` gives it to the network.
//! `enqueue` offers it to a link, `deliver` takes it from the far end, and `arrive` hands it to the connection end at its host.

mod client;
mod endpoint;
mod flow;
mod follow;
mod forward;
pub(crate) mod measure;
mod middlebox;
mod prefetch;
mod relay;
mod requests;
mod reroute;
mod routed;
mod sample;
mod session;
pub(crate) mod shares;
mod windows;

use bentpipe_base::Instant;
use bentpipe_net::Link;
use bentpipe_scenario::{LinkId, Transport};

use crate::app::state::Applications;
use crate::host::state::Hosts;
use crate::network::state::Network;
use crate::observe::monitor::Monitor;
use crate::options::{Ended, RunOptions};
use crate::packet::handle::hash;
use crate::parallel::partition::partition;
use crate::parallel::process::Processes;
use crate::parallel::share::Share;
use crate::scheduler::Scheduler;
use crate::scheduler::target::{Salts, Target};
use crate::tuning::EVENTS_PER_CHECK;
use crate::world::World;

/// A world while it is executed: its parts, which own their state. A part never calls another; the methods of the simulation carry
/// packets and events from one to the next.
pub(crate) struct Simulation<M> {
    pub scheduler: Scheduler,
    pub network: Network,
    pub hosts: Hosts,
    pub applications: Applications,
    pub processes: Processes,
    /// The part of this thread, if several execute the world.
    pub share: Option<Share>,
    pub monitor: M,
}

impl<M: Monitor> Simulation<M> {
    /// A world at rest that will run until `until`.
    pub fn new(world: World, until: Instant, monitor: M, options: &RunOptions<'_>) -> Self {
        let World { mut network, mut hosts, applications, .. } = world;
        let flows = &applications.flows;
        // Middleboxes read the queues of links as they are now.
        let goes_ahead = network.has_only_links() && !options.event_by_event;
        let processes = if goes_ahead && network.routes.table.is_none() {
            partition(&mut network.links, &mut network.routes.hops, flows, &hosts.legs)
        } else {
            Processes::default()
        };
        // Agents send to other nodes, too.
        if goes_ahead && flows.iter().all(|flow| flow.session.is_none()) {
            let of_flows = flows.iter().map(|flow| (flow.routes, flow.nodes));
            network.routes.set_origins(of_flows.chain(hosts.legs.iter().map(|leg| (leg.routes, leg.nodes))));
        }
        let salts = Salts {
            // Other salts than those of the ends of their connections.
            flows: flows.iter().map(|flow| !flow.labels[0].flow).collect(),
            middleboxes: network.middleboxes.nodes.iter().map(|it| hash(&it.name, "middlebox")).collect(),
            proxies: hosts.proxies.iter().map(|proxy| hash(&proxy.name, "proxy")).collect(),
            media: network.media.shared.iter().map(|it| hash(&it.group, it.direction)).collect(),
            links: std::mem::take(&mut network.salts),
            has_routes: network.routes.table.is_some(),
            processes: processes.len(),
        };
        let mut scheduler = Scheduler::new(until, &salts);
        for (id, proxy) in (0..).zip(&hosts.proxies) {
            scheduler.schedule(Target::Proxy(id), proxy.dies_at);
        }
        if let Some(routing) = &network.routes.table {
            scheduler.schedule(Target::Routes, routing.next_change());
        }
        scheduler.schedule(Target::Sampler, Instant::ZERO);
        // Vectors that grow step by step would leave holes in memory.
        let connections = flows.iter().filter(|flow| flow.transport == Transport::Tcp).count();
        hosts.ends = Vec::with_capacity(2 * (connections + hosts.legs.len()));
        if processes.is_empty() {
            scheduler.reserve_ends(hosts.ends.capacity());
            for (id, flow) in (0..).zip(flows) {
                scheduler.schedule(Target::Flow(id), flow.start);
            }
        }
        network.routes.horizon = until;
        let mut simulation =
            Self { scheduler, network, hosts, applications, processes, share: None, monitor };
        simulation.find_chains(&[]);
        simulation
    }

    /// Executes all events until the end.
    pub fn run(&mut self, options: &RunOptions<'_>) -> Ended {
        if !self.processes.is_empty() {
            self.start_processes();
        }
        let ended = self.run_events(options);
        while let Some(id) =
            self.processes.shared_links.iter().position(|shared_link| shared_link.batch.len() > 0)
        {
            self.let_batch_through(id as u32, self.scheduler.until);
        }
        self.end();
        debug_assert_eq!(
            self.network.pool.used(),
            self.network.links.iter().map(Link::packets_inside).sum::<usize>()
                + self.network.media.packets_inside(),
            "every packet is on a link"
        );
        ended
    }

    /// Brings links and media up to date when nothing will happen any more.
    pub(crate) fn end(&mut self) {
        self.empty_channels();
        for link in 0..self.network.links.len() {
            // Queues decide when they are asked.
            self.network.links[link].backlog(self.scheduler.now);
            self.reclaim_dropped(
                link as LinkId,
                self.scheduler.key(self.scheduler.now, Target::Link(link as LinkId)),
            );
        }
        self.settle_media(self.scheduler.now);
    }

    fn run_events(&mut self, options: &RunOptions<'_>) -> Ended {
        let budget = options.max_events.unwrap_or(u64::MAX);
        loop {
            let pause_at = (self.scheduler.turns + EVENTS_PER_CHECK).min(budget);
            while self.scheduler.turns < pause_at {
                let Some(target) = self.scheduler.advance() else {
                    self.scheduler.now = self.scheduler.until;
                    return Ended::InTime;
                };
                if M::MONITORS {
                    self.scheduler.key = self.scheduler.key(self.scheduler.now, target);
                    if self.monitor.is_due() {
                        self.monitor.read(self.told_until());
                    }
                }
                self.happen(target);
            }
            if options.is_stopped() {
                return Ended::Stopped;
            }
            if self.scheduler.turns >= budget {
                return Ended::OutOfEvents;
            }
            if let Some(progress) = options.progress {
                progress(self.scheduler.now.as_secs_f64());
            }
        }
    }

    /// Time before which all events were reported to the monitor: earlier packets have passed the shared links, and have been read from
    /// input channels.
    fn told_until(&self) -> Instant {
        self.processes.first_message(&self.network.pool).min(self.scheduler.now - self.processes.lookahead)
    }

    /// Executes an event.
    pub(crate) fn happen(&mut self, target: Target) {
        match target {
            Target::End(id) => self.check_deadline(id),
            Target::Link(id) => self.deliver(id),
            Target::Process(id) => self.wake_process(id),
            Target::Window => self.happen_between_processes(),
            Target::Sampler => self.sample_goodput(),
            other => self.happen_elsewhere(other),
        }
    }

    /// An event of an application, a middlebox, a proxy, a shared medium or the routes.
    #[inline(never)]
    fn happen_elsewhere(&mut self, target: Target) {
        self.scheduler.events += 1;
        match target {
            Target::Flow(id) => self.wake(id),
            Target::Middlebox(id) => self.wake_middlebox(id),
            Target::Proxy(id) => self.kill_proxy(id),
            Target::Medium(id) => self.deliver_medium(id),
            Target::Routes => self.change_routes(self.scheduler.now),
            Target::End(_) | Target::Link(_) | Target::Process(_) | Target::Window | Target::Sampler => {
                unreachable!("{target:?} has a way of its own")
            }
        }
    }
}
