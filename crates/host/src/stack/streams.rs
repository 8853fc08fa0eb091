//! What the owner of a connection does with it: bytes in, bytes out, and the end.

use std::io::{IoSlice, IoSliceMut};

use bentpipe_base::Instant;

use super::endpoint::FillBound;
use super::{Id, Stack};

impl Stack {
    /// Takes up to `bytes.len()` bytes to send; returns how many. No more is taken than congestion window and memory allow to leave soon;
    /// [`Events::WRITABLE`](bentpipe_tcp::Events::WRITABLE) says when there is room for more.
    pub fn write(&mut self, now: Instant, id: Id, bytes: &[u8]) -> usize {
        self.now = self.now.max(now);
        let Some(endpoint) = self.endpoints.get(id) else { return 0 };
        let spare = self.accounts.spare_to_send(endpoint);
        let taken = self.endpoints[id].write(now, bytes, spare);
        if taken < bytes.len() {
            self.await_memory(id);
        }
        self.touch(id);
        taken
    }

    /// Lets `fill` write up to `most` bytes to send directly into the memory of a connection, in pieces one after the other; it returns how
    /// many it wrote. If there is no room, `fill` is not called, and this returns `None`; [`Events::WRITABLE`](bentpipe_tcp::Events::WRITABLE) tells when to call again.
    pub fn fill(
        &mut self,
        now: Instant,
        id: Id,
        most: usize,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> usize,
    ) -> Option<usize> {
        self.now = self.now.max(now);
        let spare = self.accounts.spare_to_send(self.endpoints.get(id)?);
        let filled = self.endpoints[id].fill(now, FillBound { bytes: most, memory: spare }, fill);
        if filled.is_none() {
            self.await_memory(id);
        }
        self.touch(id);
        filled
    }

    /// Passes up to `most` bytes that arrived in order to `take`, in pieces. It returns how many it took, and so does this.
    pub fn drain(
        &mut self,
        now: Instant,
        id: Id,
        most: usize,
        take: impl FnOnce(&[IoSlice<'_>]) -> usize,
    ) -> usize {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return 0 };
        let taken = endpoint.drain(now, most, take);
        if taken > 0 {
            self.touch(id);
        }
        taken
    }

    /// Remembers a writer that waits for memory while none of its data is outstanding. No acknowledgement will arrive that could wake it, so
    /// [`trim`](Self::trim) does.
    fn await_memory(&mut self, id: Id) {
        let endpoint = &mut self.endpoints[id];
        if endpoint.unacknowledged() == 0 && !std::mem::replace(&mut endpoint.starved, true) {
            self.starved.push(id);
        }
    }

    /// Bytes that [`write`](Self::write) would take now.
    pub fn send_room(&self, id: Id) -> usize {
        self.endpoints.get(id).map_or(0, |endpoint| endpoint.send_room(self.accounts.spare_to_send(endpoint)))
    }

    /// Bounds the unacknowledged bytes of a connection, in addition to the buffer that it was opened with. [`Events::WRITABLE`](bentpipe_tcp::Events::WRITABLE) tells when a
    /// quarter of the bound is free.
    pub fn set_send_limit(&mut self, id: Id, bytes: u64) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.limit = bytes;
        }
    }

    /// Marks the packets of a connection with a differentiated services code point (RFC 2474), except those of low priority.
    pub fn set_dscp(&mut self, id: Id, dscp: u8) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.dscp = dscp & 63;
        }
    }

    /// Bytes that were written and have not left yet, not even once.
    pub fn unsent(&self, id: Id) -> u64 {
        self.endpoints.get(id).map_or(0, |endpoint| endpoint.unsent())
    }

    /// Takes in-order bytes that arrived, as many as fit into `into`; returns how many.
    pub fn read(&mut self, now: Instant, id: Id, into: &mut [u8]) -> usize {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return 0 };
        let read = endpoint.read(now, into);
        if read > 0 {
            self.touch(id);
        }
        read
    }

    /// Takes and forgets in-order bytes that arrived; returns how many.
    pub fn discard(&mut self, now: Instant, id: Id) -> u64 {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return 0 };
        let read = endpoint.discard(now);
        if read > 0 {
            self.touch(id);
        }
        read
    }

    /// Nothing more will be written.
    pub fn close(&mut self, now: Instant, id: Id) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.engine.close(now);
            self.touch(id);
        }
    }

    /// Gives up at once, with a reset.
    pub fn abort(&mut self, now: Instant, id: Id) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.engine.abort(now);
            self.touch(id);
        }
    }

    /// Releases a connection: it is [closed](Self::close), exists as long as TCP needs it, and is then forgotten.
    /// Nothing is read any more: if something arrived that was not read, or does so from now on, the connection is reset (RFC 9293 section
    /// 3.6.1).
    pub fn release(&mut self, id: Id) {
        let now = self.now;
        let Some(endpoint) = self.endpoints.get_mut(id) else { return };
        endpoint.owned = false;
        endpoint.engine.release(now);
        if !std::mem::replace(&mut endpoint.orphan, true) {
            self.orphans.push_back(id);
            self.orphan_count += 1;
        }
        self.touch(id);
        while self.orphan_count > self.config.limits.orphans && self.evict_orphan() {}
    }
}
