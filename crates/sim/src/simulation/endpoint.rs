//! Connection ends: segments arrive, the application reacts, segments leave, the timer is set.

use bentpipe_base::{EcnField, Instant, Probe};
use bentpipe_check::HostEvent;
use bentpipe_outcome::Delays;
use bentpipe_tcp::{Connection, Events, Exchange, Transmit};
use bentpipe_trace::Event;
use bentpipe_traffic::{Application, Interest};

use crate::host::proxy::Relay;
use crate::host::state::Hosts;
use crate::ids::EndId;
use crate::network::hop::{FIRST_SPECIAL, Here};
use crate::observe::monitor::Monitor;
use crate::packet::handle::{Marks, PacketHandle};
use crate::packet::pool::PacketContents;
use crate::scheduler::target::Target;
use crate::simulation::Simulation;

impl<M: Monitor> Simulation<M> {
    /// The timer of an end expires, or has been moved.
    pub(crate) fn check_deadline(&mut self, id: EndId) {
        self.scheduler.events += 1;
        let connection = &mut self.hosts.ends[id as usize].connection;
        // The deadline may have moved since the event was scheduled.
        if connection.next_timeout() <= self.scheduler.now {
            connection.handle_timeout(self.scheduler.now);
            self.settle(id);
        } else {
            let at = connection.next_timeout();
            self.wake_end_at(id, at);
        }
    }

    /// Schedules an end for a time or earlier.
    #[inline(always)]
    pub(crate) fn wake_end_at(&mut self, id: EndId, at: Instant) {
        if self.processes.is_empty() {
            self.scheduler.schedule(Target::End(id), at);
        } else {
            self.processes.note_timer(at);
            self.hosts.ends[id as usize].timer.set(at, self.scheduler.until);
        }
    }

    /// Hands a packet over at the end of its route.
    #[inline]
    pub(crate) fn arrive(&mut self, handle: PacketHandle) {
        if handle.has(Marks::AGENT) {
            return self.arrive_at_agent(handle);
        }
        let contents = &mut self.hosts.scratch;
        self.network.pool.read(handle.index(), contents);
        self.network.pool.release(handle.index());
        let to = contents.to;
        if handle.has(Marks::PLAIN) {
            return self.arrive_plain(handle);
        }
        if handle.has(Marks::CONGESTED) {
            contents.segment.ecn = EcnField::Congested;
        }
        let end = &mut self.hosts.ends[to as usize];
        if end.incarnation != contents.incarnation {
            return;
        }
        if matches!(end.relay, Relay::Waits | Relay::Holds(_)) {
            let segment = self.hosts.scratch.segment;
            if self.hold_syn(to, &segment) {
                return;
            }
        }
        let (contents, end) = (&mut self.hosts.scratch, &mut self.hosts.ends[to as usize]);
        self.monitor.end(
            self.scheduler.key,
            to,
            HostEvent::Arrived { packet: handle.index(), segment: contents.segment },
        );
        let delays = self.applications.delays.get_mut(end.delays as usize);
        // Data arrives at the receiver, and round-trip samples at the sender.
        let is_receiver = !to.is_multiple_of(2);
        let is_data = is_receiver && contents.segment.len > 0 && contents.segment.probe == Probe::No;
        let one_way = is_data.then_some(self.scheduler.now.since(contents.sent_at));
        let had_read = end.connection.delivered_bytes();
        let reads_at_once = end.reads_at_once();
        let exchange = end.connection.exchange(self.scheduler.now, &mut contents.segment, reads_at_once);
        if let Some(delays) = delays {
            match one_way {
                Some(delay) => delays.one_way_delay.add(delay),
                None if !is_receiver => note_rtt(delays, &mut end.connection),
                None => {}
            }
        }
        let bytes = end.connection.delivered_bytes() - had_read;
        if M::MONITORS && bytes > 0 {
            self.monitor.end(self.scheduler.key, to, HostEvent::Read(bytes));
        }
        if let Exchange::Answered { transmit, earlier } = exchange {
            return self.answer(to, transmit, earlier);
        }
        let waits = end.relay == Relay::Waits;
        if end.interest == Interest::Arrivals {
            self.note_segment(to);
        }
        self.settle(to);
        if waits {
            self.meet_syn(to);
        }
    }

    /// The scratch holds a plain packet at the end of its route.
    #[inline]
    fn arrive_plain(&mut self, handle: PacketHandle) {
        let PacketContents { to, segment, sent_at, .. } = self.hosts.scratch;
        self.monitor.plain(self.scheduler.key, 2 * to + 1, Event::Received(segment));
        let flow = &mut self.applications.flows[to as usize];
        self.applications.delays[flow.group as usize].one_way_delay.add(self.scheduler.now.since(sent_at));
        if handle.has(Marks::COPY) {
            return;
        }
        flow.counts.plain_packets += 1;
        flow.counts.plain_bytes += u64::from(handle.size() - flow.header_bytes);
        if let Application::SourceApp(app) = &mut flow.application {
            app.handle_packet(self.scheduler.now, segment.seq, u64::from(segment.len));
        }
    }

    /// A connection end has handled a segment and answered with the scratch, or with nothing.
    #[inline]
    pub(crate) fn answer(&mut self, id: EndId, transmit: Transmit, earlier: bool) {
        if transmit != Transmit::Nothing {
            self.send_scratch(id);
        }
        if transmit == Transmit::More {
            self.transmit(id);
        }
        if earlier || transmit == Transmit::More {
            let deadline = self.hosts.ends[id as usize].connection.next_timeout();
            self.wake_end_at(id, deadline);
        }
        self.note_settled(id);
    }

    /// Tells the monitor that an end has done everything that there was to do.
    #[inline(always)]
    fn note_settled(&mut self, id: EndId) {
        if !M::MONITORS {
            return;
        }
        let connection = &mut self.hosts.ends[id as usize].connection;
        while let Some((at, event)) = connection.poll_trace() {
            self.monitor.end(self.scheduler.key, id, HostEvent::Traced(at, event));
        }
        let acknowledged_bytes = connection.acknowledged_bytes();
        self.monitor.end(self.scheduler.key, id, HostEvent::Settled { acknowledged_bytes });
    }

    /// After anything changed at a connection end: the application reacts, segments leave, the timer is set.
    pub(crate) fn settle(&mut self, id: EndId) {
        let mut over = false;
        let incarnation = self.hosts.ends[id as usize].incarnation;
        let mut events = self.hosts.ends[id as usize].connection.take_events();
        loop {
            if !events.is_empty() {
                if events.contains(Events::READABLE) {
                    self.note_missing(id);
                }
                over |= self.react(id, events);
            }
            self.transmit(id);
            if let Relay::With(other) = self.hosts.ends[id as usize].relay {
                self.relay_more(id, other);
                self.transmit(id);
            }
            events = self.hosts.ends[id as usize].connection.take_events();
            if events.is_empty() {
                break;
            }
        }
        let deadline = self.hosts.ends[id as usize].connection.next_timeout();
        self.wake_end_at(id, deadline);
        self.note_settled(id);
        // The application may have settled the other end, which then removed the pair.
        if over && self.hosts.ends[id as usize].incarnation == incarnation {
            self.retire(id & !1);
        }
    }

    /// Sends all segments that a connection may send.
    #[inline]
    pub(crate) fn transmit(&mut self, id: EndId) {
        loop {
            let Hosts { ends, scratch, .. } = &mut self.hosts;
            let end = &mut ends[id as usize];
            let transmit = end.connection.transmit_into(self.scheduler.now, &mut scratch.segment);
            if transmit == Transmit::Nothing {
                return;
            }
            self.send_scratch(id);
            if transmit == Transmit::Last {
                return;
            }
        }
    }

    /// The scratch holds a segment that leaves a connection end.
    #[inline]
    pub(crate) fn send_scratch(&mut self, id: EndId) {
        let Hosts { ends, scratch, .. } = &mut self.hosts;
        let end = &ends[id as usize];
        (scratch.to, scratch.incarnation, scratch.sent_at) = (id ^ 1, end.incarnation, self.scheduler.now);
        let index = self.network.pool.put(scratch);
        let segment = &scratch.segment;
        let size = end.header_bytes + segment.len;
        let handle = PacketHandle::new((index, end.route), size, end.label, Marks::of(segment));
        self.monitor.end(self.scheduler.key, id, HostEvent::Sent { packet: index, segment: *segment });
        self.depart(handle, id);
    }

    /// A packet leaves its host by the first hop of its route.
    #[inline(always)]
    pub(crate) fn depart(&mut self, handle: PacketHandle, id: EndId) {
        let hop = self.network.routes.hops[handle.position()];
        if hop < FIRST_SPECIAL {
            self.enqueue(hop, handle);
        } else {
            let node = self.hosts.ends[id as usize].node;
            self.go(handle, Here { node, served: true });
        }
    }

    /// Notes the bytes that a best-effort receiver skips.
    #[inline]
    pub(crate) fn note_missing(&mut self, id: EndId) {
        while let Some(missing) = self.hosts.ends[id as usize].connection.next_missing() {
            self.monitor.end(self.scheduler.key, id, HostEvent::Missing(missing));
        }
    }

    /// Lets the application answer events of its connection end. Returns true if the connection is over at this end.
    pub(crate) fn react(&mut self, id: EndId, events: Events) -> bool {
        if self.hosts.ends[id as usize].relay != Relay::None {
            return self.react_relay(id, events);
        }
        let interest = self.hosts.ends[id as usize].interest;
        if interest == Interest::Everything {
            return self.react_for_client(id, events);
        }
        if events.contains(Events::READABLE) {
            let bytes = self.hosts.ends[id as usize].connection.read(self.scheduler.now, u64::MAX);
            self.monitor.end(self.scheduler.key, id, HostEvent::Read(bytes));
            if interest == Interest::Arrivals {
                self.note_read(id, bytes);
            }
        }
        let flow = self.hosts.ends[id as usize].flow;
        let is_sender = id.is_multiple_of(2);
        if is_sender && events.intersects(Events::ESTABLISHED | Events::WRITABLE) {
            self.write(flow);
        }
        if is_sender && events.contains(Events::ALL_ACKED) {
            self.note_completion(flow, id);
        }
        if !is_sender && events.contains(Events::PEER_CLOSED) {
            self.hosts.ends[id as usize].connection.close(self.scheduler.now);
        }
        if events.intersects(Events::RESET | Events::TIMED_OUT) {
            let reason = if events.contains(Events::RESET) { "reset" } else { "timed out" };
            self.note_abort(flow, id, reason);
        }
        events.intersects(Events::CLOSED | Events::RESET | Events::TIMED_OUT)
    }
}

/// Counts the round-trip sample that a connection took.
#[inline(always)]
fn note_rtt(delays: &mut Delays, connection: &mut Connection) {
    if let (Some(sample), Some(srtt)) = (connection.take_rtt_sample(), connection.srtt()) {
        delays.rtt.add(sample);
        delays.smoothed_rtt.add(srtt);
    }
}
