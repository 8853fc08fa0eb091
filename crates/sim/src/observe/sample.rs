//! Samples what all flows have delivered, once a second.

use bentpipe_outcome::SAMPLE_INTERVAL;

use crate::engine::key::EventTarget;
use crate::observe::monitor::Monitor;
use crate::simulation::Simulation;
use crate::world::Flow;

impl<M: Monitor> Simulation<M> {
    /// Samples what each flow has delivered, and says when to sample again.
    pub(crate) fn sample_goodput(&mut self, sampler: EventTarget) {
        let mut delivered = std::mem::take(&mut self.goodput.delivered);
        delivered.clear();
        self.gather_delivered(&mut delivered);
        self.goodput.delivered = delivered;
        let all = self.goodput.sample(self.now, self.flows.iter().map(|flow| flow.start));
        self.delivered.push(all);
        self.queue.schedule(sampler, self.now + SAMPLE_INTERVAL);
    }

    /// What has arrived of each flow by now, in bytes.
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
