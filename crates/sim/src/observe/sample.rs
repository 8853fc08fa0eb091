//! Samples the delivered bytes of all flows, once a second.

use bentpipe_base::Instant;
use bentpipe_outcome::SAMPLE_INTERVAL;

use crate::engine::key::EventTarget;
use crate::observe::monitor::Monitor;
use crate::simulation::Simulation;
use crate::world::Flow;

impl<M: Monitor> Simulation<M> {
    /// Samples the delivered bytes of all flows, and schedules the next sample.
    pub(crate) fn sample_goodput(&mut self, sampler: EventTarget) {
        // Nothing that happens in the network.
        self.events -= 1;
        self.run_windows();
        let delivered = self.sample_flows();
        self.note_goodput(self.now, delivered);
        self.go_on_after_sample(self.now + SAMPLE_INTERVAL);
        // In a world at rest nothing will be delivered.
        if !self.wheel.is_empty() {
            self.wheel.schedule(sampler, self.now + SAMPLE_INTERVAL);
        }
    }

    /// Samples the delivered bytes of each flow; returns their sum.
    pub(crate) fn sample_flows(&mut self) -> u64 {
        let mut delivered = std::mem::take(&mut self.core.goodput.delivered);
        delivered.clear();
        if self.processes.is_empty() {
            self.gather_delivered(&mut delivered);
        } else {
            delivered.extend_from_slice(self.sample_processes());
        }
        self.core.goodput.delivered = delivered;
        self.core.goodput.sample(self.now, self.flows.iter().map(|flow| flow.start))
    }

    /// Notes the delivered bytes of all flows together at a time.
    pub(crate) fn note_goodput(&mut self, at: Instant, bytes: u64) {
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or(Instant::ZERO);
        self.core.goodput.sample_all(at, first, bytes);
    }

    /// Collects the bytes of each flow that have arrived by now.
    fn gather_delivered(&self, delivered: &mut Vec<u64>) {
        let of_gone = |flow: &Flow| flow.counts.gone_delivered_bytes() + flow.counts.plain_bytes;
        delivered.extend(self.flows.iter().map(of_gone));
        let mut vacant = self.vacant.clone();
        vacant.sort_unstable();
        for (index, end) in self.ends.iter().enumerate().skip(1).step_by(2) {
            let present = vacant.binary_search(&(index as u32 - 1)).is_err();
            if present && self.leg_after(end.flow, end.leg_id).is_none() {
                delivered[end.flow as usize] += end.connection.delivered_bytes();
            }
        }
    }
}
