//! One world on several threads.
//!
//! Each thread executes a share of the flows, with the processes at both of their ends, in a world of its own. Only shared links see the
//! packets of several shares: each belongs to one thread, which lets the packets of all through it in the order of their arrival, and hands
//! those of others back. The threads go from window to window together (synchronous conservative simulation; Fujimoto 2000): what a window
//! may not reach is decided as on one thread, from the same times, so that no result depends on the number of threads.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use bentpipe_base::{Duration, Instant};
use bentpipe_net::Link;

use crate::engine::process::GroupId;
use crate::engine::share::{Returned, Share};
use crate::engine::shared_link::SharedLink;
use crate::network::hop::{ARRIVED, Special, chained, link};
use crate::observe::measure::close_books;
use crate::observe::monitor::Silent;
use crate::options::{Ended, RunOptions};
use crate::packet::handle::MOST_SHARES;
use crate::packet::pool::Waiting;
use crate::simulation::Simulation;
use crate::world::Flow;

/// What a share tells the others.
#[derive(Debug, Default)]
struct Desk {
    /// When the next window must begin.
    window: Instant,
    /// The run is to stop.
    stops: bool,
    /// Bytes that the flows had delivered at the last sample of goodput.
    delivered: u64,
    /// Packets that come to shared links.
    waiting: usize,
    /// The packets that leave for each shared link of another share, in order.
    leaving: Vec<Vec<Waiting>>,
    /// From the threads of shared links.
    returned: Vec<Returned>,
}

/// A barrier, at which threads wait for each other.
#[derive(Debug, Default)]
struct Barrier {
    waiting: usize,
    /// How often all have been here.
    passed: u64,
    /// A thread has panicked.
    is_broken: bool,
}

/// What the threads of a world share.
#[derive(Debug)]
pub(crate) struct Exchange {
    desks: Vec<Mutex<Desk>>,
    barrier: Mutex<Barrier>,
    all_here: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exchange {
    fn new(shares: u32, shared_links: usize) -> Self {
        let returned = || (0..shares).map(|_| Returned::default()).collect();
        let leaving = vec![Vec::new(); shared_links];
        let desk = |_| Mutex::new(Desk { leaving: leaving.clone(), returned: returned(), ..Desk::default() });
        let desks = (0..shares).map(desk).collect();
        Self { desks, barrier: Mutex::default(), all_here: Condvar::new() }
    }

    /// Waits until all threads are here. What each has written before, all can read after, and may write again when all have met once more.
    ///
    /// # Panics
    /// If another thread has panicked: it will never come.
    fn meet(&self) {
        let mut barrier = lock(&self.barrier);
        barrier.waiting += 1;
        let passed = barrier.passed;
        if barrier.waiting == self.desks.len() {
            (barrier.waiting, barrier.passed) = (0, passed + 1);
            self.all_here.notify_all();
        }
        while barrier.passed == passed && !barrier.is_broken {
            barrier = self.all_here.wait(barrier).unwrap_or_else(PoisonError::into_inner);
        }
        if barrier.is_broken {
            drop(barrier);
            resume_unwind(Box::new(PanickedElsewhere));
        }
    }

    fn desk(&self, share: u32) -> MutexGuard<'_, Desk> {
        lock(&self.desks[share as usize])
    }

    /// What `read` finds on the desks, one after the other.
    fn read<T>(&self, read: impl Fn(&mut Desk) -> T) -> impl Iterator<Item = T> {
        self.desks.iter().map(move |desk| read(&mut lock(desk)))
    }
}

/// Why a thread ends that waits for one that has panicked.
struct PanickedElsewhere;

/// Lets the other threads know if this one panics.
struct Guard<'a>(&'a Exchange);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            lock(&self.0.barrier).is_broken = true;
            self.0.all_here.notify_all();
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
    /// Each shared link lets through what the shares have for it that comes by its limit.
    fn let_through_for_shares(
        &mut self,
        exchange: &Exchange,
        number: u32,
        limit: impl Fn(&SharedLink) -> Instant,
    ) {
        let is_own = |id: &usize| id % exchange.desks.len() == number as usize;
        let links = 0..self.shared_links.len();
        for id in links.clone().filter(|id| !is_own(id)) {
            let limit = limit(&self.shared_links[id]);
            let mut leaving = std::mem::take(&mut exchange.desk(number).leaving[id]);
            self.leave_batch(id as u32, limit, |_, packet| leaving.push(packet.of_share(Some(number))));
            exchange.desk(number).leaving[id] = leaving;
        }
        exchange.meet();
        for id in links.filter(is_own) {
            let limit = limit(&self.shared_links[id]);
            let mut lists: Vec<_> = exchange.read(|desk| std::mem::take(&mut desk.leaving[id])).collect();
            let mut of_others = merge(&lists).peekable();
            self.leave_batch(id as u32, limit, |simulation, packet| {
                while let Some(other) = of_others.next_if(|other| **other < packet) {
                    simulation.pass_shared_link(id as u32, *other);
                }
                simulation.pass_shared_link(id as u32, packet);
            });
            of_others.for_each(|packet| self.pass_shared_link(id as u32, *packet));
            // Whoever fills a list next finds its memory.
            for (desk, list) in exchange.desks.iter().zip(&mut lists) {
                list.clear();
                std::mem::swap(&mut lock(desk).leaving[id], list);
            }
        }
        self.exchange_returned(exchange, number);
    }

    /// Hands packets of other shares back, and takes in its own.
    fn exchange_returned(&mut self, exchange: &Exchange, number: u32) {
        let returned = self.share.iter_mut().flat_map(|share| &mut share.returned);
        for (desk, returned) in exchange.desks.iter().zip(returned) {
            std::mem::swap(&mut lock(desk).returned[number as usize], returned);
        }
        exchange.meet();
        let mut returned = std::mem::take(&mut exchange.desk(number).returned);
        for Returned { to_channels, to_shared_links, lost } in &mut returned {
            for position in 0..to_channels.len() {
                self.prefetch_along_returned(&to_channels[position..]);
                self.processes.post(to_channels[position].of_share(None), &mut self.pool);
            }
            to_channels.clear();
            for (id, packet) in to_shared_links.drain(..) {
                self.send_to_shared_link(id, packet.of_share(None));
            }
            for handle in lost.drain(..) {
                let handle = handle.of_share(None);
                self.note_lost(&handle);
                self.pool.release(handle.index());
            }
        }
        // Whoever fills it next finds its memory.
        exchange.desk(number).returned = returned;
    }

    /// Executes the events of a share until the end.
    fn run_share(&mut self, exchange: &Exchange, number: u32, options: &RunOptions<'_>) -> Ended {
        self.wheel.cancel(self.targets.sampler);
        let returned = exchange.desks.iter().map(|_| Returned::default()).collect();
        self.share = Some(Share { number, returned });
        self.start_processes();
        let mut clock = Instant::ZERO;
        let ended = loop {
            self.run_wheel();
            {
                let mut desk = exchange.desk(number);
                desk.window = self.processes.next_window();
                desk.stops = options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            }
            exchange.meet();
            if exchange.read(|desk| desk.stops).any(|stops| stops) {
                break Ended::Stopped;
            }
            let window = exchange.read(|desk| desk.window).min().unwrap_or(Instant::FAR_FUTURE);
            let sample = self.processes.next_sample;
            clock = clock.max(window.min(sample));
            if clock > self.until {
                break Ended::InTime;
            }
            self.now = clock;
            self.turns += 1;
            if window <= sample {
                self.run_window_of_share(exchange, number);
            } else {
                exchange.desk(number).delivered = self.sample_flows();
                exchange.meet();
                self.note_sample(exchange.read(|desk| desk.delivered).sum());
            }
            if let Some(progress) = options.progress.filter(|_| number == 0) {
                progress(self.now.as_secs_f64());
            }
        };
        if ended == Ended::InTime {
            self.now = self.until;
        }
        self.let_all_batches_through(exchange, number);
        self.end();
        self.exchange_returned(exchange, number);
        close_books(self);
        ended
    }

    /// Executes a window of each phase group at the same time, so that several shared links let packets through at the same time.
    fn run_window_of_share(&mut self, exchange: &Exchange, number: u32) {
        let groups = 0..self.processes.groups.len() as GroupId;
        let safe_times: Vec<_> =
            groups.clone().map(|group| self.processes.safe_time(group, self.now)).collect();
        let limit =
            |shared_link: &SharedLink| safe_times[usize::from(shared_link.group)] - Duration::from_nanos(1);
        self.let_through_for_shares(exchange, number, limit);
        for (group, safe_time) in groups.zip(&safe_times) {
            self.note_let_through(group);
            self.execute_window(group, *safe_time);
        }
    }

    /// Executes the events that come before the next window.
    fn run_wheel(&mut self) {
        loop {
            let limit = self
                .processes
                .next_window()
                .min(self.processes.next_sample)
                .min(self.until + Duration::from_nanos(1));
            let Some((now, target)) = self.wheel.pop_before(limit) else { return };
            self.now = now;
            self.turns += 1;
            self.happen(target);
        }
    }

    /// At the end, all packets go through shared links that came to them before it.
    fn let_all_batches_through(&mut self, exchange: &Exchange, number: u32) {
        loop {
            exchange.desk(number).waiting =
                self.shared_links.iter().map(|shared_link| shared_link.batch.len()).sum();
            exchange.meet();
            if exchange.read(|desk| desk.waiting).sum::<usize>() == 0 {
                return;
            }
            let until = self.until;
            self.let_through_for_shares(exchange, number, |_| until);
        }
    }

    /// Takes over what another share found out.
    fn take_over(&mut self, mut other: Self, number: u32) {
        let shares = self.processes.shares_of_flows();
        for link in self.links_of_share(&shares, number) {
            std::mem::swap(&mut self.links[link], &mut other.links[link]);
        }
        for (flow, _) in shares.iter().enumerate().filter(|(_, share)| **share == number) {
            std::mem::swap(&mut self.flows[flow], &mut other.flows[flow]);
            self.core.goodput.take_over(&mut other.core.goodput, flow);
        }
        self.events += other.events;
        self.turns += other.turns;
    }

    /// The links that the packets of a share and those at its shared links pass.
    fn links_of_share(&self, shares: &[u32], number: u32) -> Vec<usize> {
        let count = self.share.as_ref().map_or(1, |share| share.returned.len() as u32);
        let mut links = vec![false; self.links.len()];
        for (Flow { routes, .. }, of_flow) in self.flows.iter().zip(shares) {
            for begin in routes {
                let mut owner = *of_flow;
                for hop in self.routes[*begin as usize..].iter().take_while(|hop| **hop != ARRIVED) {
                    let passed =
                        link(*hop).or_else(|| chained(*hop)).unwrap_or_else(|| match Special::of(*hop) {
                            Special::SharedLink(id) => {
                                owner = id % count;
                                self.shared_links[id as usize].link
                            }
                            Special::Channel(id) => {
                                owner = *of_flow;
                                self.processes.channels[id as usize].link
                            }
                            other => unreachable!("no process sends over {other:?}"),
                        });
                    links[passed as usize] |= owner == number;
                }
            }
        }
        (0..links.len()).filter(|link| links[*link]).collect()
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
    let count = simulation.processes.divide(most);
    if count < 2 {
        return None;
    }
    let exchange = Exchange::new(count, simulation.shared_links.len());
    thread::scope(|scope| {
        let run_other = |number| {
            let (exchange, build) = (&exchange, &build);
            scope.spawn(move || {
                let _guard = Guard(exchange);
                let mut other = build();
                other.processes.divide(count);
                other.run_share(exchange, number, options);
                other
            })
        };
        let others: Vec<_> = (1..count).map(|number| (number, run_other(number))).collect();
        let run = AssertUnwindSafe(|| {
            let _guard = Guard(&exchange);
            simulation.run_share(&exchange, 0, options)
        });
        let (mut panics, mut finished) = (Vec::new(), Vec::new());
        let ended = catch_unwind(run).map_err(|panic| panics.push(panic));
        for (number, other) in others {
            match other.join() {
                Ok(other) => finished.push((number, other)),
                Err(panic) => panics.push(panic),
            }
        }
        // The first cause, not what it did to those that waited.
        panics.sort_by_key(|panic| panic.is::<PanickedElsewhere>());
        let Some(ended) = ended.ok().filter(|_| panics.is_empty()) else { resume_unwind(panics.remove(0)) };
        let mut packets = simulation.pool.used();
        for (number, other) in finished {
            packets += other.pool.used();
            simulation.take_over(other, number);
        }
        debug_assert_eq!(
            packets,
            simulation.links.iter().map(Link::packets_inside).sum::<usize>(),
            "every packet is on a link"
        );
        Some(ended)
    })
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

    #[test]
    fn a_thread_that_panics_stops_those_that_wait_for_it() {
        let exchange = Exchange::new(2, 0);
        let panics = |work: fn(&Exchange)| {
            let exchange = &exchange;
            move || {
                let _guard = Guard(exchange);
                work(exchange);
            }
        };
        thread::scope(|scope| {
            let waits = scope.spawn(panics(Exchange::meet));
            let fails = scope.spawn(panics(|_| panic!("on purpose")));
            assert!(fails.join().is_err() && waits.join().is_err());
        });
    }
}
