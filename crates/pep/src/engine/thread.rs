//! A thread of the engine: packets on one side, sockets of the other halves on the other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time;

use bentpipe_base::{Duration, Flags};
use bentpipe_host::{Driver, Id, Request, Unopened};
use bentpipe_tcp::{Config, Events};
use bentpipe_wire::{Ends, Header, IpFields, Offload, Packet, Payload, VIRTIO_HEADER_LEN};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use slotmap::{Key, KeyData, SecondaryMap};

use super::call::{Message, Moved, Session, SharedState, Stage, Stream};
use super::settings::{ConfigKey, Settings};
use crate::half::{Answer, Ending, HalfRequest, Refusal};
use crate::packet::Syn;
use crate::shared::Inbox;
use crate::sight::Way;
use crate::slot::Slot;
use crate::sockets::RawSender;

/// Most events taken at a time (chosen).
const EVENTS: usize = 256;
/// Token of the device, which no connection has.
const DEVICE: u64 = u64::MAX - 1;
/// Token of the inbox.
const INBOX: u64 = u64::MAX;
/// Longest sleep (chosen).
const PATIENCE: Duration = Duration::from_secs(1);

/// Marks of packets by the ends of their connection. The outlet of SYNs knows only the packet.
#[derive(Clone, Default)]
struct Marks(Arc<Mutex<HashMap<Ends, u32>>>);

impl Marks {
    fn lock(&self) -> MutexGuard<'_, HashMap<Ends, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mark of a connection; 0 if it has none.
    fn of(&self, ends: Ends) -> u32 {
        self.lock().get(&ends).copied().unwrap_or(0)
    }
}

/// A thread of the engine.
pub(crate) struct Thread {
    driver: Driver,
    inbox: Arc<Inbox<Message>>,
    epoll: OwnedFd,
    settings: Settings,
    sessions: SecondaryMap<Id, Session>,
    /// Marks of the packets of those connections that have one.
    marks: Marks,
    /// Connections with more to do than their turn allowed.
    again: Vec<Id>,
    /// Connections with alarms, the earliest first. Entries of replaced alarms are ignored.
    alarms: BinaryHeap<Reverse<(time::Instant, Id)>>,
}

impl Thread {
    /// A thread for the stack of a driver.
    pub fn new(mut driver: Driver, slot: Slot) -> io::Result<(Self, Arc<Inbox<Message>>)> {
        let syns = RawSender::asking(slot)?;
        let marks = Marks::default();
        let of_syns = marks.clone();
        driver.set_outlet(Box::new(move |pieces| sends_syn(&syns, &of_syns, pieces)));
        let inbox = Arc::new(Inbox::new()?);
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &inbox, EventData::new_u64(INBOX), EventFlags::IN)?;
        epoll::add(&epoll, &driver, EventData::new_u64(DEVICE), EventFlags::IN)?;
        let thread = Self {
            driver,
            inbox: Arc::clone(&inbox),
            epoll,
            settings: Settings::default(),
            sessions: SecondaryMap::new(),
            marks,
            again: Vec::new(),
            alarms: BinaryHeap::new(),
        };
        Ok((thread, inbox))
    }

    /// Works until a message ends it.
    ///
    /// # Errors
    ///
    /// If the device has disappeared.
    pub fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let mut drained = true;
        loop {
            self.driver.flush();
            let wait = if drained { self.patience() } else { Duration::ZERO };
            events.clear();
            let wait = Timespec {
                tv_sec: (wait.as_nanos() / 1_000_000_000) as i64,
                tv_nsec: (wait.as_nanos() % 1_000_000_000) as i64,
            };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            drained = self.driver.take()?;
            if events.iter().any(|event| event.data.u64() == INBOX) && self.read_inbox() {
                return Ok(());
            }
            for event in &events {
                let (token, flags) = (event.data.u64(), event.flags);
                if token != DEVICE && token != INBOX {
                    self.stream_is_ready(Id::from(KeyData::from_ffi(token)), flags);
                }
            }
            self.handle_events();
        }
    }

    /// Maximum time to wait for events.
    fn patience(&self) -> Duration {
        if !self.again.is_empty() {
            return Duration::ZERO;
        }
        let wait = self.driver.time_to_deadline().min(PATIENCE);
        let alarm =
            self.alarms.peek().map(|Reverse((at, _))| at.saturating_duration_since(time::Instant::now()));
        alarm.map_or(wait, |alarm| wait.min(Duration::from_nanos(alarm.as_nanos() as u64)))
    }

    /// Reads the messages; returns true if the thread shall end.
    fn read_inbox(&mut self) -> bool {
        for message in self.inbox.drain() {
            match message {
                Message::Open { request, syn, answer } => self.open(&request, syn, answer),
                Message::Carry { id, carriage } => self.carry(id, Stream::new(carriage)),
                Message::Abort(id) => self.abort(id),
                Message::Register => {
                    let all: Vec<Ends> = self.sessions.values().map(|session| session.ends).collect();
                    all.into_iter().for_each(|ends| self.register(ends));
                }
                Message::Stop => return true,
            }
        }
        false
    }

    /// Handles the events of the stack, and gives another turn to connections that need one.
    fn handle_events(&mut self) {
        while let Some((id, events)) = self.driver.stack.poll_event() {
            self.handle_event(id, events);
        }
        for id in std::mem::take(&mut self.again) {
            if let Some(session) = self.sessions.get_mut(id) {
                session.again = false;
                self.turn(id);
            }
        }
        self.ring_alarms();
        // The interceptor passes new SYNs. A SYN over the device is a copy for a connection that was just removed; the client repeats
        // it.
        while let Some(request) = self.driver.stack.poll_request() {
            self.driver.stack.ignore(&request);
        }
    }

    /// Gives a turn to each connection with a due alarm.
    fn ring_alarms(&mut self) {
        if self.alarms.is_empty() {
            return;
        }
        let now = time::Instant::now();
        while let Some(Reverse((at, id))) = self.alarms.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.alarms.pop();
            if let Some(session) = self.sessions.get_mut(id).filter(|session| session.alarm == Some(at)) {
                session.alarm = None;
                self.turn(id);
            }
        }
    }

    fn open(&mut self, request: &HalfRequest, syn: Option<Box<[u8]>>, answer: Answer) {
        let stack = &self.driver.stack;
        let key = ConfigKey::new(request, syn.is_some());
        let settings = self.settings.of(stack, key);
        let Some(config) = settings else { return answer(Err(Refusal::Busy)) };
        let active = syn.is_none();
        let opened = match syn {
            None => self.connect(request, &config),
            Some(packet) => self.grant(request, &packet, &config),
        };
        let id = match opened {
            Ok(id) => id,
            Err(Unopened::Exists) => return answer(Err(Refusal::Exists)),
            Err(_) => return answer(Err(Refusal::Busy)),
        };
        let ends = match active {
            true => Ends { local: request.client, remote: request.server },
            false => Ends { local: request.server, remote: request.client },
        };
        // The mark is that of the opener's SYN. Packets to the opener have no mark.
        if active && request.manner.way.mark != 0 {
            self.marks.lock().insert(ends, request.manner.way.mark);
        }
        self.register(ends);
        self.driver.stack.set_dscp(id, request.manner.dscp);
        let shared = SharedState::new(id, Arc::clone(&self.inbox));
        self.sessions.insert(id, Session::new(shared, ends, answer));
    }

    /// Lets the packet filter direct the packets of a connection to this thread. The segment has flags that no TCP sends together, and the mark of the
    /// connection as its sequence number, in the byte order of this machine.
    fn register(&mut self, ends: Ends) {
        // An ended connection may have had the same ends. The report of its end would undo this.
        self.driver.report_ended();
        let mut packet = Vec::with_capacity(60);
        let seq = self.marks.of(ends).to_be();
        let tcp = Header { flags: Flags::SYN | Flags::FIN, seq, ..Header::default() };
        Packet { ends, ip: IpFields::default(), tcp, payload: Payload::Bytes(&[]) }
            .write_headers(&mut packet);
        self.driver.send(&packet);
    }

    /// Opens a connection to the server in the client's name.
    fn connect(&mut self, request: &HalfRequest, config: &Arc<Config>) -> Result<Id, Unopened> {
        let ends = Ends { local: request.client, remote: request.server };
        let now = self.driver.now();
        self.driver.stack.connect_from(now, ends, config)
    }

    /// Answers the client's SYN in the server's name.
    fn grant(&mut self, request: &HalfRequest, packet: &[u8], config: &Arc<Config>) -> Result<Id, Unopened> {
        let now = self.driver.now();
        // The interceptor has verified the packet.
        let offload = Offload { checksum_verified: true, ..Offload::default() };
        self.driver.stack.handle_packet(now, &offload, packet);
        let ends = Ends { local: request.server, remote: request.client };
        let syn = std::iter::from_fn(|| self.driver.stack.poll_request())
            .find(|request: &Request| request.ends == ends)
            .ok_or(Unopened::Exists)?;
        self.driver.stack.grant(now, &syn, config)
    }

    /// Removes a connection.
    fn forget(&mut self, id: Id) -> Option<Session> {
        let session = self.sessions.remove(id)?;
        self.marks.lock().remove(&session.ends);
        Some(session)
    }

    /// Ends a connection with a reset to the far end.
    fn abort(&mut self, id: Id) {
        if let Some(session) = self.forget(id) {
            self.driver.stack.abort(self.driver.now(), id);
            self.driver.stack.release(id);
            if let Stage::Carrying(stream) = session.stage {
                stream.end(Ending::Reset);
            }
        }
    }

    /// Handles events of a connection.
    fn handle_event(&mut self, id: Id, events: Events) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if events.intersects(Events::RESET | Events::TIMED_OUT) {
            return self.fail(id, events);
        }
        if events.contains(Events::ESTABLISHED) {
            session.establish();
        }
        self.turn(id);
    }

    /// Ends a connection whose far end has reset it or does not answer. If its bytes are moved, those that had arrived before are passed on first.
    fn fail(&mut self, id: Id, events: Events) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let now = self.driver.now();
        if let Some(connection) = self.driver.stack.connection(id) {
            session.note(now, connection, true);
        }
        match &mut session.stage {
            Stage::Carrying(stream) => {
                stream.engine_reset = true;
                self.turn(id);
            }
            Stage::Waiting | Stage::Failed => session.stage = Stage::Failed,
            Stage::Opening(_) => {
                self.driver.stack.release(id);
                let why = if events.contains(Events::RESET) { Refusal::Refused } else { Refusal::TimedOut };
                if let Some(Stage::Opening(answer)) = self.forget(id).map(|session| session.stage) {
                    answer(Err(why));
                }
            }
        }
    }

    /// Begins to move bytes between a connection and the socket of its other half.
    fn carry(&mut self, id: Id, mut stream: Stream) {
        let Some(session) = self.sessions.get_mut(id) else { return stream.end(Ending::Reset) };
        stream.engine_reset = matches!(session.stage, Stage::Failed);
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let added = epoll::add(&self.epoll, &stream.socket, EventData::new_u64(id.data().as_ffi()), interest);
        session.stage = Stage::Carrying(stream);
        match added {
            Ok(()) => self.turn(id),
            Err(_) => self.abort(id),
        }
    }

    fn stream_is_ready(&mut self, id: Id, flags: EventFlags) {
        let Some(Stage::Carrying(stream)) = self.sessions.get_mut(id).map(|session| &mut session.stage)
        else {
            return;
        };
        let over = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        stream.socket_reset |= flags.contains(EventFlags::ERR);
        stream.readable |= over || flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        stream.writable |= over || flags.contains(EventFlags::OUT);
        self.turn(id);
    }

    /// Moves bytes between the socket and the stack.
    fn turn(&mut self, id: Id) {
        let now = self.driver.now();
        let Some(session) = self.sessions.get_mut(id) else { return };
        let stack = &mut self.driver.stack;
        let Stage::Carrying(stream) = &mut session.stage else { return };
        let moved = stream.turn(now, stack, id);
        if let Some(connection) = stack.connection(id) {
            session.note(now, connection, matches!(moved, Moved::Over | Moved::Broken));
        }
        match moved {
            Moved::Waits => {}
            Moved::GoesOn if session.again => {}
            Moved::GoesOn => {
                session.again = true;
                self.again.push(id);
            }
            Moved::Until(at) if session.alarm.is_some_and(|alarm| alarm <= at) => {}
            Moved::Until(at) => {
                session.alarm = Some(at);
                self.alarms.push(Reverse((at, id)));
            }
            Moved::Broken => self.abort(id),
            Moved::Over => {
                self.driver.stack.release(id);
                if let Some(Stage::Carrying(stream)) = self.forget(id).map(|session| session.stage) {
                    stream.end(Ending::Closed);
                }
            }
        }
    }
}

/// Sends the engine's SYNs as this machine sends its own packets. So connection tracking knows the connection, and the packet filter of the
/// administrator forwards the later packets, even if it forwards no new connection from the engine's device.
fn sends_syn(sender: &RawSender, marks: &Marks, pieces: &[IoSlice<'_>]) -> bool {
    let Some(packet) = pieces.first().and_then(|head| head.get(VIRTIO_HEADER_LEN..)) else { return false };
    let Some(syn) = Syn::read(packet) else { return false };
    let mut whole = packet.to_vec();
    syn.complete_checksum(&mut whole);
    let ends = Ends { local: syn.tuple.client, remote: syn.tuple.server };
    let way = Way { mark: marks.of(ends), out: 0 };
    // If it cannot be sent, it is lost, and is repeated.
    let _ = sender.send_on(way, &whole, syn.tuple.server);
    true
}
