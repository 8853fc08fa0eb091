//! Channels that several links share: a packet passes the link as a door, waits and contends behind it, and goes on from its far end.

use bentpipe_base::{Duration, Instant, Rate};
use bentpipe_mac::{Medium, TerminalConfig};
use bentpipe_net::{ConfigError, Limit, LinkConfig, QueueConfig};
use bentpipe_scenario::{Edge, LinkId, Topology, shared_channel};

use crate::simulation::Simulation;
use crate::step::Special;
use crate::ticket::Ticket;
use crate::witness::Witness;

/// A channel and the links that share it.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Group of the links.
    pub group: String,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    pub kind: &'static str,
    pub medium: Medium<Ticket>,
    /// The link of each terminal.
    members: Vec<LinkId>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Media {
    pub shared: Vec<Shared>,
    /// Of each link the channel behind it, and its terminal there; empty if there is no channel at all.
    doors: Vec<Option<(u32, u32)>>,
}

/// What a link does that is only a door: it lets a packet through at once.
pub(crate) fn doorway() -> LinkConfig {
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
            media.doors.resize(count, None);
            for (terminal, &link) in members.iter().enumerate() {
                media.doors[link as usize] = Some((media.shared.len() as u32, terminal as u32));
            }
            let (group, direction, kind) = (edge.group.to_owned(), edge.direction, access.name());
            media.shared.push(Shared { group, direction, kind, medium, members });
        }
        Ok(media)
    }

    /// The channel behind a link, and the link's terminal there.
    #[inline]
    pub fn door(&self, link: LinkId) -> Option<(u32, u32)> {
        self.doors.get(link as usize).copied().flatten()
    }

    /// Packets that wait or are on their way.
    pub fn packets_inside(&self) -> usize {
        self.shared.iter().map(|shared| shared.medium.packets_inside()).sum()
    }
}

impl<W: Witness> Simulation<W> {
    /// A packet comes to a shared channel through the door of its terminal.
    pub(crate) fn enter_medium(&mut self, (medium, terminal): (u32, u32), ticket: Ticket) {
        self.interior.media.shared[medium as usize].medium.enqueue(self.now, terminal, ticket);
        self.leave_medium(medium);
    }

    /// Takes from a shared channel what has reached the far end.
    pub(crate) fn deliver_medium(&mut self, medium: u32) {
        loop {
            let shared = &mut self.interior.media.shared[medium as usize];
            let Some((terminal, mut ticket)) = shared.medium.deliver(self.now) else { break };
            let link = shared.members[terminal as usize];
            if Special::of(self.routes[ticket.position()]) == Special::Door {
                ticket.step_on();
            }
            self.reach_node(link, ticket);
        }
        self.leave_medium(medium);
    }

    /// Everything that a shared channel decides until now, without a packet of it going on.
    pub(crate) fn settle_media(&mut self, now: Instant) {
        for medium in 0..self.interior.media.shared.len() as u32 {
            self.interior.media.shared[medium as usize].medium.settle(now);
            self.bury_in_medium(medium);
        }
    }

    fn leave_medium(&mut self, medium: u32) {
        self.bury_in_medium(medium);
        let next = self.interior.media.shared[medium as usize].medium.next_event();
        let owner = self.first_medium + medium;
        self.wheel.schedule(owner, next);
    }

    fn bury_in_medium(&mut self, medium: u32) {
        while let Some((_, dropped)) = self.interior.media.shared[medium as usize].medium.poll_dropped() {
            self.arena.release(dropped.packet.slot());
        }
    }
}
