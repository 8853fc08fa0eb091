//! Executes the logical processes of a world, window by window.

use bentpipe_base::{Duration, Instant};
use bentpipe_outcome::SAMPLE_INTERVAL;

use crate::host::end::End;
use crate::ids::{EndId, GroupId};
use crate::observe::monitor::Monitor;
use crate::packet::pool::{NO_CHANNEL, Waiting};
use crate::parallel::process::{Numbers, Process, Processes};
use crate::scheduler::key::EventKey;
use crate::scheduler::target::Target;
use crate::scheduler::timer::Timer;
use crate::simulation::Simulation;

/// Next event of a process.
enum Next {
    /// A packet arrives over a channel.
    Arrival(u32),
    /// The timer of a connection end expires.
    End(EndId),
    /// The timer of a member's application expires.
    Member(u32),
}

impl<M: Monitor> Simulation<M> {
    /// The processes wait for the starts of their flows.
    pub(crate) fn start_processes(&mut self) {
        let share = self.share.as_ref().map_or(0, |share| share.number);
        let starts = self.applications.flows.iter().map(|flow| flow.start);
        self.processes.set_starts(starts, share, self.scheduler.until);
        for id in 0..self.processes.len() as u32 {
            self.schedule_or_wake(id, self.processes.processes[id as usize].due, self.scheduler.now);
        }
        self.schedule_window();
    }

    /// The wheel wakes the executor when the next window must begin, unless several threads agree on that.
    pub(crate) fn schedule_window(&mut self) {
        if self.share.is_none() {
            self.scheduler.schedule(Target::Window, self.processes.next_window());
        }
    }

    /// A window may have to begin.
    pub(crate) fn happen_between_processes(&mut self) {
        self.run_windows();
        self.schedule_window();
    }

    /// Executes a window of each phase group that is due.
    pub(crate) fn run_windows(&mut self) {
        for group in 0..self.processes.groups.len() as GroupId {
            if self.processes.groups[group as usize].next_window() <= self.scheduler.now {
                self.run_window(group);
            }
        }
    }

    /// Transmits the packets for a phase group on all shared links, up to the safe time. Packets that arrive exactly at the safe time
    /// may not all be known.
    fn let_all_through(&mut self, group: GroupId, safe_time: Instant) {
        for id in 0..self.processes.shared_links.len() as u32 {
            if self.processes.shared_links[id as usize].group == group {
                self.let_batch_through(id, safe_time - Duration::from_nanos(1));
            }
        }
        self.note_let_through(group);
    }

    /// The shared links have let packets for a phase group through.
    pub(crate) fn note_let_through(&mut self, group: GroupId) {
        self.processes.schedule_filled();
        let leading = self.processes.shared_links.iter().filter(|shared_link| shared_link.group == group);
        let first = leading.map(|shared_link| shared_link.batch.first_at()).min();
        self.processes.groups[group as usize].first_message = first.unwrap_or(Instant::FAR_FUTURE);
    }

    /// Transmits the packets that arrive at a shared link by `limit`.
    pub(crate) fn let_batch_through(&mut self, id: u32, limit: Instant) {
        self.leave_batch(id, limit, |simulation, packet| simulation.pass_shared_link(id, packet));
    }

    /// Visits the packets that arrive at a shared link by `limit`, in order.
    #[inline(always)]
    pub(crate) fn leave_batch(&mut self, id: u32, limit: Instant, mut visit: impl FnMut(&mut Self, Waiting)) {
        while self.processes.shared_links[id as usize].batch.first_at() <= limit {
            let mut leaving =
                self.processes.shared_links[id as usize].batch.leave(limit, &mut self.network.pool);
            for position in 0..leaving.len() {
                self.prefetch_along_batch(&leaving, position);
                let packet = leaving.get(position, &self.network.pool);
                visit(self, packet);
            }
            let span = self.processes.batch_span();
            self.processes.shared_links[id as usize].batch.forget(leaving, limit, span);
        }
    }

    /// Passes a packet to a shared link.
    #[inline(always)]
    pub(crate) fn pass_shared_link(&mut self, id: u32, Waiting { at, channel, handle, .. }: Waiting) {
        let link = self.processes.shared_links[id as usize].link;
        self.enter_arrival(at, handle);
        if channel == NO_CHANNEL {
            self.run_ahead((at, link), handle);
        } else {
            self.run_to_channel((at, link), handle, channel);
        }
    }

    fn run_window(&mut self, group: GroupId) {
        let safe_time = self.processes.safe_time(group, self.scheduler.now);
        self.let_all_through(group, safe_time);
        self.execute_window(group, safe_time);
    }

    /// Executes the scheduled processes of a phase group to the end of the window. All earlier arrivals at their hosts are known.
    pub(crate) fn execute_window(&mut self, group: GroupId, safe_time: Instant) {
        // A process stores one sample only.
        let next_but_one_sample = self.processes.next_sample + SAMPLE_INTERVAL;
        let spare = std::mem::take(&mut self.processes.spare);
        let state = &mut self.processes.groups[group as usize];
        debug_assert!(state.first_message >= safe_time);
        let window_end = (safe_time + state.lookahead).min(next_but_one_sample);
        (state.next_due, state.executed_until) = (Instant::FAR_FUTURE, window_end);
        let mut scheduled = std::mem::replace(&mut state.scheduled, spare);
        for (place, &id) in scheduled.iter().enumerate() {
            self.prefetch_along_window(&scheduled[place..]);
            self.processes.processes[id as usize].is_scheduled = false;
            self.run_process(id, window_end);
        }
        scheduled.clear();
        self.processes.spare = scheduled;
    }

    /// Returns the bytes of each flow that have arrived by now; all earlier events are executed.
    pub(crate) fn sample_processes(&mut self) -> &[u64] {
        for id in 0..self.processes.len() as u32 {
            if !self.processes.processes[id as usize].is_sampled {
                self.sample(id);
            }
        }
        &self.processes.sampled
    }

    /// Goodput was sampled, and will be again at `next`.
    pub(crate) fn go_on_after_sample(&mut self, next: Instant) {
        if self.processes.is_empty() {
            return;
        }
        self.processes.next_sample = next;
        self.processes.processes.iter_mut().for_each(|process| process.is_sampled = false);
        self.schedule_window();
    }

    /// Schedules a process that has an event soon, unless a message already did.
    pub(crate) fn wake_process(&mut self, id: u32) {
        let Process { due, is_scheduled, .. } = self.processes.processes[id as usize];
        if !is_scheduled {
            self.schedule_or_wake(id, due, self.scheduler.now);
            self.schedule_window();
        }
    }

    /// Schedules a process for its next event, provided that all of its group have executed until `now`.
    #[inline(always)]
    fn schedule_or_wake(&mut self, id: u32, due: Instant, now: Instant) {
        // The next window of its group may reach so far.
        let window = self.processes.window;
        if due <= now + window {
            self.processes.schedule(id, due);
        } else {
            self.scheduler.schedule(Target::Process(id), due - window);
        }
    }

    /// Executes all events of a process before the end of a window.
    fn run_process(&mut self, id: u32, window_end: Instant) {
        let Process { channels, is_sampled, .. } = self.processes.processes[id as usize];
        self.processes.no_timer_before = Instant::ZERO;
        for channel in channels.iter() {
            if self.processes.channels[channel as usize].front.0 == EventKey::NEVER {
                self.fill_front(channel);
            }
        }
        if window_end > self.processes.next_sample && !is_sampled {
            self.run_process_until(id, self.processes.next_sample);
            self.sample(id);
        }
        let due = self.run_process_until(id, window_end);
        self.processes.processes[id as usize].due = due;
        self.schedule_or_wake(id, due, window_end);
    }

    /// Executes events of a process whose first packet on each channel is known. Returns the time of its next event.
    fn run_process_until(&mut self, id: u32, limit: Instant) -> Instant {
        let clock = self.scheduler.now;
        let Process { channels, members, .. } = self.processes.processes[id as usize];
        let due = loop {
            let (key, next) = self.next_of_process(channels, members);
            if key.time >= limit {
                break key.time;
            }
            (self.scheduler.now, self.scheduler.key) = (key.time, key);
            self.scheduler.turns += 1;
            match next {
                Next::Arrival(channel) => {
                    let (_, handle) = self.processes.channels[channel as usize].front;
                    self.fill_front(channel);
                    self.enter_arrival(key.time, handle);
                    self.arrive(handle);
                }
                Next::End(end) => {
                    self.hosts.ends[end as usize].timer = Timer::OFF;
                    self.check_deadline(end);
                }
                Next::Member(member) => {
                    let member = &mut self.processes.members[member as usize];
                    member.timer = Timer::OFF;
                    let flow = member.flow;
                    self.scheduler.events += 1;
                    self.wake(flow);
                }
            }
        };
        self.scheduler.now = clock;
        due
    }

    /// Notes the bytes that have arrived at a process, for the next sample of goodput.
    fn sample(&mut self, id: u32) {
        let Processes { processes, members, sampled, .. } = &mut self.processes;
        let (flows, ends) = (&self.applications.flows, &self.hosts.ends);
        let process = &mut processes[id as usize];
        process.is_sampled = true;
        for member in &members[process.members.places()] {
            let flow = member.flow as usize;
            if member.receives {
                sampled[flow] = match member.ends.iter().last() {
                    Some(end) => ends[end as usize].connection.delivered_bytes(),
                    None => flows[flow].counts.plain_bytes,
                };
            }
        }
    }

    /// Returns the first event of a process and its time.
    #[inline(always)]
    fn next_of_process(&mut self, channels: Numbers, members: Numbers) -> (EventKey, Next) {
        let mut first = (EventKey::NEVER, Next::Arrival(channels.begin));
        for channel in channels.iter() {
            let key = self.processes.channels[channel as usize].front.0;
            if key < first.0 {
                first = (key, Next::Arrival(channel));
            }
        }
        if first.0.time < self.processes.no_timer_before { first } else { self.first_timer(first, members) }
    }

    /// Finds the first event among the timers of the process and the given first packet of the channels.
    #[inline(never)]
    fn first_timer(&mut self, mut first: (EventKey, Next), members: Numbers) -> (EventKey, Next) {
        self.processes.no_timer_before = Instant::FAR_FUTURE;
        let scheduler = &self.scheduler;
        for member in members.iter() {
            let state = self.processes.members[member as usize];
            let mut see = |timer: Timer, (target, salt), next| {
                self.processes.no_timer_before = self.processes.no_timer_before.min(timer.time);
                let key = scheduler.timer_key(timer.time, target, salt);
                if key < first.0 {
                    first = (key, next);
                }
            };
            let application = Target::Flow(state.flow);
            see(state.timer, (application, scheduler.salt(application)), Next::Member(member));
            for end in state.ends.iter() {
                let End { timer, label, .. } = self.hosts.ends[end as usize];
                see(timer, (Target::End(end), label.flow), Next::End(end));
            }
        }
        first
    }

    /// Brings the next packet of a channel to its host.
    fn fill_front(&mut self, channel: u32) {
        let link = self.processes.channels[channel as usize].link;
        while let Some(Waiting { at, handle, .. }) =
            self.processes.channels[channel as usize].pop(&self.network.pool)
        {
            self.enter_arrival(at, handle);
            if let Some((passing, last)) = self.follow_to_host((at, link), handle) {
                let target = Target::Link(last);
                let key = self.scheduler.key(passing.at, target);
                self.processes.channels[channel as usize].front = (key, passing.packet);
                return;
            }
        }
        self.processes.channels[channel as usize].front.0 = EventKey::NEVER;
    }

    /// At the end, offers every packet to the links before its channel.
    pub(crate) fn empty_channels(&mut self) {
        for channel in 0..self.processes.channels.len() as u32 {
            while self.processes.channels[channel as usize].len() > 0 {
                let (key, handle) = self.processes.channels[channel as usize].front;
                if key != EventKey::NEVER {
                    self.enter_arrival(key.time, handle);
                    self.network.pool.release(handle.index());
                }
                self.fill_front(channel);
            }
        }
    }
}
