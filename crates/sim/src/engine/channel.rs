//! Packets on their way to the input channels of processes, from when they are through a shared link until processes take them in.
//! Each stays in its place in the packet pool, which names that of the next one.
//!
//! What a process sends lies together and is through in much the same order, so whoever takes it in reads memory from front to back.

use bentpipe_base::{Instant, prefetch_item};

use crate::engine::tuning::CHANNEL_AHEAD;
use crate::ids::PacketIndex;
use crate::packet::pool::{PacketPool, Waiting};

/// The packets on their way to one channel, in order. Without packets only the length means anything.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct MessageQueue {
    first: PacketIndex,
    last: PacketIndex,
    len: u32,
}

impl MessageQueue {
    /// Asks for the memory of the first packets, as far as they lie in a row.
    #[inline(always)]
    fn prefetch_first(&self, pool: &PacketPool) {
        pool.prefetch_row(self.first, CHANNEL_AHEAD.min(self.len));
    }

    /// The same while they leave, one by one: `left` was the last.
    #[inline(always)]
    fn prefetch_ahead(&self, left: PacketIndex, pool: &PacketPool) {
        if self.first != left + 1 {
            return self.prefetch_first(pool);
        }
        if self.len >= CHANNEL_AHEAD / 2 {
            pool.prefetch_out_of_line(left + CHANNEL_AHEAD / 2);
            if self.len >= CHANNEL_AHEAD {
                pool.prefetch(left + CHANNEL_AHEAD);
            }
        }
    }
}

/// The queues of all channels.
#[derive(Debug, Default)]
pub(crate) struct MessageQueues {
    queues: Vec<MessageQueue>,
}

impl MessageQueues {
    /// For so many channels, all empty.
    pub fn new(channels: usize) -> Self {
        Self { queues: vec![MessageQueue::default(); channels] }
    }

    /// Packets on their way to a channel.
    pub fn len(&self, channel: u32) -> usize {
        self.queues[channel as usize].len as usize
    }

    /// When the first packet comes to a channel, [`Instant::FAR_FUTURE`] without one.
    pub fn first_at(&self, channel: u32, pool: &PacketPool) -> Instant {
        let queue = &self.queues[channel as usize];
        if queue.len == 0 { Instant::FAR_FUTURE } else { pool.waiting(queue.first).at }
    }

    /// Appends a packet to the queue of its channel. True if it is the only one.
    #[inline(always)]
    pub fn push(&mut self, packet: Waiting, pool: &mut PacketPool) -> bool {
        let index = packet.handle.index();
        let queue = &mut self.queues[packet.channel as usize];
        let is_first = queue.len == 0;
        if is_first {
            queue.first = index;
        } else if index != queue.last + 1 {
            pool.set_next(queue.last, index);
        }
        queue.last = index;
        queue.len += 1;
        // The next packet will most likely lie in the next place.
        pool.set_waiting(Waiting { salt_or_next: index + 1, ..packet });
        is_first
    }

    /// Takes the first packet out of the queue of a channel.
    #[inline(always)]
    pub fn pop(&mut self, channel: u32, pool: &PacketPool) -> Option<Waiting> {
        let queue = &mut self.queues[channel as usize];
        queue.len = queue.len.checked_sub(1)?;
        let packet = pool.waiting(queue.first);
        queue.first = packet.salt_or_next;
        if pool.is_large() {
            queue.prefetch_ahead(packet.handle.index(), pool);
        }
        Some(packet)
    }

    /// Asks for the memory of a queue.
    #[inline(always)]
    pub fn prefetch(&self, channel: u32) {
        prefetch_item(&self.queues, channel as usize);
    }

    /// Asks for the memory of the first packets of a queue, as far as they lie in a row.
    #[inline(always)]
    pub fn prefetch_first(&self, channel: u32, pool: &PacketPool) {
        self.queues[channel as usize].prefetch_first(pool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::handle::{Marks, PacketHandle};
    use crate::packet::pool::PacketContents;
    use bentpipe_base::Rng;
    use std::collections::VecDeque;

    /// Packets join in another order than they were put down, or get lost: each queue keeps its order.
    #[test]
    fn every_queue_keeps_its_order() {
        let mut rng = Rng::stream(1, "channels");
        let (mut queues, mut pool) = (MessageQueues::new(5), PacketPool::default());
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
                    // Most of them leave as they came.
                    let index = waiting.remove(rng.below(waiting.len().min(3) as u64) as usize);
                    if rng.below(20) == 0 {
                        pool.release(index);
                        continue;
                    }
                    let handle = PacketHandle::new((index, 0), 0, 0, Marks::empty());
                    let packet = Waiting { at, handle, salt_or_next: 0, channel };
                    assert_eq!(queues.push(packet, &mut pool), model.is_empty());
                    model.push_back(index);
                }
                _ => {
                    let first = queues.pop(channel, &pool).map(|packet| packet.handle.index());
                    assert_eq!(first, model.pop_front());
                    first.into_iter().for_each(|index| pool.release(index));
                }
            }
            assert_eq!(queues.len(channel), models[channel as usize].len());
            longest = longest.max(queues.len(channel));
        }
        assert!(longest > 50);
        for (channel, model) in (0..).zip(models) {
            let rest: VecDeque<_> = std::iter::from_fn(|| queues.pop(channel, &pool))
                .map(|packet| packet.handle.index())
                .collect();
            assert_eq!(rest, model);
        }
    }
}
