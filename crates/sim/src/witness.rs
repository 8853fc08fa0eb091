//! What the loop tells those who watch it.
//!
//! The loop is generic over its witness. [`Silent`] wants to know nothing, and everything said to it vanishes when the
//! loop is compiled.

use bentpipe_base::{Instant, SackRange, Segment};
use bentpipe_net::{Backlog, Dropped};
use bentpipe_tcp::Connection;

use crate::arena::{Parcel, Slot};
use crate::ticket::Ticket;
use crate::world::EndId;
use bentpipe_scenario::LinkId;

/// What happened at a connection end.
pub(crate) enum Deed<'a> {
    /// A new connection uses it, on this line; even ends send, odd ends receive. At a proxy it carries on
    /// what `inward` receives, and back.
    Opened { line: u32, inward: Option<EndId>, connection: &'a mut Connection },
    /// The application wrote so many bytes.
    Wrote(u64),
    /// A segment left.
    Sent { slot: Slot, segment: &'a Segment },
    /// A middlebox sent a segment in its name.
    Forged { slot: Slot, segment: &'a Segment },
    /// A segment arrived and will be handled next.
    Arrived { slot: Slot, segment: &'a Segment },
    /// The application will read over this range of the stream, which never arrived (best effort).
    Missing(SackRange),
    /// The application read so many bytes.
    Read(u64),
    /// All is done for this instant.
    Settled(&'a mut Connection),
}

/// What happened at one direction of a link.
pub(crate) enum Crossing<'a> {
    /// A packet was offered to the queue; what waits after that.
    Offered { ticket: &'a Ticket, parcel: &'a Parcel, backlog: Backlog },
    /// A packet arrived at the far end.
    Delivered { ticket: &'a Ticket, parcel: &'a Parcel },
    /// The slot of the packet delivered next is a copy of another that stays on the link.
    Copied { original: Slot, copy: Slot },
    /// A packet that waited was taken back, because the link is given up.
    TakenBack { ticket: &'a Ticket },
    /// A packet was lost.
    Lost { dropped: &'a Dropped<Ticket>, parcel: &'a Parcel },
}

/// Watches a simulation.
pub(crate) trait Witness {
    /// False if nothing need be told.
    const WATCHES: bool;

    /// Something happened at a connection end.
    fn end(&mut self, now: Instant, end: EndId, deed: Deed<'_>);

    /// Something happened at a link.
    fn link(&mut self, now: Instant, link: LinkId, crossing: Crossing<'_>);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silent;

impl Witness for Silent {
    const WATCHES: bool = false;

    #[inline(always)]
    fn end(&mut self, _: Instant, _: EndId, _: Deed<'_>) {}

    #[inline(always)]
    fn link(&mut self, _: Instant, _: LinkId, _: Crossing<'_>) {}
}
