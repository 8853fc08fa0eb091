//! Conservative parallel execution of a world in windows of time (Chandy and Misra 1979; Fujimoto 2000).
//!
//! A **logical process** is a part of a world with an event queue of its own: some hosts, and the links that only they use. Logical
//! processes exchange packets over **shared links**, and by nothing else. No packet is at the far end of a shared link sooner than the
//! **lookahead** after it came to the link: a quarter of a second if the link is a geostationary satellite. So if all events before a time
//! have been executed, everything is known that reaches a process within the lookahead of that time. A **window** has two phases, with a
//! **barrier** behind each:
//!
//! 1. Each process executes its events before the window's end, and notes the packets that it sends to shared links.
//! 2. Each shared link lets these packets through in the order of their arrival.
//!
//! In a phase no process and no shared link needs anything of another, so threads may divide them as they like. The results are the same
//! on any number of threads. One thread gains as well: the memory of a host is fetched once for a window instead of once for an event.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread;

use bentpipe_base::{Duration, Instant};
use bentpipe_net::Link;

use crate::engine::message::{Crossing, Message, Onward};
use crate::engine::shared_link::SharedLink;
use crate::ids::FlowId;
use crate::network::core::NetworkCore;
use crate::observe::monitor::Silent;
use crate::options::{Ended, RunOptions};
use crate::packet::handle::PacketHandle;
use crate::simulation::{Finished, Simulation};
use crate::world::Flow;

/// If all processes together execute fewer events in a window, starting threads takes longer than they save.
const MANY_EVENTS: u64 = 1 << 13;

/// A logical process.
pub(crate) struct Process {
    number: u32,
    simulation: Simulation<Silent>,
    /// The numbers in the world of its links and its flows.
    links: Vec<u32>,
    flows: Vec<FlowId>,
    /// The shared link behind which each port is.
    ports: Vec<u32>,
    /// When its next event is.
    next_time: Instant,
}

impl Process {
    pub fn new(
        number: u32,
        (mut simulation, ports): (Simulation<Silent>, Vec<u32>),
        (links, flows): (Vec<u32>, Vec<FlowId>),
    ) -> Self {
        let next_time = simulation.next_time();
        Self { number, simulation, links, flows, ports, next_time }
    }

    /// Executes its events before the end of a window.
    fn run(&mut self, (shared_links, crossings): (&[SharedLink], &[Crossing]), window_end: Instant) {
        for shared_link in &self.ports {
            for message in shared_links[*shared_link as usize].passed_to(self.number) {
                let Onward::Process(_, entry) = crossings[message.crossing as usize].onward else { continue };
                self.simulation.enter_port(message.clone(), entry);
            }
        }
        self.simulation.run_until(window_end);
        self.next_time = self.simulation.next_time();
    }
}

/// A world as logical processes and shared links.
pub(crate) struct Partition {
    pub processes: Vec<Process>,
    pub shared_links: Vec<SharedLink>,
    pub crossings: Vec<Crossing>,
    /// The least lookahead of a shared link.
    pub lookahead: Duration,
    pub until: Instant,
    /// Links that no flow uses, at their numbers.
    pub unused: Vec<Option<Link<PacketHandle>>>,
}

/// Does something with each item, on several threads.
fn each<T: Send>(items: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    if threads < 2 || items.len() < 2 {
        return items.iter_mut().for_each(work);
    }
    let (work, size) = (&work, items.len().div_ceil(threads));
    thread::scope(|scope| {
        let chunks = items.chunks_mut(size);
        let running: Vec<_> =
            chunks.map(|chunk| scope.spawn(move || chunk.iter_mut().for_each(work))).collect();
        running.into_iter().for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
    });
}

impl Partition {
    /// Executes window after window until the end.
    pub fn run(&mut self, options: &RunOptions<'_>) -> Ended {
        let most = options.threads.map_or(1, NonZeroUsize::get);
        let (mut threads, mut events) = (1, 0);
        loop {
            if options.is_stopped() {
                return Ended::Stopped;
            }
            let first = self.first_time();
            if first > self.until {
                return Ended::InTime;
            }
            self.run_window(first + self.lookahead, threads);
            let all: u64 = self.processes.iter().map(|process| process.simulation.events()).sum();
            threads = if all - std::mem::replace(&mut events, all) < MANY_EVENTS { 1 } else { most };
            if let Some(progress) = options.progress {
                progress(first.as_secs_f64());
            }
        }
    }

    /// Time of the first event of a process, or of the first packet on its way to one.
    fn first_time(&self) -> Instant {
        let of_processes = self.processes.iter().map(|process| process.next_time);
        let of_messages = self.shared_links.iter().map(SharedLink::first_time);
        of_processes.chain(of_messages).min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn run_window(&mut self, window_end: Instant, threads: usize) {
        let Self { processes, shared_links, crossings, until, .. } = self;
        each(processes, threads, |process| process.run((shared_links, crossings), window_end));
        let mut sent: Vec<_> =
            processes.iter_mut().map(|process| std::mem::take(&mut process.simulation.sent)).collect();
        each(shared_links, threads, |link| link.let_through((&sent, crossings), (window_end, *until)));
        sent.iter_mut().for_each(Vec::clear);
        // Their memory is used again.
        processes.iter_mut().zip(sent).for_each(|(process, sent)| process.simulation.sent = sent);
        let onward: Vec<Message> = shared_links.iter_mut().flat_map(SharedLink::take_onward).collect();
        for message in onward {
            let Onward::Crossing(crossing) = crossings[message.crossing as usize].onward else { continue };
            let next = crossings[crossing as usize].shared_link;
            shared_links[next as usize].push(Message { crossing, ..message });
        }
    }

    /// Puts the world together again when nothing will happen any more.
    pub fn finish(mut self, core: NetworkCore, ended: Ended) -> Finished {
        let now = if ended == Ended::InTime { self.until } else { self.first_time().min(self.until) };
        let mut finished = Finished { now, ended, core, ..Finished::default() };
        let mut flows: Vec<Option<Flow>> = Vec::new();
        for process in self.processes {
            let (mut part, Silent) = process.simulation.finish(now, ended);
            finished.add_goodput(&mut part, &process.flows);
            finished.events += part.events;
            for (id, link) in process.links.iter().zip(part.links) {
                self.unused[*id as usize] = Some(link);
            }
            for (id, flow) in process.flows.iter().zip(part.flows) {
                flows.resize_with(flows.len().max(*id as usize + 1), || None);
                let mine = &mut flows[*id as usize];
                *mine = Some(match mine.take() {
                    Some(other) => flow.merged_with(other),
                    None => flow,
                });
            }
        }
        finished.flows = flows.into_iter().flatten().collect();
        for shared_link in &mut self.shared_links {
            shared_link.end(&self.crossings, now);
            finished.events += shared_link.events;
            for flow in &shared_link.lost {
                finished.flows[*flow as usize].counts.lost_packets += 1;
            }
        }
        for SharedLink { id, link, .. } in self.shared_links {
            self.unused[id as usize] = Some(link);
        }
        Finished { links: self.unused.into_iter().flatten().collect(), ..finished }
    }
}
