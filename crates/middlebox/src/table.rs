//! Soft state of connections, removed after a time of silence.

use std::collections::BTreeMap;

use bentpipe_base::{Duration, Instant};

use crate::Connection;

/// Silence after which a connection is forgotten: twice the maximum retransmission timeout (RFC 6298 section 2.4).
const LIFE: Duration = Duration::from_secs(120);
/// Number of entries below which no search for expired ones is made.
const FEW: usize = 64;

/// Soft state, keyed by connection.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    entries: BTreeMap<Connection, (Instant, T)>,
    /// Number of entries at which expired ones are searched.
    sweep_at: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), sweep_at: FEW }
    }
}

impl<T: Default> Table<T> {
    /// Returns the state of a connection that was active at `now`.
    pub fn heard(&mut self, connection: Connection, now: Instant) -> &mut T {
        if self.entries.len() >= self.sweep_at && !self.entries.contains_key(&connection) {
            self.entries.retain(|_, (heard, _)| *heard + LIFE > now);
            self.sweep_at = FEW.max(2 * self.entries.len());
        }
        let entry = self.entries.entry(connection).or_default();
        entry.0 = now;
        &mut entry.1
    }

    /// Returns the state of a connection, if there is any.
    pub fn get_mut(&mut self, connection: Connection) -> Option<&mut T> {
        self.entries.get_mut(&connection).map(|(_, state)| state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_silent_are_forgotten_when_room_is_needed() {
        let mut table = Table::<u32>::default();
        let late = Instant::ZERO + Duration::from_secs(200);
        for n in 0..FEW as u64 {
            let now = if n == 7 { late } else { Instant::ZERO };
            *table.heard(Connection(n), now) = n as u32;
        }
        table.heard(Connection(1_000), late);
        let left: Vec<_> = table.entries.keys().map(|connection| connection.0).collect();
        assert_eq!(left, [7, 1_000]);
    }
}
