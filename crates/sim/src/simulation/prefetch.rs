//! Prefetches memory: in large worlds no cache holds the state that the next process or packet needs.

use bentpipe_base::{prefetch, prefetch_item};

use crate::observe::monitor::Monitor;
use crate::packet::pool::NO_CHANNEL;
use crate::parallel::batch::SortedBatch;
use crate::parallel::process::Processes;
use crate::scheduler::target::Target;
use crate::simulation::Simulation;
use crate::tuning::{BATCH_FAR, BATCH_NEAR};

impl<M: Monitor> Simulation<M> {
    /// Prefetches packets of a sorted batch that leave later, then their channels.
    #[inline(always)]
    pub(crate) fn prefetch_along_batch(&self, leaving: &SortedBatch, position: usize) {
        if let Some(index) = leaving.index(position + BATCH_FAR) {
            self.network.pool.prefetch(index);
        }
        if let Some(index) = leaving.index(position + BATCH_NEAR) {
            let channel = self.network.pool.channel(index);
            if channel != NO_CHANNEL {
                prefetch_item(&self.processes.channels, channel as usize);
            }
        }
    }

    /// Prefetches processes that are executed soon: each step uses the addresses that the previous one loaded.
    #[inline(always)]
    pub(crate) fn prefetch_along_window(&self, scheduled: &[u32]) {
        let Processes { processes, channels, members, .. } = &self.processes;
        let process = |place: usize| scheduled.get(place).map(|id| &processes[*id as usize]);
        if let Some(process) = process(6) {
            prefetch(process);
        }
        if let Some(process) = process(4) {
            prefetch(&channels[process.channels.places()]);
            prefetch(&members[process.members.places()]);
            self.scheduler.prefetch(Target::Process(scheduled[4]));
        }
        if let Some(process) = process(2) {
            for channel in &channels[process.channels.places()] {
                prefetch(&self.network.links[channel.link as usize]);
                prefetch_item(&self.network.routes.hops, channel.position as usize);
                self.scheduler.prefetch(Target::Link(channel.link));
            }
            for member in &members[process.members.places()] {
                prefetch(&self.hosts.ends[member.ends.places()]);
                for link in member.links() {
                    prefetch(&self.network.links[*link as usize]);
                    self.scheduler.prefetch(Target::Link(*link));
                }
            }
        }
    }
}
