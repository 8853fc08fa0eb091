use bentpipe_base::Rng;

use crate::terminal::Burst;

/// A terminal that contends: the burst that it tries to get through, and how often it tried.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    /// What it sends, from its first transmission until it is through or given up.
    pub burst: Option<Burst>,
    /// Collisions of this burst.
    pub collisions: u32,
    /// True while a transmission is planned: a packet that comes then waits.
    pub engaged: bool,
    /// The first slot or frame in which it may send, as far as it waits for an echo.
    pub free_from: u64,
    pub rng: Rng,
}

impl Contender {
    pub fn all(rngs: Vec<Rng>) -> Vec<Self> {
        let one = |rng| Self { burst: None, collisions: 0, engaged: false, free_from: 0, rng };
        rngs.into_iter().map(one).collect()
    }

    /// Done with this burst, one way or the other.
    pub fn finish(&mut self) -> Option<Burst> {
        self.collisions = 0;
        self.burst.take()
    }

    /// Notes a collision; the burst if it was one too many.
    pub fn collide(&mut self, retries: u32) -> Option<Burst> {
        self.collisions += 1;
        if self.collisions > retries { self.finish() } else { None }
    }

    /// A random one of `2^min(collisions, limit)` units of time.
    pub fn units(&mut self, limit: u32) -> u64 {
        self.rng.below(1 << self.collisions.min(limit))
    }
}
