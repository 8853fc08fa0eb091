//! One world on several threads.
//!
//! Each thread executes a share of the flows in a world of its own (`routed.rs` if routes change). In a world of processes a share has
//! the processes at both ends of its flows. Only shared links see packets of several shares. Each shared link belongs to one thread,
//! which transmits the packets of all shares in the order of arrival, and returns those of other shares.
//!
//! The threads advance from window to window together (synchronous conservative simulation; Fujimoto 2000). The end of a window is
//! computed from the same times as on one thread, so no result depends on the number of threads. Within a window a thread waits only
//! for packets of other threads: those for its links, and its own that return.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread;

use bentpipe_base::{Duration, Instant};
use bentpipe_net::{Link, LinkStats};
use bentpipe_outcome::SAMPLE_INTERVAL;
use bentpipe_team::Team;

use crate::ids::GroupId;
use crate::observe::monitor::Silent;
use crate::options::{Ended, RunOptions};
use crate::packet::handle::MOST_SHARES;
use crate::parallel::share::{Leaving, Returned, Share};
use crate::scheduler::target::Target;
use crate::simulation::Simulation;
use crate::simulation::measure::close_books;
use crate::tuning::MANY_EVENTS;

/// All shares of a world. Work of a single share runs on threads; work that concerns several shares runs between.
pub(crate) struct Shares<'a> {
    pub all: Team<'a, Simulation<Silent>>,
    /// Events until it was last asked whether threads pay.
    events: u64,
}

/// Merges sorted lists.
fn merge<'a, T: Ord + 'a>(lists: impl Iterator<Item = &'a [T]>) -> impl Iterator<Item = &'a T> {
    let mut rest: Vec<_> = lists.collect();
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

    /// Takes back packets that other shares return.
    pub(crate) fn take_back(&mut self) {
        self.part().returned.get();
        let mut got = std::mem::take(&mut self.part().returned.got);
        for Returned { to_channels, to_shared_links, lost } in &mut got {
            for packet in to_channels.drain(..) {
                self.processes.post(packet.of_share(None), &mut self.network.pool);
            }
            for (id, packet) in to_shared_links.drain(..) {
                self.send_to_shared_link(id, packet.of_share(None));
            }
            for handle in lost.drain(..).map(|handle| handle.of_share(None)) {
                self.note_lost(&handle);
                self.network.pool.release(handle.index());
            }
        }
        self.part().returned.got = got;
    }

    /// Executes the flows of a share from now on.
    fn become_share(&mut self, share: Share, of_flows: &[u32]) {
        self.processes.divide(share.count() as u32);
        for (flow, _) in (0..).zip(of_flows).filter(|(_, of_flow)| **of_flow != share.number) {
            self.scheduler.cancel(Target::Flow(flow));
        }
        self.share = Some(share);
    }

    /// The shared links of a share.
    fn shared_links_of(&self, share: u32, count: usize) -> impl Iterator<Item = u32> + use<> {
        (share..self.processes.shared_links.len() as u32).step_by(count)
    }

    /// Passes packets for shared links of other shares to these shares.
    fn leave_for_others(&mut self, limits: &[Instant]) {
        let (number, count) = (self.part().number, self.part().count());
        for to in (0..count as u32).filter(|to| *to != number) {
            let mut leaving = std::mem::take(&mut self.part().leaving.giving[to as usize]);
            for id in self.shared_links_of(to, count) {
                let limit = limits[usize::from(self.processes.shared_links[id as usize].group)];
                self.leave_batch(id, limit, |_, packet| leaving.packets.push(packet.of_share(Some(number))));
                leaving.ends.push(leaving.packets.len());
            }
            self.part().leaving.giving[to as usize] = leaving;
        }
        self.part().leaving.give();
    }

    /// Transmits the packets of all shares on the shared links of this share.
    fn let_own_through(&mut self, limits: &[Instant]) {
        let (number, count) = (self.part().number, self.part().count());
        self.part().leaving.get();
        let mut got = std::mem::take(&mut self.part().leaving.got);
        for (place, id) in self.shared_links_of(number, count).enumerate() {
            let limit = limits[usize::from(self.processes.shared_links[id as usize].group)];
            // The entry of this share itself is empty.
            let others = got.iter().filter(|leaving| !leaving.ends.is_empty());
            let mut of_others = merge(others.map(|leaving| leaving.for_link(place))).peekable();
            self.leave_batch(id, limit, |simulation, packet| {
                while let Some(other) = of_others.next_if(|other| **other < packet) {
                    simulation.pass_shared_link(id, *other);
                }
                simulation.pass_shared_link(id, packet);
            });
            of_others.for_each(|packet| self.pass_shared_link(id, *packet));
        }
        got.iter_mut().for_each(Leaving::clear);
        self.part().leaving.got = got;
        self.part().returned.give();
    }

    /// Executes a window of each phase group, and the events before the next window.
    fn run_window_of_share(&mut self, safe_times: &[Instant]) {
        let (number, count) = (self.part().number, self.part().count());
        let others = (0..count as u32).filter(|share| *share != number);
        let of_others = others.flat_map(|share| self.shared_links_of(share, count));
        // If all packets passed links of this share, it need not wait for other shares.
        let waiting: Vec<_> = of_others.map(|id| self.processes.shared_links[id as usize].group).collect();
        for is_waiting in [false, true] {
            if is_waiting {
                self.take_back();
            }
            for (group, safe_time) in (0..).zip(safe_times) {
                if waiting.contains(&group) == is_waiting {
                    self.note_let_through(group);
                    self.execute_window(group, *safe_time);
                }
            }
        }
        self.run_wheel();
    }

    /// Executes the events before the next window.
    fn run_wheel(&mut self) {
        loop {
            let limit = self.processes.next_window().min(self.processes.next_sample);
            if self.scheduler.first().time >= limit {
                return;
            }
            let Some(target) = self.scheduler.advance() else { return };
            self.happen(target);
        }
    }

    /// Takes over the results of another share.
    fn take_over(&mut self, other: &mut Self, of_flows: &[u32]) {
        // One share has the state of a link; in all others the link is unused.
        let links = self.network.links.iter_mut().zip(&mut other.network.links);
        links
            .filter(|(_, link)| link.stats() != LinkStats::default())
            .for_each(|(mine, link)| std::mem::swap(mine, link));
        let number = other.part().number;
        for (flow, _) in of_flows.iter().enumerate().filter(|(_, share)| **share == number) {
            std::mem::swap(&mut self.applications.flows[flow], &mut other.applications.flows[flow]);
            self.applications.goodput.take_over(&mut other.applications.goodput, flow);
        }
        self.applications
            .delays
            .iter_mut()
            .zip(&other.applications.delays)
            .for_each(|(mine, delays)| mine.merge(delays));
        self.scheduler.events += other.scheduler.events;
        self.scheduler.turns += other.scheduler.turns;
        self.network.stranded += other.network.stranded;
    }
}

impl<'a> Shares<'a> {
    /// Decides whether threads are used until the next call: only if there were enough events since the last call.
    pub fn note_meeting(&mut self) {
        let events = self.all.iter().map(|share| share.scheduler.events).sum();
        self.all.is_parallel = events - std::mem::replace(&mut self.events, events) >= MANY_EVENTS;
    }

    /// Executes the windows of a world of processes until the end.
    fn run_windows(&mut self, options: &RunOptions<'_>) -> Ended {
        let groups = 0..self.all[0].processes.groups.len() as GroupId;
        self.all.each(|share| {
            share.scheduler.cancel(Target::Sampler);
            share.start_processes();
            share.run_wheel();
        });
        let (mut clock, until) = (Instant::ZERO, self.all[0].scheduler.until);
        loop {
            let window = self.all.iter().map(|share| share.processes.next_window()).min();
            let (window, sample) = (window.unwrap_or(Instant::FAR_FUTURE), self.all[0].processes.next_sample);
            clock = clock.max(window.min(sample));
            self.all.iter_mut().for_each(|share| share.scheduler.now = clock.min(until));
            if options.is_stopped() {
                return Ended::Stopped;
            }
            if clock > until {
                break;
            }
            if window <= sample {
                let safe_time = |group| self.all[0].processes.safe_time(group, clock);
                let safe_times: Vec<_> = groups.clone().map(safe_time).collect();
                let limits = safe_times.iter().map(|time| *time - Duration::from_nanos(1)).collect();
                self.let_through(limits, move |share| share.run_window_of_share(&safe_times));
                self.note_meeting();
            } else {
                self.all.each(|share| {
                    share.part().delivered = share.sample_flows();
                    share.go_on_after_sample(share.scheduler.now + SAMPLE_INTERVAL);
                    share.run_wheel();
                });
                let delivered = self.all.iter_mut().map(|share| share.part().delivered).sum();
                self.all[0].applications.sample_all(clock, delivered);
            }
            if let Some(progress) = options.progress {
                progress(clock.as_secs_f64());
            }
        }
        // All packets pass the shared links at which they arrived before the end.
        let waits =
            |share: &Simulation<_>| share.processes.shared_links.iter().any(|link| link.batch.len() > 0);
        while self.all.iter().any(|share| waits(share)) {
            self.let_through(groups.clone().map(|_| until).collect(), Simulation::take_back);
        }
        Ended::InTime
    }

    /// Transmits the waiting packets of all shares on each shared link, up to the limit of its group; then each share runs `and_then`.
    fn let_through(
        &mut self,
        limits: Vec<Instant>,
        then: impl Fn(&mut Simulation<Silent>) + Send + Sync + 'a,
    ) {
        let of_others = limits.clone();
        self.all.take_steps(vec![
            Box::new(move |share| share.leave_for_others(&of_others)),
            Box::new(move |share| share.let_own_through(&limits)),
            Box::new(then),
        ]);
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
    let is_routed = simulation.network.routes.table.is_some();
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
    let links = all[0].network.links.len();
    for (simulation, share) in all.iter_mut().zip(Share::all(count as usize, links)) {
        simulation.become_share(share, &of_flows);
    }
    let ended = thread::scope(|scope| {
        let mut shares = Shares { all: Team::new(all, |share| share.share = None, scope), events: 0 };
        let ended =
            if is_routed { shares.run_routes(&of_flows, options) } else { shares.run_windows(options) };
        shares.all.take_steps(vec![
            Box::new(|share| {
                share.end();
                share.part().returned.give();
            }),
            Box::new(|share| {
                share.take_back();
                close_books(share);
            }),
        ]);
        ended
    });
    let packets =
        simulation.network.pool.used() + others.iter().map(|other| other.network.pool.used()).sum::<usize>();
    others.iter_mut().for_each(|other| simulation.take_over(other, &of_flows));
    debug_assert_eq!(
        packets,
        simulation.network.links.iter().map(Link::packets_inside).sum::<usize>(),
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
        assert!(merge(lists.iter().map(Vec::as_slice)).eq(&[0, 1, 2, 3, 4, 4, 5, 9, 10, 11]));
        assert_eq!(merge([&[][..]].into_iter()).next(), None::<&u8>);
    }
}
