//! A ground station that reports transmission errors, outages and recoveries of its links.
//!
//! CCSDS 714.0-B-2 requires such messages for SCPS-TP. H. Xu, S. Wu, "A Priority-Based TCP Congestion Control Strategy in
//! Satellite IP Networks", IEEE ICCCAS 2005, requires them for TCP PBS. Neither defines their transport: `papers/scps-tp.md`
//! describes the choice made here.

use std::collections::BTreeMap;

use bentpipe_base::{Extension, Flags, Instant, Notice, Segment};

use crate::table::Table;
use crate::{Connection, Direction, Emission, LinkNoticesConfig, Passing, Spoilt, Told, Verdict};

/// A ground station that reports errors and outages of its links.
#[derive(Clone, Debug)]
pub struct LinkNotices {
    config: LinkNoticesConfig,
    /// Pending reports to receivers, by direction of the data.
    errors: [Table<Option<u64>>; 2],
    /// Senders informed of an outage, keyed by its end, connection, and direction of the data.
    waiting: BTreeMap<(Instant, Connection, Direction), Waiting>,
    outages_told: u64,
    errors_told: u64,
}

/// A sender informed of an outage.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Next sequence number that it expects, which a message to it carries.
    expects: u64,
    told_at: Instant,
}

/// Returns a message to the end whose data travels in `direction`: no flag, data or acknowledgement.
fn message(connection: Connection, direction: Direction, expects: u64, notice: Notice) -> Emission {
    let segment = Segment { seq: expects, extension: Extension::Notice(notice), ..Segment::default() };
    Emission { connection, direction: direction.opposite(), segment }
}

impl LinkNotices {
    /// Makes a ground station without state.
    pub(crate) fn new(config: LinkNoticesConfig) -> Self {
        let errors = Default::default();
        Self { config, errors, waiting: BTreeMap::new(), outages_told: 0, errors_told: 0 }
    }

    pub(crate) fn handle(
        &mut self,
        now: Instant,
        passing: &mut Passing<'_>,
        out: &mut Vec<Emission>,
    ) -> Verdict {
        let Some(connection) = passing.connection else { return Verdict::Forward };
        let (direction, segment) = (passing.direction, &mut *passing.segment);
        if segment.len > 0 && segment.extension == Extension::None {
            let told = self.errors[direction as usize].get_mut(connection).and_then(Option::take);
            segment.extension = told.map_or(Extension::None, |seq| Extension::Notice(Notice::Spoilt(seq)));
            self.errors_told += u64::from(told.is_some());
        }
        if let Some(until) = passing.port.out_until.filter(|_| segment.flags.contains(Flags::ACK)) {
            let new = Waiting { expects: segment.ack, told_at: now };
            let known = self.waiting.get(&(until, connection, direction));
            if known.is_none_or(|old| now.since(old.told_at) >= self.config.repeat) {
                self.waiting.insert((until, connection, direction), new);
                self.outages_told += 1;
                out.push(message(connection, direction, new.expects, Notice::Outage));
            }
        }
        Verdict::Forward
    }

    pub(crate) fn handle_spoilt(&mut self, now: Instant, spoilt: &Spoilt<'_>, out: &mut Vec<Emission>) {
        let Spoilt { connection, direction, segment } = *spoilt;
        if segment.len == 0 {
            return;
        }
        match self.config.errors_to {
            Told::Receiver => *self.errors[direction as usize].heard(connection, now) = Some(segment.seq),
            Told::Sender => {
                self.errors_told += 1;
                out.push(message(connection, direction, segment.ack, Notice::Spoilt(segment.seq)));
            }
        }
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.waiting.first_key_value().map_or(Instant::FAR_FUTURE, |((until, ..), _)| *until)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Emission>) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            let ((_, connection, direction), waiting) = first.remove_entry();
            out.push(message(connection, direction, waiting.expects, Notice::Restored));
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("outages_told", self.outages_told), ("errors_told", self.errors_told)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{at_ms, pass};

    fn data(seq: u64) -> Segment {
        Segment { seq, ack: 77, len: 1000, flags: Flags::ACK, ..Segment::default() }
    }

    fn notices(out: &mut Vec<Emission>) -> Vec<Extension> {
        out.drain(..)
            .map(|emission| {
                assert_eq!((emission.direction, emission.segment.seq), (Direction::Reverse, 77));
                assert!(emission.segment.flags.is_empty());
                emission.segment.extension
            })
            .collect()
    }

    #[test]
    fn a_sender_hears_of_an_outage_and_of_its_end() {
        let mut station = LinkNotices::new(LinkNoticesConfig::default());
        let mut out = Vec::new();
        let mut told = Vec::new();
        for at in [10, 20, 400, 520] {
            let mut segment = data(1);
            let mut passing = pass(&mut segment, Direction::Forward, 0);
            passing.port.out_until = Some(at_ms(2000));
            assert_eq!(station.handle(at_ms(at), &mut passing, &mut out), Verdict::Forward);
            told.push(notices(&mut out).len());
        }
        assert_eq!(told, [1, 0, 0, 1], "at once, and again after half a second");
        assert_eq!(station.next_timeout(), at_ms(2000));
        station.handle_timeout(at_ms(2000), &mut out);
        assert_eq!(notices(&mut out), [Extension::Notice(Notice::Restored)]);
        assert_eq!(station.next_timeout(), Instant::FAR_FUTURE);
    }

    #[test]
    fn an_error_is_told_to_the_sender_or_with_the_next_segment_to_the_receiver() {
        let spoilt = data(5001);
        let spoilt = Spoilt { connection: Connection(1), direction: Direction::Forward, segment: &spoilt };
        let mut out = Vec::new();
        let mut station = LinkNotices::new(LinkNoticesConfig::default());
        station.handle_spoilt(at_ms(1), &spoilt, &mut out);
        assert_eq!(notices(&mut out), [Extension::Notice(Notice::Spoilt(5001))]);

        let config = LinkNoticesConfig { errors_to: Told::Receiver, ..LinkNoticesConfig::default() };
        let mut station = LinkNotices::new(config);
        station.handle_spoilt(at_ms(1), &spoilt, &mut out);
        assert!(out.is_empty());
        let mut next = [data(6001), data(7001)];
        for segment in &mut next {
            station.handle(at_ms(2), &mut pass(segment, Direction::Forward, 0), &mut out);
        }
        let said = next.map(|segment| segment.extension);
        assert_eq!(said, [Extension::Notice(Notice::Spoilt(5001)), Extension::None]);
    }
}
