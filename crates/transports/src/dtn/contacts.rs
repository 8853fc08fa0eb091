use bentpipe_base::{Duration, Instant};

/// Contact times with a neighbour, known in advance: always except in gaps.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Contacts {
    /// Gaps without contact, in ascending order, disjoint, with exclusive ends.
    gaps: Vec<(Instant, Instant)>,
}

impl Contacts {
    /// Makes contact times with these gaps, which may be in any order. Their ends are exclusive.
    pub fn except(mut gaps: Vec<(Instant, Instant)>) -> Self {
        gaps.retain(|(from, to)| from < to);
        gaps.sort_unstable();
        let mut apart: Vec<(Instant, Instant)> = Vec::with_capacity(gaps.len());
        for (from, to) in gaps {
            match apart.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => apart.push((from, to)),
            }
        }
        Self { gaps: apart }
    }

    /// Returns the gaps that have not ended at `time`.
    fn ahead(&self, time: Instant) -> &[(Instant, Instant)] {
        &self.gaps[self.gaps.partition_point(|(_, to)| *to <= time)..]
    }

    /// Returns the first time from `time` on at which a contact lasts at least `span`; [`Instant::FAR_FUTURE`] if
    /// there is none.
    pub fn next(&self, time: Instant, span: Duration) -> Instant {
        let mut from = time;
        for gap in self.ahead(time) {
            if from + span <= gap.0 {
                break;
            }
            from = gap.1;
        }
        from
    }

    /// Returns the end of the contact at `time`, or of the next contact.
    pub fn end(&self, time: Instant) -> Instant {
        let next = self.next(time, Duration::from_nanos(1));
        self.ahead(next).first().map_or(Instant::FAR_FUTURE, |gap| gap.0)
    }

    /// Returns the time at which `span` of contact time has passed since `time`.
    pub fn after(&self, time: Instant, span: Duration) -> Instant {
        let (mut from, mut rest) = (time, span);
        for gap in self.ahead(time) {
            let lasts = gap.0.since(from.min(gap.0));
            if rest <= lasts {
                break;
            }
            (from, rest) = (gap.1, rest - lasts);
        }
        from + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    fn plan() -> Contacts {
        Contacts::except(vec![(at(20), at(25)), (at(2), at(7)), (at(22), at(30)), (at(5), at(5))])
    }

    #[test]
    fn gaps_are_put_in_order_and_together() {
        assert_eq!(plan().gaps, [(at(2), at(7)), (at(20), at(30))]);
    }

    #[test]
    fn a_packet_leaves_when_its_contact_lasts_long_enough() {
        let [second, five] = [1, 5].map(Duration::from_secs);
        assert_eq!([0, 1, 2, 6, 7].map(|s| plan().next(at(s), second)), [0, 1, 7, 7, 7].map(at));
        assert_eq!([0, 1, 16, 31].map(|s| plan().next(at(s), five)), [7, 7, 30, 31].map(at));
        let never = Contacts::except(vec![(at(3), Instant::FAR_FUTURE)]);
        assert_eq!([never.next(at(2), second), never.next(at(3), second)], [at(2), Instant::FAR_FUTURE]);
    }

    #[test]
    fn a_contact_ends_where_the_next_gap_begins() {
        assert_eq!([0, 3, 7, 19].map(|s| plan().end(at(s))), [2, 20, 20, 20].map(at));
        assert_eq!(plan().end(at(40)), Instant::FAR_FUTURE);
    }

    #[test]
    fn timers_stand_still_without_contact() {
        let three = Duration::from_secs(3);
        assert_eq!([0, 4, 7, 18, 31].map(|s| plan().after(at(s), three)), [8, 10, 10, 31, 34].map(at));
    }
}
