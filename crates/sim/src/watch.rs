//! The witness of runs that are recorded, verified or observed.

use bentpipe_base::Instant;
use bentpipe_net::Link;
use bentpipe_tcp::Connection;

use crate::arena::Parcel;
use crate::check::Checker;
use crate::observe::{LinkEvent, Observer, Passing};
use crate::record::Recorder;
use crate::ticket::{Marks, Ticket};
use crate::witness::{Crossing, Deed, Witness};
use crate::world::{EndId, World};
use crate::{RunOptions, Series};
use bentpipe_scenario::{LinkId, Scenario, Topology};

/// Tells recorder, checkers and the observer what happens.
pub(crate) struct Watch<'a> {
    recorder: Option<Recorder>,
    checker: Option<Checker>,
    observer: Option<&'a mut dyn Observer>,
    /// The line of each connection end: its flow, or its leg behind a proxy.
    lines: Vec<u32>,
}

impl<'a> Watch<'a> {
    /// Watches a world as the options say.
    pub fn new(
        (world, scenario, topology): (&World, &Scenario, &Topology<'_>),
        options: &RunOptions<'_>,
        observer: Option<&'a mut dyn Observer>,
    ) -> Self {
        Self {
            recorder: options.record.then(|| Recorder::new(world, (scenario, topology))),
            checker: options.verify.then(|| Checker::new(topology)),
            observer,
            lines: Vec::new(),
        }
    }

    /// The series and the violations; `used` packets are on their way in all, on these links.
    pub fn finish(
        self,
        now: Instant,
        (links, used): (&[Link<Ticket>], usize),
    ) -> (Option<Series>, Vec<String>) {
        let violations = self.checker.map(|checker| checker.finish(now, (links, used)));
        (self.recorder.map(Recorder::finish), violations.unwrap_or_default())
    }

    fn note_opened(&mut self, now: Instant, end: EndId, (line, connection): (u32, &mut Connection)) {
        let needed = self.lines.len().max(end as usize + 1);
        self.lines.resize(needed, 0);
        self.lines[end as usize] = line;
        let is_sender = end.is_multiple_of(2);
        if let Some(recorder) = self.recorder.as_mut().filter(|_| is_sender) {
            recorder.begin(line);
        }
        connection.set_tracing(self.observer.is_some() || (self.recorder.is_some() && is_sender));
        let end = self.end_of_line(end);
        if let Some(observer) = &mut self.observer {
            observer.on_fresh(now, end);
        }
    }

    /// Connection ends are numbered as they come; to the outside by line.
    fn end_of_line(&self, end: EndId) -> u32 {
        2 * self.lines[end as usize] + end % 2
    }

    fn collect(&mut self, end: EndId, connection: &mut Connection) {
        let (line, end_of_line) = (self.lines[end as usize], self.end_of_line(end));
        while let Some((at, event)) = connection.poll_trace() {
            if let Some(recorder) = self.recorder.as_mut().filter(|_| end.is_multiple_of(2)) {
                recorder.note(line, at, &event);
            }
            if let Some(observer) = &mut self.observer {
                observer.on_end(at, end_of_line, &event);
            }
        }
    }

    fn tell(
        &mut self,
        (at, link): (Instant, LinkId),
        event: LinkEvent,
        (ticket, parcel): (&Ticket, &Parcel),
    ) {
        let plain = ticket.has(Marks::PLAIN);
        // The reports of a stream go to its sender.
        let to_receiver = match ticket.has(Marks::AGENT) {
            true => parcel.incarnation > 0,
            false => ticket.has(Marks::DATA),
        };
        let to_end = if plain { 2 * parcel.to + u32::from(to_receiver) } else { self.end_of_line(parcel.to) };
        let segment = (!plain).then_some(&parcel.segment);
        if let Some(observer) = &mut self.observer {
            observer.on_link(at, event, &Passing { link, bytes: ticket.size(), to_end, segment });
        }
    }
}

impl Witness for Watch<'_> {
    const WATCHES: bool = true;

    fn end(&mut self, now: Instant, end: EndId, deed: Deed<'_>) {
        if let Some(checker) = &mut self.checker {
            checker.end(now, end, &deed);
        }
        match deed {
            Deed::Opened { line, connection, .. } => self.note_opened(now, end, (line, connection)),
            Deed::Settled(connection) => self.collect(end, connection),
            _ => {}
        }
    }

    fn link(&mut self, now: Instant, link: LinkId, crossing: Crossing<'_>) {
        if let Some(checker) = &mut self.checker {
            checker.link(now, link, &crossing);
        }
        match crossing {
            Crossing::Offered { ticket, parcel, backlog } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.note_backlog(link, now, backlog);
                }
                let event = LinkEvent::Offered { waiting: backlog.packets };
                self.tell((now, link), event, (ticket, parcel));
            }
            Crossing::Delivered { ticket, parcel } => {
                self.tell((now, link), LinkEvent::Delivered, (ticket, parcel));
            }
            Crossing::Lost { dropped, parcel } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.note_drop(link, now);
                }
                let event = LinkEvent::Dropped(dropped.cause);
                self.tell((dropped.at, link), event, (&dropped.packet, parcel));
            }
            Crossing::Copied { .. } | Crossing::TakenBack { .. } => {}
        }
    }
}
