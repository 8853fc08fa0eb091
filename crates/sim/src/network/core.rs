//! The network core: all elements besides links that packets pass.

use std::collections::HashMap;
use std::sync::Arc;

use bentpipe_base::Segment;
use bentpipe_middlebox::{Emission, Middlebox};
use bentpipe_outcome::{Delays, GoodputSampler};
use bentpipe_scenario::{Graph, LinkId, NextHop, NodeId, RoutingTable};

use crate::host::proxy::{Leg, Proxy};
use crate::ids::EndId;
use crate::network::chains::Chains;
use crate::network::medium::Media;

/// A node with a middlebox.
#[derive(Debug)]
pub(crate) struct MiddleboxNode {
    pub name: String,
    pub kind: &'static str,
    pub node: NodeId,
    pub middlebox: Middlebox,
    /// Positions of the routes from here: to the receiving end of leg `l` at `2 l`, to its sending end at `2 l + 1`.
    pub exits: Vec<u32>,
}

/// All elements besides links that packets pass, and their state.
#[derive(Debug, Default)]
pub(crate) struct NetworkCore {
    pub middleboxes: Vec<MiddleboxNode>,
    /// The middlebox at each node, if there are any.
    pub middleboxes_at: Vec<Option<u32>>,
    pub proxies: Vec<Proxy>,
    /// SYNs that proxies keep until the server has answered, by the ends that they are for.
    pub held: HashMap<EndId, Segment>,
    /// Legs of flows behind proxies.
    pub legs: Vec<Leg>,
    /// The next hops, in a world in which they change.
    pub routing: Option<RoutingTable>,
    /// Links over which packets may be followed until the routes change.
    pub chains: Chains,
    /// Packets that no way led on for.
    pub stranded: u64,
    /// Media that links share.
    pub media: Media,
    /// Ends of each link.
    pub graph: Arc<Graph>,
    /// Number of ends that another end is settling through a relay.
    pub nested: u32,
    /// Samples the goodput of the flows.
    pub goodput: GoodputSampler,
    /// Delays of each group of flows.
    pub delays: Vec<Delays>,
    /// Segments that a middlebox sends.
    pub emissions: Vec<Emission>,
}

impl NetworkCore {
    /// Adds a middlebox at its node.
    pub fn add(&mut self, middlebox: MiddleboxNode) {
        let nodes = self.middleboxes_at.len().max(middlebox.node as usize + 1);
        self.middleboxes_at.resize(nodes, None);
        self.middleboxes_at[middlebox.node as usize] = Some(self.middleboxes.len() as u32);
        self.middleboxes.push(middlebox);
    }

    /// The middlebox at a node.
    #[inline]
    pub fn middlebox_at(&self, node: NodeId) -> Option<u32> {
        self.middleboxes_at.get(node as usize).copied().flatten()
    }

    /// True if a gateway at the node acknowledges in the name of other hosts.
    pub fn spoofs(&self, node: NodeId) -> bool {
        let id = self.middlebox_at(node);
        id.is_some_and(|id| matches!(self.middleboxes[id as usize].middlebox, Middlebox::Spoofing(_)))
    }

    /// Node at the far end of a link.
    pub fn head(&self, link: LinkId) -> NodeId {
        self.graph.hop(link).to
    }

    /// The next link of a packet behind another, if packets may be offered to it ahead of time.
    #[inline(always)]
    pub fn chained_hop(&mut self, destination: u32, behind: LinkId) -> Option<LinkId> {
        match self.chains.known(destination, behind) {
            Some(next) => next,
            None => self.find_chained_hop(destination, behind),
        }
    }

    #[inline(never)]
    fn find_chained_hop(&mut self, destination: u32, behind: LinkId) -> Option<LinkId> {
        let next = match self.routing.as_ref()?.next(destination, self.head(behind)) {
            NextHop::Link(next) if self.chains.has(next) => Some(next),
            _ => None,
        };
        self.chains.learn(destination, behind, next);
        next
    }

    /// Packets meet nothing but links.
    pub fn is_empty(&self) -> bool {
        self.middleboxes.is_empty() && self.routing.is_none() && self.media.shared.is_empty()
    }
}
