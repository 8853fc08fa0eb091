use bentpipe_base::Rng;

use crate::terminal::Burst;

/// Contending terminal: its burst, and the number of attempts.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    /// The burst, from its first transmission until it gets through or is given up.
    pub burst: Option<Burst>,
    /// Number of collisions of this burst.
    pub collisions: u32,
    /// True while a transmission is planned: later packets wait.
    pub engaged: bool,
    /// First slot or frame in which it may send, if it waits for an echo.
    pub free_from: u64,
    pub rng: Rng,
}

impl Contender {
    pub fn all(rngs: Vec<Rng>) -> Vec<Self> {
        let one = |rng| Self { burst: None, collisions: 0, engaged: false, free_from: 0, rng };
        rngs.into_iter().map(one).collect()
    }

    /// Ends the burst, after success or failure.
    pub fn finish(&mut self) -> Option<Burst> {
        self.collisions = 0;
        self.burst.take()
    }

    /// Records a collision. Returns the burst if the limit is exceeded.
    pub fn collide(&mut self, retries: u32) -> Option<Burst> {
        self.collisions += 1;
        if self.collisions > retries { self.finish() } else { None }
    }

    /// Returns a random number below `2^min(collisions, limit)`.
    pub fn units(&mut self, limit: u32) -> u64 {
        self.rng.below(1 << self.collisions.min(limit))
    }
}
