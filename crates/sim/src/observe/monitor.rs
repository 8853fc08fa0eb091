//! What the simulation tells its monitor.
//!
//! The simulation is generic over its monitor. [`Silent`] ignores everything, so that the calls vanish when the simulation is compiled.
//! A world with another monitor is executed event by event, so the monitor is told everything in the order of events.

use crate::check::{HostEvent, LinkActivity};
use bentpipe_base::Instant;
use bentpipe_scenario::LinkId;

use crate::ids::EndId;

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
    fn end(&mut self, _: Instant, _: EndId, _: HostEvent) {}

    /// Something happened at a link; packets are numbered in the same way.
    #[inline(always)]
    fn link(&mut self, _: Instant, _: LinkId, _: LinkActivity) {}
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silent;

impl Monitor for Silent {
    const MONITORS: bool = false;
}
