//! Packets of agents, which no segment describes.

use bentpipe_transports::Packet;

/// A port of an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// Number of the agent, counted from sender to receiver.
    pub agent: u8,
    pub port: u8,
}

/// A packet of an agent in the network.
#[derive(Clone, Debug)]
pub(crate) struct AgentPacket {
    pub packet: Packet,
    pub to: Port,
}
