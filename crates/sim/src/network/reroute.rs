//! Changes of the routes: which links are given up, and what becomes of the packets on them.

use bentpipe_base::Instant;
use bentpipe_scenario::{InFlight, LinkId};

use crate::check::LinkActivity;
use crate::network::hop::Here;
use crate::observe::monitor::Monitor;
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// The network itself changes at this time.
    pub(crate) fn change_routes(&mut self, now: Instant) {
        let routing = self.core.routing.as_mut().expect("only the routes of such a world change");
        routing.change(now);
        // What is given up goes on by events, until it is known which links are chained now.
        self.core.chains.clear();
        self.queue.schedule(self.targets.routing, routing.next_change());
        let (given_up, in_flight) = routing.given_up();
        for link in given_up {
            self.give_up(link, in_flight);
        }
        self.find_chains();
    }

    /// A link of the constellation is no more.
    fn give_up(&mut self, id: LinkId, in_flight: InFlight) {
        let now = self.now;
        // What arrives at this very time has arrived.
        self.deliver(id);
        match in_flight {
            InFlight::Lost => {
                self.links[id as usize].lose_everything(now);
                self.reclaim_dropped(id);
            }
            InFlight::Rerouted => {
                let waiting = self.links[id as usize].take_back_waiting(now);
                self.reclaim_dropped(id);
                let here = Here { node: self.core.graph.hop(id).from, served: true };
                for handle in waiting {
                    if self.monitor.watches(id) {
                        self.monitor.link(now, id, LinkActivity::TakenBack(self.seen(handle)));
                    }
                    self.go(handle, here);
                }
            }
        }
        self.queue.schedule(self.targets.first_link + id, self.links[id as usize].next_event());
    }
}
