use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, Rng};
use bentpipe_net::Packet;

use crate::air::Air;
use crate::grid::Grid;
use crate::scheduler::{Grant, Scheduler};
use crate::tdma::SlotSize;
use crate::ticks::Ticks;
use crate::{CfDamaConfig, MediumConfig, RequestStrategy, SchedulerPlace};

/// Combined free and demand assignment.
///
/// The map of a frame is made so many frames ahead that it reaches the terminals in time, from the requests heard by then.
#[derive(Clone, Debug)]
pub(crate) struct CfDama {
    grid: Grid,
    size: SlotSize,
    config: CfDamaConfig,
    /// From a terminal to the scheduler.
    to_scheduler: Duration,
    /// From the making of a map to the beginning of its frame.
    ahead: Duration,
    scheduler: Scheduler,
    /// Requests on their way or not yet considered, in the order in which they are heard.
    requests: VecDeque<Request>,
    /// Requests that errors hit, in the order in which their terminals learn of it.
    lost: VecDeque<Request>,
    stations: Vec<Station>,
    /// The present frame, and whose its slots are.
    frame: u64,
    map: Vec<Grant>,
    next: Step,
}

/// A request that the scheduler hears at this time, or that its terminal knows by then to be lost.
#[derive(Clone, Copy, Debug)]
struct Request {
    heard: Instant,
    terminal: u32,
    slots: u32,
}

/// What a terminal knows of its requests.
#[derive(Clone, Debug)]
struct Station {
    /// Slots asked for that have not come yet.
    outstanding: u64,
    /// What became of its latest request in a random minislot.
    contention: Contention,
    rng: Rng,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contention {
    /// It got through, or there was none.
    Clear,
    /// It collided or errors hit it, as the terminal will learn at this time. From then on it tries in each frame with probability one half, until
    /// a request gets through.
    Collided { known: Instant },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Sleep,
    Frame(u64),
    /// This slot of the present frame.
    Slot(usize),
}

impl CfDama {
    pub fn new(config: &CfDamaConfig, medium: &MediumConfig, rngs: Vec<Rng>) -> Self {
        let grid = Grid::new(config.frame.length, config.frame.slots);
        let whole = medium.delay_one_way;
        let to_scheduler = match config.scheduler {
            SchedulerPlace::Hub => whole,
            SchedulerPlace::Onboard => Duration::from_nanos(whole.as_nanos() / 2),
        };
        // The map must be there when its frame begins; one frame to make it.
        let frames = to_scheduler.as_nanos().div_ceil(grid.frame().as_nanos()) + 1;
        let scheduler = Scheduler::new(rngs.len() as u32);
        let station = |rng| Station { outstanding: 0, contention: Contention::Clear, rng };
        Self {
            size: SlotSize::of(&config.frame, medium.rate),
            to_scheduler,
            ahead: grid.frame() * frames,
            scheduler,
            requests: VecDeque::new(),
            lost: VecDeque::new(),
            stations: rngs.into_iter().map(station).collect(),
            frame: 0,
            map: Vec::new(),
            next: Step::Sleep,
            config: config.clone(),
            grid,
        }
    }

    /// Makes the map of `frame`, all frames before it done.
    fn begin(&mut self, frame: u64) {
        self.frame = frame;
        let start = self.grid.frame_start(frame);
        while let Some(request) = self.requests.front()
            && request.heard + self.ahead <= start
        {
            self.scheduler.request(request.terminal, request.slots);
            self.requests.pop_front();
        }
        while let Some(lost) = self.lost.front().filter(|lost| lost.heard <= start) {
            self.stations[lost.terminal as usize].outstanding -= u64::from(lost.slots);
            self.lost.pop_front();
        }
        self.map.clear();
        self.map.extend((0..self.grid.slots()).map(|_| self.scheduler.grant()));
    }

    /// Every terminal that needs more than it asked for asks, in a minislot at the beginning of the frame.
    fn ask<P: Packet>(&mut self, air: &mut Air<P>) {
        let start = self.grid.frame_start(self.frame);
        let mut contenders = Vec::new();
        for terminal in 0..self.stations.len() as u32 {
            let contends = match self.config.strategy {
                RequestStrategy::Piggyback => continue,
                RequestStrategy::Fixed => false,
                RequestStrategy::Random => true,
                RequestStrategy::Combined if self.map.iter().any(|grant| grant.terminal == terminal) => {
                    continue;
                }
                RequestStrategy::Combined => true,
            };
            if self.wanted(air, terminal) == 0 {
                continue;
            }
            let station = &mut self.stations[terminal as usize];
            match station.contention {
                _ if !contends => self.request(air, terminal, start),
                Contention::Collided { known } if known > start || station.rng.chance(0.5) => {}
                _ => contenders.push((station.rng.below(u64::from(self.config.minislots)), terminal)),
            }
        }
        for &(minislot, terminal) in &contenders {
            let alone = contenders.iter().filter(|(other, _)| *other == minislot).count() == 1;
            let lost = alone && self.is_lost(terminal);
            if alone && !lost {
                self.stations[terminal as usize].contention = Contention::Clear;
                self.hear(air, terminal, start);
            } else {
                // The scheduler repeats what it heard, so silence tells.
                let known = start + self.to_scheduler * 2_u64;
                self.stations[terminal as usize].contention = Contention::Collided { known };
                air.stats.requests_sent += 1;
                air.stats.requests_collided += u64::from(!alone);
                air.stats.requests_lost += u64::from(lost);
            }
        }
    }

    /// Slots that a terminal needs beside those that it asked for.
    fn wanted<P: Packet>(&self, air: &Air<P>, terminal: u32) -> u32 {
        let more =
            self.size.needed(air, terminal).saturating_sub(self.stations[terminal as usize].outstanding);
        more.min(u64::from(self.config.request_limit)) as u32
    }

    /// True if errors hit a request of a terminal.
    fn is_lost(&mut self, terminal: u32) -> bool {
        let probability = self.config.request_loss;
        probability > 0.0 && self.stations[terminal as usize].rng.chance(probability)
    }

    /// A request that leaves at `at` and meets no other, if the terminal wants anything.
    fn request<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32, at: Instant) {
        let slots = self.wanted(air, terminal);
        if slots > 0 && self.is_lost(terminal) {
            self.stations[terminal as usize].outstanding += u64::from(slots);
            self.lost.push_back(Request { heard: at + self.to_scheduler * 2_u64, terminal, slots });
            air.stats.requests_sent += 1;
            air.stats.requests_lost += 1;
        } else {
            self.hear(air, terminal, at);
        }
    }

    /// A request that leaves at `at` and will be heard.
    fn hear<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32, at: Instant) {
        let slots = self.wanted(air, terminal);
        if slots > 0 {
            self.stations[terminal as usize].outstanding += u64::from(slots);
            self.requests.push_back(Request { heard: at + self.to_scheduler, terminal, slots });
            air.stats.requests_sent += 1;
        }
    }

    /// The owner of a slot uses it.
    fn use_slot<P: Packet>(&mut self, air: &mut Air<P>, place: usize) {
        let Grant { terminal, demand } = self.map[place];
        let slot = self.frame * self.grid.slots() + place as u64;
        let sends = !air.terminal(terminal).is_empty();
        self.size.send(air, terminal, (&self.grid, slot));
        if demand {
            self.stations[terminal as usize].outstanding -= 1;
            air.stats.demand_slots += 1;
        } else if sends {
            air.stats.free_slots_used += 1;
        }
        let piggybacks =
            matches!(self.config.strategy, RequestStrategy::Piggyback | RequestStrategy::Combined);
        if sends && piggybacks {
            self.request(air, terminal, self.grid.start(slot + 1));
        }
    }

    /// Looks for what comes next, from slot `from` of the present frame on. Slots that were asked for happen even if they are
    /// not used any more.
    fn seek<P: Packet>(&mut self, air: &Air<P>, from: usize) {
        let waits = air.anything_waits();
        let happens = |grant: &Grant| grant.demand || (waits && !air.terminal(grant.terminal).is_empty());
        let slot = self.map[from..].iter().position(happens);
        let busy = waits || self.stations.iter().any(|station| station.outstanding > 0);
        self.next = match slot {
            Some(ahead) => Step::Slot(from + ahead),
            None if busy => Step::Frame(self.frame + 1),
            None => Step::Sleep,
        };
    }
}

impl<P: Packet> Ticks<P> for CfDama {
    fn next(&self) -> Instant {
        match self.next {
            Step::Sleep => Instant::FAR_FUTURE,
            Step::Frame(frame) => self.grid.frame_start(frame),
            Step::Slot(place) => self.grid.start(self.frame * self.grid.slots() + place as u64),
        }
    }

    fn act(&mut self, air: &mut Air<P>) {
        match self.next {
            Step::Sleep => {}
            Step::Frame(frame) => {
                self.begin(frame);
                self.ask(air);
                self.seek(air, 0);
            }
            Step::Slot(place) => {
                self.use_slot(air, place);
                self.seek(air, place + 1);
            }
        }
    }

    fn wake(&mut self, air: &Air<P>, _terminal: u32, now: Instant) {
        let from = self.grid.first_after(now);
        let frame = self.grid.frame_of(now);
        if self.next == Step::Sleep && (frame > self.frame || self.map.is_empty()) {
            // No request is queued or under way: the slots slept through went to everyone in turn.
            let first = if self.map.is_empty() { 0 } else { self.frame + 1 };
            self.scheduler.skip((frame - first) * self.grid.slots());
            self.begin(frame);
        }
        self.seek(air, (from - self.frame * self.grid.slots()) as usize);
    }
}
