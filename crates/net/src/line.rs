use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, Rate, Rng};

use crate::config::{ArqConfig, LinkConfig, Reordering};
use crate::flight::Fate;
use crate::gaps::Gaps;
use crate::jitter::JitterDraws;
use crate::loss::{Loss, Sending};
use crate::opportunity::OpportunityCursor;
use crate::outage::{Outage, OutageCursor, OutageEffect};
use crate::queue::backlog::{Backlog, Unbegun};
use crate::schedule::{Evaluator, Quantity, Schedule};
use crate::size_cache::SizeCache;

/// Transmitter and path: computes end of transmission, arrival and fate from the start of a transmission.
///
/// It sees packets in transmission order and has no queue. Most lines of a world are plain, so rarely used state is allocated
/// separately: small lines stay in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Present rate in bits per second.
    bps: u64,
    /// Present one-way delay.
    delay_one_way: Duration,
    /// Cached transmission times at `bps`.
    times: SizeCache<Duration>,
    /// Earliest start of the next transmission if a packet is present.
    free_at: Instant,
    /// End of the latest transmission.
    last_end: Instant,
    /// Total transmission time of all packets, up to the end of the latest transmission.
    given: Duration,
    /// Transmission errors; `None` on an error-free line.
    loss: Option<Box<Loss>>,
    /// State that a plain line lacks.
    changes: Option<Box<Changes>>,
    /// Idle times between transmissions.
    gaps: Gaps,
}

/// Source of the random numbers of a link.
#[derive(Clone, Copy, Debug)]
pub struct Draws<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the link.
    pub name: &'a str,
}

/// Varying state of a line that is not plain.
#[derive(Clone, Debug)]
struct Changes {
    rate: Evaluator,
    /// Opportunities that replace the rate.
    opportunities: Option<OpportunityCursor>,
    delay_one_way: Evaluator,
    outages: OutageCursor,
    /// Pauses of the transmitter within packets that have not ended.
    holds: VecDeque<Outage>,
    /// Total length of ended pauses.
    held: Duration,
    arq: Option<ArqConfig>,
    preserve_order: bool,
    /// True if only rate and delay change: no outages, opportunities or random effects.
    only_moves: bool,
    last_due: Instant,
    jitter: Option<JitterDraws>,
    reordering: Option<(Reordering, Rng)>,
    duplication: Option<(f64, Rng)>,
    corruption: Option<(f64, Rng)>,
}

/// Passage of a packet over the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// End of transmission.
    pub end: Instant,
    /// Arrival time of the last bit, even if it is lost.
    pub due: Instant,
    pub fate: Fate,
}

impl Line {
    /// Makes a line of a validated configuration. Its random streams are those of `name` in a run with `seed`.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Self {
        // Most links of a large world have neither losses nor changes, so nothing is allocated for them.
        let mut changes = (!config.is_plain()).then(|| Box::new(Changes::new(config, seed, name)));
        let (bps, delay_one_way) = match &mut changes {
            Some(changes) => (changes.rate.at(Instant::ZERO), changes.delay_one_way.at(Instant::ZERO)),
            None => (at_start(&config.rate), at_start(&config.delay_one_way)),
        };
        let loss = || Loss::new(&config.loss, Rng::stream(seed, &format!("{name}/loss")));
        Self {
            bps,
            delay_one_way: Duration::from_nanos(delay_one_way),
            times: SizeCache::new(),
            free_at: changes.as_mut().map_or(Instant::ZERO, |changes| changes.may_start(Instant::ZERO)),
            last_end: Instant::ZERO,
            given: Duration::ZERO,
            loss: (!config.loss.is_off()).then(loss).flatten().map(Box::new),
            changes,
            gaps: Gaps::default(),
        }
    }

    /// Continues from `now` with another validated configuration. Sent packets keep their arrival times, at most `last_due`.
    pub fn resume(
        &mut self,
        now: Instant,
        last_due: Instant,
        config: &LinkConfig,
        Draws { seed, name }: Draws<'_>,
    ) {
        let mut changes = Changes::new(config, seed, name);
        changes.last_due = last_due;
        if let Some(before) = &mut self.changes {
            (changes.holds, changes.held) = (std::mem::take(&mut before.holds), before.held);
        }
        // The transmitter may have waited for the end of an outage that the new configuration lacks.
        let free_at = changes.may_start(self.last_end.max(now));
        *self = Self {
            free_at,
            last_end: self.last_end,
            given: self.given,
            gaps: self.gaps,
            changes: Some(Box::new(changes)),
            ..Self::new(config, seed, name)
        };
    }

    /// Returns the rate of a transmission that starts at `now`.
    pub fn rate(&mut self, now: Instant) -> Rate {
        Rate::from_bps(self.changes.as_mut().map_or(self.bps, |changes| changes.rate.at(now)))
    }

    /// Returns the one-way delay of a transmission that ends at `now`.
    pub fn delay_one_way(&mut self, now: Instant) -> Duration {
        let changed = self.changes.as_mut().map(|changes| changes.delay_one_way.at(now));
        changed.map_or(self.delay_one_way, Duration::from_nanos)
    }

    /// Returns the end of the outage that contains `now`.
    pub fn out_until(&mut self, now: Instant) -> Option<Instant> {
        self.changes.as_mut()?.outages.ends(now)
    }

    /// Returns the minimum delay from the end of transmission to arrival; zero if it varies.
    pub fn least_delay(&self) -> Duration {
        if self.changes.is_some() { Duration::ZERO } else { self.delay_one_way }
    }

    /// True if packets may arrive twice or altered.
    pub fn may_alter(&self) -> bool {
        let alters = |changes: &Changes| changes.duplication.is_some() || changes.corruption.is_some();
        self.changes.as_deref().is_some_and(alters)
    }

    /// Returns the earliest start of the next transmission if a packet is present by then.
    #[inline]
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Makes an idle transmitter wait for a packet that arrives at `now`.
    pub fn wait_until(&mut self, now: Instant) {
        self.free_at = self.next_start(now);
    }

    /// Returns the number of the flipped bit of a packet.
    pub fn wrong_bit(&mut self) -> u64 {
        let dice = self.changes.as_mut().and_then(|changes| changes.corruption.as_mut());
        dice.map_or(0, |(_, rng)| rng.bits())
    }

    /// Returns the end of the latest transmission.
    pub fn last_end(&self) -> Instant {
        self.last_end
    }

    /// Returns the start of transmission of a packet that arrives at `now`, after all earlier packets.
    #[inline]
    pub fn next_start(&mut self, now: Instant) -> Instant {
        match &mut self.changes {
            // A packet that arrives at the time of an opportunity misses it.
            Some(changes) if changes.opportunities.is_some() && now == self.free_at => changes.may_start(now),
            _ if now <= self.free_at => self.free_at,
            None => now,
            Some(changes) => changes.may_start(now),
        }
    }

    /// Cancels transmissions that have not begun. The latest is now the one that ends at `end`, and packets on the path arrive by
    /// `due`.
    pub fn withdraw(&mut self, unbegun: Unbegun, end: Instant, due: Instant) {
        self.given = self.given - unbegun.time;
        self.last_end = end;
        self.free_at = end;
        if let Some(changes) = &mut self.changes {
            changes.last_due = due;
            changes.holds.retain(|hold| hold.from < end);
            if let Some(opportunities) = &mut changes.opportunities {
                opportunities.forget(unbegun.backlog);
                self.free_at = changes.may_start(end);
            }
        }
    }

    /// Returns the used fraction of the opportunities until `now`, on a line that has them, with `waiting` still queued.
    pub fn part_used(&self, now: Instant, waiting: Backlog) -> Option<f64> {
        let opportunities = self.changes.as_deref()?.opportunities.as_ref()?;
        Some(opportunities.part_taken(now, waiting))
    }

    /// Returns the total transmission time, the latest to its end, pauses included.
    pub fn given(&self) -> Duration {
        self.given
    }

    /// Returns the pauses within that time until `now`, which must not decrease between calls.
    pub fn held_until(&mut self, now: Instant) -> Duration {
        let Some(changes) = &mut self.changes else { return Duration::ZERO };
        while let Some(hold) = changes.holds.front().filter(|hold| hold.to <= now) {
            changes.held += hold.to.since(hold.from);
            changes.holds.pop_front();
        }
        changes.held + changes.holds.front().map_or(Duration::ZERO, |hold| now.since(hold.from))
    }

    /// Returns the idle times between transmissions.
    pub fn gaps(&self) -> Gaps {
        self.gaps
    }

    /// As [`Line::carry`], for a line without errors and changes.
    #[inline(always)]
    pub fn carry_plain(&mut self, start: Instant, size: u32) -> Passage {
        let bps = self.bps;
        let time = self.times.get(size, || Rate::from_bps(bps).time_for(u64::from(size)));
        let end = start + time;
        if !self.given.is_zero() {
            self.gaps.note(start.since(self.last_end), time);
        }
        (self.free_at, self.last_end) = (end, end);
        self.given += time;
        Passage { end, due: end + self.delay_one_way, fate: Fate::Arrives }
    }

    /// Sends the next packet at `start`, which is not before [`Line::next_start`].
    #[inline(always)]
    pub fn carry(&mut self, start: Instant, size: u32, is_data: bool) -> Passage {
        if let Some(changes) = &mut self.changes {
            if changes.opportunities.is_some() {
                return self.carry_at_opportunities(start, size, is_data);
            }
            let bps = changes.rate.at(start);
            if bps != self.bps {
                self.bps = bps;
                self.times.clear();
            }
        }
        let bps = self.bps;
        let length = self.times.get(size, || Rate::from_bps(bps).time_for(u64::from(size)));
        let end = start + length;
        if !self.given.is_zero() {
            self.gaps.note(start.since(self.last_end), length);
        }
        let sending = Sending { start, end, size, is_data };
        let strikes = self.loss.as_mut().is_some_and(|loss| loss.strikes(&sending));
        let fate = if strikes { Fate::Spoilt } else { Fate::Arrives };
        let mut passage = Passage { end, due: end + self.delay_one_way, fate };
        self.free_at = end;
        if let Some(changes) = &mut self.changes {
            let mut extra = Duration::ZERO;
            if let Some(loss) = self.loss.as_mut().filter(|_| strikes) {
                (passage, extra) = changes.repeat(passage, sending, loss);
            }
            (passage, self.free_at) = changes.meet(start, passage, extra);
        }
        self.last_end = passage.end;
        self.given += passage.end.since(start);
        passage
    }

    /// As `carry`, for a line with opportunities, of which `start` is the present one.
    #[inline(never)]
    fn carry_at_opportunities(&mut self, start: Instant, size: u32, is_data: bool) -> Passage {
        let Self { changes: Some(changes), loss, .. } = self else { unreachable!("they are a change") };
        let end = changes.take_opportunities(size);
        let sending = Sending { start, end, size, is_data };
        let strikes = loss.as_mut().is_some_and(|loss| loss.strikes(&sending));
        let fate = if strikes { Fate::Spoilt } else { Fate::Arrives };
        let due = end + self.delay_one_way;
        let (passage, free_at) = changes.meet(start, Passage { end, due, fate }, Duration::ZERO);
        (self.free_at, self.last_end) = (free_at, passage.end);
        self.given += passage.end.since(start);
        passage
    }
}

impl Changes {
    fn new(config: &LinkConfig, seed: u64, name: &str) -> Self {
        let stream = |what| Rng::stream(seed, &format!("{name}/{what}"));
        let (duplicate, corrupt) = (config.duplicate_probability, config.corrupt_probability);
        Self {
            rate: Evaluator::new(&config.rate),
            opportunities: config.opportunities.clone().map(OpportunityCursor::new),
            delay_one_way: Evaluator::new(&config.delay_one_way),
            outages: OutageCursor::new(config.outages.clone()),
            holds: VecDeque::new(),
            held: Duration::ZERO,
            arq: config.arq,
            preserve_order: config.preserve_order,
            only_moves: config.outages.intervals.is_empty()
                && config.opportunities.is_none()
                && config.jitter.is_none()
                && config.reordering.is_none()
                && duplicate <= 0.0
                && corrupt <= 0.0,
            last_due: Instant::ZERO,
            jitter: config.jitter.as_ref().map(|jitter| JitterDraws::new(jitter, stream("jitter"))),
            reordering: config.reordering.clone().map(|reordering| (reordering, stream("reordering"))),
            duplication: (duplicate > 0.0).then(|| (duplicate, stream("duplication"))),
            corruption: (corrupt > 0.0).then(|| (corrupt, stream("corruption"))),
        }
    }

    /// Returns the first instant from `time` on at which a packet that arrives then may start. It skips earlier opportunities and
    /// one at `time` itself.
    #[inline]
    fn may_start(&mut self, time: Instant) -> Instant {
        let Some(opportunities) = &mut self.opportunities else { return self.outages.may_start(time) };
        opportunities.seek(time, true);
        skip_outages(opportunities, &mut self.outages);
        opportunities.time()
    }

    /// Sends `size` bytes with the present opportunity and later ones. Returns the time of the last.
    fn take_opportunities(&mut self, size: u32) -> Instant {
        let Self { opportunities: Some(opportunities), outages, .. } = self else {
            return Instant::FAR_FUTURE;
        };
        opportunities.take(size, |opportunities| skip_outages(opportunities, outages))
    }

    /// Returns the time at which the line is free after a transmission that ended or was cut off at `end`.
    fn free_after(&mut self, end: Instant, was_cut: bool) -> Instant {
        match &self.opportunities {
            None => self.outages.may_start(end),
            Some(_) if was_cut => self.may_start(end),
            // Queued packets may use the rest of the present opportunity.
            Some(opportunities) => opportunities.time(),
        }
    }

    /// Retransmits a packet lost to an error until it arrives, or up to the maximum number. Returns the passage with all
    /// retransmission times, and the additional delay of the arrival.
    #[cold]
    fn repeat(&mut self, passage: Passage, sending: Sending, loss: &mut Loss) -> (Passage, Duration) {
        let retries = self.arq.map_or(0, |arq| arq.retries);
        let length = sending.end.since(sending.start);
        let round_trip = Duration::from_nanos(2 * self.delay_one_way.at(sending.end));
        let mut again = sending;
        for repetition in 1..=u64::from(retries) {
            again = Sending { start: again.end, end: again.end + length, ..again };
            if !loss.strikes(&again) {
                return (Passage { end: again.end, fate: Fate::Arrives, ..passage }, round_trip * repetition);
            }
        }
        (Passage { end: again.end, ..passage }, round_trip * u64::from(retries))
    }

    /// Applies outages and random effects to a passage with `extra` delay. Returns it with the time at which the line is free.
    #[inline(always)]
    fn meet(&mut self, start: Instant, passage: Passage, extra: Duration) -> (Passage, Instant) {
        // On nearly all lines that are not plain only rate and delay change.
        if !self.only_moves {
            return self.meet_chances(start, passage, extra);
        }
        let due = passage.end + Duration::from_nanos(self.delay_one_way.at(passage.end)) + extra;
        (Passage { due: self.order(due), ..passage }, passage.end)
    }

    /// As `meet`, with outages and random effects.
    #[inline(never)]
    fn meet_chances(&mut self, start: Instant, passage: Passage, extra: Duration) -> (Passage, Instant) {
        let whole = passage.end;
        let end = match self.outages.effect() {
            _ if self.outages.is_empty() => whole,
            // Between opportunities nothing is sent anyway.
            OutageEffect::Pause if self.opportunities.is_some() => whole,
            OutageEffect::Pause => {
                let holds = &mut self.holds;
                self.outages.hold(start, whole.since(start), |outage| holds.push_back(outage))
            }
            OutageEffect::Cut | OutageEffect::CutPath => whole.min(self.outages.next_start(start)),
            OutageEffect::Blind => whole,
        };
        let delay_one_way = Duration::from_nanos(self.delay_one_way.at(end));
        let jittered = self.jitter.as_mut().map_or(delay_one_way, |jitter| jitter.apply(delay_one_way));
        let due = end + jittered + extra;
        let mut fate = passage.fate;
        if !self.outages.is_empty() && self.outage_hits(start, whole, due) {
            fate = Fate::CutOff;
        }
        if fate == Fate::Arrives && chance(&mut self.corruption) {
            fate = Fate::ArrivesWrong;
        } else if fate == Fate::Arrives && chance(&mut self.duplication) {
            fate = Fate::ArrivesTwice;
        }
        let free_at = self.free_after(end, end < whole);
        (Passage { end, due: self.order(due), fate }, free_at)
    }

    /// True if an outage destroys the packet that is sent from `start` to `whole` and due at `due`.
    fn outage_hits(&mut self, start: Instant, whole: Instant, due: Instant) -> bool {
        match self.outages.effect() {
            OutageEffect::Pause => false,
            OutageEffect::Cut => self.outages.next_start(start) < whole,
            OutageEffect::CutPath => self.outages.next_start(start) < due.max(whole),
            OutageEffect::Blind => self.outages.is_out(due),
        }
    }

    /// Returns the arrival time after the order rule and random reordering.
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
}

/// Advances to an opportunity outside outages.
fn skip_outages(opportunities: &mut OpportunityCursor, outages: &mut OutageCursor) {
    while !outages.is_empty() {
        let (time, up) = (opportunities.time(), outages.may_start(opportunities.time()));
        if up == time {
            return;
        }
        opportunities.seek(up, false);
    }
}

/// Returns the value of a schedule at time zero.
fn at_start<T: Quantity>(schedule: &Schedule<T>) -> u64 {
    Evaluator::new(schedule).at(Instant::ZERO)
}

fn chance(dice: &mut Option<(f64, Rng)>) -> bool {
    dice.as_mut().is_some_and(|(probability, rng)| rng.chance(*probability))
}
