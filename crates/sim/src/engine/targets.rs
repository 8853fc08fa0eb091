//! Targets of events: the entities of a world. Those of each kind have consecutive numbers.

use bentpipe_base::Instant;

use crate::engine::key::{Class, EventTarget};
use crate::engine::queue::EventQueue;
use crate::network::core::NetworkCore;
use crate::world::{Flow, label};

/// The first target of each kind. Those of the flows come first, from zero on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets {
    pub first_middlebox: EventTarget,
    pub first_proxy: EventTarget,
    /// The target of changes of the routes.
    pub routing: EventTarget,
    /// The target of the samples of goodput.
    pub sampler: EventTarget,
    pub first_medium: EventTarget,
    pub first_port: EventTarget,
    pub first_link: EventTarget,
    /// Connection ends come last: more of them come into being.
    pub first_end: EventTarget,
}

impl Targets {
    /// Adds the targets of a world, with ports and links with these salts, to its event queue.
    pub fn add(
        queue: &mut EventQueue,
        (flows, core): (&[Flow], &NetworkCore),
        (ports, links): (&[u32], Vec<u32>),
    ) -> Self {
        // Other salts than those of the ends of their connections.
        queue.add_targets(Class::Timer, flows.iter().map(|flow| !flow.labels[0]));
        let of_middleboxes = core.middleboxes.iter().map(|middlebox| label(&middlebox.name, "middlebox"));
        let of_proxies = core.proxies.iter().map(|proxy| label(&proxy.name, "proxy"));
        let of_media = core.media.shared.iter().map(|shared| label(&shared.group, shared.direction));
        Self {
            first_middlebox: queue.add_targets(Class::Timer, of_middleboxes),
            first_proxy: queue.add_targets(Class::Network, of_proxies),
            routing: queue.add_targets(Class::Network, core.routing.iter().map(|_| 0)),
            sampler: queue.add_targets(Class::Measurement, [0]),
            first_medium: queue.add_targets(Class::Arrival, of_media),
            first_port: queue.add_targets(Class::Arrival, ports.iter().copied()),
            first_link: queue.add_targets(Class::Arrival, links),
            first_end: queue.add_targets(Class::Timer, []),
        }
    }

    /// Schedules what is known at the beginning: crashes of proxies, the first change of the routes, and the first sample of goodput.
    pub fn schedule(&self, queue: &mut EventQueue, core: &NetworkCore) {
        for (proxy, state) in (self.first_proxy..).zip(&core.proxies) {
            queue.schedule(proxy, state.dies_at);
        }
        if let Some(routing) = &core.routing {
            queue.schedule(self.routing, routing.next_change());
        }
        queue.schedule(self.sampler, Instant::ZERO);
    }
}
