use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, Rng};
use bentpipe_net::Packet;

use crate::air::Air;
use crate::grid::Grid;
use crate::tdma::SlotSize;
use crate::ticks::Ticks;
use crate::{DamaConfig, MediumConfig};

/// Demand assignment by superframes.
///
/// At the start of a superframe every terminal reports the slots that it needs, on a separate signalling channel. The hub
/// receives the report after a one-way delay, and its decision reaches the terminals after another one. The decision applies
/// from the next superframe on.
#[derive(Clone, Debug)]
pub(crate) struct Dama {
    grid: Grid,
    size: SlotSize,
    config: DamaConfig,
    /// Reports not yet in effect, one entry per superframe: slots needed by each terminal.
    asked: VecDeque<Vec<u64>>,
    /// Superframes since each terminal's last effective report; `None` if it has no slot.
    idle: Vec<Option<u32>>,
    /// Owners of the slots of a frame in this superframe.
    owners: Vec<u32>,
    /// Superframe of `owners`.
    superframe: u64,
    /// Random stream of each terminal.
    rngs: Vec<Rng>,
    /// Next action.
    next: Step,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// None: there are no slots, packets or pending reports.
    Sleep,
    /// Start of a superframe.
    Begin(u64),
    /// Slot whose owner has something to send.
    Slot(u64),
}

/// Marks a slot without owner.
const NOBODY: u32 = u32::MAX;

impl Dama {
    pub fn new(config: &DamaConfig, medium: &MediumConfig, rngs: Vec<Rng>) -> Self {
        let terminals = rngs.len();
        let grid = Grid::new(config.frame.length, config.frame.slots);
        let superframe = config.frame.length.as_nanos() * u64::from(config.superframe);
        let round_trip = Duration::from_nanos(2 * medium.delay_one_way.as_nanos());
        let lead = round_trip.as_nanos().div_ceil(superframe).max(1) as usize;
        Self {
            size: SlotSize::of(&config.frame, medium.rate),
            asked: VecDeque::from(vec![vec![0; terminals]; lead]),
            idle: vec![None; terminals],
            owners: vec![NOBODY; config.frame.slots as usize],
            superframe: 0,
            rngs,
            next: Step::Sleep,
            config: config.clone(),
            grid,
        }
    }

    /// Returns the number of slots per superframe.
    fn span(&self) -> u64 {
        self.grid.slots() * u64::from(self.config.superframe)
    }

    /// Starts a superframe: new shares take effect, and every terminal reports.
    fn begin<P: Packet>(&mut self, air: &mut Air<P>, superframe: u64) {
        self.superframe = superframe;
        let heard = self.asked.pop_front().unwrap_or_default();
        for (idle, &slots) in self.idle.iter_mut().zip(&heard) {
            *idle = match *idle {
                _ if slots > 0 => Some(0),
                Some(before) if before + 1 < self.config.idle_superframes => Some(before + 1),
                _ => None,
            };
        }
        self.divide(&heard);
        let mut asked = Vec::with_capacity(heard.len());
        for (terminal, rng) in self.rngs.iter_mut().enumerate() {
            let need = self.size.needed(air, terminal as u32);
            let lost = need > 0 && self.config.request_loss > 0.0 && rng.chance(self.config.request_loss);
            air.stats.requests_sent += u64::from(need > 0);
            air.stats.requests_lost += u64::from(lost);
            asked.push(if lost { 0 } else { need });
        }
        self.asked.push_back(asked);
    }

    /// Divides the slots of a frame: one for each terminal that has any, the rest in proportion to demand by largest
    /// remainders.
    fn divide(&mut self, heard: &[u64]) {
        self.owners.fill(NOBODY);
        let holders: Vec<usize> = (0..heard.len()).filter(|&i| self.idle[i].is_some()).collect();
        let asked: u128 = heard.iter().map(|&slots| u128::from(slots)).sum();
        let rest = (self.owners.len() - holders.len()) as u128;
        let mut shares = vec![0_u128; heard.len()];
        holders.iter().for_each(|&i| shares[i] = 1);
        if asked > 0 {
            let whole = |i: usize| u128::from(heard[i]) * rest / asked;
            let remainder = |i: usize| u128::from(heard[i]) * rest % asked;
            holders.iter().for_each(|&i| shares[i] += whole(i));
            let given: u128 = holders.iter().map(|&i| whole(i)).sum();
            let mut by_remainder = holders.clone();
            by_remainder.sort_by_key(|&i| core::cmp::Reverse(remainder(i)));
            by_remainder.iter().take((rest - given) as usize).for_each(|&i| shares[i] += 1);
        }
        let owners = (0..heard.len()).flat_map(|i| std::iter::repeat_n(i as u32, shares[i] as usize));
        self.owners.iter_mut().zip(owners).for_each(|(slot, owner)| *slot = owner);
    }

    /// Finds the next action from slot `from` of the present superframe on.
    fn seek<P: Packet>(&mut self, air: &Air<P>, from: u64) {
        let end = (self.superframe + 1) * self.span();
        let owner = |slot: &u64| self.owners[(slot % self.grid.slots()) as usize];
        let sends = |slot: &u64| owner(slot) != NOBODY && !air.terminal(owner(slot)).is_empty();
        let waits = air.anything_waits();
        let found = if waits { (from..end).find(sends) } else { None };
        let held = self.idle.iter().any(Option::is_some);
        let under_way = self.asked.iter().any(|asked| asked.iter().any(|&slots| slots > 0));
        self.next = match found {
            Some(slot) => Step::Slot(slot),
            None if waits || held || under_way => Step::Begin(self.superframe + 1),
            None => Step::Sleep,
        };
    }
}

impl<P: Packet> Ticks<P> for Dama {
    fn next(&self) -> Instant {
        match self.next {
            Step::Sleep => Instant::FAR_FUTURE,
            Step::Begin(superframe) => self.grid.start(superframe * self.span()),
            Step::Slot(slot) => self.grid.start(slot),
        }
    }

    fn act(&mut self, air: &mut Air<P>) {
        match self.next {
            Step::Sleep => {}
            Step::Begin(superframe) => {
                self.begin(air, superframe);
                self.seek(air, superframe * self.span());
            }
            Step::Slot(slot) => {
                let owner = self.owners[(slot % self.grid.slots()) as usize];
                air.stats.demand_slots += 1;
                self.size.send(air, owner, (&self.grid, slot));
                self.seek(air, slot + 1);
            }
        }
    }

    fn wake(&mut self, air: &Air<P>, _terminal: u32, now: Instant) {
        let from = self.grid.first_after(now);
        if self.next == Step::Sleep {
            // Skipped superframes change nothing: no terminal had or needed a slot.
            self.superframe = (from - 1) / self.span();
        }
        self.seek(air, from);
    }
}
