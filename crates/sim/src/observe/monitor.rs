//! What the simulation tells its monitor.
//!
//! The simulation is generic over its monitor. [`Silent`] ignores everything, so that the calls vanish when the simulation is compiled.

use bentpipe_base::{Instant, SackRange, Segment};
use bentpipe_net::{Backlog, Dropped};
use bentpipe_tcp::Connection;

use crate::packet::handle::PacketHandle;
use crate::packet::pool::{PacketContents, PacketIndex};
use crate::world::EndId;
use bentpipe_scenario::LinkId;

/// What happened at a connection end.
pub(crate) enum HostEvent<'a> {
    /// A new connection uses it, for this leg; even ends send, odd ends receive. At a proxy it relays what
    /// `inward` receives, and back.
    Opened { leg_id: u32, inward: Option<EndId>, connection: &'a mut Connection },
    /// The application wrote so many bytes.
    Wrote(u64),
    /// A segment left.
    Sent { index: PacketIndex, segment: &'a Segment },
    /// A middlebox sent a segment in its name.
    Forged { index: PacketIndex, segment: &'a Segment },
    /// A segment arrived and will be handled next.
    Arrived { index: PacketIndex, segment: &'a Segment },
    /// The application will read over this range of the stream, which never arrived (best effort).
    Missing(SackRange),
    /// The application read so many bytes.
    Read(u64),
    /// The end has done everything that there was to do at this time.
    Settled(&'a mut Connection),
}

/// What happened at one direction of a link.
pub(crate) enum LinkActivity<'a> {
    /// A packet was offered to the queue; what waits after that.
    Offered { handle: &'a PacketHandle, contents: &'a PacketContents, backlog: Backlog },
    /// A packet arrived at the far end.
    Delivered { handle: &'a PacketHandle, contents: &'a PacketContents },
    /// The packet delivered next is a copy of another that stays on the link.
    Copied { original: PacketIndex, copy: PacketIndex },
    /// A packet that waited was taken back, because the link is given up.
    TakenBack { handle: &'a PacketHandle },
    /// A packet was lost.
    Lost { dropped: &'a Dropped<PacketHandle>, contents: &'a PacketContents },
}

/// Is told what happens in a simulation.
pub(crate) trait Monitor {
    /// False if it ignores everything.
    const MONITORS: bool;

    /// Something happened at a connection end.
    fn end(&mut self, now: Instant, end: EndId, event: HostEvent<'_>);

    /// Something happened at a link.
    fn link(&mut self, now: Instant, link: LinkId, activity: LinkActivity<'_>);
}

/// Ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silent;

impl Monitor for Silent {
    const MONITORS: bool = false;

    #[inline(always)]
    fn end(&mut self, _: Instant, _: EndId, _: HostEvent<'_>) {}

    #[inline(always)]
    fn link(&mut self, _: Instant, _: LinkId, _: LinkActivity<'_>) {}
}
