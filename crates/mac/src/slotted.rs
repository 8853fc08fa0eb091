use core::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_net::Packet;

use crate::SlottedAlohaConfig;
use crate::air::Air;
use crate::backoff::Contender;
use crate::grid::Grid;
use crate::ticks::Ticks;

/// Slotted Aloha: a terminal sends in the next slot, and gets through if it is the only sender.
#[derive(Clone, Debug)]
pub(crate) struct Slotted {
    config: SlottedAlohaConfig,
    grid: Grid,
    /// Transmission time within a slot.
    sending: Duration,
    contenders: Vec<Contender>,
    /// Slots in which terminals will send.
    plan: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Slotted {
    pub fn new(config: &SlottedAlohaConfig, rate: Rate, rngs: Vec<Rng>) -> Self {
        let sending = rate.time_for(u64::from(config.slot_bytes));
        Self {
            config: config.clone(),
            grid: Grid::new(sending + config.guard, 1),
            sending,
            contenders: Contender::all(rngs),
            plan: BinaryHeap::new(),
        }
    }

    fn transmit<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32) {
        let contender = &mut self.contenders[terminal as usize];
        let load = || air.terminal(terminal).load(self.config.slot_bytes, self.config.header);
        contender.burst.get_or_insert_with(load);
        air.count_burst(terminal, self.sending);
    }

    /// Handles the only transmission of a slot, which ends at `end`.
    fn succeed<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32, end: Instant) {
        let contender = &mut self.contenders[terminal as usize];
        if let Some(burst) = contender.finish() {
            air.carry(terminal, burst, end);
        }
        self.go_on(air, terminal, end + air.delay_one_way);
    }

    fn collide<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32, end: Instant) {
        air.stats.bursts_collided += 1;
        let contender = &mut self.contenders[terminal as usize];
        if let Some(burst) = contender.collide(self.config.retries) {
            air.give_up(terminal, burst, end);
            return self.go_on(air, terminal, end + self.config.timeout);
        }
        let wait = contender.units(self.config.backoff_limit);
        self.plan.push(Reverse((self.grid.first_after(end + self.config.timeout) + wait, terminal)));
    }

    /// Handles the end of a burst at `time`, when its terminal knows the result, and starts the next one.
    fn go_on<P: Packet>(&mut self, air: &Air<P>, terminal: u32, time: Instant) {
        let contender = &mut self.contenders[terminal as usize];
        contender.engaged = !air.terminal(terminal).is_empty();
        let slot = self.grid.first_after(time);
        if contender.engaged {
            self.plan.push(Reverse((slot, terminal)));
        } else {
            contender.free_from = slot;
        }
    }
}

impl<P: Packet> Ticks<P> for Slotted {
    fn next(&self) -> Instant {
        self.plan.peek().map_or(Instant::FAR_FUTURE, |Reverse((slot, _))| self.grid.start(*slot))
    }

    fn act(&mut self, air: &mut Air<P>) {
        let Some(&Reverse((slot, first))) = self.plan.peek() else { return };
        let (mut senders, end) = (0, self.grid.start(slot) + self.sending);
        let mut crowd = Vec::new();
        while let Some(&Reverse((planned, terminal))) = self.plan.peek()
            && planned == slot
        {
            self.plan.pop();
            self.transmit(air, terminal);
            senders += 1;
            if senders > 1 {
                crowd.push(terminal);
            }
        }
        if crowd.is_empty() {
            return self.succeed(air, first, end);
        }
        self.collide(air, first, end);
        crowd.into_iter().for_each(|terminal| self.collide(air, terminal, end));
    }

    fn wake(&mut self, _air: &Air<P>, terminal: u32, now: Instant) {
        let contender = &mut self.contenders[terminal as usize];
        if !contender.engaged {
            contender.engaged = true;
            let slot = self.grid.first_after(now).max(contender.free_from);
            self.plan.push(Reverse((slot, terminal)));
        }
    }
}
