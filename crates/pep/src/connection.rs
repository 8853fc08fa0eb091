//! A proxied connection: its two halves, the bytes between them, its counters and its report.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bentpipe_scenario::deployment::Side;
use rustix::event::epoll::EventFlags;
use socket2::SockRef;

use crate::class::ConnectionClass;
use crate::flow::{Flow, FlowEnd, Pipes, Ready, Turn};
use crate::half::{Carriage, Ending, Half, OnEnd, Telemetry};
use crate::last_bytes::{Delivery, LOOK_INTERVAL, LastBytes};
use crate::metrics::ClassMetrics;
use crate::packet::Tuple;
use crate::places::Place;
use crate::report::{HalfReport, Report};
use crate::shared::Shared;
use crate::sockets;
use crate::telemetry::unacknowledged;

/// Index of the half of the client, which opened the connection.
pub(crate) const FRONT: usize = 0;
/// Index of the half of the server.
pub(crate) const BACK: usize = 1;

/// A connection. The kernel's halves move their bytes in [`turns`](Self::turn); if one half is of the engine, the engine moves them.
pub(crate) struct Connection {
    owner: Owner,
    id: u64,
    began: Instant,
    class: ConnectionClass,
    metrics: Arc<ClassMetrics>,
    /// State of both halves in the last sample.
    sampled: [Telemetry; 2],
    /// Bytes sent on both halves that the metrics have counted.
    counted: [u64; 2],
    /// Maximum of unsent bytes in the kernel for each half; 0 before it was set.
    most_unsent: [u32; 2],
    /// Bytes in the buffers of both halves and between them in the last sample.
    memory: u64,
    /// Something has happened since the last sample.
    was_active: bool,
    /// Nothing had happened before the last sample, and nothing was queued, so that another sample would be the same.
    at_rest: bool,
    /// The back half is `None` until it has been opened.
    halves: [Option<Half>; 2],
    /// The back half is a socket whose connection is not established yet.
    connecting: bool,
    ready: [Ready; 2],
    /// From the front half to the back half, and in the opposite direction.
    flows: [Flow; 2],
    /// Progress after the reset of one half: the other half is reset after the bytes that arrived before.
    last_bytes: Option<LastBytes>,
}

/// Whose connection it is, and its place among all.
pub(crate) struct Owner {
    pub tuple: Tuple,
    /// Taken while the connection exists.
    pub place: Place,
}

/// Next step of a connection after a turn.
pub(crate) enum AfterTurn {
    /// Nothing before something happens to one of its halves.
    Wait,
    /// More bytes can be moved.
    GoOn,
    /// Another turn is due at this time, or when something happens to one of its halves.
    Until(Instant),
    /// Nothing more will be moved.
    End(Ending),
}

impl Connection {
    /// A connection of a client whose half is established.
    pub fn new(shared: &Shared, owner: Owner, class: ConnectionClass, front: Half) -> Self {
        let metrics = shared.metrics.class(&class.name);
        metrics.opened.inc();
        metrics.active.inc();
        let ready = Ready { readable: true, writable: true, broken: false };
        let client = owner.tuple.client.ip();
        let gate = |which: usize, side: &Side| {
            let limit = side.rate_limit?;
            shared.buckets.gate(&class.name, class.side(which), limit, client)
        };
        let gates = [gate(BACK, class.back()), gate(FRONT, class.front())];
        let flows = gates.map(Flow::new);
        Self {
            owner,
            id: shared.next_id.fetch_add(1, Ordering::Relaxed),
            began: Instant::now(),
            class,
            metrics,
            sampled: Default::default(),
            counted: [0; 2],
            most_unsent: [0; 2],
            memory: 0,
            was_active: true,
            at_rest: false,
            halves: [Some(front), None],
            connecting: false,
            ready: [ready; 2],
            flows,
            last_bytes: None,
        }
    }

    /// The back half is established.
    pub fn join(&mut self, back: Half) {
        self.halves[BACK] = Some(back);
        self.owner.place.open();
    }

    /// The kernel connects the back half.
    pub fn connect(&mut self, socket: OwnedFd) {
        self.connecting = true;
        self.halves[BACK] = Some(Half::Kernel(Arc::new(socket)));
    }

    pub fn is_connecting(&self) -> bool {
        self.connecting
    }

    /// The kernel has connected the back half, or has failed to; then this is false.
    pub fn connected(&mut self) -> bool {
        self.connecting = false;
        self.owner.place.open();
        self.socket(BACK).is_some_and(|socket| !has_failed(socket))
    }

    /// The socket of a half of the kernel.
    pub fn socket(&self, which: usize) -> Option<BorrowedFd<'_>> {
        match &self.halves[which] {
            Some(Half::Kernel(socket)) => Some(socket.as_fd()),
            _ => None,
        }
    }

    /// The socket of a connection whose other half is of the engine.
    pub fn socket_beside_engine(&self) -> Option<BorrowedFd<'_>> {
        let has_engine = self.halves.iter().any(|half| matches!(half, Some(Half::Engine(_))));
        [FRONT, BACK].into_iter().find_map(|which| self.socket(which)).filter(|_| has_engine)
    }

    /// Lets the engine move the bytes, if it has a half of the connection. False if the kernel has both.
    pub fn hand_over(&mut self, on_end: impl FnOnce() -> OnEnd) -> bool {
        let (engine, control, socket) = match &self.halves {
            [Some(Half::Engine(control)), Some(Half::Kernel(socket))] => (FRONT, control, socket),
            [Some(Half::Kernel(socket)), Some(Half::Engine(control))] => (BACK, control, socket),
            _ => return false,
        };
        control.carry(Carriage {
            socket: Arc::clone(socket),
            on_end: on_end(),
            reset_after: self.class.reset_after(),
            gates: [self.flows[1 - engine].take_gate(), self.flows[engine].take_gate()],
        });
        true
    }

    /// Notes an event of the socket of a half.
    pub fn note_event(&mut self, which: usize, flags: EventFlags) {
        let failed = flags.contains(EventFlags::ERR);
        let broken = failed && self.socket(which).is_some_and(has_failed);
        let ready = &mut self.ready[which];
        ready.readable |= failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP);
        ready.writable |= failed || flags.contains(EventFlags::OUT);
        ready.broken |= broken;
    }

    /// Moves bytes in both directions.
    pub fn turn(&mut self, pipes: &mut Pipes) -> AfterTurn {
        self.was_active = true;
        let [Some(Half::Kernel(front)), Some(Half::Kernel(back))] = &self.halves else {
            // The engine moves the bytes until it has ended.
            return if self.last_bytes.is_some() { self.deliver_last_bytes() } else { AfterTurn::Wait };
        };
        if self.connecting {
            return AfterTurn::Wait;
        }
        let [front_ready, back_ready] = &mut self.ready;
        let [onward, backward] = &mut self.flows;
        let mut front = FlowEnd { ready: front_ready, socket: front.as_fd() };
        let mut back = FlowEnd { ready: back_ready, socket: back.as_fd() };
        let turns = [onward.turn(&mut front, &mut back, pipes), backward.turn(&mut back, &mut front, pipes)];
        self.pass_ends();
        if self.ready.iter().any(|ready| ready.broken) {
            self.wait_for_last_bytes(turns)
        } else if self.flows.iter().all(Flow::is_over) {
            AfterTurn::End(Ending::Closed)
        } else {
            after(turns)
        }
    }

    /// Passes on the ends of streams.
    fn pass_ends(&mut self) {
        for source in [FRONT, BACK] {
            let flow = &mut self.flows[source];
            if !self.ready[source].broken && flow.wants_end() {
                if let Some(Half::Kernel(socket)) = &self.halves[1 - source] {
                    sockets::end(socket);
                }
                flow.pass_end();
            }
        }
    }

    /// After the reset of one half, resets the other one when it has delivered the bytes that arrived before.
    fn wait_for_last_bytes(&mut self, turns: [Turn; 2]) -> AfterTurn {
        let left_alone = [FRONT, BACK].into_iter().find(|sink| !self.ready[*sink].broken);
        let delivery = left_alone.map_or_else(Delivery::default, |sink| {
            let (ready, flow) = (self.ready[1 - sink], &self.flows[1 - sink]);
            let unread = u64::from(ready.readable && flow.is_open());
            self.delivery(sink, flow.held() as u64 + unread)
        });
        match (self.reset_or_look_again(delivery), after(turns)) {
            (AfterTurn::Until(look), AfterTurn::Until(at)) => AfterTurn::Until(look.min(at)),
            (AfterTurn::Until(_), AfterTurn::GoOn) => AfterTurn::GoOn,
            (after, _) => after,
        }
    }

    /// Delivery of a half of the kernel, of which `before` bytes have not reached it yet. Nothing is left if its connection has ended.
    fn delivery(&self, sink: usize, before: u64) -> Delivery {
        let queued = self.socket(sink).and_then(|socket| unacknowledged(&socket));
        let acknowledged = self.moved(1 - sink).saturating_sub(queued.unwrap_or(0));
        Delivery { acknowledged, left: queued.map_or(0, |queued| queued + before) }
    }

    fn reset_or_look_again(&mut self, delivery: Delivery) -> AfterTurn {
        let now = Instant::now();
        let patience = self.class.reset_after();
        let last_bytes = self.last_bytes.get_or_insert_with(|| LastBytes::new(now, patience));
        match last_bytes.are_over(delivery, now) {
            true => AfterTurn::End(Ending::Reset),
            false => AfterTurn::Until(now + LOOK_INTERVAL),
        }
    }

    /// The engine has reset its half, and has moved the last byte into the socket of the other one.
    pub fn deliver_last_bytes(&mut self) -> AfterTurn {
        let sink = [FRONT, BACK].into_iter().find(|which| self.socket(*which).is_some());
        let delivery = sink.map_or_else(Delivery::default, |sink| self.delivery(sink, 0));
        self.reset_or_look_again(delivery)
    }

    /// Bytes that have been moved from the front half to the back half, or the other way.
    fn moved(&self, flow: usize) -> u64 {
        let carried = |which: usize| match &self.halves[which] {
            Some(Half::Engine(control)) => Some(control.carried()),
            _ => None,
        };
        // If the engine moves the bytes, it has counted them.
        let (source, sink) = (flow, 1 - flow);
        let into = carried(sink).map(|carried| carried.sent);
        into.or_else(|| carried(source).map(|carried| carried.received)).unwrap_or(self.flows[flow].moved)
    }

    /// Samples the connection unless nothing can have changed. The system calls for it cost more than all else of an idle connection. Returns
    /// the bytes in its buffers.
    pub fn sample_unless_at_rest(&mut self) -> u64 {
        let carries = [FRONT, BACK].iter().any(|which| self.moved(1 - which) != self.counted[*which]);
        let was_active = std::mem::take(&mut self.was_active) || carries;
        if was_active || !self.at_rest {
            self.sample();
            let held = self.flows.iter().map(|flow| flow.held() as u64).sum::<u64>();
            self.memory = held + self.halves.iter().flatten().map(Half::memory).sum::<u64>();
            self.at_rest = !was_active && self.sampled.iter().all(|half| half.queued_bytes == 0);
        }
        self.memory
    }

    /// Counts the events since the last sample.
    fn sample(&mut self) {
        for which in [FRONT, BACK] {
            if let Some(half) = &self.halves[which] {
                let now = half.telemetry();
                let sent = self.moved(1 - which);
                let again =
                    now.retransmitted_segments.saturating_sub(self.sampled[which].retransmitted_segments);
                self.metrics.progress(self.class.side(which), sent - self.counted[which], again);
                (self.sampled[which], self.counted[which]) = (now, sent);
                let split = &self.class.split;
                if split.buffer.is_none() {
                    sockets::keep_unsent_below(half, &now, split, &mut self.most_unsent[which]);
                }
            }
        }
    }

    pub fn report(&self, state: &str) -> Report {
        let half = |which: usize, config: &Side| {
            let name = ["satellite", "clients"][self.class.side(which)];
            let half = self.halves[which].as_ref();
            let cc = half.and_then(Half::congestion_control).unwrap_or_else(|| config.cc.clone());
            let telemetry = half.map(Half::telemetry).unwrap_or_default();
            let passed = [self.moved(1 - which), self.moved(which)];
            HalfReport::new(name, cc, passed, &telemetry)
        };
        let lasted = self.began.elapsed();
        let began =
            SystemTime::now().checked_sub(lasted).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Report {
            id: self.id,
            began_unix_s: began.map_or(0.0, |since| since.as_secs_f64()),
            lasted_s: lasted.as_secs_f64(),
            class: self.class.name.clone(),
            client: self.owner.tuple.client.to_string(),
            server: self.owner.tuple.server.to_string(),
            state: state.to_owned(),
            front: half(FRONT, self.class.front()),
            back: half(BACK, self.class.back()),
        }
    }

    /// Counts and reports a connection that has ended, and closes it: with a RST to both ends if it was reset.
    pub fn end(mut self, shared: &Shared, ending: Ending) {
        let (state, endings) = match ending {
            Ending::Closed => ("closed", &self.metrics.closed),
            Ending::Reset => ("reset", &self.metrics.reset),
        };
        endings.inc();
        self.sample();
        let lasted_s = self.began.elapsed().as_secs_f64();
        for which in [FRONT, BACK] {
            self.metrics.end(self.class.side(which), self.sampled[which].srtt, self.counted[which], lasted_s);
        }
        if let Some(lines) = &shared.lines
            && lines.try_send(self.report(state)).is_err()
        {
            shared.metrics.lines_lost.inc();
        }
        self.metrics.active.dec();
        if ending == Ending::Reset {
            self.halves.into_iter().flatten().for_each(Half::abort);
        }
        drop(self.owner.place);
    }
}

/// Returns the next step after turns of both flows.
fn after(turns: [Turn; 2]) -> AfterTurn {
    let later = turns.into_iter().filter_map(|turn| match turn {
        Turn::Until(at) => Some(at),
        Turn::Waits | Turn::GoesOn => None,
    });
    match later.min() {
        _ if turns.contains(&Turn::GoesOn) => AfterTurn::GoOn,
        Some(at) => AfterTurn::Until(at),
        None => AfterTurn::Wait,
    }
}

impl Half {
    /// Ends the connection with a RST.
    pub(crate) fn abort(self) {
        match self {
            Self::Engine(control) => control.abort(),
            Self::Kernel(socket) => sockets::reset(&socket),
        }
    }
}

/// True if the socket has an error, such as a RST.
fn has_failed(socket: BorrowedFd<'_>) -> bool {
    !matches!(SockRef::from(&socket).take_error(), Ok(None))
}
