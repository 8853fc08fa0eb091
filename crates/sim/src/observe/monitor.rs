//! What the simulation tells its monitor.
//!
//! The simulation is generic over its monitor. [`Silent`] ignores everything, so that the calls vanish when the simulation is compiled.
//! Packets and hosts are executed ahead of others, so a monitor is told in the order of execution. Everything that it is told carries the
//! key of its event: what happens in the world is the same in the order of the keys, however the world is executed.

use bentpipe_base::Instant;
use bentpipe_check::{HostEvent, LinkActivity};
use bentpipe_scenario::LinkId;
use bentpipe_trace::Event;

use crate::engine::key::EventKey;
use crate::ids::{EndId, FlowId};

/// Is told what happens in a simulation. Unless it says otherwise, it ignores everything.
pub(crate) trait Monitor {
    /// False if it ignores everything.
    const MONITORS: bool;

    /// Whether the connection at an end is to record events.
    #[inline(always)]
    fn traces(&self, _: EndId) -> bool {
        false
    }

    /// Whether it wants to know what happens at a link.
    #[inline(always)]
    fn watches(&self, _: LinkId) -> bool {
        false
    }

    /// Something happened at a connection end. Packets are numbered by their indices in the pool.
    #[inline(always)]
    fn end(&mut self, _: EventKey, _: EndId, _: HostEvent) {}

    /// A flow of plain packets sent or received one.
    #[inline(always)]
    fn plain(&mut self, _: EventKey, _: FlowId, _: Event) {}

    /// Something happened at a link; packets are numbered in the same way.
    #[inline(always)]
    fn link(&mut self, _: EventKey, _: LinkId, _: LinkActivity) {}

    /// True if the monitor wants to read what it was told.
    #[inline(always)]
    fn is_due(&self) -> bool {
        false
    }

    /// Reads what it was told, as all that happens before this time is told.
    #[inline(always)]
    fn read(&mut self, _told_until: Instant) {}
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silent;

impl Monitor for Silent {
    const MONITORS: bool = false;
}
