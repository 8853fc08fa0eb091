//! Logical processes: parts of a world that are executed for a whole window of time (conservative parallel simulation; Chandy and Misra
//! 1979, Fujimoto 2000).
//!
//! A process consists of hosts, and of links between them and the next shared links that nobody else uses. Events of a host affect
//! other processes only behind a shared link, after at least the link's lookahead: a quarter of a second for a geostationary satellite.
//! So all packets that reach a process within the lookahead are known, and the process can execute that window without waiting. It
//! executes its packets, deadlines and applications in the order of the event queue. This is faster in a world of thousands of hosts:
//! the memory of a host is fetched once per window instead of once per event.
//!
//! If senders and receivers affect each other only by packets, and their packets pass different shared links, senders and receivers are
//! two phase groups, which alternate. When one group has executed up to a time, the other can execute until those events affect it. A
//! window then spans the delays of both directions.
//!
//! A world in which another part could read the state of a host within a window has no processes;
//! [`find_processes`](crate::parallel::partition::find_processes) decides. Goodput is sampled once a second: each process notes the bytes
//! that have arrived when its execution passes the time of the sample.

use std::ops::Range;

use bentpipe_base::{Components, Duration, Instant};
use bentpipe_scenario::LinkId;

use crate::ids::{EndId, FlowId, GroupId};
use crate::packet::pool::{PacketPool, Waiting};
use crate::parallel::batch::sort;
use crate::parallel::channel::Channel;
use crate::parallel::shared_link::SharedLink;
use crate::scheduler::timer::Timer;
use crate::tuning::FLOWS_OF_FIRST_LINK;

/// A flow of a process, or one side of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub flow: FlowId,
    /// The ends of its connection that are here, once it is open.
    pub ends: Numbers,
    /// The links over which these send.
    links: [LinkId; 2],
    /// Timer of the application, which is at the sender.
    pub timer: Timer,
    /// True if the receiver is in this process.
    pub receives: bool,
}

impl Member {
    fn new(flow: FlowId) -> Self {
        Self { flow, ends: Numbers::default(), links: [0; 2], timer: Timer::OFF, receives: false }
    }

    /// The links over which it sends.
    #[inline(always)]
    pub fn links(&self) -> &[LinkId] {
        &self.links[..self.ends.len()]
    }
}

/// Consecutive numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    pub begin: u32,
    pub end: u32,
}

impl Numbers {
    pub fn len(self) -> usize {
        (self.end - self.begin) as usize
    }

    pub fn iter(self) -> Range<u32> {
        self.begin..self.end
    }

    /// The numbers as indices.
    pub fn places(self) -> Range<usize> {
        self.begin as usize..self.end as usize
    }
}

/// A logical process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub channels: Numbers,
    pub members: Numbers,
    pub group: GroupId,
    /// The thread that executes it, if there are several.
    pub share: u32,
    /// True if the next window executes the process.
    pub is_scheduled: bool,
    /// True if the next sample of goodput has been noted.
    pub is_sampled: bool,
    /// No event happens here before this time without a message.
    pub due: Instant,
}

impl Process {
    /// A process of a phase group, with members of these numbers.
    pub fn new(group: GroupId, members: Numbers) -> Self {
        let (channels, due) = (Numbers::default(), Instant::FAR_FUTURE);
        Self { channels, members, group, share: 0, is_scheduled: false, is_sampled: true, due }
    }
}

/// No member.
const NOBODY: u32 = u32::MAX;

/// Processes that are executed for the same window.
#[derive(Debug)]
pub(crate) struct PhaseGroup {
    /// Processes that the next window executes: those with a message, or with an event soon.
    pub scheduled: Vec<u32>,
    /// Time of the first event of these processes, as known at the last window.
    pub next_due: Instant,
    /// Earliest arrival of the packets for this group that wait at a shared link.
    pub first_message: Instant,
    /// Lookahead of this group: minimum delay from a shared link to a host.
    pub lookahead: Duration,
    /// Everything before this has been executed here.
    pub executed_until: Instant,
}

impl PhaseGroup {
    /// Time by which the next window must begin: a waiting packet could then be at a host, or a process has an event.
    pub fn next_window(&self) -> Instant {
        (self.first_message + self.lookahead).min(self.next_due)
    }
}

/// All processes of a world; a world that is executed event by event has none.
#[derive(Debug)]
pub(crate) struct Processes {
    pub processes: Vec<Process>,
    pub channels: Vec<Channel>,
    /// Channels that had no packet before they got one in this window.
    filled: Vec<u32>,
    pub members: Vec<Member>,
    /// The members that the sides of a flow are; twice the same if one process has both.
    members_of: Vec<[u32; 2]>,
    /// Two that send to each other, or one that sends to itself.
    pub groups: Vec<PhaseGroup>,
    /// Empty; kept for its memory.
    pub spare: Vec<u32>,
    /// Minimum length of a window.
    pub window: Duration,
    /// Time of the next sample of goodput.
    pub next_sample: Instant,
    /// Bytes of each flow that had arrived at the last sample.
    pub sampled: Vec<u64>,
    /// No timer of the process that is being executed expires before this.
    pub no_timer_before: Instant,
    /// The links between processes.
    pub shared_links: Vec<SharedLink>,
    /// The longest lookahead of a shared link.
    pub lookahead: Duration,
}

impl Default for Processes {
    fn default() -> Self {
        Self::new((Vec::new(), Vec::new()), &[], &[])
    }
}

impl Processes {
    /// Processes with their channels; the flows that the members are in their order, each once or first as sender and then as receiver; and
    /// how long a packet takes at least from a shared link to a host of each phase group.
    pub fn new(
        (processes, channels): (Vec<Process>, Vec<Channel>),
        members: &[FlowId],
        lookaheads: &[Duration],
    ) -> Self {
        let flows = members.iter().max().map_or(0, |last| *last as usize + 1);
        let mut members_of = vec![[NOBODY; 2]; flows];
        for (member, flow) in (0..).zip(members) {
            let [sender, receiver] = &mut members_of[*flow as usize];
            (*sender, *receiver) = ((*sender).min(member), member);
        }
        let mut members: Vec<Member> = members.iter().copied().map(Member::new).collect();
        for [_, receiver] in &members_of {
            if let Some(member) = members.get_mut(*receiver as usize) {
                member.receives = true;
            }
        }
        let group = |lookahead: &Duration| PhaseGroup {
            scheduled: Vec::new(),
            next_due: Instant::FAR_FUTURE,
            first_message: Instant::FAR_FUTURE,
            lookahead: *lookahead,
            executed_until: Instant::ZERO,
        };
        Self {
            processes,
            channels,
            filled: Vec::new(),
            members,
            members_of,
            groups: lookaheads.iter().map(group).collect(),
            spare: Vec::new(),
            window: lookaheads.iter().fold(Duration::ZERO, |sum, lookahead| sum + *lookahead),
            next_sample: Instant::ZERO,
            sampled: vec![0; flows],
            no_timer_before: Instant::ZERO,
            shared_links: Vec::new(),
            lookahead: Duration::ZERO,
        }
    }

    /// These processes with the links between them.
    pub fn between(self, shared_links: Vec<SharedLink>) -> Self {
        let lookahead = shared_links.iter().map(|shared_link| shared_link.lookahead).max();
        Self { shared_links, lookahead: lookahead.unwrap_or(Duration::ZERO), ..self }
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    pub fn len(&self) -> usize {
        self.processes.len()
    }

    /// Divides the processes into at most `most` shards with about equal work. Processes of the same flow are in the same shard.
    /// Returns the number of shards.
    pub fn divide(&mut self, most: u32) -> u32 {
        let mut process_of = vec![0; self.members.len()];
        for (id, process) in (0..).zip(&self.processes) {
            process_of[process.members.places()].fill(id);
        }
        let mut components = Components::new(self.processes.len() as u32);
        for [sender, receiver] in &self.members_of {
            components.unite(process_of[*sender as usize], process_of[*receiver as usize]);
        }
        let mut work: Vec<_> = self.processes.iter().map(|process| process.members.len() as u64).collect();
        let of_first_link = work.iter().sum::<u64>() / FLOWS_OF_FIRST_LINK;
        work.iter_mut().take(1).for_each(|of_first_share| *of_first_share += of_first_link);
        let (shares, count) = components.divide(&work, most);
        self.processes.iter_mut().zip(shares).for_each(|(process, share)| process.share = share);
        count
    }

    /// The share of each flow.
    pub fn shares_of_flows(&self) -> Vec<u32> {
        let mut shares = vec![0; self.members.len()];
        for process in &self.processes {
            shares[process.members.places()].fill(process.share);
        }
        self.members_of.iter().map(|[sender, _]| shares[*sender as usize]).collect()
    }

    /// Sets the timers of all flows of a share to their starts.
    pub fn set_starts(&mut self, starts: impl Iterator<Item = Instant>, share: u32, end: Instant) {
        let shares = self.shares_of_flows();
        for ((start, [sender, _]), of_flow) in starts.zip(&self.members_of).zip(shares) {
            if of_flow == share {
                self.members[*sender as usize].timer.set(start, end);
            }
        }
        for process in &mut self.processes {
            let starts = self.members[process.members.places()].iter().map(|member| member.timer.time);
            process.due = starts.min().unwrap_or(Instant::FAR_FUTURE);
        }
    }

    /// A timer of the process that is being executed was set to this time.
    #[inline(always)]
    pub fn note_timer(&mut self, at: Instant) {
        self.no_timer_before = self.no_timer_before.min(at);
    }

    /// Wakes a flow at `at` or earlier.
    pub fn set_timer(&mut self, flow: FlowId, at: Instant, end: Instant) {
        self.note_timer(at);
        let [sender, _] = self.members_of[flow as usize];
        self.members[sender as usize].timer.set(at, end);
    }

    /// The connection of a flow is open; its ends send over these links.
    pub fn note_opened(&mut self, flow: FlowId, first: EndId, links: [LinkId; 2]) {
        for (side, id) in (0..).zip(self.members_of[flow as usize]) {
            let Member { ends, links: sending, .. } = &mut self.members[id as usize];
            sending[ends.len()] = links[side as usize];
            let begin = if ends.len() == 0 { first + side } else { ends.begin };
            *ends = Numbers { begin, end: first + side + 1 };
        }
    }

    /// Adds a packet to a channel.
    #[inline(always)]
    pub fn post(&mut self, packet: Waiting, pool: &mut PacketPool) {
        if self.channels[packet.channel as usize].push(packet, pool) {
            self.filled.push(packet.channel);
        }
    }

    /// Schedules the processes that got their first message in this window. Processes with earlier messages are scheduled or have a
    /// timer.
    pub fn schedule_filled(&mut self) {
        let mut filled = std::mem::take(&mut self.filled);
        // In the order of memory.
        sort(&mut filled, |channel| *channel);
        for channel in filled.drain(..) {
            self.schedule(self.channels[channel as usize].process, Instant::FAR_FUTURE);
        }
        self.filled = filled;
    }

    /// Notes a packet for a phase group that arrives at a shared link. Returns true if the next window must begin earlier.
    #[inline(always)]
    pub fn note_message(&mut self, group: GroupId, at: Instant) -> bool {
        let group = &mut self.groups[group as usize];
        let is_earlier = at < group.first_message;
        group.first_message = group.first_message.min(at);
        is_earlier
    }

    /// Time by which the next window of any group must begin.
    pub fn next_window(&self) -> Instant {
        self.groups.iter().map(PhaseGroup::next_window).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The safe time: all earlier packets for the group are known, if all processes have executed until `now`.
    pub fn safe_time(&self, to: GroupId, now: Instant) -> Instant {
        let from = self.groups.len() - 1 - usize::from(to);
        self.groups[from].executed_until.max(now)
    }

    /// Span behind the end of a window: packets due within it are sorted with the next batch.
    pub fn batch_span(&self) -> Duration {
        self.window * 2
    }

    /// A process is executed in the next window of its group, which begins at `due` at the latest.
    #[inline(always)]
    pub fn schedule(&mut self, id: u32, due: Instant) {
        let process = &mut self.processes[id as usize];
        let group = &mut self.groups[usize::from(process.group)];
        group.next_due = group.next_due.min(due);
        if !process.is_scheduled {
            process.is_scheduled = true;
            group.scheduled.push(id);
        }
    }

    /// Arrival time of the first packet in any channel that no process has handled.
    pub fn first_message(&self, pool: &PacketPool) -> Instant {
        let first_at = self.channels.iter().map(|channel| channel.first_at(pool));
        first_at.min().unwrap_or(Instant::FAR_FUTURE)
    }
}
