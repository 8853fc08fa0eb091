use bentpipe_base::Instant;
use bentpipe_net::Packet;

use crate::air::Air;

/// Interface of an access scheme. It acts at its own times, in order. Between two actions only arrivals at the terminals change
/// its state.
pub(crate) trait Ticks<P: Packet> {
    /// Returns the time of the next action; [`Instant::FAR_FUTURE`] if there is none. Its effect reaches the receiver at least a
    /// one-way delay later.
    fn next(&self) -> Instant;

    /// Executes the action at [`Ticks::next`].
    fn act(&mut self, air: &mut Air<P>);

    /// Handles a packet's arrival at `terminal` at `now`, after all actions up to and including `now`.
    fn wake(&mut self, air: &Air<P>, terminal: u32, now: Instant);
}
