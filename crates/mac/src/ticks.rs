use bentpipe_base::Instant;
use bentpipe_net::Packet;

use crate::air::Air;

/// An access scheme in motion. It acts at times of its own, one after the other; between two of them only arrivals at the
/// terminals change anything.
pub(crate) trait Ticks<P: Packet> {
    /// When it acts next, [`Instant::FAR_FUTURE`] while there is nothing to do. What it then does reaches the receiver a one-way
    /// delay later at the earliest.
    fn next(&self) -> Instant;

    /// Does what happens at [`Ticks::next`].
    fn act(&mut self, air: &mut Air<P>);

    /// A packet came to `terminal` at `now`, after everything up to and including `now` was done.
    fn wake(&mut self, air: &Air<P>, terminal: u32, now: Instant);
}
