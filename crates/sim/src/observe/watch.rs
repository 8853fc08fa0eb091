//! The monitor of runs that are recorded, verified or observed from outside.

use crate::check::{Checker, HostEvent, LinkActivity, SeenPacket};
use bentpipe_base::Instant;
use bentpipe_net::Link;
use bentpipe_outcome::{LinkEvent, Observer, Passing, Recorder, Series};
use bentpipe_scenario::{LinkId, Scenario, Topology};
use bentpipe_trace::Event;

use crate::RunOptions;
use crate::ids::EndId;
use crate::network::medium::{link_config, link_name};
use crate::observe::bottlenecks::recorder;
use crate::observe::monitor::Monitor;
use crate::packet::handle::PacketHandle;
use crate::world::World;

/// Checkers for the links of a world.
fn checker(topology: &Topology<'_>) -> Checker {
    let mut checker = Checker::default();
    for edge in topology.links() {
        checker.add_link(link_name(&edge), &link_config(&edge));
    }
    checker
}

/// Tells what happens to who wants to know: recorder, checkers and the observer.
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
            recorder: options.record.then(|| recorder(world, scenario, topology)),
            checker: options.verify.then(|| checker(topology)),
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
        let Self { recorder, checker, .. } = self;
        let violations = checker.map(|checker| checker.finish(now, links, used));
        (recorder.map(Recorder::finish), violations.unwrap_or_default())
    }
}

impl Monitor for Watch<'_> {
    const MONITORS: bool = true;

    fn traces(&self, end: EndId) -> bool {
        let Self { recorder, observer, .. } = self;
        observer.is_some() || (recorder.is_some() && end.is_multiple_of(2))
    }

    fn watches(&self, link: LinkId) -> bool {
        let Self { recorder, checker, observer, .. } = self;
        checker.is_some()
            || observer.is_some()
            || recorder.as_ref().is_some_and(|recorder| recorder.has(link))
    }

    fn end(&mut self, now: Instant, end: EndId, event: HostEvent) {
        if let Some(checker) = &mut self.checker {
            checker.end(now, end, &event);
        }
        match event {
            HostEvent::Opened { leg_id, .. } => self.note_opened(now, end, leg_id),
            HostEvent::Traced(at, event) => self.note_traced(at, end, &event),
            _ => {}
        }
    }

    fn link(&mut self, now: Instant, link: LinkId, activity: LinkActivity) {
        if let Some(checker) = &mut self.checker {
            checker.link(now, link, &activity);
        }
        match activity {
            LinkActivity::Offered { packet, backlog } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.note_backlog(link, now, backlog.packets);
                }
                self.tell((now, link), LinkEvent::Offered { waiting: backlog.packets }, &packet);
            }
            LinkActivity::Delivered(packet) => self.tell((now, link), LinkEvent::Delivered, &packet),
            LinkActivity::Lost { packet, cause, at } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.note_drop(link, now);
                }
                self.tell((at, link), LinkEvent::Dropped(cause), &packet);
            }
            LinkActivity::Copied { .. } | LinkActivity::TakenBack(_) => {}
        }
    }
}

impl Watch<'_> {
    fn note_opened(&mut self, now: Instant, end: EndId, leg_id: u32) {
        let needed = self.leg_ids.len().max(end as usize + 1);
        self.leg_ids.resize(needed, 0);
        self.leg_ids[end as usize] = leg_id;
        if let Some(recorder) = self.recorder.as_mut().filter(|_| end.is_multiple_of(2)) {
            recorder.begin(leg_id);
        }
        let end = self.end_of_leg(end);
        if let Some(observer) = &mut self.observer {
            observer.on_fresh(now, end);
        }
    }

    /// Connection ends are numbered in the order of their connections, outside by leg.
    fn end_of_leg(&self, end: EndId) -> u32 {
        2 * self.leg_ids[end as usize] + end % 2
    }

    fn note_traced(&mut self, at: Instant, end: EndId, event: &Event) {
        if let Some(recorder) = self.recorder.as_mut().filter(|_| end.is_multiple_of(2)) {
            recorder.note(self.leg_ids[end as usize], at, event);
        }
        let end = self.end_of_leg(end);
        if let Some(observer) = &mut self.observer {
            observer.on_end(at, end, event);
        }
    }

    fn tell(&mut self, (at, link): (Instant, LinkId), event: LinkEvent, packet: &SeenPacket) {
        let SeenPacket { bytes, to, .. } = *packet;
        let segment = packet.segment.as_ref();
        let to_end = if segment.is_some() { self.end_of_leg(to) } else { to };
        if let Some(observer) = &mut self.observer {
            observer.on_link(at, event, &Passing { link, bytes, to_end, segment });
        }
    }
}
