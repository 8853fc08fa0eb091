//! Changes of the routes: packets on links that end, and packets that are followed until the next change.

use bentpipe_base::Instant;
use bentpipe_check::LinkActivity;
use bentpipe_net::Passing;
use bentpipe_scenario::{InFlight, LinkId};

use crate::network::hop::Here;
use crate::network::state::Network;
use crate::observe::monitor::Monitor;
use crate::scheduler::target::Target;
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// The network itself changes at this time.
    pub(crate) fn change_routes(&mut self, now: Instant) {
        let (given_up, in_flight) = self.take_new_routes(now);
        for link in given_up {
            self.give_up(link, in_flight);
        }
        let remaining = self.remaining();
        self.find_chains(&remaining);
    }

    /// Applies new routes. Returns the links that end, and the fate of the packets on them.
    pub(crate) fn take_new_routes(&mut self, now: Instant) -> (Vec<LinkId>, InFlight) {
        let given_up = self.network.routes.change(now);
        self.scheduler.schedule(Target::Routes, self.network.routes.next_change());
        given_up
    }

    /// Links with packets and the destinations of these.
    pub(crate) fn remaining(&self) -> Vec<(LinkId, u32)> {
        self.network.routes.remaining(&self.network.links)
    }

    /// A link of the constellation is no more.
    pub(crate) fn give_up(&mut self, id: LinkId, in_flight: InFlight) {
        let now = self.scheduler.now;
        // Packets that arrive at this very time have arrived.
        self.deliver(id);
        match in_flight {
            InFlight::Lost => {
                self.network.links[id as usize].lose_everything(now);
                self.reclaim_dropped(id, self.scheduler.key);
            }
            InFlight::Rerouted => {
                let waiting = self.network.links[id as usize].take_back_waiting(now);
                self.reclaim_dropped(id, self.scheduler.key);
                let here = Here { node: self.network.routes.graph.hop(id).from, served: true };
                for handle in waiting {
                    if self.monitor.watches(id) {
                        let taken_back = LinkActivity::TakenBack(self.network.seen(handle));
                        self.monitor.link(self.scheduler.key, id, taken_back);
                    }
                    self.go(handle, here);
                }
            }
        }
        self.schedule_link(id);
    }

    /// Finds where packets may be followed until the routes change again, and follows those that are on links now: `remaining`, here and
    /// in other shares.
    pub(crate) fn find_chains(&mut self, remaining: &[(LinkId, u32)]) {
        let share = self.share.as_ref();
        let is_own = |id: LinkId| share.is_none_or(|share| share.owners[id as usize] == share.number);
        let Network { routes, links, .. } = &mut self.network;
        for link in routes.find_chains(links, remaining, is_own, self.scheduler.until) {
            let Network { routes, links, .. } = &mut self.network;
            let handed_over = routes.hand_over(link, &mut links[link as usize]);
            for (Passing { at, packet: handle }, onward) in handed_over {
                self.scheduler.events += 1;
                self.enter_arrival_by(at, link, handle);
                self.run_ahead((at, onward), handle);
            }
        }
    }
}
