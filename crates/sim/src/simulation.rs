//! The event loop: packets from link to link, segments into connections, applications on top.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bentpipe_base::{EcnField, Instant, Segment, prefetch};
use bentpipe_net::Link;
use bentpipe_tcp::{Connection, Events, Exchange, State, Transmit};
use bentpipe_trace::DropCause;
use bentpipe_transports::Packet;

use crate::RunOptions;
use crate::arena::{Arena, Parcel};
use crate::islands::{Alarm, Islands};
use crate::junction::{Junction, find_junctions};
use crate::proxy::Relay;
use crate::shores::find_islands;
use crate::station::{Here, Interior};
use crate::step::{ARRIVED, FIRST_SPECIAL, Step};
use crate::ticket::{Marks, Ticket};
use crate::traffic::{Application, Interest};
use crate::wheel::{Class, Owner, Tie, Wheel};
use crate::witness::{Crossing, Deed, Witness};
use crate::world::{End, EndId, Flow, FlowId, World, label};
use bentpipe_scenario::{LinkId, Transport};

/// Events between two looks at the stop flag and the event budget.
const EVENTS_PER_LOOK: u64 = 1 << 14;

/// As many connection ends, with the links to them, fit into the caches close to a processor.
const FEW_ENDS: usize = 256;

/// Places in a long line of packets of the one whose goal is asked for, and of the one whose contents are.
pub(crate) const NEAR: usize = 3;
pub(crate) const FAR: usize = 8;

/// A world in motion.
pub(crate) struct Simulation<W> {
    pub links: Vec<Link<Ticket>>,
    pub routes: Vec<Step>,
    pub flows: Vec<Flow>,
    pub ends: Vec<End>,
    /// Pairs of ends that no connection uses, by their sending end.
    pub vacant: Vec<EndId>,
    pub interior: Interior,
    pub junctions: Vec<Junction>,
    pub islands: Islands,
    /// Packets of agents, by the slots of their parcels.
    pub packets: Vec<Option<Packet>>,
    pub arena: Arena,
    /// The parcel that is being written or read.
    letter: Parcel,
    pub wheel: Wheel,
    /// First of the owners that are middleboxes; flows come before, and whoever changes the routes after them.
    pub first_station: Owner,
    pub first_proxy: Owner,
    /// The owner for whom the routes change.
    pub wayfinder: Owner,
    /// The owner for whom goodput is looked at.
    pub clock: Owner,
    /// First of the owners that are shared channels, after the clock.
    pub first_medium: Owner,
    /// First of the owners that are junctions.
    pub first_junction: Owner,
    /// First of the owners that are islands.
    pub first_island: Owner,
    /// First of the owners that are links; connection ends come after.
    pub first_link: Owner,
    pub first_end: Owner,
    pub until: Instant,
    pub now: Instant,
    /// Arrivals at the far ends of links, and deadlines.
    pub events: u64,
    /// Steps of the loop.
    pub turns: u64,
    pub witness: W,
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The simulated time was over.
    InTime,
    /// The stop flag was raised.
    Stopped,
    /// The event budget was spent.
    OutOfEvents,
}

impl<W: Witness> Simulation<W> {
    /// A world at rest that will run until `until`.
    pub fn new(world: World, until: Instant, witness: W) -> Self {
        let World { mut links, salts, mut routes, flows, interior, .. } = world;
        // A witness wants to be told in the order of time, and whatever stands between links may look at their queues.
        let mut junctions =
            if W::WATCHES || !interior.is_empty() { Vec::new() } else { find_junctions(&links, &mut routes) };
        let islands = find_islands((&mut links, &mut junctions), &mut routes, &flows).unwrap_or_default();
        let mut wheel = Wheel::new(until);
        // Other salts than those of the ends of their connections.
        wheel.add_owners(Class::Timer, flows.iter().map(|flow| !flow.labels[0]));
        let of_stations = interior.stations.iter().map(|station| label(&station.name, "middlebox"));
        let first_station = wheel.add_owners(Class::Timer, of_stations);
        let of_proxies = interior.proxies.iter().map(|proxy| label(&proxy.name, "proxy"));
        let first_proxy = wheel.add_owners(Class::Network, of_proxies);
        for (proxy, state) in interior.proxies.iter().enumerate() {
            wheel.schedule(first_proxy + proxy as Owner, state.dies_at);
        }
        let wayfinder = wheel.add_owners(Class::Network, interior.wayfinder.iter().map(|_| 0));
        if let Some(state) = &interior.wayfinder {
            wheel.schedule(wayfinder, state.next_change());
        }
        let clock = wheel.add_owners(Class::Measurement, [0]);
        wheel.schedule(clock, Instant::ZERO);
        let of_media = interior.media.shared.iter().map(|shared| label(&shared.group, shared.direction));
        let first_medium = wheel.add_owners(Class::Arrival, of_media);
        let first_junction = wheel.add_owners(Class::Network, junctions.iter().map(|_| 0));
        let first_island = wheel.add_owners(Class::Network, (0..islands.len()).map(|_| 0));
        let first_link = wheel.add_owners(Class::Arrival, salts);
        let first_end = wheel.add_owners(Class::Timer, []);
        // What grows bit by bit would leave holes in memory behind it.
        let connections = flows.iter().filter(|flow| flow.transport == Transport::Tcp).count();
        let ends = Vec::with_capacity(2 * (connections + interior.legs.len()));
        if islands.is_empty() {
            wheel.reserve(ends.capacity());
            for (flow, state) in flows.iter().enumerate() {
                wheel.schedule(flow as Owner, state.start);
            }
        }
        let mut simulation = Self {
            links,
            routes,
            flows,
            ends,
            vacant: Vec::new(),
            interior,
            junctions,
            islands,
            packets: Vec::new(),
            arena: Arena::default(),
            letter: Parcel::default(),
            wheel,
            first_station,
            first_proxy,
            wayfinder,
            clock,
            first_medium,
            first_junction,
            first_island,
            first_link,
            first_end,
            until,
            now: Instant::ZERO,
            events: 0,
            turns: 0,
            witness,
        };
        if !simulation.islands.is_empty() {
            simulation.start_islands();
        }
        simulation
    }

    /// Lets everything happen that happens until the end.
    pub fn run(&mut self, options: &RunOptions<'_>) -> Ended {
        let ended = self.run_events(options);
        self.empty_junctions();
        for link in 0..self.links.len() {
            // Queues decide when they are asked.
            self.links[link].backlog(self.now);
            self.bury_dropped(link as LinkId);
        }
        self.settle_media(self.now);
        debug_assert_eq!(
            self.arena.used(),
            self.links.iter().map(Link::packets_inside).sum::<usize>()
                + self.junctions.iter().map(Junction::packets_inside).sum::<usize>()
                + self.interior.media.packets_inside(),
            "every parcel is on a link"
        );
        ended
    }

    fn run_events(&mut self, options: &RunOptions<'_>) -> Ended {
        let budget = options.max_events.unwrap_or(u64::MAX);
        loop {
            let pause_at = (self.turns + EVENTS_PER_LOOK).min(budget);
            while self.turns < pause_at {
                let Some((now, owner)) = self.wheel.pop() else {
                    self.now = self.until;
                    return Ended::InTime;
                };
                self.now = now;
                self.turns += 1;
                self.fetch_ahead();
                self.happen(owner);
            }
            if options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Ended::Stopped;
            }
            if self.turns >= budget {
                return Ended::OutOfEvents;
            }
            if let Some(progress) = options.progress {
                progress(self.now.as_secs_f64());
            }
        }
    }

    /// Asks for the memory that an event some way ahead begins with, and for what a nearer one will lead to. The distances cover the
    /// latency of memory at the time that an event takes; measured.
    #[inline]
    fn fetch_ahead(&self) {
        if !self.wheel.is_crowded() {
            return;
        }
        if let Some(owner) = self.wheel.upcoming(6) {
            if owner >= self.first_end {
                prefetch(&self.ends[(owner - self.first_end) as usize]);
            } else if owner >= self.first_link {
                prefetch(&self.links[(owner - self.first_link) as usize]);
            }
        }
        let first_of = |ahead| {
            let owner = self.wheel.upcoming(ahead)?;
            let is_link = (self.first_link..self.first_end).contains(&owner);
            if is_link { self.links[(owner - self.first_link) as usize].in_flight(0) } else { None }
        };
        if let Some(ticket) = first_of(4) {
            self.arena.prefetch(ticket.slot());
        }
        if let Some(&ticket) = first_of(2) {
            self.prefetch_next(ticket);
        }
    }

    /// True if the caches do not hold all of the world, so that it pays to fetch ahead.
    #[inline(always)]
    pub fn is_large(&self) -> bool {
        self.ends.len() > FEW_ENDS
    }

    /// Asks for the memory of what a packet comes to at the end of its link; its contents are at hand.
    #[inline]
    pub fn prefetch_next(&self, ticket: Ticket) {
        match self.routes[ticket.position() + 1] {
            ARRIVED if ticket.has(Marks::PLAIN) => {}
            ARRIVED => self.prefetch_end(ticket),
            FIRST_SPECIAL.. => {}
            next => prefetch(&self.links[next as usize]),
        }
    }

    /// Asks for the memory of the connection end that a packet goes to, and of what else the packet carries.
    #[inline]
    pub fn prefetch_end(&self, ticket: Ticket) {
        if let Some(end) = self.ends.get(self.arena.address(ticket.slot()).0 as usize) {
            prefetch(end);
        }
        self.arena.prefetch_enclosed(ticket.slot());
    }

    /// Packets on links.
    pub fn packets_inside(&self) -> usize {
        self.arena.used() - self.interior.media.packets_inside()
    }

    fn happen(&mut self, owner: Owner) {
        if owner >= self.first_end {
            self.look_at_deadline(owner - self.first_end);
        } else if owner >= self.first_link {
            self.deliver(owner - self.first_link);
        } else if owner >= self.first_island {
            self.happen_on_island(owner - self.first_island);
        } else if owner >= self.first_junction {
            if self.islands.is_empty() {
                self.happen_at_junction(owner - self.first_junction);
            } else {
                self.happen_between_islands();
            }
        } else {
            self.events += 1;
            self.happen_elsewhere(owner);
        }
    }

    /// An end may have waited long enough.
    pub fn look_at_deadline(&mut self, id: EndId) {
        self.events += 1;
        let connection = &mut self.ends[id as usize].connection;
        // The deadline may have moved since the event was scheduled.
        if connection.next_timeout() <= self.now {
            connection.handle_timeout(self.now);
            self.settle(id);
        } else {
            let at = connection.next_timeout();
            self.wake_end_at(id, at);
        }
    }

    /// Sees to it that an end is woken at a time or earlier.
    #[inline(always)]
    fn wake_end_at(&mut self, id: EndId, at: Instant) {
        if self.islands.is_empty() {
            self.wheel.schedule(self.first_end + id, at);
        } else {
            self.islands.note_alarm(at);
            self.ends[id as usize].alarm.set(at, self.until);
        }
    }

    /// Sees to it that a flow is woken at a time or earlier.
    pub fn wake_flow_at(&mut self, id: FlowId, at: Instant) {
        if self.islands.is_empty() {
            self.wheel.schedule(id, at);
        } else {
            self.islands.set_alarm(id, at, self.until);
        }
    }

    /// Something at an application or between the links: a middlebox, a proxy, a shared channel, the routes, or a look at them all.
    #[inline(never)]
    fn happen_elsewhere(&mut self, owner: Owner) {
        if owner < self.first_station {
            self.wake(owner);
        } else if owner < self.first_proxy {
            self.wake_station(owner - self.first_station);
        } else if owner < self.wayfinder {
            self.kill_proxy(owner - self.first_proxy);
        } else if owner >= self.first_medium {
            self.deliver_medium(owner - self.first_medium);
        } else if owner == self.clock {
            self.look_at_pace(owner);
        } else {
            self.change_routes(self.now);
        }
    }

    /// Asks for the memory of packets that a long link will deliver: first for their contents, then for what these name.
    #[inline]
    fn fetch_along(&self, link: LinkId) {
        let link = &self.links[link as usize];
        if let Some(&ticket) = link.in_flight(NEAR) {
            self.prefetch_next(ticket);
        }
        if let Some(ticket) = link.in_flight(FAR) {
            self.arena.prefetch(ticket.slot());
        }
    }

    /// Takes from a link what has reached its far end.
    pub fn deliver(&mut self, link: LinkId) {
        self.fetch_along(link);
        loop {
            let state = &mut self.links[link as usize];
            let Some(arrival) = state.deliver(self.now) else { break };
            let is_last = state.is_idle_until_after(self.now);
            self.events += 1;
            let mut ticket = arrival.packet;
            if arrival.copy_follows {
                let copy = self.arena.duplicate(ticket.slot());
                let crossing = Crossing::Copied { original: ticket.slot(), copy };
                self.witness.link(self.now, link, crossing);
                if ticket.has(Marks::AGENT) {
                    self.copy_packet(ticket.slot(), copy);
                }
                ticket.set_slot(copy);
                ticket.mark(Marks::COPY);
            }
            if W::WATCHES {
                let crossing =
                    Crossing::Delivered { ticket: &ticket, parcel: &self.arena.get(ticket.slot()) };
                self.witness.link(self.now, link, crossing);
            }
            ticket.step_on();
            let next = self.routes[ticket.position()];
            if next == ARRIVED {
                self.arrive(ticket);
            } else if next < FIRST_SPECIAL {
                self.enqueue(next, ticket);
            } else {
                self.pass_node(link, ticket);
            }
            if is_last {
                break;
            }
        }
        self.bury_dropped(link);
        self.wheel.schedule(self.first_link + link, self.links[link as usize].next_event());
    }

    /// Offers a packet to a link.
    #[inline(always)]
    pub fn enqueue(&mut self, id: LinkId, ticket: Ticket) {
        if !W::WATCHES {
            return self.run_ahead((self.now, id), ticket, None);
        }
        let link = &mut self.links[id as usize];
        link.enqueue(self.now, ticket);
        let (ticket, parcel, backlog) = (&ticket, &self.arena.get(ticket.slot()), link.backlog(self.now));
        let crossing = Crossing::Offered { ticket, parcel, backlog };
        self.witness.link(self.now, id, crossing);
        self.wheel.schedule(self.first_link + id, link.next_event());
        self.bury_dropped(id);
    }

    /// Releases what a link dropped.
    #[inline(always)]
    pub fn bury_dropped(&mut self, link: LinkId) {
        if self.links[link as usize].has_dropped() {
            self.bury(link);
        }
    }

    #[inline(never)]
    fn bury(&mut self, link: LinkId) {
        while let Some(dropped) = self.links[link as usize].poll_dropped() {
            let slot = dropped.packet.slot();
            if W::WATCHES {
                let crossing = Crossing::Lost { dropped: &dropped, parcel: &self.arena.get(slot) };
                self.witness.link(self.now, link, crossing);
            }
            self.note_lost(&dropped.packet);
            if dropped.cause == DropCause::Error && !self.interior.stations.is_empty() {
                self.show_spoilt(link, &dropped.packet);
            }
            self.arena.release(slot);
        }
    }

    /// A packet of a flow is lost.
    fn note_lost(&mut self, ticket: &Ticket) {
        let (to, incarnation) = self.arena.address(ticket.slot());
        let flow = if ticket.has(Marks::PLAIN) {
            to
        } else {
            let end = &self.ends[to as usize];
            if end.incarnation != incarnation {
                return;
            }
            end.flow
        };
        let is_data = ticket.has(Marks::DATA);
        self.flows[flow as usize].counts.lost_packets += u64::from(is_data);
    }

    /// Hands a packet over at the end of its route.
    #[inline]
    pub fn arrive(&mut self, ticket: Ticket) {
        let is_large = self.is_large();
        if ticket.has(Marks::AGENT) {
            return self.arrive_at_agent(ticket);
        }
        let parcel = &mut self.letter;
        self.arena.read(ticket.slot(), parcel);
        self.arena.release(ticket.slot());
        let to = parcel.to;
        if ticket.has(Marks::PLAIN) {
            let flow = &mut self.flows[to as usize];
            if !ticket.has(Marks::COPY) {
                flow.counts.plain_packets += 1;
                flow.counts.plain_bytes += u64::from(ticket.size() - flow.header_bytes);
                if let Application::Feed(feed) = &mut flow.application {
                    feed.handle_packet(self.now, &parcel.segment);
                }
            }
            return;
        }
        if ticket.has(Marks::CONGESTED) {
            parcel.segment.ecn = EcnField::Congested;
        }
        let end = &mut self.ends[to as usize];
        if end.incarnation != parcel.incarnation {
            return;
        }
        if matches!(end.relay, Relay::Waits | Relay::Holds(_)) {
            let segment = self.letter.segment;
            if self.hold_syn(to, &segment) {
                return;
            }
        }
        let (parcel, end) = (&mut self.letter, &mut self.ends[to as usize]);
        self.witness.end(self.now, to, Deed::Arrived { slot: ticket.slot(), segment: &parcel.segment });
        // The answer leaves over this link.
        if is_large
            && self.islands.is_empty()
            && let Some(link) = self.links.get(self.routes[end.route as usize] as usize)
        {
            prefetch(link);
        }
        if !W::WATCHES && end.reads_at_once() {
            match end.connection.exchange(self.now, &mut parcel.segment) {
                Exchange::Unclear => {}
                Exchange::Taken => return self.settle(to),
                Exchange::Answered { transmit, earlier } => return self.answer(to, transmit, earlier),
            }
        }
        end.connection.handle_segment(self.now, &parcel.segment);
        let waits = end.relay == Relay::Waits;
        if end.interest == Interest::Arrivals {
            self.note_segment(to);
        }
        self.settle(to);
        if waits {
            self.meet_syn(to);
        }
    }

    /// A connection end has handled a segment and answered with the letter, or with nothing.
    #[inline]
    fn answer(&mut self, id: EndId, transmit: Transmit, earlier: bool) {
        if transmit != Transmit::Nothing {
            self.send_letter(id);
        }
        if transmit == Transmit::More {
            self.transmit(id);
        }
        if earlier || transmit == Transmit::More {
            let deadline = self.ends[id as usize].connection.next_timeout();
            self.wake_end_at(id, deadline);
        }
    }

    /// After anything changed at a connection end: the application reacts, segments leave, the timer is set.
    pub fn settle(&mut self, id: EndId) {
        let mut over = false;
        let mut events = self.ends[id as usize].connection.take_events();
        loop {
            if !events.is_empty() {
                if events.contains(Events::READABLE) {
                    self.note_missing(id);
                }
                over |= self.react(id, events);
            }
            self.transmit(id);
            if let Relay::With(other) = self.ends[id as usize].relay {
                self.relay_more(id, other);
                self.transmit(id);
            }
            events = self.ends[id as usize].connection.take_events();
            if events.is_empty() {
                break;
            }
        }
        let deadline = self.ends[id as usize].connection.next_timeout();
        self.wake_end_at(id, deadline);
        if W::WATCHES {
            let connection = &mut self.ends[id as usize].connection;
            self.witness.end(self.now, id, Deed::Settled(connection));
        }
        if over {
            self.retire(id & !1);
        }
    }

    /// Sends what a connection wants to send.
    #[inline]
    fn transmit(&mut self, id: EndId) {
        loop {
            let Self { ends, letter, .. } = self;
            let end = &mut ends[id as usize];
            let transmit = end.connection.transmit_into(self.now, &mut letter.segment);
            if transmit == Transmit::Nothing {
                return;
            }
            self.send_letter(id);
            if transmit == Transmit::Last {
                return;
            }
        }
    }

    /// The letter holds a segment that leaves a connection end.
    #[inline]
    fn send_letter(&mut self, id: EndId) {
        let Self { ends, letter, .. } = self;
        let end = &ends[id as usize];
        (letter.to, letter.incarnation) = (id ^ 1, end.incarnation);
        let slot = self.arena.put(letter);
        let segment = &letter.segment;
        let size = end.header_bytes + segment.len;
        let ticket = Ticket::new((slot, end.route), size, end.label, Marks::of(segment));
        self.witness.end(self.now, id, Deed::Sent { slot, segment });
        self.depart(ticket, id);
    }

    /// A packet leaves its host by the first step of its route.
    #[inline(always)]
    fn depart(&mut self, ticket: Ticket, id: EndId) {
        let step = self.routes[ticket.position()];
        if step < FIRST_SPECIAL {
            self.enqueue(step, ticket);
        } else {
            let node = self.nodes_of(self.ends[id as usize].line)[(id % 2) as usize];
            self.go(ticket, Here { node, served: true });
        }
    }

    /// A best-effort receiver says what it goes on without.
    #[inline]
    fn note_missing(&mut self, id: EndId) {
        while let Some(missing) = self.ends[id as usize].connection.next_missing() {
            self.witness.end(self.now, id, Deed::Missing(missing));
        }
    }

    /// The application's answer to what happened at its connection end; true if the connection is over at this end.
    fn react(&mut self, id: EndId, events: Events) -> bool {
        if self.ends[id as usize].relay != Relay::None {
            return self.react_relay(id, events);
        }
        let interest = self.ends[id as usize].interest;
        if interest == Interest::Everything {
            return self.react_in_dialogue(id, events);
        }
        if events.contains(Events::READABLE) {
            let bytes = self.ends[id as usize].connection.read(self.now, u64::MAX);
            self.witness.end(self.now, id, Deed::Read(bytes));
            if interest == Interest::Arrivals {
                self.note_read(id, bytes);
            }
        }
        let flow = self.ends[id as usize].flow;
        let is_sender = id.is_multiple_of(2);
        if is_sender && events.intersects(Events::ESTABLISHED | Events::WRITABLE) {
            self.write(flow);
        }
        if is_sender && events.contains(Events::ALL_ACKED) {
            self.note_completion(flow, id);
        }
        if !is_sender && events.contains(Events::PEER_CLOSED) {
            self.ends[id as usize].connection.close(self.now);
        }
        if events.intersects(Events::RESET | Events::TIMED_OUT) {
            let reason = if events.contains(Events::RESET) { "reset" } else { "timed out" };
            self.note_abort(flow, id, reason);
        }
        events.intersects(Events::CLOSED | Events::RESET | Events::TIMED_OUT)
    }

    /// An application's own time has come: it starts, or sends its next page or packet.
    pub fn wake(&mut self, id: FlowId) {
        let flow = &mut self.flows[id as usize];
        if flow.party.is_some() {
            return self.wake_party(id);
        }
        match &mut flow.application {
            Application::Cbr(cbr) => {
                let size = cbr.packet_bytes;
                let next = cbr.send(flow.start);
                self.wake_flow_at(id, next);
                self.send_plain(id, size, 0);
            }
            Application::Feed(_) => self.feed(id),
            Application::Dialogue(_) => self.call_client(id),
            Application::Bulk | Application::File { .. } => self.begin(id),
            Application::Pages(pages) => match flow.sender {
                Some(sender) if !pages.fresh_connection => {
                    flow.wanted += pages.bytes;
                    flow.counts.begun = self.now;
                    self.write(id);
                    self.settle(sender);
                }
                _ => self.begin(id),
            },
        }
    }

    /// Opens the connection of a file, a page or all of a flow, and writes.
    pub fn begin(&mut self, id: FlowId) {
        let flow = &mut self.flows[id as usize];
        flow.counts.begun = self.now;
        (flow.written, flow.noted) = (0, 0);
        flow.wanted = match &flow.application {
            Application::File { bytes } => *bytes,
            Application::Pages(pages) => pages.bytes,
            Application::Feed(_) => 0,
            _ => u64::MAX / 8,
        };
        let sender = self.open(id, id);
        self.announce(sender, None);
        self.flows[id as usize].sender = Some(sender);
        self.write(id);
        self.settle(sender);
    }

    /// A new pair of connection ends for a leg of a flow.
    pub fn open(&mut self, id: FlowId, line: u32) -> EndId {
        let leg = self.interior.legs.get((line as usize).wrapping_sub(self.flows.len()));
        let flow = &mut self.flows[id as usize];
        let (routes, labels, configs) = match leg {
            None => (flow.routes, flow.labels, &flow.configs),
            Some(leg) => (leg.routes, leg.labels, &leg.configs),
        };
        let [sender, receiver] = configs.each_ref().map(Arc::clone);
        let (a, b) = (flow.seeds.bits(), flow.seeds.bits());
        let interest = flow.application.interest();
        let pair = if interest == Interest::Everything {
            // The client connects.
            [Connection::listen(sender, a), Connection::connect(receiver, b, self.now)]
        } else {
            [Connection::connect(sender, a, self.now), Connection::listen(receiver, b)]
        };
        let new = |(side, connection)| End {
            connection,
            alarm: Alarm::OFF,
            route: routes[side],
            header_bytes: flow.header_bytes,
            label: labels[side],
            flow: id,
            line,
            relay: Relay::None,
            incarnation: 0,
            interest,
        };
        let pair = pair.into_iter().enumerate().map(new);
        let first = match self.vacant.pop() {
            Some(first) => {
                for (id, new) in (first..).zip(pair) {
                    let tie = Tie { class: Class::Timer, salt: new.label };
                    self.wheel.set_tie(self.first_end + id, tie);
                    let end = &mut self.ends[id as usize];
                    *end = End { incarnation: end.incarnation, ..new };
                }
                first
            }
            None => {
                self.ends.extend(pair);
                if self.islands.is_empty() {
                    self.wheel.add_owners(Class::Timer, labels);
                } else {
                    let links = routes.map(|route| self.routes[route as usize]);
                    self.islands.note_opened(id, self.ends.len() as EndId - 2, links);
                }
                self.ends.len() as EndId - 2
            }
        };
        if !self.flows[id as usize].onward.is_empty() {
            self.prepare_relay(first);
        } else if self.flows[id as usize].spoofed && interest != Interest::Everything {
            self.ends[first as usize + 1].relay = Relay::Last;
        }
        first
    }

    /// Tells the witness of a new pair of ends, whose data come from the end `inward`, if there is one.
    pub fn announce(&mut self, first: EndId, inward: Option<EndId>) {
        let line = self.ends[first as usize].line;
        for end in [first, first + 1] {
            let connection = &mut self.ends[end as usize].connection;
            self.witness.end(self.now, end, Deed::Opened { line, inward, connection });
        }
    }

    /// Gives the present connection of a flow as much as it takes of what it is to be given.
    pub fn write(&mut self, id: FlowId) {
        let flow = &mut self.flows[id as usize];
        let Some(sender) = flow.sender else { return };
        let rest = flow.wanted - flow.written;
        if rest == 0 {
            return;
        }
        let connection = &mut self.ends[sender as usize].connection;
        if !W::WATCHES && matches!(flow.application, Application::Bulk) {
            connection.write_endlessly(self.now);
            flow.written = flow.wanted;
            return;
        }
        let taken = connection.write(self.now, rest);
        flow.written += taken;
        self.witness.end(self.now, sender, Deed::Wrote(taken));
        if flow.application.closes_after() == Some(flow.written) {
            connection.close(self.now);
        }
    }

    /// Everything written was acknowledged.
    fn note_completion(&mut self, id: FlowId, sender: EndId) {
        let flow = &mut self.flows[id as usize];
        let acknowledged = self.ends[sender as usize].connection.acknowledged_bytes();
        let is_part = matches!(flow.application, Application::Feed(_));
        // Behind a proxy an acknowledgement does not mean that anything arrived.
        let is_true = flow.onward.is_empty() && !flow.spoofed;
        let is_all = acknowledged >= flow.wanted && is_true && !is_part;
        if flow.sender == Some(sender) && is_all {
            self.complete(id);
        }
    }

    /// All that a flow's present connection was given is at its receiver.
    pub fn complete(&mut self, id: FlowId) {
        let flow = &mut self.flows[id as usize];
        if flow.noted == flow.wanted {
            return;
        }
        flow.noted = flow.wanted;
        flow.counts.completed += 1;
        flow.counts.completion_sum += self.now.since(flow.counts.begun);
        if flow.application.closes_after().is_some() {
            flow.sender = None;
        }
        if let Application::Pages(pages) = &mut flow.application {
            let next = self.now + pages.rest();
            self.wake_flow_at(id, next);
        }
    }

    /// The connection ended before its time.
    pub fn note_abort(&mut self, id: FlowId, end: EndId, reason: &'static str) {
        let flow = &mut self.flows[id as usize];
        let is_present = flow.sender == Some(end & !1);
        if !is_present {
            return;
        }
        flow.counts.gone().aborted = Some(reason);
        flow.sender = None;
        if let Application::Pages(pages) = &mut flow.application {
            // The reader tries the next page.
            let next = self.now + pages.rest();
            self.wake_flow_at(id, next);
        }
    }

    /// Clears away a connection that is over at both ends, so that a flow of many pages needs few places.
    fn retire(&mut self, sender: EndId) {
        if !self.flows[self.ends[sender as usize].flow as usize].onward.is_empty() {
            return self.retire_chain(sender);
        }
        let pair = [sender, sender + 1];
        let over = |end: &EndId| {
            matches!(self.ends[*end as usize].connection.state(), State::Closed | State::TimeWait)
        };
        let flow = &mut self.flows[self.ends[sender as usize].flow as usize];
        if !flow.application.has_many_connections() || !pair.iter().all(over) {
            return;
        }
        for (side, end) in pair.into_iter().enumerate() {
            self.wheel.cancel(self.first_end + end);
            let end = &mut self.ends[end as usize];
            flow.counts.retire(side, &end.connection);
            end.incarnation += 1;
        }
        self.vacant.push(sender);
    }

    /// Sends a packet without TCP, of the message with this number.
    pub fn send_plain(&mut self, id: FlowId, size: u32, message: u64) {
        let flow = &self.flows[id as usize];
        let segment = Segment { seq: message, len: size - flow.header_bytes, ..Segment::default() };
        let slot = self.arena.put(&Parcel { to: id, incarnation: 0, segment });
        let marks = Marks::PLAIN | Marks::of(&segment);
        let ticket = Ticket::new((slot, flow.routes[0]), size, flow.labels[0], marks);
        let node = flow.nodes[0];
        match self.routes[ticket.position()] {
            FIRST_SPECIAL.. => self.go(ticket, Here { node, served: true }),
            link => self.enqueue(link, ticket),
        }
    }
}
