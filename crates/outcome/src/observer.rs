//! What outsiders may learn of a run while it goes on: to write traces, captures, statistics of their own.

use bentpipe_base::{Instant, Segment};
use bentpipe_trace::{DropCause, Event};

/// Watches a run.
///
/// Ends are numbered by flow: the sender of flow `f` of [`Outcome::flows`](crate::Outcome::flows) is `2 f`, its receiver
/// `2 f + 1`; the legs of flows behind proxies follow, in the order of the flows. Links are numbered as in [`Outcome::links`](crate::Outcome::links).
pub trait Observer {
    /// Something happened to a packet at a link.
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        let _ = (at, event, passing);
    }

    /// Something happened at a connection end.
    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        let _ = (at, end, event);
    }

    /// A fresh connection begins at an end.
    fn on_fresh(&mut self, at: Instant, end: u32) {
        let _ = (at, end);
    }
}

/// What happened to a packet at one direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// It was offered to the queue; a [`LinkEvent::Dropped`] follows at once if it was refused.
    Offered {
        /// Packets that wait after that.
        waiting: u32,
    },
    /// It was dropped, by the queue or on the way.
    Dropped(DropCause),
    /// It arrived at the far end.
    Delivered,
}

impl LinkEvent {
    /// The same in the vocabulary of traces, for a packet of so many bytes; `None` for an arrival, which the trace of the receiver tells of.
    pub const fn traced(self, bytes: u32) -> Option<Event> {
        match self {
            Self::Offered { waiting } => Some(Event::Offered { waiting, bytes }),
            Self::Dropped(cause) => Some(Event::Dropped { cause, bytes }),
            Self::Delivered => None,
        }
    }
}

/// The packet to which something happened, and where.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Passing<'a> {
    /// The direction of the link.
    pub link: u32,
    /// Bytes on the wire.
    pub bytes: u32,
    /// The end that it is bound for.
    pub to_end: u32,
    /// Its segment; none if it is not a packet of TCP.
    pub segment: Option<&'a Segment>,
}

/// Watches nothing.
impl Observer for () {}

/// Both watch, the first first.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        self.0.on_link(at, event, passing);
        self.1.on_link(at, event, passing);
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        self.0.on_end(at, end, event);
        self.1.on_end(at, end, event);
    }

    fn on_fresh(&mut self, at: Instant, end: u32) {
        self.0.on_fresh(at, end);
        self.1.on_fresh(at, end);
    }
}

/// Watches as what it refers to does.
impl<O: Observer + ?Sized> Observer for &mut O {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        (**self).on_link(at, event, passing);
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        (**self).on_end(at, end, event);
    }

    fn on_fresh(&mut self, at: Instant, end: u32) {
        (**self).on_fresh(at, end);
    }
}

/// Watches if there is one.
impl<O: Observer> Observer for Option<O> {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        if let Some(observer) = self {
            observer.on_link(at, event, passing);
        }
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        if let Some(observer) = self {
            observer.on_end(at, end, event);
        }
    }

    fn on_fresh(&mut self, at: Instant, end: u32) {
        if let Some(observer) = self {
            observer.on_fresh(at, end);
        }
    }
}
