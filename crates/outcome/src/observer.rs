//! Events of a run for observers, such as traces, captures and statistics.

use bentpipe_base::{Instant, Segment};
use bentpipe_trace::{DropCause, Event};

/// Observer of a run.
///
/// Connection ends are numbered by flow: the sender of flow `f` of [`Outcome::flows`](crate::Outcome::flows) is `2 f`, its
/// receiver `2 f + 1`. The legs of flows behind proxies follow in the order of the flows. Links are numbered as in
/// [`Outcome::links`](crate::Outcome::links).
pub trait Observer {
    /// Handles an event of a packet at a link.
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        let _ = (at, event, passing);
    }

    /// Handles an event at a connection end.
    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        let _ = (at, end, event);
    }

    /// Handles the start of a new connection at an end.
    fn on_fresh(&mut self, at: Instant, end: u32) {
        let _ = (at, end);
    }
}

/// Event of a packet at one direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// The packet was offered to the queue. A [`LinkEvent::Dropped`] follows at once if the queue refused it.
    Offered {
        /// Packets in the queue afterwards.
        waiting: u32,
    },
    /// The packet was dropped by the queue or lost on the link.
    Dropped(DropCause),
    /// The packet arrived at the far end.
    Delivered,
}

impl LinkEvent {
    /// Returns the trace event for a packet of `bytes` bytes. `None` for an arrival, which the receiver's trace contains.
    pub const fn traced(self, bytes: u32) -> Option<Event> {
        match self {
            Self::Offered { waiting } => Some(Event::Offered { waiting, bytes }),
            Self::Dropped(cause) => Some(Event::Dropped { cause, bytes }),
            Self::Delivered => None,
        }
    }
}

/// Packet of an event, with its place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Passing<'a> {
    /// Number of the link direction.
    pub link: u32,
    /// Size on the wire in bytes.
    pub bytes: u32,
    /// Connection end that the packet is sent to.
    pub to_end: u32,
    /// Segment of the packet; `None` if it is not TCP.
    pub segment: Option<&'a Segment>,
}

/// Ignores all events.
impl Observer for () {}

/// Passes events to both observers, first to the first.
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

/// Passes events to the observer behind the reference.
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

/// Passes events to the observer, if there is one.
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
