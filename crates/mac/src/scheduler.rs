use std::collections::VecDeque;

/// The scheduler of combined free and demand assignment: gives away one slot after the other.
///
/// As long as requests are queued, slots go to the first of them; otherwise to the terminals in turn. A terminal that is given what
/// it asked for goes to the end of that turn: it can ask again with its packets, so that free slots go to those who were silent
/// (Le-Ngoc and Mohammed 1993).
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Terminals and the slots that they still get, first come, first served.
    requests: VecDeque<(u32, u32)>,
    /// Terminals in the order of their turn.
    turn: VecDeque<u32>,
}

/// To whom a slot goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The terminal.
    pub terminal: u32,
    /// True if it asked for the slot, false if it is a free one.
    pub demand: bool,
}

impl Scheduler {
    /// For terminals 0 to `terminals` - 1, of which there is at least one.
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

    /// Gives the next slot away.
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

    /// Gives away `slots` slots of which nobody needs to know the owner, while no request is queued.
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

    /// Three terminals, four slots to a frame; B asked for two slots, then C for one.
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
