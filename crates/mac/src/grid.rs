use bentpipe_base::{Duration, Instant};

/// Frames of equal slots from time zero on, with consecutive slot numbers. A slot begins at a whole nanosecond computed from
/// its number, so that the grid does not drift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    frame: u64,
    slots: u64,
}

impl Grid {
    /// Makes a grid; the frame has at least one nanosecond per slot.
    pub fn new(frame: Duration, slots: u32) -> Self {
        Self { frame: frame.as_nanos(), slots: u64::from(slots) }
    }

    /// Returns the slots per frame.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns the start of slot `slot`, which is the end of the previous one.
    pub fn start(&self, slot: u64) -> Instant {
        let (frame, place) = (slot / self.slots, slot % self.slots);
        let within = u128::from(place) * u128::from(self.frame) / u128::from(self.slots);
        Instant::from_nanos(frame * self.frame + within as u64)
    }

    /// Returns the start of frame `frame`.
    pub fn frame_start(&self, frame: u64) -> Instant {
        Instant::from_nanos(frame * self.frame)
    }

    /// Returns the frame that contains `now`.
    pub fn frame_of(&self, now: Instant) -> u64 {
        now.as_nanos() / self.frame
    }

    /// Returns the first slot that begins after `now`.
    pub fn first_after(&self, now: Instant) -> u64 {
        let (frame, within) = (now.as_nanos() / self.frame, now.as_nanos() % self.frame);
        let mut slot = frame * self.slots
            + (u128::from(within) * u128::from(self.slots) / u128::from(self.frame)) as u64;
        while self.start(slot) <= now {
            slot += 1;
        }
        slot
    }

    /// Returns the length of a frame.
    pub fn frame(&self) -> Duration {
        Duration::from_nanos(self.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_tile_the_frames_without_drift() {
        let grid = Grid::new(Duration::from_nanos(100), 3);
        let starts: Vec<_> = (0..7).map(|slot| grid.start(slot).as_nanos()).collect();
        assert_eq!(starts, [0, 33, 66, 100, 133, 166, 200]);
        assert_eq!(grid.start(3_000_000).as_nanos(), 100_000_000);
    }

    #[test]
    fn the_first_slot_after_a_time_begins_after_it_and_the_one_before_does_not() {
        for (frame, slots) in [(100, 3), (7, 7), (1000, 64), (24_000_000, 64)] {
            let grid = Grid::new(Duration::from_nanos(frame), slots);
            for nanos in (0..3 * frame).step_by((frame / 97 + 1) as usize) {
                let now = Instant::from_nanos(nanos);
                let slot = grid.first_after(now);
                assert!(grid.start(slot) > now);
                assert!(slot == 0 || grid.start(slot - 1) <= now, "{nanos} {slot}");
            }
        }
    }
}
