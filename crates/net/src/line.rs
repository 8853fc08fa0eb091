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
        let mut end = start + self.transmission_time(start, size);
        let mut due = end + Duration::from_nanos(self.delay_one_way.at(end));
        let mut fate =
            if self.loss.strikes(size, is_data) { Fate::Lost(DropCause::Error) } else { Fate::Arrives };
        self.free_at = end;
        if !self.outages.is_empty() {
            (end, due, fate) = self.meet_outages(start, Passage { end, due, fate });
        }
        due = self.order(due);
        if fate == Fate::Arrives && self.duplicates() {
            fate = Fate::ArrivesTwice;
        }
        self.last_end = end;
        self.given += end.since(start);
        Passage { end, due, fate }
    }

    fn transmission_time(&mut self, start: Instant, size: u32) -> Duration {
        let bps = self.rate.at(start);
        if bps != self.cached_rate {
            self.times.clear();
            self.cached_rate = bps;
        }
        self.times.get(size, || Rate::from_bps(bps).time_for(u64::from(size)))
    }

    /// What outages make of a passage: its end, due time and fate. Sets `free_at`.
    fn meet_outages(&mut self, start: Instant, passage: Passage) -> (Instant, Instant, Fate) {
        let Passage { end, due, fate } = passage;
        let out_from = match self.outages.effect() {
            OutageEffect::Blind if self.outages.is_out(due) => {
                return (end, due, Fate::Lost(DropCause::Outage));
            }
            OutageEffect::Blind => return (end, due, fate),
            OutageEffect::Pause | OutageEffect::CutPath => self.outages.next_start(start),
        };
        let cut = out_from < end;
        let lost = cut || (self.outages.effect() == OutageEffect::CutPath && out_from < due);
        let end = end.min(out_from);
        self.free_at = self.outages.may_start(end);
        (end, due, if lost { Fate::Lost(DropCause::Outage) } else { fate })
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
