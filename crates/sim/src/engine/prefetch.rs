//! Prefetches memory: in large worlds no cache holds the state that the next event needs.

use bentpipe_base::{prefetch, prefetch_item};
use bentpipe_scenario::LinkId;

use crate::engine::batch::SortedBatch;
use crate::engine::process::Processes;
use crate::engine::tuning::{BATCH_FAR, BATCH_NEAR, FAR, FEW_ENDS, NEAR};
use crate::network::hop::{ARRIVED, FIRST_SPECIAL};
use crate::observe::monitor::Monitor;
use crate::packet::handle::{Marks, PacketHandle};
use crate::packet::pool::{NO_CHANNEL, Waiting};
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// Prefetches the target of an event some places ahead, and the state behind a nearer event. The distances cover the latency of
    /// memory (measured).
    #[inline]
    pub(crate) fn prefetch_ahead(&self) {
        if !self.wheel.is_crowded() {
            return;
        }
        if let Some(target) = self.wheel.upcoming(6) {
            if target >= self.targets.first_end {
                prefetch(&self.ends[(target - self.targets.first_end) as usize]);
            } else if target >= self.targets.first_link {
                prefetch(&self.links[(target - self.targets.first_link) as usize]);
            }
        }
        let first_of = |ahead| {
            let target = self.wheel.upcoming(ahead)?;
            let is_link = (self.targets.first_link..self.targets.first_end).contains(&target);
            if is_link { self.links[(target - self.targets.first_link) as usize].in_flight(0) } else { None }
        };
        if let Some(handle) = first_of(4) {
            self.pool.prefetch(handle.index());
        }
        if let Some(&handle) = first_of(2) {
            self.prefetch_next(handle);
        }
    }

    /// True if the caches do not hold all of the world, so that it pays to fetch ahead.
    #[inline(always)]
    pub(crate) fn is_large(&self) -> bool {
        self.ends.len() > FEW_ENDS
    }

    /// Prefetches the state that a packet needs at the end of its link; its contents are in the cache.
    #[inline]
    pub(crate) fn prefetch_next(&self, handle: PacketHandle) {
        match self.routes[handle.position() + 1] {
            ARRIVED if handle.has(Marks::PLAIN) => {}
            ARRIVED => self.prefetch_end(handle),
            FIRST_SPECIAL.. => {}
            next => prefetch(&self.links[next as usize]),
        }
    }

    /// Prefetches the connection end that a packet goes to, and the parts of the packet that are out of line.
    #[inline]
    pub(crate) fn prefetch_end(&self, handle: PacketHandle) {
        if let Some(end) = self.ends.get(self.pool.address(handle.index()).0 as usize) {
            prefetch(end);
        }
        self.pool.prefetch_out_of_line(handle.index());
    }

    /// Prefetches packets that a long link will deliver: first their contents, then the state that these name.
    #[inline]
    pub(crate) fn prefetch_along(&self, link: LinkId) {
        let link = &self.links[link as usize];
        if let Some(&handle) = link.in_flight(NEAR) {
            self.prefetch_next(handle);
        }
        if let Some(handle) = link.in_flight(FAR) {
            self.pool.prefetch(handle.index());
        }
    }

    /// Asks for the memory of packets that leave later, then of their channels.
    #[inline(always)]
    pub(crate) fn prefetch_along_batch(&self, leaving: &SortedBatch, position: usize) {
        if let Some(index) = leaving.index(position + BATCH_FAR) {
            self.pool.prefetch(index);
        }
        if let Some(index) = leaving.index(position + BATCH_NEAR) {
            let channel = self.pool.channel(index);
            if channel != NO_CHANNEL {
                prefetch_item(&self.processes.channels, channel as usize);
            }
        }
    }

    /// Prefetches packets that arrive at channels later, and those that arrive now.
    #[inline(always)]
    pub(crate) fn prefetch_along_returned(&self, coming: &[Waiting]) {
        if let Some(packet) = coming.get(BATCH_NEAR) {
            self.pool.prefetch(packet.handle.of_share(None).index());
            prefetch_item(&self.processes.channels, packet.channel as usize);
        }
    }

    /// Prefetches processes that are executed soon: each call uses the addresses that the previous call loaded.
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
            self.wheel.prefetch(self.targets.first_process + scheduled[4]);
        }
        if let Some(process) = process(2) {
            for channel in &channels[process.channels.places()] {
                prefetch(&self.links[channel.link as usize]);
                prefetch_item(&self.routes, channel.position as usize);
                self.wheel.prefetch(self.targets.first_link + channel.link);
                channel.prefetch_first(&self.pool);
            }
            for member in &members[process.members.places()] {
                prefetch(&self.ends[member.ends.places()]);
                for link in member.links() {
                    prefetch(&self.links[*link as usize]);
                    self.wheel.prefetch(self.targets.first_link + *link);
                }
            }
        }
        if let Some(process) = process(1) {
            for member in &members[process.members.places()] {
                for end in &self.ends[member.ends.places()] {
                    end.connection.prefetch();
                    prefetch_item(&self.routes, end.route as usize);
                }
                member.links().iter().for_each(|link| self.links[*link as usize].prefetch());
            }
            for channel in &channels[process.channels.places()] {
                self.links[channel.link as usize].prefetch();
            }
        }
    }
}
