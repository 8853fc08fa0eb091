//! Queue of bundles with fast removal.

use std::collections::BTreeMap;

use super::bundle::{Bundle, Name};

/// Bundles in their sending order, each once. Operations take time logarithmic in their number.
#[derive(Debug, Default)]
pub(super) struct Line {
    bundles: BTreeMap<i64, Bundle>,
    /// Position of each bundle in the queue.
    places: BTreeMap<Name, i64>,
}

impl Line {
    pub fn push_back(&mut self, bundle: Bundle) {
        let place = self.bundles.last_key_value().map_or(0, |(last, _)| last + 1);
        self.insert(place, bundle);
    }

    pub fn push_front(&mut self, bundle: Bundle) {
        let place = self.bundles.first_key_value().map_or(0, |(first, _)| first - 1);
        self.insert(place, bundle);
    }

    fn insert(&mut self, place: i64, bundle: Bundle) {
        self.remove(bundle.name);
        self.places.insert(bundle.name, place);
        self.bundles.insert(place, bundle);
    }

    pub fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }

    pub fn front(&self) -> Option<&Bundle> {
        self.bundles.first_key_value().map(|(_, bundle)| bundle)
    }

    pub fn pop_front(&mut self) -> Option<Bundle> {
        let (_, bundle) = self.bundles.pop_first()?;
        self.places.remove(&bundle.name);
        Some(bundle)
    }

    pub fn pop_back(&mut self) -> Option<Bundle> {
        let (_, bundle) = self.bundles.pop_last()?;
        self.places.remove(&bundle.name);
        Some(bundle)
    }

    /// Removes a bundle from any position.
    pub fn remove(&mut self, name: Name) -> Option<Bundle> {
        self.bundles.remove(&self.places.remove(&name)?)
    }

    pub fn contains(&self, name: Name) -> bool {
        self.places.contains_key(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtn::bundle::Payload;
    use crate::outbox::Fragment;
    use bentpipe_base::Instant;

    fn bundle(number: u64) -> Bundle {
        Bundle {
            name: Name { source: 0, number },
            to: 1,
            created: Instant::ZERO,
            expires: Instant::FAR_FUTURE,
            custodian: None,
            wants_report: false,
            payload: Payload::Data(Fragment { message: number, stream: 0, bytes: 1 }),
        }
    }

    #[test]
    fn bundles_leave_in_order_and_from_the_middle() {
        let mut line = Line::default();
        [1, 2, 3].into_iter().for_each(|number| line.push_back(bundle(number)));
        line.push_front(bundle(0));
        line.push_front(bundle(2));
        assert_eq!(line.remove(Name { source: 0, number: 1 }).map(|one| one.name.number), Some(1));
        assert!(!line.contains(Name { source: 0, number: 1 }) && line.remove(bundle(9).name).is_none());
        let left: Vec<u64> = std::iter::from_fn(|| line.pop_front()).map(|one| one.name.number).collect();
        assert_eq!((left, line.pop_back().is_none()), (vec![2, 0, 3], true));
    }
}
