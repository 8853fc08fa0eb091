//! How the connections of a stack share what it may hold.

use bentpipe_tcp::State;

use super::limits::{FAIR_SHARE, prefix};
use super::peer::Peer;
use super::ring::CHUNK;
use super::{Id, Stack};

/// All data that waits to be sent to peers that have acknowledged nothing yet takes at most the memory divided by the first number. One of these
/// peers gets at most what is left of that, divided by the second number.
const UNPROVEN_DIVISOR: usize = 4;
const UNPROVEN_SHARES: usize = 16;

impl Stack {
    /// Brings the totals up to date with the memory that a connection takes now.
    pub(super) fn recount(&mut self, id: Id) {
        let peer = &mut self.peers[id];
        let (old, new) = (peer.charge, peer.cost());
        if old == new {
            return;
        }
        peer.charge = new;
        self.charged.exchange(old, new);
        let usage = self.usage.entry(prefix(peer.ends.remote.ip())).or_default();
        usage.bytes = usage.bytes + new.all - old.all;
    }

    /// Bytes by which the memory of a connection may grow.
    pub(super) fn spare(&self, peer: &Peer) -> usize {
        let free = self.config.limits.bytes.saturating_sub(self.charged.all);
        let of_peer = self.usage.get(&prefix(peer.ends.remote.ip())).map_or(0, |usage| usage.bytes);
        free.min(free.saturating_mul(FAIR_SHARE).saturating_sub(of_peer))
    }

    /// The same for data that waits to be sent. A peer that has acknowledged nothing gets one chunk, and beyond that a part of what is left for
    /// all such peers.
    pub(super) fn spare_to_send(&self, peer: &Peer) -> usize {
        let spare = self.spare(peer);
        if !peer.is_unproven() {
            return spare;
        }
        let left = (self.config.limits.bytes / UNPROVEN_DIVISOR).saturating_sub(self.charged.unproven);
        let share = CHUNK + left / UNPROVEN_SHARES;
        spare.min(share.saturating_sub(peer.charge.rings))
    }

    /// Whether there is room for another connection. If there is none, the oldest released connections are reset to make room.
    pub(super) fn has_room(&mut self) -> bool {
        let limits = self.config.limits;
        loop {
            let full = self.peers.len() >= limits.connections || self.charged.all >= limits.bytes;
            if !full || !self.evict_orphan() {
                return !full;
            }
        }
    }

    /// Resets and forgets the oldest released connection. False if there is none.
    pub(super) fn evict_orphan(&mut self) -> bool {
        while let Some(id) = self.orphans.pop_front() {
            let Some(peer) = self.peers.get(id) else { continue };
            if !matches!(peer.engine.state(), State::TimeWait | State::Closed) {
                let (ends, header) = (peer.ends, peer.reset());
                self.answer(ends, header);
            }
            self.counters.evicted += 1;
            self.forget(id);
            return true;
        }
        false
    }
}
