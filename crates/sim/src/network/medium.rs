//! Media that several links share. Each link is a port through which a packet enters the medium. There the packet waits and contends,
//! and leaves at the far end of the link.

use std::borrow::Cow;

use bentpipe_base::{Duration, Rate};
use bentpipe_mac::{Medium, TerminalConfig};
use bentpipe_net::{ConfigError, Limit, LinkConfig, QueueConfig};
use bentpipe_scenario::{Edge, LinkId, Topology, shared_channel};

use crate::packet::handle::PacketHandle;

/// A channel and the links that share it.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Group of the links.
    pub group: String,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    pub kind: &'static str,
    pub medium: Medium<PacketHandle>,
    /// The link of each terminal.
    pub members: Vec<LinkId>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Media {
    pub shared: Vec<Shared>,
    /// Channel behind each link, and its terminal there; empty if there is no channel.
    ports: Vec<Option<(u32, u32)>>,
}

/// The name of one direction of a link.
pub(crate) fn link_name(edge: &Edge<'_>) -> String {
    format!("link.{}.{}", edge.name, edge.direction)
}

/// The configuration of the link: only a port if it leads into a medium, where it ends.
pub(crate) fn link_config<'a>(edge: &Edge<'a>) -> Cow<'a, LinkConfig> {
    if edge.medium.is_some() { Cow::Owned(port_config()) } else { Cow::Borrowed(edge.config) }
}

/// Configuration of a port, which lets a packet through at once.
fn port_config() -> LinkConfig {
    // Fast enough that a packet of any size takes no more than the shortest time there is.
    let rate = Rate::from_bps(10_u64.pow(15));
    let limit = Limit::Packets(u32::MAX);
    LinkConfig::new(rate, Duration::ZERO, QueueConfig::DropTail { limit })
}

impl Media {
    /// The channels of these links under a seed.
    pub fn new(topology: &Topology<'_>, seed: u64) -> Result<Self, (LinkId, ConfigError)> {
        let mut media = Self::default();
        for (first, edge) in topology.links().enumerate() {
            let Some(access) = edge.medium else { continue };
            let known = |shared: &Shared| shared.group == edge.group && shared.direction == edge.direction;
            if media.shared.iter().any(known) {
                continue;
            }
            let same = |other: Edge<'_>| other.group == edge.group && other.direction == edge.direction;
            let count = topology.link_count();
            let members: Vec<_> = (0..count as LinkId).filter(|&link| same(topology.link(link))).collect();
            let refused = |error| (first as LinkId, error);
            let (config, terminal) = shared_channel(edge.config, access, members.len()).map_err(refused)?;
            let terminals: Vec<TerminalConfig> = vec![terminal; members.len()];
            let name = format!("medium.{}.{}", edge.group, edge.direction);
            let medium = Medium::new(&config, &terminals, (seed, &name)).map_err(refused)?;
            media.ports.resize(count, None);
            for (terminal, &link) in members.iter().enumerate() {
                media.ports[link as usize] = Some((media.shared.len() as u32, terminal as u32));
            }
            let (group, direction, kind) = (edge.group.to_owned(), edge.direction, access.name());
            media.shared.push(Shared { group, direction, kind, medium, members });
        }
        Ok(media)
    }

    /// The channel behind a link, and the link's terminal there.
    #[inline]
    pub fn port(&self, link: LinkId) -> Option<(u32, u32)> {
        self.ports.get(link as usize).copied().flatten()
    }

    /// Number of packets that wait or are in flight.
    pub fn packets_inside(&self) -> usize {
        self.shared.iter().map(|shared| shared.medium.packets_inside()).sum()
    }
}
