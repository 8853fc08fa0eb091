//! Operations of the owner of a connection: write, read, close.

use std::io::{IoSlice, IoSliceMut};

use bentpipe_base::Instant;

use super::endpoint::FillBound;
use super::{Id, Stack};

impl Stack {
    /// Accepts up to `bytes.len()` bytes to send; returns their number. Congestion window and memory limit it to data that leaves
    /// soon. [`Events::WRITABLE`](bentpipe_tcp::Events::WRITABLE) reports new room.
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

    /// Lets `fill` write up to `most` bytes into the connection's memory, in pieces in order; `fill` returns the number of bytes.
    /// Without room `fill` is not called and the result is `None`; [`Events::WRITABLE`](bentpipe_tcp::Events::WRITABLE) reports
    /// new room.
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

    /// Passes up to `most` received in-order bytes to `take` in pieces. `take` and this function return the number of bytes
    /// consumed.
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

    /// Records a writer that waits for memory without outstanding data. No acknowledgement can notify it, so [`trim`](Self::trim)
    /// does.
    fn await_memory(&mut self, id: Id) {
        let endpoint = &mut self.endpoints[id];
        if endpoint.unacknowledged() == 0 && !std::mem::replace(&mut endpoint.starved, true) {
            self.starved.push(id);
        }
    }

    /// Returns the bytes that [`write`](Self::write) would accept now.
    pub fn send_room(&self, id: Id) -> usize {
        self.endpoints.get(id).map_or(0, |endpoint| endpoint.send_room(self.accounts.spare_to_send(endpoint)))
    }

    /// Bounds the unacknowledged bytes of a connection, in addition to its send buffer.
    /// [`Events::WRITABLE`](bentpipe_tcp::Events::WRITABLE) reports when a quarter of the bound is free.
    pub fn set_send_limit(&mut self, id: Id, bytes: u64) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.limit = bytes;
        }
    }

    /// Sets the DSCP (RFC 2474) of a connection's packets, except low-priority ones.
    pub fn set_dscp(&mut self, id: Id, dscp: u8) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.dscp = dscp & 63;
        }
    }

    /// Returns the bytes written but never sent.
    pub fn unsent(&self, id: Id) -> u64 {
        self.endpoints.get(id).map_or(0, |endpoint| endpoint.unsent())
    }

    /// Reads received in-order bytes into `into`; returns their number.
    pub fn read(&mut self, now: Instant, id: Id, into: &mut [u8]) -> usize {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return 0 };
        let read = endpoint.read(now, into);
        if read > 0 {
            self.touch(id);
        }
        read
    }

    /// Discards received in-order bytes; returns their number.
    pub fn discard(&mut self, now: Instant, id: Id) -> u64 {
        let Some(endpoint) = self.endpoints.get_mut(id) else { return 0 };
        let read = endpoint.discard(now);
        if read > 0 {
            self.touch(id);
        }
        read
    }

    /// Closes the sending direction: no further data will be written.
    pub fn close(&mut self, now: Instant, id: Id) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.engine.close(now);
            self.touch(id);
        }
    }

    /// Aborts the connection with a reset.
    pub fn abort(&mut self, now: Instant, id: Id) {
        if let Some(endpoint) = self.endpoints.get_mut(id) {
            endpoint.engine.abort(now);
            self.touch(id);
        }
    }

    /// Releases a connection: it is [closed](Self::close), exists while TCP needs it, and is then removed. No data is read any
    /// more: unread data, now or later, resets the connection (RFC 9293 section 3.6.1).
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
