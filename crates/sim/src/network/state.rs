//! The network: everything that packets pass.

use bentpipe_base::Instant;
use bentpipe_check::SeenPacket;
use bentpipe_middlebox::Port;
use bentpipe_net::Link;
use bentpipe_scenario::LinkId;

use crate::network::medium::Media;
use crate::network::middleboxes::Middleboxes;
use crate::network::routes::Routes;
use crate::packet::agent::AgentPacket;
use crate::packet::handle::{Marks, PacketHandle};
use crate::packet::pool::{PacketContents, PacketPool};

/// The network: links, routes, the elements between links, and the packets that are on their way.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub links: Vec<Link<PacketHandle>>,
    /// Salt of each link, all different, for simultaneous packets of several links.
    pub salts: Vec<u32>,
    pub routes: Routes,
    /// Media that links share.
    pub media: Media,
    pub middleboxes: Middleboxes,
    /// All packets on their way.
    pub pool: PacketPool,
    /// Packets of agents, by the indices of their contents.
    pub agent_packets: Vec<Option<AgentPacket>>,
    /// Packets that no way led on for.
    pub stranded: u64,
}

impl Network {
    /// Returns a packet as a monitor sees it.
    pub fn seen(&self, handle: PacketHandle) -> SeenPacket {
        let PacketContents { to, segment, .. } = self.pool.get(handle.index());
        let is_plain = handle.has(Marks::PLAIN);
        // A plain packet, or one to an agent between the ends, names its flow.
        let to_receiver = if handle.has(Marks::AGENT) {
            let packet = self.agent_packets[handle.index() as usize].as_ref();
            packet.is_some_and(|packet| packet.to.agent > 0)
        } else {
            handle.has(Marks::DATA)
        };
        SeenPacket {
            number: handle.index(),
            bytes: handle.size(),
            to: if is_plain { 2 * to + u32::from(to_receiver) } else { to },
            is_copy: handle.has(Marks::COPY),
            segment: (!is_plain).then_some(segment),
        }
    }

    /// Returns rate, delay, queue and outage of a link at a time, for a middlebox in front of it.
    pub fn port(&mut self, link: LinkId, now: Instant) -> Port {
        let state = &mut self.links[link as usize];
        let backlog = state.backlog(now);
        Port {
            link,
            rate: state.rate(now),
            delay_one_way: state.delay_one_way(now),
            waiting_bytes: backlog.bytes,
            waiting_packets: backlog.packets,
            out_until: state.out_until(now),
        }
    }

    /// Packets on links.
    pub fn packets_inside(&self) -> usize {
        self.pool.used() - self.media.packets_inside()
    }

    /// True if packets meet no other elements than links.
    pub fn has_only_links(&self) -> bool {
        self.middleboxes.nodes.is_empty() && self.media.shared.is_empty()
    }
}
