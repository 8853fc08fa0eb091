//! A thread that accepts connections, opens their other halves and moves their bytes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bentpipe_scenario::deployment::{Class, Datapath, Deployment, Opener, Side};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use slab::Slab;
use socket2::{SockRef, Socket};

use crate::flow::{Flow, FlowEnd, Pipes, Ready, Turn};
use crate::half::{Answer, Ending, Half, HalfRequest, OnEnd, Opening, Refusal, Telemetry};
use crate::metrics::ClassMetrics;
use crate::packet::Tuple;
use crate::report::{HalfReport, Report};
use crate::shared::{Inbox, Shared};
use crate::sockets::{self, Accepted};

/// Connections accepted at a time before others have their turn (chosen).
const ACCEPTED_AT_A_TIME: usize = 64;
/// How often connections are sampled (chosen).
const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);
/// Connections sampled at a time before events have their turn (chosen: about half a millisecond if all are busy).
const SAMPLED_AT_A_TIME: usize = 128;
/// Events taken at a time.
const EVENTS: usize = 512;
const LISTENERS: u64 = 1 << 63;
const INBOX: u64 = u64::MAX;
/// Bits of a token that tell apart connections that used the same place in the slab one after the other.
const GENERATION: u32 = 0x7fff_ffff;

/// What others tell a relay.
pub(crate) enum Message {
    /// The engine has an answer for a connection.
    Answer { token: u64, answer: Result<Half, Refusal> },
    /// The engine has moved the last byte of a connection.
    Over { token: u64, ending: Ending },
    /// Somebody asks for a report of all connections.
    Report(Sender<Vec<Report>>),
    /// The engine has answered a client's SYN, and the client has acknowledged that; or it has failed.
    Front { tuple: Tuple, opener: Opener, dscp: u8, answer: Result<Half, Refusal> },
    /// The relay is to accept no more connections, and to end with the last one.
    Stop,
}

/// A client that opens a connection.
#[derive(Clone, Copy)]
struct Caller {
    tuple: Tuple,
    opener: Opener,
    /// Differentiated-services code point of its SYN.
    dscp: u8,
}

/// Index of the half of the client, which opened the connection.
const FRONT: usize = 0;
/// Index of the half of the server.
const BACK: usize = 1;

struct Connection {
    generation: u32,
    tuple: Tuple,
    id: u64,
    began: Instant,
    class: Arc<ClassMetrics>,
    /// The configuration of its class, and of its whole file.
    deployment: Arc<Deployment>,
    opener: Opener,
    class_number: usize,
    /// State of both halves in the last sample.
    sampled: [Telemetry; 2],
    /// Bytes sent on both halves that the metrics have counted.
    counted: [u64; 2],
    /// Most bytes that the kernel takes for each half and has not sent yet; 0 before it was told.
    most_unsent: [u32; 2],
    /// Bytes in the buffers of both halves and between them in the last sample.
    memory: u64,
    /// Something has happened since the last sample.
    was_active: bool,
    /// Nothing had happened before the last sample, and nothing was queued, so that another sample would be the same.
    at_rest: bool,
    /// The back half is `None` until it has been opened.
    halves: [Option<Half>; 2],
    /// The other half is a socket whose connection is not established yet.
    connecting: bool,
    ready: [Ready; 2],
    /// From the front half to the back half, and the other way.
    flows: [Flow; 2],
    again: bool,
}

/// A thread.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    inbox: Arc<Inbox<Message>>,
    epoll: OwnedFd,
    listeners: Vec<(Opener, Socket)>,
    connections: Slab<Connection>,
    generation: u32,
    pipes: Pipes,
    again: Vec<u64>,
    stopping: bool,
    number: usize,
    /// When the last round of samples began.
    sampled_at: Instant,
    /// During a round of samples: the place of the next connection in the slab, and the memory of those before it.
    sampling: Option<(usize, u64)>,
}

impl Relay {
    /// The relay of this number among all.
    pub fn new(
        shared: Arc<Shared>,
        number: usize,
        listeners: Vec<(Opener, Socket)>,
    ) -> io::Result<(Self, Arc<Inbox<Message>>)> {
        let inbox = Arc::new(Inbox::new()?);
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let pipes = shared.descriptors.most_pipes() / shared.memory.len();
        epoll::add(&epoll, &inbox, EventData::new_u64(INBOX), EventFlags::IN)?;
        for (number, (_, listener)) in listeners.iter().enumerate() {
            epoll::add(&epoll, listener, EventData::new_u64(LISTENERS | number as u64), EventFlags::IN)?;
        }
        let relay = Self {
            shared,
            inbox: Arc::clone(&inbox),
            epoll,
            listeners,
            connections: Slab::new(),
            generation: 0,
            pipes: Pipes::new(pipes),
            again: Vec::new(),
            stopping: false,
            number,
            sampled_at: Instant::now(),
            sampling: None,
        };
        Ok((relay, inbox))
    }

    /// Works until it is told to stop and the last connection has ended.
    pub fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        while !(self.stopping && self.connections.is_empty()) {
            events.clear();
            let patience =
                match (self.again.is_empty() && self.sampling.is_none(), self.has_something_to_sample()) {
                    (false, _) => Some(Timespec::default()),
                    (true, true) => Some(Timespec { tv_sec: SAMPLE_INTERVAL.as_secs() as i64, tv_nsec: 0 }),
                    (true, false) => None,
                };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), patience.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let flags = event.flags;
                match event.data.u64() {
                    INBOX => self.read_inbox(),
                    token if token & LISTENERS != 0 => self.accept((token & !LISTENERS) as usize),
                    token => self.event(token, flags),
                }
            }
            for token in std::mem::take(&mut self.again) {
                if let Some(key) = self.find(token) {
                    self.connections[key].again = false;
                    self.turn(key);
                }
            }
            if self.sampling.is_none() && self.sampled_at.elapsed() >= SAMPLE_INTERVAL {
                self.sampled_at = Instant::now();
                self.sampling = Some((0, 0));
                self.pipes.close_unneeded();
            }
            self.sample();
        }
        Ok(())
    }

    fn has_something_to_sample(&self) -> bool {
        !self.connections.is_empty() || self.pipes.keeps_some()
    }

    /// Samples the next connections of a round, and sums their memory. Connections at rest are skipped.
    fn sample(&mut self) {
        let Some((first, mut memory)) = self.sampling.take() else { return };
        let next = first + SAMPLED_AT_A_TIME;
        for key in first..next {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.sample_unless_at_rest();
                memory += connection.memory;
            }
        }
        if next < self.connections.capacity() {
            self.sampling = Some((next, memory));
        } else {
            self.shared.memory[self.number].store(memory, Ordering::Relaxed);
        }
    }

    fn read_inbox(&mut self) {
        for message in self.inbox.drain() {
            match message {
                Message::Answer { token, answer } => self.answered(token, answer),
                Message::Over { token, ending } => match (self.find(token), ending) {
                    (Some(key), Ending::Closed) => self.finish(key),
                    (Some(key), Ending::Reset) => self.abort(key),
                    (None, _) => {}
                },
                Message::Report(sender) => {
                    let reports = self.connections.iter().map(|(_, connection)| connection.report("open"));
                    // Whoever asked may not wait any more.
                    let _ = sender.send(reports.collect());
                }
                Message::Front { tuple, opener, dscp, answer } => {
                    self.take_front_answer(Caller { tuple, opener, dscp }, answer);
                }
                Message::Stop => {
                    self.stopping = true;
                    self.listeners.clear();
                }
            }
        }
    }

    fn accept(&mut self, number: usize) {
        for _ in 0..ACCEPTED_AT_A_TIME {
            let Some((opener, listener)) = self.listeners.get(number) else { return };
            let opener = *opener;
            match sockets::accept(listener) {
                Ok(accepted) => self.take_accepted(accepted, opener),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The client has closed the connection meanwhile.
                Err(_) => {}
            }
        }
    }

    /// Takes a connection that the kernel has accepted.
    fn take_accepted(&mut self, accepted: Accepted, opener: Opener) {
        let Accepted { socket, tuple, dscp } = accepted;
        let deployment = self.shared.deployment();
        let class = &deployment.classes[class_of(&deployment, opener, tuple)];
        let front = match opener {
            Opener::Clients => &class.split.clients,
            Opener::Satellite => &class.split.satellite,
        };
        // If this kernel lacks an option, the connection is proxied without it.
        let _ = sockets::prepare(&socket, front, class.split.buffer);
        self.begin(Caller { tuple, opener, dscp }, Half::Kernel(Arc::new(socket.into())));
    }

    /// Takes a connection that the engine has accepted, or drops the server's half if that has failed.
    fn take_front_answer(&mut self, caller: Caller, answer: Result<Half, Refusal>) {
        match answer {
            Ok(front) => return self.begin(caller, front),
            // The SYN was repeated, and an earlier copy of it opened the connection.
            Err(Refusal::Exists) => return,
            Err(_) => {}
        }
        let waiting = self.shared.ready().remove(&caller.tuple);
        if let Some(established) = waiting {
            established.half.abort();
            self.shared.active.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Begins a connection with the server's half that waits for this client, or opens one.
    fn begin(&mut self, caller: Caller, front: Half) {
        let Caller { tuple, opener, dscp } = caller;
        let waiting = self.shared.ready().remove(&tuple);
        let deployment = self.shared.deployment();
        let class_number = class_of(&deployment, opener, tuple);
        let class = &deployment.classes[class_number];
        let back = match opener {
            Opener::Clients => &class.split.satellite,
            Opener::Satellite => &class.split.clients,
        };
        if waiting.is_none() {
            self.shared.active.fetch_add(1, Ordering::Relaxed);
        }
        let place = (Arc::clone(&deployment), opener, class_number);
        let key = self.insert(tuple, front, place);
        match waiting {
            Some(established) => self.join(key, established.half),
            None => self.open(
                key,
                back,
                HalfRequest {
                    client: tuple.client,
                    server: tuple.server,
                    opener,
                    dscp,
                    split: class.split.clone(),
                },
            ),
        }
    }

    fn insert(&mut self, tuple: Tuple, front: Half, place: (Arc<Deployment>, Opener, usize)) -> usize {
        let (deployment, opener, class_number) = place;
        let class = self.shared.metrics.class(&deployment.classes[class_number].name);
        class.opened.inc();
        class.active.inc();
        self.generation = (self.generation + 1) & GENERATION;
        let ready = Ready { readable: true, writable: true, broken: false };
        self.connections.insert(Connection {
            generation: self.generation,
            tuple,
            id: self.shared.next_id.fetch_add(1, Ordering::Relaxed),
            began: Instant::now(),
            class,
            deployment,
            opener,
            class_number,
            sampled: Default::default(),
            counted: [0; 2],
            most_unsent: [0; 2],
            memory: 0,
            was_active: true,
            at_rest: false,
            halves: [Some(front), None],
            connecting: false,
            ready: [ready; 2],
            flows: Default::default(),
            again: false,
        })
    }

    fn open(&mut self, key: usize, side: &Side, request: HalfRequest) {
        let tuple = self.connections[key].tuple;
        let buffer = self.connections[key].class_config().split.buffer;
        match (side.datapath, &self.shared.engine) {
            (Datapath::Engine, Some(engine)) => {
                let (inbox, token) = (Arc::clone(&self.inbox), self.token(key, BACK));
                let answer: Answer = Box::new(move |answer| inbox.send(Message::Answer { token, answer }));
                engine.open(&request, Opening::Active, answer);
            }
            _ => match sockets::dial(tuple, side, buffer, request.dscp) {
                Ok(socket) => {
                    let connection = &mut self.connections[key];
                    connection.connecting = true;
                    connection.halves[BACK] = Some(Half::Kernel(Arc::new(socket)));
                    self.watch(key, BACK);
                }
                Err(_) => self.abort(key),
            },
        }
    }

    fn answered(&mut self, token: u64, answer: Result<Half, Refusal>) {
        let Some(key) = self.find(token) else {
            if let Ok(half) = answer {
                half.abort();
            }
            return;
        };
        match answer {
            Ok(half) => self.join(key, half),
            Err(_) => self.abort(key),
        }
    }

    /// Both halves are established.
    fn join(&mut self, key: usize, back: Half) {
        self.connections[key].halves[BACK] = Some(back);
        if self.hand_over(key) {
            return;
        }
        self.watch(key, BACK);
        self.watch(key, FRONT);
        if self.connections.contains(key) {
            self.turn(key);
        }
    }

    /// Hands the connection to the engine if that has one of its halves; the engine then moves the bytes. False if the kernel has both halves.
    fn hand_over(&mut self, key: usize) -> bool {
        let token = self.token(key, FRONT);
        let connection = &self.connections[key];
        let ([Some(Half::Engine(control)), Some(Half::Kernel(socket))]
        | [Some(Half::Kernel(socket)), Some(Half::Engine(control))]) = &connection.halves
        else {
            return false;
        };
        let inbox = Arc::clone(&self.inbox);
        let on_end: OnEnd = Box::new(move |ending| inbox.send(Message::Over { token, ending }));
        control.carry(Arc::clone(socket), on_end);
        true
    }

    /// Subscribes to events of this half.
    fn watch(&mut self, key: usize, which: usize) {
        let data = EventData::new_u64(self.token(key, which));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let Some(socket) = self.connections.get(key).and_then(|connection| socket(connection, which)) else {
            return;
        };
        if epoll::add(&self.epoll, socket, data, flags).is_err() {
            self.abort(key);
        }
    }

    fn token(&self, key: usize, which: usize) -> u64 {
        u64::from(self.connections[key].generation) << 32 | (key as u64) << 1 | which as u64
    }

    /// The place of the connection of a token, unless that has ended.
    fn find(&self, token: u64) -> Option<usize> {
        let key = (token as u32 >> 1) as usize;
        let generation = (token >> 32) as u32;
        self.connections.get(key).filter(|connection| connection.generation == generation).map(|_| key)
    }

    fn event(&mut self, token: u64, flags: EventFlags) {
        let Some(key) = self.find(token) else { return };
        let which = (token & 1) as usize;
        let connection = &mut self.connections[key];
        if connection.connecting && which == BACK {
            return self.connected(key);
        }
        let ready = &mut connection.ready[which];
        let failed = flags.contains(EventFlags::ERR);
        ready.readable |= failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP);
        ready.writable |= failed || flags.contains(EventFlags::OUT);
        if failed && socket(connection, which).is_some_and(|socket| has_failed(socket)) {
            connection.ready[which].broken = true;
        }
        self.turn(key);
    }

    /// The kernel has connected the half of the server, or has failed to.
    fn connected(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if socket(connection, BACK).is_none_or(|socket| has_failed(socket)) {
            return self.abort(key);
        }
        connection.connecting = false;
        if let [Some(Half::Engine(_)), Some(Half::Kernel(back))] = &connection.halves {
            // Removing fails only if the socket was never added.
            let _ = epoll::delete(&self.epoll, back);
            self.hand_over(key);
            return;
        }
        self.watch(key, FRONT);
        if self.connections.contains(key) {
            self.turn(key);
        }
    }

    /// Moves bytes in both directions.
    fn turn(&mut self, key: usize) {
        let token = self.token(key, FRONT);
        let connection = &mut self.connections[key];
        connection.was_active = true;
        let [Some(Half::Kernel(front)), Some(Half::Kernel(back))] = &connection.halves else { return };
        if connection.connecting {
            return;
        }
        let [front_ready, back_ready] = &mut connection.ready;
        let [onward, backward] = &mut connection.flows;
        let mut front = FlowEnd { ready: front_ready, socket: front.as_fd() };
        let mut back = FlowEnd { ready: back_ready, socket: back.as_fd() };
        let turns = [
            onward.turn(&mut front, &mut back, &mut self.pipes),
            backward.turn(&mut back, &mut front, &mut self.pipes),
        ];
        let goes_on = turns.contains(&Turn::GoesOn);
        if connection.pass_ends() {
            return self.abort(key);
        }
        if connection.flows.iter().all(Flow::is_over) {
            return self.finish(key);
        }
        if goes_on && !connection.again {
            connection.again = true;
            self.again.push(token);
        }
    }

    /// Closes a connection both of whose directions have ended.
    fn finish(&mut self, key: usize) {
        let connection = self.connections.remove(key);
        connection.class.closed.inc();
        self.close(connection, "closed");
    }

    /// Closes a connection with a RST to both ends.
    fn abort(&mut self, key: usize) {
        let connection = self.connections.remove(key);
        connection.class.reset.inc();
        self.close(connection, "reset");
    }

    /// Counts and reports a connection that has ended.
    fn close(&mut self, mut connection: Connection, state: &str) {
        connection.sample();
        let lasted_s = connection.began.elapsed().as_secs_f64();
        for which in [FRONT, BACK] {
            let side = connection.side(which);
            connection.class.end(side, connection.sampled[which].srtt, connection.counted[which], lasted_s);
        }
        if let Some(lines) = &self.shared.lines
            && lines.try_send(connection.report(state)).is_err()
        {
            self.shared.metrics.lines_lost.inc();
        }
        connection.class.active.dec();
        if state == "reset" {
            connection.halves.into_iter().flatten().for_each(Half::abort);
        }
        self.shared.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connection {
    fn class_config(&self) -> &Class {
        &self.deployment.classes[self.class_number]
    }

    /// On which side of the proxy a half is: 0 over the satellite, 1 towards the clients.
    fn side(&self, which: usize) -> usize {
        match self.opener {
            Opener::Satellite => which,
            Opener::Clients => 1 - which,
        }
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

    /// Samples the connection unless nothing can have changed. The system calls for it cost more than all else of an idle connection.
    fn sample_unless_at_rest(&mut self) {
        let carries = [FRONT, BACK].iter().any(|which| self.moved(1 - which) != self.counted[*which]);
        let was_active = std::mem::take(&mut self.was_active) || carries;
        if was_active || !self.at_rest {
            self.sample();
            let held = self.flows.iter().map(|flow| flow.held() as u64).sum::<u64>();
            self.memory = held + self.halves.iter().flatten().map(Half::memory).sum::<u64>();
            self.at_rest = !was_active && self.sampled.iter().all(|half| half.queued_bytes == 0);
        }
    }

    /// Counts what has happened since the last sample.
    fn sample(&mut self) {
        for which in [FRONT, BACK] {
            if let Some(half) = &self.halves[which] {
                let now = half.telemetry();
                let sent = self.moved(1 - which);
                let again =
                    now.retransmitted_segments.saturating_sub(self.sampled[which].retransmitted_segments);
                self.class.progress(self.side(which), sent - self.counted[which], again);
                (self.sampled[which], self.counted[which]) = (now, sent);
                if self.class_config().split.buffer.is_none() {
                    let split = &self.deployment.classes[self.class_number].split;
                    sockets::keep_unsent_below(half, &now, split, &mut self.most_unsent[which]);
                }
            }
        }
    }

    fn report(&self, state: &str) -> Report {
        let half = |which: usize| {
            let (name, config) = match self.side(which) {
                0 => ("satellite", &self.class_config().split.satellite),
                _ => ("clients", &self.class_config().split.clients),
            };
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
            class: self.class_config().name.clone(),
            client: self.tuple.client.to_string(),
            server: self.tuple.server.to_string(),
            state: state.to_owned(),
            front: half(FRONT),
            back: half(BACK),
        }
    }

    /// Passes on the ends of streams. True if a half was reset, and everything before the reset has been passed on.
    fn pass_ends(&mut self) -> bool {
        for source in [FRONT, BACK] {
            let sink = 1 - source;
            let flow = &mut self.flows[source];
            if self.ready[source].broken && (flow.wants_end() || flow.is_over()) {
                return true;
            }
            if flow.wants_end() {
                if let Some(Half::Kernel(socket)) = &self.halves[sink] {
                    sockets::end(socket);
                }
                flow.pass_end();
            }
        }
        false
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

fn socket(connection: &Connection, which: usize) -> Option<BorrowedFd<'_>> {
    match &connection.halves[which] {
        Some(Half::Kernel(socket)) => Some(socket.as_fd()),
        _ => None,
    }
}

/// True if the socket has an error, such as a RST.
fn has_failed(socket: BorrowedFd<'_>) -> bool {
    !matches!(SockRef::from(&socket).take_error(), Ok(None))
}

/// Number of the class of a connection. If a new configuration has no class for it, it belongs to the first class that is split.
pub(crate) fn class_of(deployment: &Deployment, opener: Opener, tuple: Tuple) -> usize {
    let found = deployment.class_of(opener, tuple.client, tuple.server);
    let first = || deployment.classes.iter().position(|class| class.proxy);
    found.filter(|class| deployment.classes[*class].proxy).or_else(first).unwrap_or(0)
}
