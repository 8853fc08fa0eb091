//! Whom an event concerns. In the event queue each target is a number; the targets of each kind have consecutive numbers.

use crate::ids::{EndId, FlowId};
use crate::scheduler::key::{Class, EventTarget};
use crate::scheduler::wheel::Wheel;
use bentpipe_scenario::LinkId;

/// Whom an event concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// The timer of the application of a flow.
    Flow(FlowId),
    /// The timer of a middlebox.
    Middlebox(u32),
    /// The crash of a proxy.
    Proxy(u32),
    /// A change of the routes.
    Routes,
    /// A sample of the goodput of all flows.
    Sampler,
    /// The far end of a shared medium.
    Medium(u32),
    /// A window of logical processes.
    Window,
    /// A logical process.
    Process(u32),
    /// The far end of a link.
    Link(LinkId),
    /// The timer of a connection end.
    End(EndId),
}

/// The targets of a world before its first connection: the salts of each kind, see [`Tie::salt`](crate::scheduler::key::Tie::salt).
#[derive(Debug, Default)]
pub(crate) struct Salts {
    pub flows: Vec<u32>,
    pub middleboxes: Vec<u32>,
    pub proxies: Vec<u32>,
    pub media: Vec<u32>,
    pub links: Vec<u32>,
    /// True if the routes change.
    pub has_routes: bool,
    /// Number of logical processes.
    pub processes: usize,
}

/// First number of each kind. Those of flows begin at zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets {
    first_middlebox: EventTarget,
    first_proxy: EventTarget,
    routes: EventTarget,
    sampler: EventTarget,
    first_medium: EventTarget,
    window: EventTarget,
    first_process: EventTarget,
    first_link: EventTarget,
    /// Connection ends are last, because their number grows.
    first_end: EventTarget,
}

impl Targets {
    /// Adds the targets of a world to its event queue.
    pub fn add(wheel: &mut Wheel, salts: &Salts) -> Self {
        let mut add = |class, salts: &[u32]| wheel.add_targets(class, salts.iter().copied());
        add(Class::Timer, &salts.flows);
        Self {
            first_middlebox: add(Class::Timer, &salts.middleboxes),
            first_proxy: add(Class::Network, &salts.proxies),
            routes: add(Class::Network, if salts.has_routes { &[0] } else { &[] }),
            sampler: add(Class::Measurement, &[0]),
            first_medium: add(Class::Arrival, &salts.media),
            window: add(Class::Network, &[0]),
            first_process: add(Class::Network, &vec![0; salts.processes]),
            first_link: add(Class::Arrival, &salts.links),
            first_end: add(Class::Timer, &[]),
        }
    }

    /// The number of a target.
    #[inline(always)]
    pub fn number(&self, target: Target) -> EventTarget {
        match target {
            Target::Flow(id) => id,
            Target::Middlebox(id) => self.first_middlebox + id,
            Target::Proxy(id) => self.first_proxy + id,
            Target::Routes => self.routes,
            Target::Sampler => self.sampler,
            Target::Medium(id) => self.first_medium + id,
            Target::Window => self.window,
            Target::Process(id) => self.first_process + id,
            Target::Link(id) => self.first_link + id,
            Target::End(id) => self.first_end + id,
        }
    }

    /// The target with a number. The most frequent ones are tried first.
    #[inline(always)]
    pub fn target(&self, number: EventTarget) -> Target {
        if number >= self.first_end {
            Target::End(number - self.first_end)
        } else if number >= self.first_link {
            Target::Link(number - self.first_link)
        } else if number >= self.first_process {
            Target::Process(number - self.first_process)
        } else if number == self.window {
            Target::Window
        } else if number >= self.first_medium {
            Target::Medium(number - self.first_medium)
        } else if number == self.sampler {
            Target::Sampler
        } else if number >= self.routes {
            Target::Routes
        } else if number >= self.first_proxy {
            Target::Proxy(number - self.first_proxy)
        } else if number >= self.first_middlebox {
            Target::Middlebox(number - self.first_middlebox)
        } else {
            Target::Flow(number)
        }
    }
}
