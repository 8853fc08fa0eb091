//! One end of a connection.

use bentpipe_scenario::NodeId;
use bentpipe_tcp::Connection;
use bentpipe_traffic::Interest;

use crate::host::proxy::Relay;
use crate::ids::FlowId;
use crate::packet::handle::Label;
use crate::scheduler::timer::Timer;

/// One end of a connection with its state in the network.
pub(crate) struct End {
    pub connection: Connection,
    /// Its timer, in a world of processes.
    pub timer: Timer,
    /// Node where it is.
    pub node: NodeId,
    /// Position of its route.
    pub route: u32,
    /// Bytes of headers of its packets.
    pub header_bytes: u32,
    /// Flow and hosts of its packets, by which queues tell packets apart.
    pub label: Label,
    pub flow: FlowId,
    /// Leg of the end: the first leg of a flow has the number of the flow; the others follow behind all flows.
    pub leg_id: u32,
    /// Index of the delays that it counts: the group of its flow, or [`NOT_COUNTED`].
    pub delays: u32,
    /// Its counterpart on the other side of a proxy.
    pub relay: Relay,
    /// Number of earlier connections in this place; [`DEAD`] while its proxy is dead.
    pub incarnation: u32,
    /// Events that the application waits for.
    pub interest: Interest,
}

impl End {
    /// True if its application reads all data at once, and neither it nor a proxy depends on the time.
    #[inline]
    pub fn reads_at_once(&self) -> bool {
        self.relay == Relay::None && self.interest == Interest::Usual
    }
}

/// Index of no delays: those of an end inside the network.
pub(crate) const NOT_COUNTED: u32 = u32::MAX;

/// Incarnation of an end whose proxy is dead.
pub(crate) const DEAD: u32 = u32::MAX;
