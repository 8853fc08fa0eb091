//! What the simulation tells its monitor.
//!
//! The simulation is generic over its monitor. [`Silent`] ignores everything, so that the calls vanish when the simulation is compiled.
//! Packets and hosts are executed ahead of others, so a monitor is told in the order of execution. Everything that it is told carries the
//! key of its event: what happens in the world is the same in the order of the keys, however the world is executed.

use bentpipe_base::{Instant, SackRange, Segment};
use bentpipe_net::Backlog;
use bentpipe_scenario::LinkId;
use bentpipe_trace::{DropCause, Event};

use crate::engine::key::EventKey;
use crate::ids::{EndId, PacketIndex};
use crate::packet::handle::PacketHandle;
use crate::packet::pool::PacketContents;

/// What happened at a connection end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostEvent {
    /// A new connection uses it, for this leg; even ends send, odd ends receive. At a proxy it relays what
    /// `inward` receives, and back.
    Opened { leg_id: u32, inward: Option<EndId> },
    /// The application wrote so many bytes.
    Wrote(u64),
    /// A segment left.
    Sent { index: PacketIndex, segment: Segment },
    /// A middlebox sent a segment in its name.
    Forged { index: PacketIndex, segment: Segment },
    /// A segment arrived and will be handled next.
    Arrived { index: PacketIndex, segment: Segment },
    /// The application will read over this range of the stream, which never arrived (best effort).
    Missing(SackRange),
    /// The application read so many bytes.
    Read(u64),
    /// The connection recorded an event of its own at a time.
    Traced(Instant, Event),
    /// The end has done everything that there was to do at this time. So many bytes of its stream are acknowledged.
    Settled { acknowledged_bytes: u64 },
}

/// A packet that something happened to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenPacket {
    pub handle: PacketHandle,
    pub contents: PacketContents,
    /// It is going to the receiver of its flow, or to an agent on the way there; of plain packets and those of agents.
    pub to_receiver: bool,
}

/// What happened at one direction of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkActivity {
    /// A packet was offered to the queue; what waits after that.
    Offered { packet: SeenPacket, backlog: Backlog },
    /// A packet arrived at the far end.
    Delivered { packet: SeenPacket },
    /// The packet delivered next is a copy of another that stays on the link.
    Copied { original: PacketIndex, copy: PacketIndex },
    /// A packet that waited was taken back, because the link is given up.
    TakenBack { handle: PacketHandle },
    /// A packet was lost, for this reason and at this time.
    Lost { packet: SeenPacket, cause: DropCause, at: Instant },
}

/// Is told what happens in a simulation.
pub(crate) trait Monitor {
    /// False if it ignores everything.
    const MONITORS: bool;

    /// Whether the connection at an end is to record events.
    fn traces(&self, end: EndId) -> bool;

    /// Whether it wants to know what happens at a link.
    fn watches(&self, link: LinkId) -> bool;

    /// Something happened at a connection end.
    fn end(&mut self, key: EventKey, end: EndId, event: HostEvent);

    /// Something happened at a link.
    fn link(&mut self, key: EventKey, link: LinkId, activity: LinkActivity);

    /// True if the monitor wants to read what it was told.
    fn is_due(&self) -> bool;

    /// Reads what it was told, as all that happens before this time is told.
    fn read(&mut self, told_until: Instant);
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silent;

impl Monitor for Silent {
    const MONITORS: bool = false;

    #[inline(always)]
    fn traces(&self, _: EndId) -> bool {
        false
    }

    #[inline(always)]
    fn watches(&self, _: LinkId) -> bool {
        false
    }

    #[inline(always)]
    fn end(&mut self, _: EventKey, _: EndId, _: HostEvent) {}

    #[inline(always)]
    fn link(&mut self, _: EventKey, _: LinkId, _: LinkActivity) {}

    #[inline(always)]
    fn is_due(&self) -> bool {
        false
    }

    #[inline(always)]
    fn read(&mut self, _: Instant) {}
}
