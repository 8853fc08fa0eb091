//! A world whose routes change, on several threads.
//!
//! Between two changes many flows have no link in common. So each thread executes a share of the flows with their links, in a world of
//! its own. At a change all threads meet: links that another share now uses move there with their packets. While packets of a share
//! still have to pass links of another share, one thread executes the events of all shares in order.

use bentpipe_net::Link;
use bentpipe_outcome::SAMPLE_INTERVAL;
use bentpipe_scenario::LinkId;

use crate::app::flow::Flow;
use crate::network::routes::Routes;
use crate::observe::monitor::Silent;
use crate::options::{Ended, RunOptions};
use crate::parallel::share::Share;
use crate::scheduler::target::Target;
use crate::simulation::Simulation;
use crate::simulation::shares::Shares;
use crate::tuning::EVENTS_PER_CHECK;

impl Simulation<Silent> {
    /// Divides the flows among shares that never have a link on their ways in common: the share of each flow, and how many shares there are.
    pub(crate) fn divide_flows(&self, most: u32) -> Option<(Vec<u32>, u32)> {
        let is_alone = |flow: &Flow| !flow.application.has_many_connections();
        let is_simple = !self.network.routes.chains.origins.is_empty()
            && self.hosts.proxies.is_empty()
            && self.applications.flows.iter().all(is_alone)
            && self.network.links.iter().all(Link::is_foreseeable);
        let mut routing = self.network.routes.table.clone().filter(|_| is_simple)?;
        let mut together = routing.find_together(&self.network.routes.chains.origins, self.scheduler.until);
        Some(together.divide(&vec![1; self.applications.flows.len()], most))
    }

    /// Executes the events of a share until all shares meet, and notes the event; none if the run is over.
    fn run_until_meeting(&mut self, options: &RunOptions<'_>) {
        self.part().meeting = None;
        while let Some(target) = self.scheduler.advance() {
            if is_meeting(target) {
                self.part().meeting = Some(target);
                return;
            }
            self.happen(target);
            if self.scheduler.turns.is_multiple_of(EVENTS_PER_CHECK) && options.is_stopped() {
                return;
            }
        }
        self.scheduler.now = self.scheduler.until;
    }

    /// True while packets of this share still have to pass links of other shares, or packets of other shares are here.
    fn is_mixed(&self) -> bool {
        let (Some(share), Some(routing)) = (&self.share, &self.network.routes.table) else { return false };
        let is_of_others = |link: LinkId| share.owners[link as usize] != share.number;
        let mut packets =
            self.network.links.iter().flat_map(|link| (0..).map_while(|ahead| link.in_flight(ahead)));
        let has_guests = packets.any(|handle| handle.share().is_some());
        let leaves = |(link, to)| routing.way(to, routing.head(link)).any(is_of_others);
        has_guests || self.remaining().into_iter().any(leaves)
    }
}

/// True if all shares meet at the event of this target.
fn is_meeting(target: Target) -> bool {
    matches!(target, Target::Routes | Target::Sampler)
}

impl<'a> Shares<'a> {
    /// Executes a world whose routes change to its end. `of_flows` is the share of each flow.
    pub(crate) fn run_routes(&mut self, of_flows: &[u32], options: &'a RunOptions<'a>) -> Ended {
        self.divide_links(of_flows);
        self.find_chains();
        let mut is_mixed = false;
        loop {
            is_mixed = is_mixed && self.run_mixed();
            self.all.each(move |share| share.run_until_meeting(options));
            self.note_meeting();
            let now = self.all.iter().map(|share| share.scheduler.now).max().unwrap_or_default();
            self.all.iter_mut().for_each(|share| share.scheduler.now = now);
            if options.is_stopped() {
                return Ended::Stopped;
            }
            match self.all[0].part().meeting {
                None => return Ended::InTime,
                Some(Target::Sampler) => self.sample(),
                Some(_) => {
                    self.change_routes(of_flows);
                    is_mixed = true;
                }
            }
            if let Some(progress) = options.progress {
                progress(now.as_secs_f64());
            }
        }
    }

    /// Samples the delivered bytes of all flows.
    fn sample(&mut self) {
        let delivered = self.all.iter_mut().map(|share| share.sample_flows()).sum();
        let at = self.all[0].scheduler.now;
        self.all[0].applications.sample_all(at, delivered);
        // In a world at rest nothing will be delivered.
        if self.all.iter().any(|share| !share.scheduler.is_empty()) {
            self.all.iter_mut().for_each(|share| {
                share.scheduler.schedule(Target::Sampler, share.scheduler.now + SAMPLE_INTERVAL)
            });
        }
    }

    /// Executes the events of all shares in order, while packets of a share still have to pass links of another share. Returns true if
    /// the shares meet before that ends.
    fn run_mixed(&mut self) -> bool {
        while self.all.iter().any(|share| share.is_mixed()) {
            for _ in 0..EVENTS_PER_CHECK {
                let firsts =
                    (0..).zip(&mut *self.all).map(|(number, share)| (share.scheduler.first(), number));
                let Some((key, number)) = firsts.min() else { return false };
                let share = &mut self.all[number as usize];
                if is_meeting(share.scheduler.target(key)) {
                    return true;
                }
                let Some(target) = share.scheduler.advance() else { return false };
                share.happen(target);
                self.pass_on(number);
            }
        }
        false
    }

    /// The routes of all shares change.
    fn change_routes(&mut self, of_flows: &[u32]) {
        let mut changes = self.all.iter_mut().map(|share| share.take_new_routes(share.scheduler.now));
        let Some((given_up, in_flight)) = changes.next() else { return };
        changes.for_each(drop);
        self.divide_links(of_flows);
        for link in given_up {
            let owner = self.all[0].part().owners[link as usize];
            self.all[owner as usize].give_up(link, in_flight);
            self.pass_on(owner);
        }
        self.find_chains();
        self.pass_on(0);
        self.all[0].scheduler.events += 1;
    }

    /// Gives each link to the share that has it on its ways now.
    fn divide_links(&mut self, of_flows: &[u32]) {
        let before = self.all[0].part().owners.clone();
        let (mut owners, Routes { chains, table, .. }) = (before.clone(), &self.all[0].network.routes);
        for (ways, share) in chains.origins.chunks_exact(2).zip(of_flows) {
            let pairs = table.iter().flat_map(|table| ways.iter().map(move |way| (table, way)));
            for link in pairs.flat_map(|(table, (from, to))| table.way(*to, *from)) {
                owners[link as usize] = *share;
            }
        }
        for (link, (from, to)) in before.into_iter().zip(&owners).enumerate() {
            if let Ok([old, new]) = self.all.get_disjoint_mut([from as usize, *to as usize]) {
                std::mem::swap(&mut old.network.links[link], &mut new.network.links[link]);
                let state = &mut new.network.links[link];
                state.packets_mut().for_each(|handle| *handle = handle.moved(from, *to));
                new.scheduler.schedule(Target::Link(link as LinkId), state.next_event());
            }
        }
        self.all.iter_mut().for_each(|share| share.part().owners.clone_from(&owners));
    }

    /// Finds where packets may be followed until the routes change again.
    fn find_chains(&mut self) {
        let remaining: Vec<_> = self.all.iter().flat_map(|share| share.remaining()).collect();
        self.all.iter_mut().for_each(|share| share.find_chains(&remaining));
    }

    /// Moves packets of a share to the shares that own their next links, and reports lost packets to their shares.
    fn pass_on(&mut self, from: u32) {
        let now = self.all[from as usize].scheduler.now;
        for (to, handle, here) in std::mem::take(&mut self.all[from as usize].part().crossing) {
            self.all[to as usize].scheduler.now = now;
            self.all[to as usize].go(handle.moved(from, to), here);
        }
        let has_lost = |share: &Share| share.returned.giving.iter().any(|returned| !returned.lost.is_empty());
        if self.all.iter().filter_map(|share| share.share.as_ref()).any(has_lost) {
            self.all.iter_mut().for_each(|share| share.part().returned.give());
            self.all.iter_mut().for_each(|share| share.take_back());
        }
    }
}
