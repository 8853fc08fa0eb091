//! Context of one call, shared by both halves of a connection.

use std::collections::VecDeque;

use bentpipe_base::{Instant, WindowState};
use bentpipe_trace::Event;

use crate::stats::Counts;
use crate::timers::Timers;
use crate::{Config, Events};

/// The parts of a connection that the sending half borrows during a call.
pub(crate) struct Context<'a> {
    pub now: Instant,
    pub config: &'a Config,
    pub stats: &'a mut Counts,
    pub timers: &'a mut Timers,
    pub events: &'a mut Events,
    pub tracer: &'a mut Option<Box<Tracer>>,
}

impl Context<'_> {
    pub fn trace(&mut self, event: Event) {
        if let Some(tracer) = self.tracer {
            tracer.queue.push_back((self.now, event));
        }
    }
}

/// Events for the driver, and the last traced window.
#[derive(Debug, Default)]
pub(crate) struct Tracer {
    pub queue: VecDeque<(Instant, Event)>,
    window: Option<WindowState>,
}

impl Tracer {
    /// Traces the window if it differs from the last traced one.
    pub fn compare(&mut self, now: Instant, window: WindowState) {
        if self.window != Some(window) {
            self.window = Some(window);
            self.queue.push_back((now, Event::Window(window)));
        }
    }
}
