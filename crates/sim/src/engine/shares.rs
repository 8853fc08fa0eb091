//! One world on several threads.
//!
//! Each thread executes a share of the flows in a world of its own: how, where routes change, tells `routed.rs`. In a world of processes it has
//! those at both ends of its flows. Only shared links see the packets of several shares: each belongs to one thread, which lets the packets of
//! all through it in the order of their arrival, and hands those of others back. The threads go from window to window together (synchronous
//! conservative simulation; Fujimoto 2000): what a window may not reach is decided as on one thread, from the same times, so that no result
//! depends on the number of threads.

use std::any::Any;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use bentpipe_base::{Duration, Instant};
use bentpipe_net::{Link, LinkStats};

use crate::engine::process::GroupId;
use crate::engine::share::{Returned, Share};
use crate::engine::tuning::MANY_EVENTS;
use crate::observe::measure::close_books;
use crate::observe::monitor::Silent;
use crate::options::{Ended, RunOptions};
use crate::packet::handle::MOST_SHARES;
use crate::simulation::Simulation;

/// What a share does on its thread, and the share.
type Task<'a> = (Arc<dyn Fn(&mut Simulation<Silent>) + Send + Sync + 'a>, &'a mut Simulation<Silent>);

/// A share that comes back from its thread, or why that panicked.
type Done<'a> = Result<&'a mut Simulation<Silent>, Box<dyn Any + Send>>;

/// All shares of a world. What each may do alone is done on threads, and what concerns several between that.
pub(crate) struct Shares<'a> {
    pub all: Vec<&'a mut Simulation<Silent>>,
    /// Whether it pays to use the threads.
    is_busy: bool,
    /// Events until it was last asked whether it does.
    events: u64,
    /// Of each but the first: where it goes to its thread, and comes back from it.
    threads: Vec<(Sender<Task<'a>>, Receiver<Done<'a>>)>,
}

impl<'a> Shares<'a> {
    /// Starts a thread for each share but the first.
    pub fn new<'scope>(all: Vec<&'a mut Simulation<Silent>>, scope: &'scope Scope<'scope, 'a>) -> Self {
        let start = |_| {
            let (to, tasks) = channel::<Task<'a>>();
            let (done, from) = channel();
            scope.spawn(move || {
                for (work, share) in tasks {
                    let result = catch_unwind(AssertUnwindSafe(|| work(share)));
                    // Nobody waits for it if the first share has panicked.
                    let _ = done.send(result.map(|()| share));
                }
            });
            (to, from)
        };
        Self { threads: (1..all.len()).map(start).collect(), all, is_busy: true, events: 0 }
    }

    /// Until this is called again, the threads are used if there were many events since it was called last.
    pub fn note_meeting(&mut self) {
        let events = self.all.iter().map(|share| share.events).sum();
        self.is_busy = events - std::mem::replace(&mut self.events, events) >= MANY_EVENTS;
    }

    /// Each share does this, on its thread if that pays.
    ///
    /// # Panics
    /// If one of them does.
    pub fn each(&mut self, work: impl Fn(&mut Simulation<Silent>) + Send + Sync + 'a) {
        if !self.is_busy {
            return self.all.iter_mut().for_each(|share| work(share));
        }
        let work = Arc::new(work);
        for (share, (to, _)) in self.all.drain(1..).zip(&self.threads) {
            to.send((work.clone(), share)).expect("a thread waits for work until it is told the end");
        }
        work(self.all[0]);
        for (_, from) in &self.threads {
            let done = from.recv().expect("a thread returns each share that it gets");
            self.all.push(done.unwrap_or_else(|panic| resume_unwind(panic)));
        }
    }

    /// Hands packets back to their shares.
    pub fn hand_back(&mut self) {
        for from in 0..self.all.len() {
            for to in 0..self.all.len() {
                let mut returned = std::mem::take(&mut self.all[from].part().returned[to]);
                std::mem::swap(&mut returned, &mut self.all[to].part().taken_back[from]);
                // Whoever fills it next finds its memory.
                self.all[from].part().returned[to] = returned;
            }
        }
    }
}

/// What is in several sorted lists, in order.
fn merge<T: Ord>(lists: &[Vec<T>]) -> impl Iterator<Item = &T> {
    let mut rest: Vec<&[T]> = lists.iter().map(Vec::as_slice).collect();
    std::iter::from_fn(move || {
        let lists = rest.iter_mut().filter(|list| !list.is_empty());
        lists.min_by(|one, other| one[0].cmp(&other[0]))?.split_off_first()
    })
}

impl Simulation<Silent> {
    /// Its part.
    pub(crate) fn part(&mut self) -> &mut Share {
        self.share.as_mut().expect("it is one of several shares")
    }

    /// Takes in packets that other shares handed back.
    pub(crate) fn take_back(&mut self) {
        let mut taken_back = std::mem::take(&mut self.part().taken_back);
        for Returned { to_channels, to_shared_links, lost } in &mut taken_back {
            for position in 0..to_channels.len() {
                self.prefetch_along_returned(&to_channels[position..]);
                self.processes.post(to_channels[position].of_share(None), &mut self.pool);
            }
            to_channels.clear();
            for (id, packet) in to_shared_links.drain(..) {
                self.send_to_shared_link(id, packet.of_share(None));
            }
            for handle in lost.drain(..).map(|handle| handle.of_share(None)) {
                self.note_lost(&handle);
                self.pool.release(handle.index());
            }
        }
        self.part().taken_back = taken_back;
    }

    /// Executes the flows of a share from now on, which is this one of so many.
    fn become_share(&mut self, (number, count): (u32, u32), of_flows: &[u32]) {
        self.processes.divide(count);
        self.share = Some(Share {
            number,
            owners: vec![0; self.links.len()],
            returned: vec![Returned::default(); count as usize],
            taken_back: vec![Returned::default(); count as usize],
            leaving: vec![Vec::new(); self.shared_links.len()],
            coming: vec![vec![Vec::new(); count as usize]; self.shared_links.len()],
            ..Share::default()
        });
        for (flow, _) in (0..).zip(of_flows).filter(|(_, share)| **share != number) {
            self.wheel.cancel(flow);
        }
    }

    /// Takes out what this share has for the shared links of others.
    fn leave_for_others(&mut self, limits: &[Instant]) {
        let count = self.part().returned.len();
        let number = self.part().number;
        for id in (0..self.shared_links.len()).filter(|id| id % count != number as usize) {
            let limit = limits[usize::from(self.shared_links[id].group)];
            let mut leaving = std::mem::take(&mut self.part().leaving[id]);
            self.leave_batch(id as u32, limit, |_, packet| leaving.push(packet.of_share(Some(number))));
            self.part().leaving[id] = leaving;
        }
    }

    /// The shared links of this share let through what all shares have for them.
    fn let_own_through(&mut self, limits: &[Instant]) {
        let count = self.part().returned.len();
        for id in (self.part().number as usize..self.shared_links.len()).step_by(count) {
            let limit = limits[usize::from(self.shared_links[id].group)];
            let mut lists = std::mem::take(&mut self.part().coming[id]);
            let mut of_others = merge(&lists).peekable();
            self.leave_batch(id as u32, limit, |simulation, packet| {
                while let Some(other) = of_others.next_if(|other| **other < packet) {
                    simulation.pass_shared_link(id as u32, *other);
                }
                simulation.pass_shared_link(id as u32, packet);
            });
            of_others.for_each(|packet| self.pass_shared_link(id as u32, *packet));
            // Whoever fills a list next finds its memory.
            lists.iter_mut().for_each(Vec::clear);
            self.part().coming[id] = lists;
        }
    }

    /// Executes a window of each phase group, and the events that come before the next one.
    fn run_window_of_share(&mut self, safe_times: &[Instant]) {
        self.take_back();
        for (group, safe_time) in (0..).zip(safe_times) {
            self.note_let_through(group);
            self.execute_window(group, *safe_time);
        }
        self.run_wheel();
    }

    /// Executes the events that come before the next window.
    fn run_wheel(&mut self) {
        loop {
            let limit = self.processes.next_window().min(self.processes.next_sample);
            if self.wheel.first().time >= limit {
                return;
            }
            let Some((now, target)) = self.wheel.pop() else { return };
            self.now = now;
            self.turns += 1;
            self.happen(target);
        }
    }

    /// Takes over what another share found out.
    fn take_over(&mut self, other: &mut Self, of_flows: &[u32]) {
        // The state of a link is in one share; in all others it is as at the beginning.
        let links = self.links.iter_mut().zip(&mut other.links);
        links
            .filter(|(_, link)| link.stats() != LinkStats::default())
            .for_each(|(mine, link)| std::mem::swap(mine, link));
        let number = other.part().number;
        for (flow, _) in of_flows.iter().enumerate().filter(|(_, share)| **share == number) {
            std::mem::swap(&mut self.flows[flow], &mut other.flows[flow]);
            self.core.goodput.take_over(&mut other.core.goodput, flow);
        }
        self.events += other.events;
        self.turns += other.turns;
        self.core.stranded += other.core.stranded;
    }
}

impl Shares<'_> {
    /// Executes the windows of a world of processes until the end.
    fn run_windows(&mut self, options: &RunOptions<'_>) -> Ended {
        let groups = 0..self.all[0].processes.groups.len() as GroupId;
        self.each(|share| {
            share.wheel.cancel(share.targets.sampler);
            share.start_processes();
            share.run_wheel();
        });
        let (mut clock, until) = (Instant::ZERO, self.all[0].until);
        loop {
            let window = self.all.iter().map(|share| share.processes.next_window()).min();
            let (window, sample) = (window.unwrap_or(Instant::FAR_FUTURE), self.all[0].processes.next_sample);
            clock = clock.max(window.min(sample));
            self.all.iter_mut().for_each(|share| share.now = clock.min(until));
            if options.is_stopped() {
                return Ended::Stopped;
            }
            if clock > until {
                break;
            }
            if window <= sample {
                let safe_time = |group| self.all[0].processes.safe_time(group, clock);
                let safe_times: Vec<_> = groups.clone().map(safe_time).collect();
                self.let_through(safe_times.iter().map(|time| *time - Duration::from_nanos(1)).collect());
                self.each(move |share| share.run_window_of_share(&safe_times));
                self.note_meeting();
            } else {
                let delivered = self.all.iter_mut().map(|share| share.sample_flows()).sum();
                self.each(move |share| {
                    share.note_sample(delivered);
                    share.run_wheel();
                });
            }
            if let Some(progress) = options.progress {
                progress(clock.as_secs_f64());
            }
        }
        // All packets go through shared links that came to them before the end.
        let waits = |share: &Simulation<_>| share.shared_links.iter().any(|link| link.batch.len() > 0);
        while self.all.iter().any(|share| waits(share)) {
            self.let_through(groups.clone().map(|_| until).collect());
            self.each(Simulation::take_back);
        }
        Ended::InTime
    }

    /// Each shared link lets through what the shares have for it that comes by the limit of its group.
    fn let_through(&mut self, limits: Vec<Instant>) {
        let of_others = limits.clone();
        self.each(move |share| share.leave_for_others(&of_others));
        for id in 0..self.all[0].shared_links.len() {
            for from in 0..self.all.len() {
                let mut leaving = std::mem::take(&mut self.all[from].part().leaving[id]);
                let owner = id % self.all.len();
                std::mem::swap(&mut leaving, &mut self.all[owner].part().coming[id][from]);
                self.all[from].part().leaving[id] = leaving;
            }
        }
        self.each(move |share| share.let_own_through(&limits));
        self.hand_back();
    }
}

/// Executes a world at rest on several threads, if it can be divided among them; `build` makes it once more.
pub(crate) fn run_shares(
    simulation: &mut Simulation<Silent>,
    options: &RunOptions<'_>,
    build: impl Fn() -> Simulation<Silent> + Sync,
) -> Option<Ended> {
    let most = options.threads.map_or(1, NonZeroUsize::get).min(MOST_SHARES as usize) as u32;
    if most < 2 || options.max_events.is_some() {
        return None;
    }
    let is_routed = simulation.core.routing.is_some();
    let (of_flows, count) = if is_routed {
        simulation.divide_flows(most)?
    } else {
        let count = simulation.processes.divide(most);
        (simulation.processes.shares_of_flows(), count)
    };
    if count < 2 {
        return None;
    }
    let mut others: Vec<_> = thread::scope(|scope| {
        let others: Vec<_> = (1..count).map(|_| scope.spawn(&build)).collect();
        others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut all: Vec<_> = std::iter::once(&mut *simulation).chain(&mut others).collect();
    for (number, simulation) in (0..).zip(&mut all) {
        simulation.become_share((number, count), &of_flows);
    }
    let ended = thread::scope(|scope| {
        let mut shares = Shares::new(all, scope);
        let ended =
            if is_routed { shares.run_routes(&of_flows, options) } else { shares.run_windows(options) };
        shares.each(Simulation::end);
        shares.hand_back();
        shares.each(|share| {
            share.take_back();
            close_books(share);
        });
        ended
    });
    let packets = simulation.pool.used() + others.iter().map(|other| other.pool.used()).sum::<usize>();
    others.iter_mut().for_each(|other| simulation.take_over(other, &of_flows));
    debug_assert_eq!(
        packets,
        simulation.links.iter().map(Link::packets_inside).sum::<usize>(),
        "every packet is on a link"
    );
    Some(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_merged_in_order() {
        let lists = [vec![1, 4, 5, 9], vec![], vec![2, 3, 4, 10, 11], vec![0]];
        assert!(merge(&lists).eq(&[0, 1, 2, 3, 4, 4, 5, 9, 10, 11]));
        assert_eq!(merge(&[Vec::<u8>::new()]).next(), None);
    }
}
