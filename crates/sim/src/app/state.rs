//! Applications: the flows, and what they were served.

use bentpipe_base::Instant;
use bentpipe_outcome::{Delays, GoodputSampler};

use bentpipe_scenario::Scenario;
use bentpipe_traffic::{Application, ClientApp, SourceApp, Transfer};

use crate::app::session::Session;
use crate::ids::{EndId, FlowId};

use crate::app::flow::Flow;

/// The flows of a world with their applications.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    pub flows: Vec<Flow>,
    /// Samples the goodput of the flows.
    pub goodput: GoodputSampler,
    /// Delays of each group of flows.
    pub delays: Vec<Delays>,
}

impl Applications {
    /// Room for the flows of a scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let count = scenario.flows.iter().map(|group| group.count as usize).sum();
        Self {
            flows: Vec::with_capacity(count),
            goodput: GoodputSampler::default(),
            delays: vec![Delays::default(); scenario.flows.len()],
        }
    }

    /// The source of a flow, if it has one.
    pub fn source_app(&mut self, id: FlowId) -> Option<&mut SourceApp> {
        self.flows[id as usize].application.source_app()
    }

    /// The client of a flow, if it has one.
    pub fn client_app(&mut self, id: FlowId) -> Option<&mut ClientApp> {
        self.flows[id as usize].application.client_app()
    }

    /// The session of a flow over a transport other than TCP.
    pub fn session(&mut self, id: FlowId) -> &mut Session {
        self.flows[id as usize].session.as_mut().expect("only flows with a session come here")
    }

    /// A flow begins a connection, for a file, a page or all of its data.
    pub fn begin(&mut self, id: FlowId, now: Instant) {
        let flow = &mut self.flows[id as usize];
        flow.counts.begun = now;
        (flow.written, flow.noted) = (0, 0);
        flow.wanted = match &flow.application {
            Application::File { bytes } => *bytes,
            Application::Pages(pages) => pages.bytes,
            Application::SourceApp(_) => 0,
            _ => u64::MAX / 8,
        };
    }

    /// All that a flow's present connection was given is at its receiver. Returns when the flow goes on.
    pub fn complete(&mut self, id: FlowId, now: Instant) -> Option<Instant> {
        let flow = &mut self.flows[id as usize];
        if flow.noted == flow.wanted {
            return None;
        }
        flow.noted = flow.wanted;
        let took = now.since(flow.counts.begun);
        flow.counts.completed += 1;
        flow.counts.completion_sum += took;
        if flow.application.closes_after().is_some() {
            flow.sender = None;
        }
        let Application::Pages(pages) = &mut flow.application else { return None };
        flow.counts.pages.push(Transfer { completed_at: now, took });
        Some(now + pages.rest())
    }

    /// A connection of a flow ended before its time: the one of this sending end. Returns when the flow goes on.
    pub fn abort(
        &mut self,
        id: FlowId,
        sender: EndId,
        reason: &'static str,
        now: Instant,
    ) -> Option<Instant> {
        let flow = &mut self.flows[id as usize];
        if flow.sender != Some(sender) {
            return None;
        }
        flow.counts.gone().aborted = Some(reason);
        flow.sender = None;
        // A reader tries the next page.
        let Application::Pages(pages) = &mut flow.application else { return None };
        Some(now + pages.rest())
    }

    /// Samples the delivered bytes of each flow at a time; returns their sum.
    pub fn sample(&mut self, now: Instant, delivered: Vec<u64>) -> u64 {
        self.goodput.delivered = delivered;
        self.goodput.sample(now, self.flows.iter().map(|flow| flow.start))
    }

    /// Notes the delivered bytes of all flows together at a time.
    pub fn sample_all(&mut self, at: Instant, bytes: u64) {
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or(Instant::ZERO);
        self.goodput.sample_all(at, first, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::samples::{TWO_PROXIES, world_of};

    const PAGES: FlowId = 0;
    const FILE: FlowId = 1;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + bentpipe_base::Duration::from_secs(seconds)
    }

    #[test]
    fn a_page_is_counted_once_and_the_next_follows_after_the_rest() {
        let mut applications = world_of(TWO_PROXIES).applications;
        applications.begin(PAGES, at(1));
        applications.flows[0].sender = Some(0);
        assert_eq!(applications.flows[0].wanted, 1_000_000);
        assert_eq!(applications.complete(PAGES, at(4)), Some(at(6)));
        assert_eq!(applications.complete(PAGES, at(5)), None);
        let counts = &applications.flows[0].counts;
        assert_eq!((counts.completed, counts.completion_sum, counts.pages.len()), (1, at(4).since(at(1)), 1));
    }

    #[test]
    fn a_file_is_sent_once() {
        let mut applications = world_of(TWO_PROXIES).applications;
        applications.begin(FILE, at(0));
        applications.flows[1].sender = Some(2);
        assert_eq!(applications.complete(FILE, at(3)), None);
        assert_eq!((applications.flows[1].counts.completed, applications.flows[1].sender), (1, None));
    }

    /// A reader tries the next page; the end of a former connection concerns nobody.
    #[test]
    fn the_early_end_of_the_present_connection_is_noted() {
        let mut applications = world_of(TWO_PROXIES).applications;
        applications.begin(PAGES, at(0));
        applications.flows[0].sender = Some(4);
        assert_eq!(applications.abort(PAGES, 2, "reset", at(1)), None);
        assert_eq!(applications.flows[0].counts.of_gone().aborted, None);
        assert_eq!(applications.abort(PAGES, 4, "reset", at(1)), Some(at(3)));
        assert_eq!(applications.flows[0].counts.of_gone().aborted, Some("reset"));
    }
}
