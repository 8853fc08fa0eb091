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
/// The map of a frame is made a fixed number of frames ahead, so that it reaches the terminals in time. It uses the requests
/// heard by then.
#[derive(Clone, Debug)]
pub(crate) struct CfDama {
    grid: Grid,
    size: SlotSize,
    config: CfDamaConfig,
    /// Delay from a terminal to the scheduler.
    to_scheduler: Duration,
    /// Time from the making of a map to the start of its frame.
    ahead: Duration,
    scheduler: Scheduler,
    /// Requests in flight or not yet considered, in the order of their arrival.
    requests: VecDeque<Request>,
    /// Requests lost by errors, in the order in which their terminals learn of it.
    lost: VecDeque<Request>,
    stations: Vec<Station>,
    /// Present frame, and the owners of its slots.
    frame: u64,
    map: Vec<Grant>,
    next: Step,
}

/// Request with the time at which the scheduler hears it, or at which its terminal learns of its loss.
#[derive(Clone, Copy, Debug)]
struct Request {
    heard: Instant,
    terminal: u32,
    slots: u32,
}

/// A terminal's knowledge of its requests.
#[derive(Clone, Debug)]
struct Station {
    /// Requested slots that have not arrived yet.
    outstanding: u64,
    /// State of its latest request in a random minislot.
    contention: Contention,
    rng: Rng,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contention {
    /// It got through, or there was none.
    Clear,
    /// It collided or was lost by errors; the terminal learns it at `known`. From then on it tries in each frame with probability
    /// 1/2, until a request gets through.
    Collided { known: Instant },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Sleep,
    Frame(u64),
    /// A slot of the present frame, by its index.
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
        // The map must arrive before its frame begins; one more frame to make it.
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

    /// Makes the map of `frame`, after all earlier frames.
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

    /// Lets every terminal that needs more slots than it requested send a request, in a minislot at the start of the frame.
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
                // The scheduler repeats the requests that it heard, so a missing one is lost.
                let known = start + self.to_scheduler * 2_u64;
                self.stations[terminal as usize].contention = Contention::Collided { known };
                air.stats.requests_sent += 1;
                air.stats.requests_collided += u64::from(!alone);
                air.stats.requests_lost += u64::from(lost);
            }
        }
    }

    /// Returns the slots that a terminal needs in addition to those requested.
    fn wanted<P: Packet>(&self, air: &Air<P>, terminal: u32) -> u32 {
        let more =
            self.size.needed(air, terminal).saturating_sub(self.stations[terminal as usize].outstanding);
        more.min(u64::from(self.config.request_limit)) as u32
    }

    /// True if errors hit a request of this terminal.
    fn is_lost(&mut self, terminal: u32) -> bool {
        let probability = self.config.request_loss;
        probability > 0.0 && self.stations[terminal as usize].rng.chance(probability)
    }

    /// Sends a request without collision at `at`, if the terminal needs slots.
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

    /// Sends a request at `at` that the scheduler will hear.
    fn hear<P: Packet>(&mut self, air: &mut Air<P>, terminal: u32, at: Instant) {
        let slots = self.wanted(air, terminal);
        if slots > 0 {
            self.stations[terminal as usize].outstanding += u64::from(slots);
            self.requests.push_back(Request { heard: at + self.to_scheduler, terminal, slots });
            air.stats.requests_sent += 1;
        }
    }

    /// Lets the owner of a slot use it.
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

    /// Finds the next action from slot `from` of the present frame on. Requested slots take place even if they are no longer
    /// used.
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
            // No request is queued or in flight: the skipped slots went to the terminals in turn.
            let first = if self.map.is_empty() { 0 } else { self.frame + 1 };
            self.scheduler.skip((frame - first) * self.grid.slots());
            self.begin(frame);
        }
        self.seek(air, (from - self.frame * self.grid.slots()) as usize);
    }
}
