//! Nodes with middleboxes.

use bentpipe_middlebox::{Emission, Middlebox};
use bentpipe_scenario::NodeId;

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

/// All nodes with middleboxes.
#[derive(Debug, Default)]
pub(crate) struct Middleboxes {
    pub nodes: Vec<MiddleboxNode>,
    /// The index of the middlebox at each node of the network, if there are any.
    at: Vec<Option<u32>>,
    /// Segments that a middlebox sends; empty between events.
    pub emissions: Vec<Emission>,
}

impl Middleboxes {
    /// Adds a middlebox at its node.
    pub fn add(&mut self, middlebox: MiddleboxNode) {
        let nodes = self.at.len().max(middlebox.node as usize + 1);
        self.at.resize(nodes, None);
        self.at[middlebox.node as usize] = Some(self.nodes.len() as u32);
        self.nodes.push(middlebox);
    }

    /// The middlebox at a node.
    #[inline]
    pub fn at(&self, node: NodeId) -> Option<u32> {
        self.at.get(node as usize).copied().flatten()
    }

    /// True if a gateway at the node acknowledges in the name of other hosts.
    pub fn spoofs(&self, node: NodeId) -> bool {
        let id = self.at(node);
        id.is_some_and(|id| matches!(self.nodes[id as usize].middlebox, Middlebox::Spoofing(_)))
    }
}
