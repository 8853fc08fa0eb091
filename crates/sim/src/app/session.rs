//! Agents of transports other than TCP. Packets between agents use links and queues like all other packets.
//!
//! A flow over such a transport has a session: the agents of sender and receiver, possibly agents between them, and the routes between
//! their ports. A new transport has its agents in the crate `transports`, its name in `scenario`, and its bindings in
//! `session_setup.rs`.

use bentpipe_base::Instant;
use bentpipe_scenario::NodeId;
use bentpipe_transports::{Agent, Progress, dtn, petra};

use crate::packet::agent::Port;

/// Agents of a flow, in the order from sender to receiver.
#[derive(Debug)]
pub(crate) struct Session {
    pub bindings: Vec<Binding>,
}

/// An agent where it is.
#[derive(Debug)]
pub(crate) struct Binding {
    pub agent: Agent,
    pub node: NodeId,
    /// Route from each port of the agent.
    pub ways: [Option<Way>; 2],
}

/// Route from a port of an agent to a port of another agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Position of the route's first hop.
    pub route: u32,
    pub to: Port,
}

impl Session {
    pub fn next_timeout(&self) -> Instant {
        self.bindings.iter().map(|binding| binding.agent.next_timeout()).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Returns the counters of the sender.
    pub fn sender(&self) -> Progress {
        self.bindings[0].agent.progress()
    }

    /// Returns the counters of the receiver.
    pub fn receiver(&self) -> Progress {
        self.bindings[self.bindings.len() - 1].agent.progress()
    }

    /// Returns the counters of bundle agents with their nodes; empty for other transports.
    pub fn bundles(&self) -> impl Iterator<Item = (NodeId, dtn::Counters)> {
        self.bindings.iter().filter_map(|binding| match &binding.agent {
            Agent::Dtn(node) => Some((binding.node, node.counters())),
            _ => None,
        })
    }

    /// Returns the counters of PETRA agents with their nodes; empty for other transports.
    pub fn relays(&self) -> impl Iterator<Item = (NodeId, petra::Counters)> {
        self.bindings.iter().filter_map(|binding| match &binding.agent {
            Agent::Petra(node) => Some((binding.node, node.counters())),
            _ => None,
        })
    }
}
