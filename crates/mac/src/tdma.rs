use bentpipe_base::{Instant, Rate};
use bentpipe_net::Packet;

use crate::Frame;
use crate::air::Air;
use crate::grid::Grid;
use crate::ticks::Ticks;

/// Capacity of a slot, and transmission in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotSize {
    pub bytes: u32,
    pub header: u32,
}

impl SlotSize {
    pub fn of(frame: &Frame, rate: Rate) -> Self {
        Self { bytes: frame.slot_bytes(rate), header: frame.header }
    }

    /// Lets `terminal` use slot `slot`, if it has something to send.
    pub fn send<P: Packet>(self, air: &mut Air<P>, terminal: u32, (grid, slot): (&Grid, u64)) {
        let sender = air.terminal(terminal);
        if sender.is_empty() {
            return;
        }
        let burst = sender.load(self.bytes, self.header);
        let (start, end) = (grid.start(slot), grid.start(slot + 1));
        air.count_burst(terminal, end.since(start));
        air.carry(terminal, burst, end);
    }

    /// Returns the slots that `terminal` needs for its queue.
    pub fn needed<P: Packet>(self, air: &Air<P>, terminal: u32) -> u64 {
        air.terminal(terminal).slots_needed(self.bytes, self.header)
    }
}

/// Fixed assignment: slot `i` of a frame belongs to terminal `i mod n`.
#[derive(Clone, Debug)]
pub(crate) struct Tdma {
    grid: Grid,
    size: SlotSize,
    terminals: u64,
    /// Next slot whose owner has something to send.
    slot: Option<u64>,
}

impl Tdma {
    pub fn new(frame: &Frame, rate: Rate, terminals: usize) -> Self {
        let (grid, size) = (Grid::new(frame.length, frame.slots), SlotSize::of(frame, rate));
        Self { grid, size, terminals: terminals as u64, slot: None }
    }

    fn owner(&self, slot: u64) -> u32 {
        ((slot % self.grid.slots()) % self.terminals) as u32
    }

    /// Searches from slot `from` on: every terminal has a slot within two frames.
    fn seek<P: Packet>(&mut self, air: &Air<P>, from: u64) {
        let within = from..from + 2 * self.grid.slots();
        self.slot = within.into_iter().find(|&slot| !air.terminal(self.owner(slot)).is_empty());
    }
}

impl<P: Packet> Ticks<P> for Tdma {
    fn next(&self) -> Instant {
        self.slot.map_or(Instant::FAR_FUTURE, |slot| self.grid.start(slot))
    }

    fn act(&mut self, air: &mut Air<P>) {
        let Some(slot) = self.slot else { return };
        self.size.send(air, self.owner(slot), (&self.grid, slot));
        // Without queued packets the search would not end.
        self.slot = None;
        if air.anything_waits() {
            self.seek(air, slot + 1);
        }
    }

    fn wake(&mut self, air: &Air<P>, terminal: u32, now: Instant) {
        if air.terminal(terminal).backlog().packets == 1 {
            self.seek(air, self.grid.first_after(now));
        }
    }
}
