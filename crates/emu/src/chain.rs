use std::collections::VecDeque;

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_mac::Medium;
use bentpipe_net::{ConfigError, Draws, Link, LinkConfig, LinkStats};

use crate::frame::Frame;
use crate::path::{Channel, Hop};

/// One direction of the emulated path: links in series.
///
/// A pure state machine, as the links are. All events between two calls happen at their own times, even if the caller
/// is late: a packet enters the next link when it arrives there.
#[derive(Debug)]
pub(crate) struct Chain {
    stages: Vec<Stage>,
    /// Packets at the far end, with their arrival times.
    arrived: VecDeque<(Instant, Frame)>,
    /// Lost packets.
    dropped: Vec<Frame>,
}

/// One hop of the path.
#[derive(Debug)]
pub(crate) enum Stage {
    /// An unshared link.
    Link(Box<Link<Frame>>),
    /// A shared channel; its other terminals send nothing.
    Medium(Box<Medium<Frame>>, Box<Channel>),
}

impl Stage {
    /// Makes the hop for a run with `seed`. Its random streams are those of the simulator.
    pub fn new(hop: &Hop, seed: u64) -> Result<Self, ConfigError> {
        let Some(channel) = &hop.channel else { return Self::link(&hop.stream(), &hop.config, seed) };
        let terminals = vec![channel.terminal.clone(); channel.terminals];
        let name = format!("medium.{}.{}", hop.group, hop.direction);
        let medium = Medium::new(&channel.medium, &terminals, (seed, &name))?;
        Ok(Self::Medium(Box::new(medium), Box::new(channel.clone())))
    }

    fn link(name: &str, config: &LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        Ok(Self::Link(Box::new(Link::new(config, seed, name)?)))
    }

    fn enqueue(&mut self, now: Instant, frame: Frame) {
        match self {
            Self::Link(link) => link.enqueue(now, frame),
            Self::Medium(medium, channel) => medium.enqueue(now, channel.own, frame),
        };
    }

    fn deliver(&mut self, now: Instant) -> Option<Frame> {
        match self {
            Self::Link(link) => link.deliver(now).map(|arrival| arrival.packet),
            Self::Medium(medium, _) => medium.deliver(now).map(|(_, frame)| frame),
        }
    }

    fn poll_dropped(&mut self) -> Option<Frame> {
        match self {
            Self::Link(link) => link.poll_dropped().map(|dropped| dropped.packet),
            Self::Medium(medium, _) => medium.poll_dropped().map(|(_, dropped)| dropped.packet),
        }
    }

    fn next_event(&self) -> Instant {
        match self {
            Self::Link(link) => link.next_event(),
            Self::Medium(medium, _) => medium.next_event(),
        }
    }

    fn state(&mut self, now: Instant) -> StageState {
        match self {
            Self::Link(link) => StageState {
                rate: link.rate(now),
                delay_one_way: link.delay_one_way(now),
                waiting_packets: link.backlog(now).packets,
                stats: link.stats(),
            },
            Self::Medium(medium, channel) => StageState {
                rate: channel.medium.rate,
                delay_one_way: channel.medium.delay_one_way,
                waiting_packets: medium.backlog(now, channel.own).packets,
                stats: *medium.terminal_stats(channel.own),
            },
        }
    }
}

/// New properties of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkChange<'a> {
    pub before: &'a LinkConfig,
    pub after: &'a LinkConfig,
    /// Seed of the random stream from then on.
    pub seed: u64,
    /// Name of this random stream.
    pub stream: &'a str,
}

/// State of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageState {
    pub rate: Rate,
    pub delay_one_way: Duration,
    /// Number of queued packets.
    pub waiting_packets: u32,
    pub stats: LinkStats,
}

impl Chain {
    /// Makes a chain of these hops, from first to last.
    pub fn new(hops: impl IntoIterator<Item = Result<Stage, ConfigError>>) -> Result<Self, ConfigError> {
        let stages = hops.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { stages, arrived: VecDeque::new(), dropped: Vec::new() })
    }

    /// Offers a packet to the first hop.
    pub fn enqueue(&mut self, now: Instant, frame: Frame) {
        self.advance(now);
        self.stages[0].enqueue(now, frame);
        self.collect_dropped(0);
    }

    /// Returns the time of the next event.
    pub fn next_event(&self) -> Instant {
        self.stages.iter().map(Stage::next_event).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Processes all events that are due by `now`, each at its time.
    pub fn advance(&mut self, now: Instant) {
        loop {
            let due = self.stages.iter().map(Stage::next_event).enumerate().min_by_key(|(_, at)| *at);
            let Some((index, at)) = due.filter(|(_, at)| *at <= now) else { return };
            self.deliver(index, at);
        }
    }

    /// Gives the link at `index` new properties. A shared channel cannot change.
    pub fn reconfigure(
        &mut self,
        now: Instant,
        index: usize,
        change: &LinkChange,
    ) -> Result<(), ConfigError> {
        self.advance(now);
        if let Stage::Link(link) = &mut self.stages[index] {
            let draws = Draws { seed: change.seed, name: change.stream };
            link.reconfigure(now, change.before, change.after, draws)?;
        }
        self.collect_dropped(index);
        Ok(())
    }

    /// Returns the next packet at the far end with its arrival time.
    pub fn pop_arrived(&mut self) -> Option<(Instant, Frame)> {
        self.arrived.pop_front()
    }

    /// Returns a lost packet, whose buffer can be reused.
    pub fn pop_dropped(&mut self) -> Option<Frame> {
        self.dropped.pop()
    }

    /// Returns the state of each hop.
    pub fn states(&mut self, now: Instant) -> impl Iterator<Item = StageState> + '_ {
        self.stages.iter_mut().map(move |stage| stage.state(now))
    }

    fn deliver(&mut self, index: usize, at: Instant) {
        let (before, after) = self.stages.split_at_mut(index + 1);
        while let Some(frame) = before[index].deliver(at) {
            match after.first_mut() {
                Some(next) => next.enqueue(at, frame),
                None => self.arrived.push_back((at, frame)),
            }
        }
        self.collect_dropped(index);
        if index + 1 < self.stages.len() {
            self.collect_dropped(index + 1);
        }
    }

    fn collect_dropped(&mut self, index: usize) {
        while let Some(frame) = self.stages[index].poll_dropped() {
            self.dropped.push(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_net::{Limit, QueueConfig};

    fn link(mbps: u64, delay_ms: u64, packets: u32) -> LinkConfig {
        let queue = QueueConfig::DropTail { limit: Limit::Packets(packets) };
        LinkConfig::new(Rate::from_mbps(mbps), Duration::from_millis(delay_ms), queue)
    }

    fn frame(bytes: usize) -> Frame {
        Frame::new(Frame::buffer(1500), bytes)
    }

    #[test]
    fn links_in_series_add_up_however_late_the_caller_is() {
        let (first, second) = (link(12, 10, 50), link(6, 100, 50));
        let mut chain = Chain::new([Stage::link("a", &first, 1), Stage::link("b", &second, 1)]).unwrap();
        for _ in 0..2 {
            chain.enqueue(Instant::ZERO, frame(1500));
        }
        chain.advance(Instant::from_nanos(10_000_000_000));
        let mut arrivals = std::iter::from_fn(|| chain.pop_arrived()).map(|(at, _)| at.as_nanos());
        // 1 ms + 10 ms + 2 ms + 100 ms; the second waits for the slower transmitter.
        assert_eq!(arrivals.next(), Some(113_000_000));
        assert_eq!(arrivals.next(), Some(115_000_000));
        assert_eq!(arrivals.next(), None);
    }

    #[test]
    fn what_a_later_link_drops_comes_out_too() {
        let (fast, slow) = (link(1000, 0, 50), link(1, 1, 3));
        let mut chain = Chain::new([Stage::link("fast", &fast, 1), Stage::link("slow", &slow, 1)]).unwrap();
        for _ in 0..10 {
            chain.enqueue(Instant::ZERO, frame(1500));
        }
        chain.advance(Instant::from_nanos(1_000_000_000));
        let dropped = std::iter::from_fn(|| chain.pop_dropped()).count();
        // One is sent, three wait.
        assert_eq!(dropped, 6);
        assert_eq!(
            chain.states(Instant::from_nanos(1_000_000_000)).nth(1).map(|link| link.stats.dropped_by_queue),
            Some(6)
        );
        assert_eq!(chain.next_event(), Instant::FAR_FUTURE);
    }
}
