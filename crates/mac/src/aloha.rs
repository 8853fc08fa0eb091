use core::cmp::Reverse;
use std::collections::BinaryHeap;

use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_net::Packet;

use crate::AlohaConfig;
use crate::air::Air;
use crate::backoff::Contender;
use crate::terminal::Burst;
use crate::ticks::Ticks;

/// Pure Aloha: a packet leaves at once, and gets through if no other transmission overlaps it.
#[derive(Clone, Debug)]
pub(crate) struct Aloha {
    config: AlohaConfig,
    rate: Rate,
    contenders: Vec<Contender>,
    /// Time from which each terminal may send again, if it waits for an echo.
    free_from: Vec<Instant>,
    /// Starts and ends of transmissions. At the same time ends come first: touching transmissions do not
    /// overlap.
    plan: BinaryHeap<Reverse<(Instant, Edge, u32)>>,
    /// Transmissions on the air, each with true if it has collided.
    on_air: Vec<(u32, bool)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Edge {
    End,
    Begin,
}

impl Aloha {
    pub fn new(config: &AlohaConfig, rate: Rate, rngs: Vec<Rng>) -> Self {
        Self {
            config: config.clone(),
            rate,
            free_from: vec![Instant::ZERO; rngs.len()],
            contenders: Contender::all(rngs),
            plan: BinaryHeap::new(),
            on_air: Vec::new(),
        }
    }

    fn begin<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32, now: Instant) {
        let Some(size) = air.terminal(terminal).head_size() else { return };
        self.contenders[terminal as usize].burst.get_or_insert(Burst { completes: 1, head_carried: 0 });
        let length = self.rate.time_for(u64::from(size) + u64::from(self.config.header));
        air.count_burst(terminal, length);
        let meets = !self.on_air.is_empty();
        self.on_air.iter_mut().for_each(|(_, met)| *met = true);
        self.on_air.push((terminal, meets));
        self.plan.push(Reverse((now + length, Edge::End, terminal)));
    }

    fn end<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32, now: Instant) {
        let Some(place) = self.on_air.iter().position(|(sender, _)| *sender == terminal) else { return };
        let (_, met) = self.on_air.swap_remove(place);
        air.stats.bursts_collided += u64::from(met);
        let contender = &mut self.contenders[terminal as usize];
        if !self.config.detection {
            match contender.finish() {
                Some(burst) if met => air.give_up(terminal, burst, now),
                Some(burst) => air.carry(terminal, burst, now),
                None => {}
            }
            return self.go_on(air, terminal, now);
        }
        if !met {
            if let Some(burst) = contender.finish() {
                air.carry(terminal, burst, now);
            }
            return self.go_on(air, terminal, now + air.delay_one_way);
        }
        let mut known = now + self.config.timeout;
        if let Some(burst) = contender.collide(self.config.retries) {
            air.give_up(terminal, burst, now);
        } else {
            let wait = contender.rng.exponential(self.config.mean_backoff.as_secs_f64());
            known += Duration::from_secs_f64(wait);
        }
        self.go_on(air, terminal, known);
    }

    /// Lets a terminal start its next transmission at `time`, of the same packet or the next one.
    fn go_on<P: Packet>(&mut self, air: &Air<P>, terminal: u32, time: Instant) {
        let contender = &mut self.contenders[terminal as usize];
        contender.engaged = !air.terminal(terminal).is_empty();
        self.free_from[terminal as usize] = time;
        if contender.engaged {
            self.plan.push(Reverse((time, Edge::Begin, terminal)));
        }
    }
}

impl<P: Packet> Ticks<P> for Aloha {
    fn next(&self) -> Instant {
        self.plan.peek().map_or(Instant::FAR_FUTURE, |Reverse((time, ..))| *time)
    }

    fn act(&mut self, air: &mut Air<P>) {
        match self.plan.pop() {
            Some(Reverse((now, Edge::Begin, terminal))) => self.begin(air, terminal, now),
            Some(Reverse((now, Edge::End, terminal))) => self.end(air, terminal, now),
            None => {}
        }
    }

    fn wake(&mut self, _air: &Air<P>, terminal: u32, now: Instant) {
        let contender = &mut self.contenders[terminal as usize];
        if !contender.engaged {
            contender.engaged = true;
            let time = now.max(self.free_from[terminal as usize]);
            self.plan.push(Reverse((time, Edge::Begin, terminal)));
        }
    }
}
