//! Congestion control algorithm of a connection, with its capabilities.

use bentpipe_cc::{Accounting, CongestionControl, Requirements, Start};

use crate::Config;

bitflags::bitflags! {
    /// The capabilities of an algorithm, asked once.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Abilities: u8 {
        /// The algorithm is a [`Prober`](bentpipe_cc::Prober).
        const PROBES = 0x01;
        /// The algorithm is a prober that treats reports of duplicates (RFC 2883) as replies.
        const TAKES_REPORTS = 0x02;
        /// The algorithm has a [`Feedback`](bentpipe_cc::Feedback).
        const FEEDBACK = 0x04;
        /// The algorithm sends its own [`timeout_probe`](CongestionControl::timeout_probe).
        const TIMEOUT_PROBES = 0x08;
        /// The algorithm is a [`Detector`](bentpipe_cc::Detector).
        const DETECTS = 0x10;
        /// The algorithm is a [`Sleeper`](bentpipe_cc::Sleeper).
        const WAKES = 0x20;
        /// The algorithm handles every departing segment.
        const SEES_DEPARTURES = 0x40;
        /// Only the window limits the sender, and the delivery rate is not used.
        const WINDOW_ONLY = 0x80;
    }
}

impl Abilities {
    fn of(cc: &mut dyn CongestionControl) -> Self {
        let Requirements { sent, window_only, timeout_probes, .. } = cc.requirements();
        let mut abilities = Self::empty();
        abilities.set(Self::SEES_DEPARTURES, sent);
        abilities.set(Self::WINDOW_ONLY, window_only);
        let reports = cc.prober().map(|prober| prober.takes_reports());
        abilities.set(Self::PROBES, reports.is_some());
        abilities.set(Self::TAKES_REPORTS, reports == Some(true));
        abilities.set(Self::FEEDBACK, cc.feedback().is_some());
        abilities.set(Self::TIMEOUT_PROBES, timeout_probes);
        abilities.set(Self::DETECTS, cc.detector().is_some());
        abilities.set(Self::WAKES, cc.sleeper().is_some());
        abilities
    }
}

/// Algorithm of one connection, with its requirements and capabilities.
pub(super) struct Attached {
    pub cc: Box<dyn CongestionControl>,
    pub accounting: Accounting,
    /// True if the algorithm may withhold all data.
    pub withholds: bool,
    pub abilities: Abilities,
    /// True if the algorithm reacts to the number of marks.
    pub scalable: bool,
    /// True if the peer has the receiver half that the algorithm requests.
    pub exchanges_fields: bool,
    /// True while the algorithm withholds all data: expiries of the retransmission timer then do not count.
    pub withheld: bool,
}

impl Attached {
    /// Builds the algorithm of a connection, with Careful Resume around it if that is configured.
    pub fn build(config: &Config, start: &Start) -> Self {
        let own = config.cc.build(start);
        Self::new(match &config.careful_resume {
            Some(resume) if !config.resumes_without_pacing() => resume.around(own, start),
            _ => own,
        })
    }

    /// Queries requirements and capabilities of the algorithm once.
    fn new(mut cc: Box<dyn CongestionControl>) -> Self {
        let Requirements { accounting, withholds, scalable, .. } = cc.requirements();
        let abilities = Abilities::of(&mut *cc);
        Self { cc, accounting, withholds, abilities, scalable, exchanges_fields: false, withheld: false }
    }

    /// Returns the congestion window in segments.
    #[inline]
    pub fn window(&self) -> f64 {
        let window = self.cc.window();
        debug_assert!((1.0..=f64::from(u32::MAX)).contains(&window), "a window of {window} segments");
        window
    }

    #[inline]
    pub fn has(&self, ability: Abilities) -> bool {
        self.abilities.contains(ability)
    }
}
