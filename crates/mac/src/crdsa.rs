use core::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_base::{Instant, Rate, Rng};
use bentpipe_net::Packet;

use crate::CrdsaConfig;
use crate::air::Air;
use crate::backoff::Contender;
use crate::grid::Grid;
use crate::tdma::SlotSize;
use crate::ticks::Ticks;

/// Contention resolution diversity slotted Aloha. Copies of a burst use random slots of a frame, and the receiver subtracts
/// decoded bursts.
#[derive(Clone, Debug)]
pub(crate) struct Crdsa {
    config: CrdsaConfig,
    grid: Grid,
    size: SlotSize,
    contenders: Vec<Contender>,
    /// Frames in which terminals will send.
    plan: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Crdsa {
    pub fn new(config: &CrdsaConfig, rate: Rate, rngs: Vec<Rng>) -> Self {
        Self {
            config: config.clone(),
            grid: Grid::new(config.frame.length, config.frame.slots),
            size: SlotSize::of(&config.frame, rate),
            contenders: Contender::all(rngs),
            plan: BinaryHeap::new(),
        }
    }

    /// Lets a terminal send in a frame. Returns the slots of its copies.
    fn transmit<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32) -> Vec<u32> {
        let contender = &mut self.contenders[terminal as usize];
        let load = || air.terminal(terminal).load(self.size.bytes, self.size.header);
        contender.burst.get_or_insert_with(load);
        let slots = self.config.frame.slots;
        let copies = u64::from(self.config.replicas);
        air.count_burst(terminal, self.grid.frame() * copies / u64::from(slots));
        choose(&mut contender.rng, self.config.replicas, slots)
    }

    /// Handles the result of a terminal's burst at the end of its frame.
    fn conclude<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32, (end, decoded): (Instant, bool)) {
        let contender = &mut self.contenders[terminal as usize];
        let mut known = end + self.config.timeout;
        if decoded {
            known = end + air.delay_one_way;
            if let Some(burst) = contender.finish() {
                air.carry(terminal, burst, end);
            }
        } else {
            air.stats.bursts_collided += 1;
            if let Some(burst) = contender.collide(self.config.retries) {
                air.give_up(terminal, burst, end);
            }
        }
        let wait = contender.units(self.config.backoff_limit);
        let frame = self.grid.frame_of(known) + 1;
        contender.engaged = !air.terminal(terminal).is_empty();
        contender.free_from = frame;
        if contender.engaged {
            self.plan.push(Reverse((frame + wait, terminal)));
        }
    }
}

/// Returns `count` different random numbers below `limit`.
fn choose(rng: &mut Rng, count: u32, limit: u32) -> Vec<u32> {
    let mut chosen: Vec<u32> = Vec::with_capacity(count as usize);
    // Floyd's algorithm: each set has equal probability, with one draw per number.
    for top in limit - count..limit {
        let draw = rng.below(u64::from(top) + 1) as u32;
        chosen.push(if chosen.contains(&draw) { top } else { draw });
    }
    chosen
}

/// Returns true for each burst that the receiver decodes: first those with a copy alone in its slot. Each further pass cancels
/// the decoded bursts and repeats this, at most `iterations` times. Cancelling is perfect, as the paper assumes for good
/// estimates.
pub(crate) fn cancel(copies: &[Vec<u32>], slots: u32, iterations: u32) -> Vec<bool> {
    // Per slot: number of copies left, and the sum of their burst numbers, which is the number itself if one is left.
    let mut left = vec![(0_u32, 0_usize); slots as usize];
    for (burst, slots) in copies.iter().enumerate() {
        for &slot in slots {
            let (count, sum) = &mut left[slot as usize];
            (*count, *sum) = (*count + 1, *sum + burst);
        }
    }
    let mut decoded = vec![false; copies.len()];
    for _ in 0..iterations {
        let mut fresh: Vec<_> =
            left.iter().filter(|(count, _)| *count == 1).map(|(_, burst)| *burst).collect();
        fresh.sort_unstable();
        fresh.dedup();
        for &burst in &fresh {
            decoded[burst] = true;
            for &slot in &copies[burst] {
                let (count, sum) = &mut left[slot as usize];
                (*count, *sum) = (*count - 1, *sum - burst);
            }
        }
        if fresh.is_empty() {
            break;
        }
    }
    decoded
}

impl<P: Packet> Ticks<P> for Crdsa {
    fn next(&self) -> Instant {
        self.plan.peek().map_or(Instant::FAR_FUTURE, |Reverse((frame, _))| self.grid.frame_start(*frame))
    }

    fn act(&mut self, air: &mut Air<P>) {
        let Some(&Reverse((frame, _))) = self.plan.peek() else { return };
        let (mut senders, mut copies) = (Vec::new(), Vec::new());
        while let Some(&Reverse((planned, terminal))) = self.plan.peek()
            && planned == frame
        {
            self.plan.pop();
            senders.push(terminal);
            copies.push(self.transmit(air, terminal));
        }
        let end = self.grid.frame_start(frame + 1);
        let decoded = cancel(&copies, self.config.frame.slots, self.config.iterations);
        for (terminal, decoded) in senders.into_iter().zip(decoded) {
            self.conclude(air, terminal, (end, decoded));
        }
    }

    fn wake(&mut self, _air: &Air<P>, terminal: u32, now: Instant) {
        let frame = self.grid.frame_of(now) + 1;
        let contender = &mut self.contenders[terminal as usize];
        if !contender.engaged {
            contender.engaged = true;
            self.plan.push(Reverse((frame.max(contender.free_from), terminal)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Burst 1 is alone in slot 2. Without its copy in slot 0, burst 0 is alone there; without burst 0's copy in slot 1, burst 2
    /// is.
    #[test]
    fn cancelling_one_burst_frees_the_next() {
        let copies = [vec![0, 1], vec![0, 2], vec![1, 3], vec![3, 4], vec![4, 3]];
        assert_eq!(cancel(&copies, 5, 1), [false, true, false, false, false]);
        assert_eq!(cancel(&copies, 5, 2), [true, true, false, false, false]);
        assert_eq!(cancel(&copies, 5, 3), [true, true, true, false, false]);
        // Bursts 3 and 4 chose the same two slots: no pass can separate them.
        assert_eq!(cancel(&copies, 5, 100), [true, true, true, false, false]);
    }

    #[test]
    fn copies_lie_in_different_slots_and_in_all_of_them_alike() {
        let mut rng = Rng::stream(1, "choose");
        let mut hits = [0; 10];
        for _ in 0..10_000 {
            let mut chosen = choose(&mut rng, 3, 10);
            chosen.iter().for_each(|&slot| hits[slot as usize] += 1);
            chosen.sort_unstable();
            chosen.dedup();
            assert_eq!(chosen.len(), 3);
        }
        assert!(hits.iter().all(|&hits| (2850..3150).contains(&hits)), "{hits:?}");
        assert_eq!(choose(&mut rng, 4, 4).len(), 4);
    }
}
