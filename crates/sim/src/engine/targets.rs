//! Whom the events of the event queue concern: the targets of each kind of entity have consecutive numbers.

use bentpipe_base::Instant;

use crate::engine::key::{Class, EventTarget};
use crate::engine::wheel::Wheel;
use crate::network::core::NetworkCore;
use crate::packet::handle::hash;
use crate::world::Flow;

/// First target of each kind. Targets of flows begin at zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets {
    pub first_middlebox: EventTarget,
    pub first_proxy: EventTarget,
    /// The target of changes of the routes.
    pub routing: EventTarget,
    /// The target of the samples of goodput.
    pub sampler: EventTarget,
    pub first_medium: EventTarget,
    /// The target of the windows of processes.
    pub window: EventTarget,
    pub first_process: EventTarget,
    pub first_link: EventTarget,
    /// Connection ends are last, because their number grows.
    pub first_end: EventTarget,
}

impl Targets {
    /// Adds the targets of a world with this number of processes, and with links of these salts, to its event queue.
    pub fn add(
        wheel: &mut Wheel,
        (flows, core): (&[Flow], &NetworkCore),
        processes: usize,
        salts: Vec<u32>,
    ) -> Self {
        // Other salts than those of the ends of their connections.
        wheel.add_targets(Class::Timer, flows.iter().map(|flow| !flow.labels[0].flow));
        let of_middleboxes = core.middleboxes.iter().map(|middlebox| hash(&middlebox.name, "middlebox"));
        let of_proxies = core.proxies.iter().map(|proxy| hash(&proxy.name, "proxy"));
        let of_media = core.media.shared.iter().map(|shared| hash(&shared.group, shared.direction));
        Self {
            first_middlebox: wheel.add_targets(Class::Timer, of_middleboxes),
            first_proxy: wheel.add_targets(Class::Network, of_proxies),
            routing: wheel.add_targets(Class::Network, core.routing.iter().map(|_| 0)),
            sampler: wheel.add_targets(Class::Measurement, [0]),
            first_medium: wheel.add_targets(Class::Arrival, of_media),
            window: wheel.add_targets(Class::Network, [0]),
            first_process: wheel.add_targets(Class::Network, (0..processes).map(|_| 0)),
            first_link: wheel.add_targets(Class::Arrival, salts),
            first_end: wheel.add_targets(Class::Timer, []),
        }
    }

    /// Schedules the events known at the start: crashes of proxies, the first change of routes, and the first sample of goodput.
    pub fn schedule(&self, wheel: &mut Wheel, core: &NetworkCore) {
        for (proxy, state) in (self.first_proxy..).zip(&core.proxies) {
            wheel.schedule(proxy, state.dies_at);
        }
        if let Some(routing) = &core.routing {
            wheel.schedule(self.routing, routing.next_change());
        }
        wheel.schedule(self.sampler, Instant::ZERO);
    }
}
