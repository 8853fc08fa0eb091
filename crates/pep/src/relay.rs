//! A thread that accepts connections, opens their other halves and moves their bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use bentpipe_scenario::deployment::Datapath;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use slab::Slab;
use socket2::Socket;

use crate::class::ConnectionClass;
use crate::connection::{AfterTurn, BACK, Connection, FRONT, Owner};
use crate::flow::Pipes;
use crate::half::{Answer, Ending, Half, OnEnd, Opening, Refusal};
use crate::packet::Tuple;
use crate::report::Report;
use crate::shared::{Expected, Inbox, Shared};
use crate::sight::Manner;
use crate::sockets::{self, Accepted};

/// Number of connections accepted before other events are handled (chosen).
const ACCEPTED_AT_A_TIME: usize = 64;
/// Interval between two samples of connections (chosen).
const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);
/// Connections sampled at a time before events have their turn (chosen: about half a millisecond if all are busy).
const SAMPLED_AT_A_TIME: usize = 128;
/// Events taken at a time.
const EVENTS: usize = 512;
const LISTENERS: u64 = 1 << 63;
const INBOX: u64 = u64::MAX;
/// Bits of a token that distinguish successive connections in the same place of the slab.
const GENERATION: u32 = 0x7fff_ffff;

/// Messages of other threads to a relay.
pub(crate) enum Message {
    /// The engine has an answer for a connection.
    Answer { token: u64, answer: Result<Half, Refusal> },
    /// The engine has moved the last byte of a connection.
    Over { token: u64, ending: Ending },
    /// Request for a report of all connections.
    Report(Sender<Vec<Report>>),
    /// The engine has answered a client's SYN, and the client has acknowledged that; or it has failed.
    Front { tuple: Tuple, answer: Result<Half, Refusal> },
    /// The relay shall accept no more connections, and end with the last one.
    Stop,
}

/// A connection at a place of the slab.
struct Entry {
    generation: u32,
    connection: Connection,
    /// True if the connection gets another turn without an event.
    again: bool,
    /// Time of the connection's next turn, if known.
    alarm: Option<Instant>,
}

/// A thread.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    inbox: Arc<Inbox<Message>>,
    epoll: OwnedFd,
    listeners: Vec<Socket>,
    connections: Slab<Entry>,
    generation: u32,
    pipes: Pipes,
    again: Vec<u64>,
    /// Tokens of connections with alarms, the earliest first. Entries of replaced alarms are ignored.
    alarms: BinaryHeap<Reverse<(Instant, u64)>>,
    stopping: bool,
    number: usize,
    /// Start of the last round of samples.
    sampled_at: Instant,
    /// During a round of samples: the place of the next connection in the slab, and the memory of those before it.
    sampling: Option<(usize, u64)>,
}

impl Relay {
    /// The relay of this number among all.
    pub fn new(
        shared: Arc<Shared>,
        number: usize,
        listeners: Vec<Socket>,
    ) -> io::Result<(Self, Arc<Inbox<Message>>)> {
        let inbox = Arc::new(Inbox::new()?);
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let pipes = shared.descriptors.most_pipes() / shared.memory.len();
        epoll::add(&epoll, &inbox, EventData::new_u64(INBOX), EventFlags::IN)?;
        for (number, listener) in listeners.iter().enumerate() {
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
            alarms: BinaryHeap::new(),
            stopping: false,
            number,
            sampled_at: Instant::now(),
            sampling: None,
        };
        Ok((relay, inbox))
    }

    /// Works until a message ends it and the last connection has ended.
    pub fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        while !(self.stopping && self.connections.is_empty()) {
            events.clear();
            let patience = self.patience().map(|patience| Timespec {
                tv_sec: patience.as_secs() as i64,
                tv_nsec: patience.subsec_nanos().into(),
            });
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
            self.ring_alarms();
            if self.sampling.is_none() && self.sampled_at.elapsed() >= SAMPLE_INTERVAL {
                self.sampled_at = Instant::now();
                self.sampling = Some((0, 0));
                self.pipes.close_unneeded();
            }
            self.sample();
        }
        Ok(())
    }

    /// Maximum time to wait for events; unlimited if there is nothing else to do.
    fn patience(&self) -> Option<Duration> {
        if !self.again.is_empty() || self.sampling.is_some() {
            return Some(Duration::ZERO);
        }
        let alarm = self.alarms.peek().map(|Reverse((at, _))| at.saturating_duration_since(Instant::now()));
        let sample = self.has_something_to_sample().then_some(SAMPLE_INTERVAL);
        alarm.into_iter().chain(sample).min()
    }

    /// Gives a turn to each connection with a due alarm.
    fn ring_alarms(&mut self) {
        if self.alarms.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(Reverse((at, token))) =
            self.alarms.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.alarms.pop();
            let key = self.find(token).filter(|key| self.connections[*key].alarm == Some(at));
            if let Some(key) = key {
                self.connections[key].alarm = None;
                self.turn(key);
            }
        }
    }

    fn has_something_to_sample(&self) -> bool {
        !self.connections.is_empty() || self.pipes.keeps_some()
    }

    /// Samples the next connections of a round, and sums their memory. Connections at rest are skipped.
    fn sample(&mut self) {
        let Some((first, mut memory)) = self.sampling.take() else { return };
        let next = first + SAMPLED_AT_A_TIME;
        for key in first..next {
            if let Some(entry) = self.connections.get_mut(key) {
                memory += entry.connection.sample_unless_at_rest();
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
                Message::Over { token, ending } => {
                    if let Some(key) = self.find(token) {
                        self.over(key, ending);
                    }
                }
                Message::Report(sender) => {
                    let reports = self.connections.iter().map(|(_, entry)| entry.connection.report("open"));
                    // The requester may have stopped waiting.
                    let _ = sender.send(reports.collect());
                }
                Message::Front { tuple, answer } => self.take_front_answer(tuple, answer),
                Message::Stop => {
                    self.stopping = true;
                    self.listeners.clear();
                }
            }
        }
    }

    fn accept(&mut self, number: usize) {
        for _ in 0..ACCEPTED_AT_A_TIME {
            let Some(listener) = self.listeners.get(number) else { return };
            match sockets::accept(listener) {
                Ok(accepted) => self.take_accepted(accepted),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The client has closed the connection meanwhile.
                Err(_) => {}
            }
        }
    }

    /// Takes a connection that the kernel has accepted.
    fn take_accepted(&mut self, accepted: Accepted) {
        let Accepted { socket, tuple } = accepted;
        // Only SYNs from the interceptor arrive here. A client that exceeded its patience is reset.
        let Some(expected) = self.shared.expected().remove(&tuple) else { return };
        // If this kernel lacks an option, the connection is proxied without it.
        let _ = sockets::prepare(&socket, expected.class.front(), expected.class.split.buffer);
        self.begin(tuple, expected, Half::Kernel(Arc::new(socket.into())));
    }

    /// Takes a connection that the engine has accepted, or drops the server's half if that has failed.
    fn take_front_answer(&mut self, tuple: Tuple, answer: Result<Half, Refusal>) {
        // The SYN was repeated, and an earlier copy of it opened the connection.
        if matches!(answer, Err(Refusal::Exists)) {
            return;
        }
        let expected = self.shared.expected().remove(&tuple);
        match (answer, expected) {
            (Ok(front), Some(expected)) => self.begin(tuple, expected, front),
            (Ok(front), None) => front.abort(),
            (Err(_), Some(expected)) => self.shared.give_up(expected),
            (Err(_), None) => {}
        }
    }

    /// Begins a connection with the server's half that waits for this client, or opens one.
    fn begin(&mut self, tuple: Tuple, expected: Expected, front: Half) {
        let Expected { class, manner, half, place, .. } = expected;
        self.generation = (self.generation + 1) & GENERATION;
        let connection = Connection::new(&self.shared, Owner { tuple, place }, class.clone(), front);
        let generation = self.generation;
        let key = self.connections.insert(Entry { generation, connection, again: false, alarm: None });
        match half {
            Some(half) => self.join(key, half),
            None => self.open(key, tuple, manner, &class),
        }
    }

    fn open(&mut self, key: usize, tuple: Tuple, manner: Manner, class: &ConnectionClass) {
        if let (Datapath::Engine, Some(engine)) = (class.back().datapath, &self.shared.engine) {
            let (inbox, token) = (Arc::clone(&self.inbox), self.token(key, BACK));
            let answer: Answer = Box::new(move |answer| inbox.send(Message::Answer { token, answer }));
            return engine.open(&class.request(tuple, manner), Opening::Active, answer);
        }
        match sockets::dial(tuple, class.back(), class.split.buffer, manner) {
            Ok(socket) => {
                self.connections[key].connection.connect(socket);
                self.watch(key, BACK);
            }
            Err(_) => self.end(key, Ending::Reset),
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
            Err(_) => self.end(key, Ending::Reset),
        }
    }

    /// Joins both halves when they are established.
    fn join(&mut self, key: usize, back: Half) {
        self.connections[key].connection.join(back);
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
        let (token, inbox) = (self.token(key, FRONT), Arc::clone(&self.inbox));
        let on_end = || -> OnEnd { Box::new(move |ending| inbox.send(Message::Over { token, ending })) };
        self.connections[key].connection.hand_over(on_end)
    }

    /// Subscribes to events of this half.
    fn watch(&mut self, key: usize, which: usize) {
        let Some(socket) = self.connections.get(key).and_then(|entry| entry.connection.socket(which)) else {
            return;
        };
        let data = EventData::new_u64(self.token(key, which));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if epoll::add(&self.epoll, socket, data, flags).is_err() {
            self.end(key, Ending::Reset);
        }
    }

    fn token(&self, key: usize, which: usize) -> u64 {
        u64::from(self.connections[key].generation) << 32 | (key as u64) << 1 | which as u64
    }

    /// The place of the connection of a token, unless that has ended.
    fn find(&self, token: u64) -> Option<usize> {
        let key = (token as u32 >> 1) as usize;
        let generation = (token >> 32) as u32;
        self.connections.get(key).filter(|entry| entry.generation == generation).map(|_| key)
    }

    fn event(&mut self, token: u64, flags: EventFlags) {
        let Some(key) = self.find(token) else { return };
        let which = (token & 1) as usize;
        let connection = &mut self.connections[key].connection;
        if connection.is_connecting() && which == BACK {
            return self.connected(key);
        }
        connection.note_event(which, flags);
        self.turn(key);
    }

    /// The kernel has connected the half of the server, or has failed to.
    fn connected(&mut self, key: usize) {
        let connection = &mut self.connections[key].connection;
        if !connection.connected() {
            return self.end(key, Ending::Reset);
        }
        if let Some(back) = connection.socket_beside_engine() {
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

    fn turn(&mut self, key: usize) {
        let after = self.connections[key].connection.turn(&mut self.pipes);
        self.follow(key, after);
    }

    /// The engine has moved the last byte of a connection.
    fn over(&mut self, key: usize, ending: Ending) {
        let after = match ending {
            Ending::Reset => self.connections[key].connection.deliver_last_bytes(),
            Ending::Closed => AfterTurn::End(ending),
        };
        self.follow(key, after);
    }

    fn follow(&mut self, key: usize, after: AfterTurn) {
        let token = self.token(key, FRONT);
        let entry = &mut self.connections[key];
        match after {
            AfterTurn::Wait => {}
            AfterTurn::GoOn => {
                if !std::mem::replace(&mut entry.again, true) {
                    self.again.push(token);
                }
            }
            AfterTurn::Until(at) => {
                if entry.alarm.is_none_or(|alarm| at < alarm) {
                    entry.alarm = Some(at);
                    self.alarms.push(Reverse((at, token)));
                }
            }
            AfterTurn::End(ending) => self.end(key, ending),
        }
    }

    fn end(&mut self, key: usize, ending: Ending) {
        self.connections.remove(key).connection.end(&self.shared, ending);
        if self.connections.is_empty() {
            // No sample follows.
            self.shared.memory[self.number].store(0, Ordering::Relaxed);
        }
    }
}
