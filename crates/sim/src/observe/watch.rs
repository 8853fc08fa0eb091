//! The monitor of runs that are recorded, verified or observed from outside.

use bentpipe_base::Instant;
use bentpipe_net::Link;
use bentpipe_tcp::Connection;

use crate::observe::check::Checker;
use crate::observe::monitor::{HostEvent, LinkActivity, Monitor};
use crate::observe::observer::{LinkEvent, Observer, Passing};
use crate::observe::record::Recorder;
use crate::packet::handle::{Marks, PacketHandle};
use crate::packet::pool::PacketContents;
use crate::world::{EndId, World};
use crate::{RunOptions, Series};
use bentpipe_scenario::{LinkId, Scenario, Topology};

/// Tells recorder, checkers and the observer what happens.
pub(crate) struct Watch<'a> {
    recorder: Option<Recorder>,
    checker: Option<Checker>,
    observer: Option<&'a mut dyn Observer>,
    /// The leg of each connection end.
    leg_ids: Vec<u32>,
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
            leg_ids: Vec::new(),
        }
    }

    /// The series and the violations; `used` packets are on their way in all, on these links.
    pub fn finish(
        self,
        now: Instant,
        (links, used): (&[Link<PacketHandle>], usize),
    ) -> (Option<Series>, Vec<String>) {
        let violations = self.checker.map(|checker| checker.finish(now, (links, used)));
        (self.recorder.map(Recorder::finish), violations.unwrap_or_default())
    }

    fn note_opened(&mut self, now: Instant, end: EndId, (leg_id, connection): (u32, &mut Connection)) {
        let needed = self.leg_ids.len().max(end as usize + 1);
        self.leg_ids.resize(needed, 0);
        self.leg_ids[end as usize] = leg_id;
        let is_sender = end.is_multiple_of(2);
        if let Some(recorder) = self.recorder.as_mut().filter(|_| is_sender) {
            recorder.begin(leg_id);
        }
        connection.set_tracing(self.observer.is_some() || (self.recorder.is_some() && is_sender));
        let end = self.end_of_leg(end);
        if let Some(observer) = &mut self.observer {
            observer.on_fresh(now, end);
        }
    }

    /// Connection ends are numbered in the order of their connections, outside by leg.
    fn end_of_leg(&self, end: EndId) -> u32 {
        2 * self.leg_ids[end as usize] + end % 2
    }

    fn collect(&mut self, end: EndId, connection: &mut Connection) {
        let (leg_id, end_of_leg) = (self.leg_ids[end as usize], self.end_of_leg(end));
        while let Some((at, event)) = connection.poll_trace() {
            if let Some(recorder) = self.recorder.as_mut().filter(|_| end.is_multiple_of(2)) {
                recorder.note(leg_id, at, &event);
            }
            if let Some(observer) = &mut self.observer {
                observer.on_end(at, end_of_leg, &event);
            }
        }
    }

    fn tell(
        &mut self,
        (at, link): (Instant, LinkId),
        event: LinkEvent,
        (handle, contents): (&PacketHandle, &PacketContents),
    ) {
        let plain = handle.has(Marks::PLAIN);
        // The reports of a stream go to its sender.
        let to_receiver = match handle.has(Marks::AGENT) {
            true => contents.incarnation > 0,
            false => handle.has(Marks::DATA),
        };
        let to_end =
            if plain { 2 * contents.to + u32::from(to_receiver) } else { self.end_of_leg(contents.to) };
        let segment = (!plain).then_some(&contents.segment);
        if let Some(observer) = &mut self.observer {
            observer.on_link(at, event, &Passing { link, bytes: handle.size(), to_end, segment });
        }
    }
}

impl Monitor for Watch<'_> {
    const MONITORS: bool = true;

    fn end(&mut self, now: Instant, end: EndId, event: HostEvent<'_>) {
        if let Some(checker) = &mut self.checker {
            checker.end(now, end, &event);
        }
        match event {
            HostEvent::Opened { leg_id, connection, .. } => self.note_opened(now, end, (leg_id, connection)),
            HostEvent::Settled(connection) => self.collect(end, connection),
            _ => {}
        }
    }

    fn link(&mut self, now: Instant, link: LinkId, activity: LinkActivity<'_>) {
        if let Some(checker) = &mut self.checker {
            checker.link(now, link, &activity);
        }
        match activity {
            LinkActivity::Offered { handle, contents, backlog } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.note_backlog(link, now, backlog);
                }
                let event = LinkEvent::Offered { waiting: backlog.packets };
                self.tell((now, link), event, (handle, contents));
            }
            LinkActivity::Delivered { handle, contents } => {
                self.tell((now, link), LinkEvent::Delivered, (handle, contents));
            }
            LinkActivity::Lost { dropped, contents } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.note_drop(link, now);
                }
                let event = LinkEvent::Dropped(dropped.cause);
                self.tell((dropped.at, link), event, (&dropped.packet, contents));
            }
            LinkActivity::Copied { .. } | LinkActivity::TakenBack { .. } => {}
        }
    }
}
