//! Input channels of processes: packets between the end of a shared link's transmission and their arrival at a process. A packet stays
//! in its place in the packet pool, which has the place of the next packet.
//!
//! Packets of one process are neighbours in memory and arrive in nearly the same order, so the reader accesses memory sequentially.

use bentpipe_base::Instant;
use bentpipe_scenario::LinkId;

use crate::ids::PacketIndex;
use crate::packet::handle::PacketHandle;
use crate::packet::pool::{PacketPool, Waiting};
use crate::scheduler::key::EventKey;

/// Links from a shared link to a host, and the packets due at the first of these links, in order.
#[derive(Debug)]
// The struct fits one cache line.
#[repr(C, align(64))]
pub(crate) struct Channel {
    pub process: u32,
    /// The first of the links.
    pub link: LinkId,
    /// Position of the channel in its route.
    pub position: u32,
    /// The first and the last packet that wait. Without packets only the length means anything.
    first: PacketIndex,
    last: PacketIndex,
    len: u32,
    /// The packet that arrives next, and when; [`EventKey::NEVER`] without one.
    pub front: (EventKey, PacketHandle),
}

const _: () = assert!(size_of::<Channel>() == 64);

impl Channel {
    /// A channel of a process that begins with a link, to which a route leads at a position.
    pub fn new(process: u32, link: LinkId, position: u32) -> Self {
        let front = (EventKey::NEVER, PacketHandle::NOTHING);
        Self { process, link, position, first: 0, last: 0, len: 0, front }
    }

    /// Packets on the channel.
    pub fn len(&self) -> usize {
        self.len as usize + usize::from(self.front.0 != EventKey::NEVER)
    }

    /// Arrival time of the first waiting packet, [`Instant::FAR_FUTURE`] without one.
    pub fn first_at(&self, pool: &PacketPool) -> Instant {
        if self.len == 0 { Instant::FAR_FUTURE } else { pool.waiting(self.first).at }
    }

    /// Appends a packet to those that wait. True if it is the only one.
    #[inline(always)]
    pub fn push(&mut self, packet: Waiting, pool: &mut PacketPool) -> bool {
        let index = packet.handle.index();
        let is_first = self.len == 0;
        if is_first {
            self.first = index;
        } else if index != self.last + 1 {
            pool.set_next(self.last, index);
        }
        self.last = index;
        self.len += 1;
        // The next packet will most likely lie in the next place.
        pool.set_waiting(Waiting { salt_or_next: index + 1, ..packet });
        is_first
    }

    /// Takes out the first of the packets that wait.
    #[inline(always)]
    pub fn pop(&mut self, pool: &PacketPool) -> Option<Waiting> {
        self.len = self.len.checked_sub(1)?;
        let packet = pool.waiting(self.first);
        self.first = packet.salt_or_next;
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::handle::{Label, Marks};
    use crate::packet::pool::PacketContents;
    use bentpipe_base::Rng;
    use std::collections::VecDeque;

    /// Packets join in another order than they were stored, or get lost: each channel keeps its order.
    #[test]
    fn every_channel_keeps_its_order() {
        let mut rng = Rng::stream(1, "channels");
        let mut channels = [(); 5].map(|()| Channel::new(0, 0, 0));
        let mut pool = PacketPool::default();
        let mut waiting: Vec<PacketIndex> = Vec::new();
        let mut models: [VecDeque<PacketIndex>; 5] = Default::default();
        let mut longest = 0;
        for number in 0..60_000 {
            let channel = rng.below(5) as u32;
            let at = Instant::from_nanos(number);
            let model = &mut models[channel as usize];
            // Queues grow at times, and shrink at others.
            match rng.below(9) + 2 * (number / 5_000 % 2) {
                0..3 => {
                    let to = rng.below(2) as u32;
                    waiting.push(pool.put(&PacketContents { to, ..PacketContents::default() }));
                }
                3..7 if !waiting.is_empty() => {
                    // Most packets leave in the order of arrival.
                    let index = waiting.remove(rng.below(waiting.len().min(3) as u64) as usize);
                    if rng.below(20) == 0 {
                        pool.release(index);
                        continue;
                    }
                    let handle = PacketHandle::new((index, 0), 0, Label::default(), Marks::empty());
                    let packet = Waiting { at, handle, salt_or_next: 0, channel };
                    assert_eq!(channels[channel as usize].push(packet, &mut pool), model.is_empty());
                    model.push_back(index);
                }
                _ => {
                    let first = channels[channel as usize].pop(&pool).map(|packet| packet.handle.index());
                    assert_eq!(first, model.pop_front());
                    first.into_iter().for_each(|index| pool.release(index));
                }
            }
            let len = channels[channel as usize].len();
            assert_eq!(len, models[channel as usize].len());
            longest = longest.max(len);
        }
        assert!(longest > 50);
        for (mut channel, model) in channels.into_iter().zip(models) {
            let rest = std::iter::from_fn(|| channel.pop(&pool)).map(|packet| packet.handle.index());
            assert_eq!(rest.collect::<VecDeque<_>>(), model);
        }
    }
}
