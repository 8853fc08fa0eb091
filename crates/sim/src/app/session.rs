//! Agents of transports that are not TCP: packets between them travel like all others.
//!
//! A flow over such a transport has a session: its agents, a sender, a receiver, and perhaps some on the way, with the routes between their ports. A
//! transport is added by its agents in the crate `transports`, its word in `scenario`, and their bindings in `session_setup.rs`.

use bentpipe_base::Instant;
use bentpipe_scenario::NodeId;
use bentpipe_transports::{Agent, Packet, Progress, dtn, petra};

/// The agents of a flow, in the order of the way from the sender to the receiver.
#[derive(Debug)]
pub(crate) struct Session {
    pub bindings: Vec<Binding>,
}

/// An agent where it is.
#[derive(Debug)]
pub(crate) struct Binding {
    pub agent: Agent,
    pub node: NodeId,
    /// Where its ports lead.
    pub ways: [Option<Way>; 2],
}

/// The way from a port of an agent to a port of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Where the route begins.
    pub route: u32,
    pub to: Port,
}

/// A port of an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// Number of the agent, in the order of the way from the sender to the receiver.
    pub agent: u8,
    pub port: u8,
}

/// A packet of an agent on its way.
#[derive(Clone, Debug)]
pub(crate) struct AgentPacket {
    pub packet: Packet,
    pub to: Port,
}

impl Session {
    pub fn next_timeout(&self) -> Instant {
        self.bindings.iter().map(|binding| binding.agent.next_timeout()).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// What the sender counted.
    pub fn sender(&self) -> Progress {
        self.bindings[0].agent.progress()
    }

    /// What the receiver counted.
    pub fn receiver(&self) -> Progress {
        self.bindings[self.bindings.len() - 1].agent.progress()
    }

    /// What the agents of a bundle layer counted, with the nodes where they are; nothing for other transports.
    pub fn bundles(&self) -> impl Iterator<Item = (NodeId, dtn::Counters)> {
        self.bindings.iter().filter_map(|binding| match &binding.agent {
            Agent::Dtn(node) => Some((binding.node, node.counters())),
            _ => None,
        })
    }

    /// What the agents of PETRA counted, with the nodes where they are; nothing for other transports.
    pub fn relays(&self) -> impl Iterator<Item = (NodeId, petra::Counters)> {
        self.bindings.iter().filter_map(|binding| match &binding.agent {
            Agent::Petra(node) => Some((binding.node, node.counters())),
            _ => None,
        })
    }
}
