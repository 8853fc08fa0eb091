use std::collections::VecDeque;

/// Scheduler of combined free and demand assignment: assigns one slot after another.
///
/// While requests are queued, slots go to the first of them, otherwise to the terminals in turn. A terminal that receives
/// requested slots moves to the end of the turn. It can request again with its packets, so free slots go to silent terminals
/// (Le-Ngoc and Mohammed 1993).
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Terminals with their remaining requested slots, first come, first served.
    requests: VecDeque<(u32, u32)>,
    /// Terminals in the order of their turn.
    turn: VecDeque<u32>,
}

/// Assignment of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The terminal.
    pub terminal: u32,
    /// True for a requested slot, false for a free one.
    pub demand: bool,
}

impl Scheduler {
    /// Makes a scheduler for terminals 0 to `terminals` - 1; at least one.
    pub fn new(terminals: u32) -> Self {
        Self { requests: VecDeque::new(), turn: (0..terminals).collect() }
    }

    /// Queues a request.
    pub fn request(&mut self, terminal: u32, slots: u32) {
        if slots > 0 {
            self.requests.push_back((terminal, slots));
        }
    }

    /// True if no request is queued.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Assigns the next slot.
    pub fn grant(&mut self) -> Grant {
        let Some((terminal, left)) = self.requests.front_mut() else {
            let terminal = self.turn[0];
            self.turn.rotate_left(1);
            return Grant { terminal, demand: false };
        };
        let terminal = *terminal;
        *left -= 1;
        if *left == 0 {
            self.requests.pop_front();
        }
        if self.turn.back() != Some(&terminal) {
            self.turn.retain(|other| *other != terminal);
            self.turn.push_back(terminal);
        }
        Grant { terminal, demand: true }
    }

    /// Assigns `slots` free slots whose owners do not matter, while no request is queued.
    pub fn skip(&mut self, slots: u64) {
        debug_assert!(self.is_idle(), "a slot that was asked for is not skipped");
        let turns = slots % self.turn.len() as u64;
        self.turn.rotate_left(turns as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u32 = 0;
    const B: u32 = 1;
    const C: u32 = 2;

    fn frame(scheduler: &mut Scheduler) -> Vec<(u32, bool)> {
        (0..4).map(|_| scheduler.grant()).map(|grant| (grant.terminal, grant.demand)).collect()
    }

    /// Three terminals, four slots per frame; B requested two slots, then C one.
    #[test]
    fn requests_go_first_and_free_slots_to_those_who_were_silent() {
        let mut scheduler = Scheduler::new(3);
        scheduler.request(B, 2);
        scheduler.request(C, 1);
        assert_eq!(frame(&mut scheduler), [(B, true), (B, true), (C, true), (A, false)]);
        assert_eq!(scheduler.turn, [B, C, A]);
        assert_eq!(frame(&mut scheduler), [(B, false), (C, false), (A, false), (B, false)]);
        assert_eq!(scheduler.turn, [C, A, B]);
    }

    #[test]
    fn skipping_is_giving_away() {
        let mut given = Scheduler::new(3);
        let mut skipped = given.clone();
        (0..1000).for_each(|_| assert!(!given.grant().demand));
        skipped.skip(1000);
        assert_eq!(given.turn, skipped.turn);
    }
}
