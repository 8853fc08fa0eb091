//! TFRC streams in the world: packets at the rate of the equation one way, reports the other.

use bentpipe_base::{Instant, Segment};
use bentpipe_cc::Algorithm;
use bentpipe_cc::tfrc::{Config, StreamReceiver, StreamSender};
use bentpipe_scenario::{FlowGroup, Traffic};

use crate::simulation::Simulation;
use crate::ticket::{Marks, Ticket};
use crate::traffic::Application;
use crate::witness::Witness;
use crate::world::FlowId;

/// Both ends of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Sends.
    pub sender: StreamSender,
    receiver: StreamReceiver,
}

impl Stream {
    /// Of a flow of `group` that starts at `start`.
    pub fn new(group: &FlowGroup, start: Instant) -> Self {
        let config = if let Algorithm::Tfrc(config) = &group.sender.cc { *config } else { Config::default() };
        let build = if group.traffic == Traffic::Bulk { StreamSender::new } else { StreamSender::fed };
        Self { sender: build(config, group.sender.mss, start), receiver: StreamReceiver::default() }
    }
}

impl<W: Witness> Simulation<W> {
    /// The time of a stream's sender has come.
    pub(crate) fn stream(&mut self, id: FlowId) {
        let now = self.now;
        while let Some(packet) = self.stream_of(id).and_then(|stream| stream.sender.poll_transmit(now)) {
            self.send_segment(id, packet, 0);
        }
        let flow = &mut self.flows[id as usize];
        let of_source = flow.application.feed().map(|feed| flow.start + feed.due());
        if let Some(due) = self.stream_of(id).map(|stream| stream.sender.next_timeout()) {
            self.wheel.schedule(id, due.min(of_source.unwrap_or(due)).max(now));
        }
    }

    pub(crate) fn stream_of(&mut self, id: FlowId) -> Option<&mut Stream> {
        match &mut self.flows[id as usize].application {
            Application::Stream(stream) => Some(stream),
            Application::Feed(feed) => feed.stream.as_deref_mut(),
            _ => None,
        }
    }

    /// A packet or a report of a stream arrived.
    pub(crate) fn stream_arrival(&mut self, id: FlowId, ticket: Ticket, segment: &Segment) {
        let now = self.now;
        if ticket.has(Marks::COPY) {
            return;
        }
        let counts = &mut self.flows[id as usize].counts;
        counts.plain_packets += u64::from(segment.len > 0);
        counts.plain_bytes += u64::from(segment.len);
        if let Some(feed) = self.flows[id as usize].application.feed().filter(|_| segment.len > 0) {
            feed.handle_packet(now, segment);
        }
        let Some(stream) = self.stream_of(id) else { return };
        if segment.len > 0 {
            if let Some(report) = stream.receiver.handle_packet(now, segment) {
                self.send_segment(id, report, 1);
            }
        } else {
            stream.sender.handle_report(now, segment);
            self.stream(id);
        }
    }
}
