//! The congestion control algorithm of a connection, and what is known of it.

use bentpipe_cc::{Accounting, CongestionControl, Wants};

bitflags::bitflags! {
    /// The capabilities of an algorithm, asked once.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Abilities: u8 {
        /// It is a [`Prober`](bentpipe_cc::Prober).
        const PROBES = 0x01;
        /// It is a prober that takes reports of duplicates (RFC 2883) for replies to its probes.
        const TAKES_REPORTS = 0x02;
        /// It has a [`Feedback`](bentpipe_cc::Feedback).
        const FEEDBACK = 0x04;
        /// It is a [`Questioner`](bentpipe_cc::Questioner).
        const QUESTIONS = 0x08;
        /// It is a [`Detector`](bentpipe_cc::Detector).
        const DETECTS = 0x10;
        /// It is a [`Sleeper`](bentpipe_cc::Sleeper).
        const WAKES = 0x20;
        /// It is told of every segment that leaves.
        const SEES_DEPARTURES = 0x40;
        /// Only the window holds data back, and the delivery rate is of no interest.
        const WINDOW_ONLY = 0x80;
    }
}

impl Abilities {
    fn of(cc: &mut dyn CongestionControl) -> Self {
        let Wants { sent, window_only, .. } = cc.wants();
        let mut abilities = Self::empty();
        abilities.set(Self::SEES_DEPARTURES, sent);
        abilities.set(Self::WINDOW_ONLY, window_only);
        let reports = cc.prober().map(|prober| prober.takes_reports());
        abilities.set(Self::PROBES, reports.is_some());
        abilities.set(Self::TAKES_REPORTS, reports == Some(true));
        abilities.set(Self::FEEDBACK, cc.feedback().is_some());
        abilities.set(Self::QUESTIONS, cc.questioner().is_some());
        abilities.set(Self::DETECTS, cc.detector().is_some());
        abilities.set(Self::WAKES, cc.sleeper().is_some());
        abilities
    }
}

/// The algorithm of one connection, with what it wants of the engine and what it is able to do.
pub(super) struct Attached {
    pub cc: Box<dyn CongestionControl>,
    pub accounting: Accounting,
    /// The algorithm may at times let no data leave.
    pub withholds: bool,
    pub abilities: Abilities,
    /// The peer has the receiver half that the algorithm asks for.
    pub exchanges_fields: bool,
    /// The algorithm lets no data leave at the moment, and an expiry of the retransmission timer does not count.
    pub withheld: bool,
}

impl Attached {
    /// Asks the algorithm, once, what it wants and which capabilities it has.
    pub fn new(mut cc: Box<dyn CongestionControl>) -> Self {
        let Wants { accounting, withholds, .. } = cc.wants();
        let abilities = Abilities::of(&mut *cc);
        Self { cc, accounting, withholds, abilities, exchanges_fields: false, withheld: false }
    }

    #[inline]
    pub fn has(&self, ability: Abilities) -> bool {
        self.abilities.contains(ability)
    }
}
