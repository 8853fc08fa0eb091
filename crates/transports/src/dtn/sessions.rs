//! Sessions: transmissions of bundles as blocks.

use std::collections::{BTreeMap, BTreeSet};

use bentpipe_base::Instant;

use super::bundle::{Bundle, Name};

/// Blocks, keyed by session, with indexes by bundle name and expiry time. Operations take time logarithmic in their number.
#[derive(Debug)]
pub(super) struct Sessions<T> {
    blocks: BTreeMap<u64, (Bundle, T)>,
    by_name: BTreeSet<(Name, u64)>,
    by_expiry: BTreeSet<(Instant, u64)>,
}

impl<T> Default for Sessions<T> {
    fn default() -> Self {
        Self { blocks: BTreeMap::new(), by_name: BTreeSet::new(), by_expiry: BTreeSet::new() }
    }
}

impl<T> Sessions<T> {
    /// Sets the block of a session, and replaces any earlier one.
    pub fn insert(&mut self, session: u64, bundle: Bundle, block: T) {
        self.remove(session);
        self.blocks.insert(session, (bundle, block));
        self.by_name.insert((bundle.name, session));
        self.by_expiry.insert((bundle.expires, session));
    }

    pub fn get_mut(&mut self, session: u64) -> Option<&mut (Bundle, T)> {
        self.blocks.get_mut(&session)
    }

    pub fn remove(&mut self, session: u64) -> Option<T> {
        let (bundle, block) = self.blocks.remove(&session)?;
        self.by_name.remove(&(bundle.name, session));
        self.by_expiry.remove(&(bundle.expires, session));
        Some(block)
    }

    /// Removes and returns all blocks of a bundle, with their sessions.
    pub fn take(&mut self, name: Name) -> Vec<(u64, T)> {
        let sessions: Vec<u64> =
            self.by_name.range((name, 0)..=(name, u64::MAX)).map(|(_, session)| *session).collect();
        sessions.into_iter().filter_map(|session| Some((session, self.remove(session)?))).collect()
    }

    /// Removes the blocks of expired bundles.
    pub fn expire(&mut self, now: Instant) {
        while let Some(&(at, session)) = self.by_expiry.first()
            && at <= now
        {
            self.remove(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtn::bundle::Payload;
    use crate::outbox::Fragment;

    fn bundle(number: u64, expires: u64) -> Bundle {
        Bundle {
            name: Name { source: 0, number },
            to: 1,
            created: Instant::ZERO,
            expires: Instant::from_nanos(expires),
            custodian: None,
            wants_report: false,
            payload: Payload::Data(Fragment { message: number, stream: 0, bytes: 1 }),
        }
    }

    #[test]
    fn blocks_go_by_session_by_name_and_by_time() {
        let mut sessions = Sessions::default();
        for (session, number, expires) in [(1, 7, 50), (2, 7, 60), (3, 8, 50), (4, 9, 70), (4, 9, 80)] {
            sessions.insert(session, bundle(number, expires), session * 10);
        }
        assert_eq!(sessions.take(bundle(7, 0).name), [(1, 10), (2, 20)]);
        assert!(sessions.get_mut(1).is_none());
        sessions.expire(Instant::from_nanos(75));
        let left: Vec<u64> = (0..9).filter(|session| sessions.get_mut(*session).is_some()).collect();
        assert_eq!((left, sessions.remove(4), sessions.remove(4)), (vec![4], Some(40), None));
    }
}
