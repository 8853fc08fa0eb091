//! Flows, and what is counted of them.

use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rng};
use bentpipe_scenario::{FlowGroup, Name, NodeId, Reveals, Scenario, Transport};
use bentpipe_tcp::{Config, Connection, Stats};
use bentpipe_traffic::mpeg::Style;
use bentpipe_traffic::{Application, Transfer};

use crate::app::application::application;
use crate::app::session::Session;
use crate::ids::EndId;
use crate::packet::handle::Label;

/// One flow: its application, its connection and its counters.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Index of its group in the scenario, and its own there.
    pub group: u32,
    pub index: u32,
    pub application: Application,
    /// Its transport protocol.
    pub transport: Transport,
    /// The agents of a transport that is not TCP and not plain packets.
    pub session: Option<Box<Session>>,
    /// Time of its start.
    pub start: Instant,
    pub header_bytes: u32,
    /// Information that nodes on the path have about its encrypted packets.
    pub reveals: Option<Reveals>,
    /// Positions of the routes of sender and receiver.
    pub routes: [u32; 2],
    /// The nodes of sender and receiver.
    pub nodes: [NodeId; 2],
    /// Labels of the packets of sender and receiver.
    pub labels: [Label; 2],
    /// Configuration of sender and receiver.
    pub configs: [Arc<Config>; 2],
    /// Feeds the algorithms of its connections.
    pub seeds: Rng,
    /// The sending end of its present connection.
    pub sender: Option<EndId>,
    /// Bytes that the application has for the present connection in all.
    pub wanted: u64,
    /// Bytes that it took.
    pub written: u64,
    /// Bytes whose completion was noted.
    pub noted: u64,
    /// True if a gateway on its path acknowledges data that has not arrived.
    pub spoofed: bool,
    pub counts: Counts,
}

/// Counters of a flow besides those of its connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Counters of former connections, if there are any; few flows have several.
    gone: Option<Box<Gone>>,
    /// Start of the present file or page; far in the past before the first.
    pub begun: Instant,
    /// Files or pages completed.
    pub completed: u64,
    /// Sum of the times that took.
    pub completion_sum: Duration,
    /// Each complete page of a flow of pages.
    pub pages: Vec<Transfer>,
    /// Data packets that links lost.
    pub lost_packets: u64,
    /// Plain packets that arrived, copies not counted.
    pub plain_packets: u64,
    /// Their payload.
    pub plain_bytes: u64,
}

impl Counts {
    /// Returns the counters of former connections.
    pub fn of_gone(&self) -> Gone {
        self.gone.as_deref().cloned().unwrap_or_default()
    }

    /// Returns the counters of former connections for changes.
    pub fn gone(&mut self) -> &mut Gone {
        self.gone.get_or_insert_default()
    }

    /// Adds the counters of a connection end that is removed: of the sender (0) or the receiver (1).
    pub fn retire(&mut self, side: usize, connection: &Connection) {
        let gone = self.gone();
        gone.stats[side] += connection.stats();
        if side == 0 {
            gone.acknowledged += connection.acknowledged_bytes();
            gone.srtt = connection.srtt().or(gone.srtt);
            gone.connected |= connection.acknowledged_bytes() > 0 || connection.state().is_synchronised();
        }
    }

    /// Bytes that their receivers delivered.
    pub fn gone_delivered_bytes(&self) -> u64 {
        self.gone.as_ref().map_or(0, |gone| gone.stats[1].delivered_bytes)
    }
}

/// Counters of former connections of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gone {
    /// Statistics of senders and of receivers.
    pub stats: [Stats; 2],
    /// Payload acknowledged to the senders.
    pub acknowledged: u64,
    /// Smoothed round-trip time of the last of them.
    pub srtt: Option<Duration>,
    /// Connections of a client that ended early.
    pub failures: u64,
    /// Reason for the early end of the connection.
    pub aborted: Option<&'static str>,
    /// True if a connection was established.
    pub connected: bool,
}

/// A member of a group of flows.
pub(crate) struct Member<'a> {
    pub name: &'a str,
    pub seed: u64,
    pub group_index: u32,
    pub group: &'a FlowGroup,
    /// Shared by the flows of the group.
    pub style: Option<&'a Style>,
}

impl Flow {
    pub fn new(member: Member<'_>, routes: [u32; 2], nodes: [NodeId; 2], configs: [Arc<Config>; 2]) -> Self {
        let Member { name, seed, group, style, .. } = member;
        let stream = |what| Rng::stream(seed, &format!("flow.{name}.{what}"));
        let stagger = group.stagger.mul_f64(stream("start").uniform());
        let start = Instant::ZERO + group.start + stagger;
        Self {
            application: application(group, style, (seed, name)),
            transport: group.transport,
            session: None,
            group: member.group_index,
            index: 0,
            start,
            header_bytes: group.headers_on_wire(),
            reveals: group.esp.map(|esp| esp.reveals),
            routes,
            nodes,
            labels: Label::pair(name, nodes),
            configs,
            seeds: stream("connection"),
            sender: None,
            wanted: 0,
            written: 0,
            noted: 0,
            spoofed: false,
            counts: Counts { begun: Instant::FAR_FUTURE, ..Counts::default() },
        }
    }

    /// Returns the name of the flow as a member of its group.
    pub fn name<'a>(&self, group: &'a FlowGroup) -> Name<'a> {
        Name::of_member(&group.name, self.index, group.count)
    }

    /// Returns the name of the flow among all flows of a scenario.
    pub fn name_in<'a>(&self, scenario: &'a Scenario) -> Name<'a> {
        self.name(&scenario.flows[self.group as usize])
    }
}
