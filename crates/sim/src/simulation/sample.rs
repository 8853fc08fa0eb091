//! Samples the delivered bytes of all flows, once a second.

use bentpipe_outcome::SAMPLE_INTERVAL;

use crate::app::flow::Flow;
use crate::observe::monitor::Monitor;
use crate::scheduler::target::Target;
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// Samples the delivered bytes of all flows, and schedules the next sample.
    pub(crate) fn sample_goodput(&mut self) {
        self.run_windows();
        let delivered = self.sample_flows();
        self.applications.sample_all(self.scheduler.now, delivered);
        self.go_on_after_sample(self.scheduler.now + SAMPLE_INTERVAL);
        // In a world at rest nothing will be delivered.
        if !self.scheduler.is_empty() {
            self.scheduler.schedule(Target::Sampler, self.scheduler.now + SAMPLE_INTERVAL);
        }
    }

    /// Samples the delivered bytes of each flow; returns their sum.
    pub(crate) fn sample_flows(&mut self) -> u64 {
        let mut delivered = std::mem::take(&mut self.applications.goodput.delivered);
        delivered.clear();
        if self.processes.is_empty() {
            self.gather_delivered(&mut delivered);
        } else {
            delivered.extend_from_slice(self.sample_processes());
        }
        self.applications.sample(self.scheduler.now, delivered)
    }

    /// Collects the bytes of each flow that have arrived by now.
    fn gather_delivered(&self, delivered: &mut Vec<u64>) {
        let of_gone = |flow: &Flow| flow.counts.gone_delivered_bytes() + flow.counts.plain_bytes;
        delivered.extend(self.applications.flows.iter().map(of_gone));
        let mut vacant = self.hosts.vacant.clone();
        vacant.sort_unstable();
        for (index, end) in self.hosts.ends.iter().enumerate().skip(1).step_by(2) {
            let present = vacant.binary_search(&(index as u32 - 1)).is_err();
            if present && self.hosts.leg_after(end.flow, end.leg_id).is_none() {
                delivered[end.flow as usize] += end.connection.delivered_bytes();
            }
        }
    }
}
