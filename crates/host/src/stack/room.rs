//! Room for new connections, made by resetting the oldest released ones.

use bentpipe_tcp::State;

use super::Stack;

impl Stack {
    /// True if there is room for another connection. If necessary, the oldest released connections are reset to make room.
    pub(super) fn has_room(&mut self) -> bool {
        while self.accounts.is_full() {
            if !self.evict_orphan() {
                return false;
            }
        }
        true
    }

    /// Resets and removes the oldest released connection. Returns false if there is none.
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
