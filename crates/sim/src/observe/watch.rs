//! The monitor of runs that are recorded, verified or observed from outside.

use bentpipe_base::Instant;
use bentpipe_check::{Checker, HostEvent, LinkActivity, SeenPacket};
use bentpipe_net::Link;
use bentpipe_outcome::{LinkEvent, Observer, Passing, Recorder, Series};
use bentpipe_scenario::{LinkId, Topology};
use bentpipe_trace::Event;

use crate::ids::EndId;
use crate::network::medium::{link_config, link_name};
use crate::observe::log::{EventLog, Observation};
use crate::observe::monitor::Monitor;
use crate::packet::handle::PacketHandle;
use crate::scheduler::key::EventKey;

/// Checkers for the links of a world.
pub(crate) fn checker(topology: &Topology<'_>) -> Checker {
    let mut checker = Checker::default();
    for edge in topology.links() {
        checker.add_link(link_name(&edge), &link_config(&edge));
    }
    checker
}

/// Logs observations, and passes them to their readers in order.
pub(crate) struct Watch<'a> {
    log: EventLog,
    readers: Readers<'a>,
}

/// Readers of events: recorder, checkers and the observer.
struct Readers<'a> {
    recorder: Option<Recorder>,
    checker: Option<Checker>,
    observer: Option<&'a mut dyn Observer>,
    /// The leg of each connection end.
    leg_ids: Vec<u32>,
}

impl<'a> Watch<'a> {
    /// Watches a world for these readers.
    pub fn new(
        recorder: Option<Recorder>,
        checker: Option<Checker>,
        observer: Option<&'a mut dyn Observer>,
    ) -> Self {
        let readers = Readers { recorder, checker, observer, leg_ids: Vec::new() };
        Self { log: EventLog::default(), readers }
    }

    /// Returns the series and the violations. In all, `used` packets are in flight, on these links.
    pub fn finish(
        mut self,
        now: Instant,
        (links, used): (&[Link<PacketHandle>], usize),
    ) -> (Option<Series>, Vec<String>) {
        self.read(Instant::FAR_FUTURE);
        let Readers { recorder, checker, .. } = self.readers;
        let violations = checker.map(|checker| checker.finish(now, links, used));
        (recorder.map(Recorder::finish), violations.unwrap_or_default())
    }
}

impl Monitor for Watch<'_> {
    const MONITORS: bool = true;

    fn traces(&self, end: EndId) -> bool {
        let Readers { recorder, observer, .. } = &self.readers;
        observer.is_some() || (recorder.is_some() && end.is_multiple_of(2))
    }

    fn watches(&self, link: LinkId) -> bool {
        let Readers { recorder, checker, observer, .. } = &self.readers;
        checker.is_some()
            || observer.is_some()
            || recorder.as_ref().is_some_and(|recorder| recorder.has(link))
    }

    fn end(&mut self, key: EventKey, end: EndId, mut event: HostEvent) {
        match &mut event {
            HostEvent::Opened { .. } | HostEvent::Traced(..) => {}
            // The rest is for the checker.
            _ if self.readers.checker.is_none() => return,
            HostEvent::Sent { packet, .. } | HostEvent::Forged { packet, .. } => {
                *packet = self.log.number(*packet);
            }
            HostEvent::Arrived { packet, .. } => *packet = self.log.number_of(*packet),
            _ => {}
        }
        self.log.push(key, Observation::AtEnd(end, event));
    }

    fn plain(&mut self, key: EventKey, end: EndId, event: Event) {
        let is_curve = matches!(event, Event::Window(_) | Event::Rtt { .. });
        if self.readers.observer.is_some() || (is_curve && self.readers.recorder.is_some()) {
            self.log.push(key, Observation::OfPlain(end, event));
        }
    }

    fn link(&mut self, key: EventKey, link: LinkId, mut activity: LinkActivity) {
        if self.readers.checker.is_some() {
            self.log.identify(&mut activity);
        }
        self.log.push(key, Observation::AtLink(link, activity));
    }

    fn is_due(&self) -> bool {
        self.log.is_due()
    }

    fn read(&mut self, told_until: Instant) {
        let Self { log, readers } = self;
        log.read(told_until, |now, observation| match observation {
            Observation::AtEnd(end, event) => readers.end(now, *end, event),
            Observation::OfPlain(end, event) => readers.plain(now, *end, event),
            Observation::AtLink(link, activity) => readers.link(now, *link, activity),
        });
    }
}

impl Readers<'_> {
    fn end(&mut self, now: Instant, end: EndId, event: &HostEvent) {
        if let Some(checker) = &mut self.checker {
            checker.end(now, end, event);
        }
        match event {
            HostEvent::Opened { leg_id, .. } => self.note_opened(now, end, *leg_id),
            HostEvent::Traced(at, event) => self.note_traced(*at, end, event),
            _ => {}
        }
    }

    fn plain(&mut self, now: Instant, end: EndId, event: &Event) {
        if let (Event::Window(_) | Event::Rtt { .. }, Some(recorder)) = (event, &mut self.recorder) {
            recorder.note(end / 2, now, event);
        }
        if let Some(observer) = &mut self.observer {
            observer.on_end(now, end, event);
        }
    }

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

    fn link(&mut self, now: Instant, link: LinkId, activity: &LinkActivity) {
        if let Some(checker) = &mut self.checker {
            checker.link(now, link, activity);
        }
        match activity {
            LinkActivity::Offered { packet, backlog } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.note_backlog(link, now, backlog.packets);
                }
                self.tell((now, link), LinkEvent::Offered { waiting: backlog.packets }, packet);
            }
            LinkActivity::Delivered(packet) => self.tell((now, link), LinkEvent::Delivered, packet),
            LinkActivity::Lost { packet, cause, at } => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.note_drop(link, now);
                }
                self.tell((*at, link), LinkEvent::Dropped(*cause), packet);
            }
            LinkActivity::Copied { .. } | LinkActivity::TakenBack(_) => {}
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
