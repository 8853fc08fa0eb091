use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_trace::DropCause;

use crate::config::{LinkConfig, Reordering};
use crate::flight::Fate;
use crate::loss::Loss;
use crate::outage::{OutageCursor, OutageEffect};
use crate::schedule::Evaluator;
use crate::size_cache::SizeCache;

/// Transmitter and path: turns the start of a transmission into its end, an arrival and a fate.
///
/// It sees packets in the order of transmission and knows nothing of queues.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    rate: Evaluator,
    /// Transmission times at `cached_rate`.
    times: SizeCache<Duration>,
    cached_rate: u64,
    delay_one_way: Evaluator,
    outages: OutageCursor,
    loss: Loss,
    preserve_order: bool,
    last_due: Instant,
    reordering: Option<(Reordering, Rng)>,
    duplication: Option<(f64, Rng)>,
    /// When the next transmission may start if a packet is there.
    free_at: Instant,
    /// When the latest transmission ends.
    last_end: Instant,
    /// Time given to transmissions, the latest to its end.
    given: Duration,
}

/// How a packet passes the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// Transmission ends.
    pub end: Instant,
    /// The last bit arrives, or would.
    pub due: Instant,
    pub fate: Fate,
}

impl Line {
    /// Of a validated configuration; the random streams are those of `name` in a run with `seed`.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Self {
        let stream = |what| Rng::stream(seed, &format!("{name}/{what}"));
        let duplicate = config.duplicate_probability;
        Self {
            rate: Evaluator::new(&config.rate),
            times: SizeCache::new(),
            cached_rate: 0,
            delay_one_way: Evaluator::new(&config.delay_one_way),
            outages: OutageCursor::new(config.outages.clone()),
            loss: Loss::new(&config.loss, stream("loss")),
            preserve_order: config.preserve_order,
            last_due: Instant::ZERO,
            reordering: config.reordering.clone().map(|reordering| (reordering, stream("reordering"))),
            duplication: (duplicate > 0.0).then(|| (duplicate, stream("duplication"))),
            free_at: Instant::ZERO,
            last_end: Instant::ZERO,
            given: Duration::ZERO,
        }
    }

    /// When the next transmission may start if a packet is there by then.
    #[inline]
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Lets an idle transmitter wait for a packet that comes at `now`.
    pub fn wait_until(&mut self, now: Instant) {
        self.free_at = self.next_start(now);
    }

    /// When the latest transmission ends.
    pub fn last_end(&self) -> Instant {
        self.last_end
    }

    /// When a packet that is there from `now` on may start, all given before it served.
    #[inline]
    pub fn next_start(&mut self, now: Instant) -> Instant {
        if now <= self.free_at { self.free_at } else { self.outages.may_start(now) }
    }

    /// Time given to transmissions so far, the latest to its end.
    pub fn given(&self) -> Duration {
        self.given
    }

    /// Sends the next packet at `start`, which is not before [`Line::next_start`].
    #[inline]
    pub fn carry(&mut self, start: Instant, size: u32, is_data: bool) -> Passage {
        let whole = start + self.transmission_time(start, size);
        let end = self.occupy(start, whole);
        let due = end + Duration::from_nanos(self.delay_one_way.at(end));
        let mut fate =
            if self.loss.strikes(size, is_data) { Fate::Lost(DropCause::Error) } else { Fate::Arrives };
        if !self.outages.is_empty() && self.outage_hits(start, whole, due) {
            fate = Fate::Lost(DropCause::Outage);
        }
        if fate == Fate::Arrives && self.duplicates() {
            fate = Fate::ArrivesTwice;
        }
        Passage { end, due: self.order(due), fate }
    }

    /// Books the transmitter from `start` on for a transmission that would end at `whole`; returns when it does end,
    /// which is earlier if an outage cuts it.
    #[inline]
    fn occupy(&mut self, start: Instant, whole: Instant) -> Instant {
        let pauses = !self.outages.is_empty() && self.outages.effect() != OutageEffect::Blind;
        let end = if pauses { whole.min(self.outages.next_start(start)) } else { whole };
        self.free_at = self.outages.may_start(end);
        self.last_end = end;
        self.given += end.since(start);
        end
    }

    /// True if an outage takes the packet that is sent from `start` to `whole` and due at `due`.
    fn outage_hits(&mut self, start: Instant, whole: Instant, due: Instant) -> bool {
        match self.outages.effect() {
            OutageEffect::Pause => self.outages.next_start(start) < whole,
            OutageEffect::CutPath => self.outages.next_start(start) < due.max(whole),
            OutageEffect::Blind => self.outages.is_out(due),
        }
    }

    fn transmission_time(&mut self, start: Instant, size: u32) -> Duration {
        let bps = self.rate.at(start);
        if bps != self.cached_rate {
            self.times.clear();
            self.cached_rate = bps;
        }
        self.times.get(size, || Rate::from_bps(bps).time_for(u64::from(size)))
    }

    /// The due time after the order rule and random reordering.
    #[inline]
    fn order(&mut self, due: Instant) -> Instant {
        if let Some((reordering, rng)) = &mut self.reordering
            && rng.chance(reordering.probability)
        {
            let spread = reordering.extra_max.as_nanos() - reordering.extra_min.as_nanos();
            let extra = rng.below(spread.saturating_add(1));
            return due + reordering.extra_min + Duration::from_nanos(extra);
        }
        if !self.preserve_order {
            return due;
        }
        self.last_due = self.last_due.max(due);
        self.last_due
    }

    #[inline]
    fn duplicates(&mut self) -> bool {
        self.duplication.as_mut().is_some_and(|(probability, rng)| rng.chance(*probability))
    }
}
