//! How the connections of a stack share what it may hold.

use bentpipe_tcp::State;

use super::endpoint::Endpoint;
use super::limits::{FAIR_SHARE, prefix};
use super::stream_buffer::CHUNK;
use super::{Id, Stack};

/// Data that wait to be sent to peers that have acknowledged nothing yet take at most the memory divided by this (chosen).
const UNPROVEN_DIVISOR: usize = 4;
/// One such peer gets at most what is left of that, divided by this (chosen).
const UNPROVEN_SHARES: usize = 16;

impl Stack {
    /// Brings the totals up to date with the memory that a connection takes now.
    pub(super) fn recount(&mut self, id: Id) {
        let endpoint = &mut self.endpoints[id];
        let (old, new) = (endpoint.charge, endpoint.cost());
        if old == new {
            return;
        }
        endpoint.charge = new;
        self.charged.exchange(old, new);
        let usage = self.usage.entry(prefix(endpoint.ends.remote.ip())).or_default();
        usage.bytes = usage.bytes + new.all - old.all;
    }

    /// Bytes by which the memory of a connection may grow.
    pub(super) fn spare(&self, endpoint: &Endpoint) -> usize {
        let free = self.config.limits.bytes.saturating_sub(self.charged.all);
        let of_peer = self.usage.get(&prefix(endpoint.ends.remote.ip())).map_or(0, |usage| usage.bytes);
        free.min(free.saturating_mul(FAIR_SHARE).saturating_sub(of_peer))
    }

    /// The same for data that waits to be sent. A peer that has acknowledged nothing gets one chunk, and beyond that a part of what is left for
    /// all such peers.
    pub(super) fn spare_to_send(&self, endpoint: &Endpoint) -> usize {
        let spare = self.spare(endpoint);
        if !endpoint.is_unproven() {
            return spare;
        }
        let left = (self.config.limits.bytes / UNPROVEN_DIVISOR).saturating_sub(self.charged.unproven);
        let share = CHUNK + left / UNPROVEN_SHARES;
        spare.min(share.saturating_sub(endpoint.charge.buffers))
    }

    /// Whether there is room for another connection. If there is none, the oldest released connections are reset to make room.
    pub(super) fn has_room(&mut self) -> bool {
        let limits = self.config.limits;
        loop {
            let full = self.endpoints.len() >= limits.connections || self.charged.all >= limits.bytes;
            if !full || !self.evict_orphan() {
                return !full;
            }
        }
    }

    /// Resets and forgets the oldest released connection. False if there is none.
    pub(super) fn evict_orphan(&mut self) -> bool {
        while let Some(id) = self.orphans.pop_front() {
            let Some(endpoint) = self.endpoints.get(id) else { continue };
            if !matches!(endpoint.engine.state(), State::TimeWait | State::Closed) {
                let (ends, header) = (endpoint.ends, endpoint.reset());
                self.answer(ends, header);
            }
            self.counters.evicted += 1;
            self.forget(id);
            return true;
        }
        false
    }
}
