//! Interface between the simulation and its monitor.
//!
//! The simulation is generic over its monitor. [`Silent`] ignores everything, so that its calls vanish at compilation. Packets and
//! hosts are executed ahead of others, so a monitor gets its calls in the order of execution. Each call has the sort key of its event.
//! In the order of these keys the events are the same for every kind of execution.

use bentpipe_base::Instant;
use bentpipe_check::{HostEvent, LinkActivity};
use bentpipe_scenario::LinkId;
use bentpipe_trace::Event;

use crate::ids::EndId;
use crate::scheduler::key::EventKey;

/// Observer of a simulation. The default methods ignore everything.
pub(crate) trait Monitor {
    /// False if it ignores everything.
    const MONITORS: bool;

    /// True if the connection at an end shall record events.
    #[inline(always)]
    fn traces(&self, _: EndId) -> bool {
        false
    }

    /// True if the monitor observes events at a link.
    #[inline(always)]
    fn watches(&self, _: LinkId) -> bool {
        false
    }

    /// Something happened at a connection end. Packets are numbered by their indices in the pool.
    #[inline(always)]
    fn end(&mut self, _: EventKey, _: EndId, _: HostEvent) {}

    /// An end of a flow without TCP sent or received a packet.
    #[inline(always)]
    fn plain(&mut self, _: EventKey, _: EndId, _: Event) {}

    /// Something happened at a link; packets are numbered in the same way.
    #[inline(always)]
    fn link(&mut self, _: EventKey, _: LinkId, _: LinkActivity) {}

    /// True if the monitor has enough unread observations.
    #[inline(always)]
    fn is_due(&self) -> bool {
        false
    }

    /// Reads the observations; all before this time are complete.
    #[inline(always)]
    fn read(&mut self, _told_until: Instant) {}
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silent;

impl Monitor for Silent {
    const MONITORS: bool = false;
}
