//! The interceptor decides about each SYN that may be split.
//!
//! The packet filter reports such a SYN to the proxy and drops the packet. The interceptor connects to the server in the client's name.
//! Then there are four cases:
//!
//! * The server accepts. The SYN is put back over the loopback device, and the kernel accepts the client's connection with options of its own.
//! * The server answers the proxy with a RST. A RST answers the SYN.
//! * The server does not answer the proxy. Nothing answers the SYN.
//! * The server is unreachable, or the proxy has reached a limit. The SYN is forwarded unchanged; a client whose server is unreachable gets the
//!   ICMP error.
//!
//! A SYN of a class with `syn = "early"` is put back at once.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bentpipe_scenario::deployment::{Datapath, Opener, Opening::Early};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use socket2::SockRef;

use crate::class::ConnectionClass;
use crate::engine;
use crate::error::Error;
use crate::half::{Answer, Half, Opening, Refusal};
use crate::marks::{Kind, Marks, OPENERS};
use crate::metrics::Reason;
use crate::packet::{self, Syn, Tuple, Unreachable};
use crate::places::Place;
use crate::relay;
use crate::shared::{Expected, Inbox, Shared};
use crate::sight::{self, Manner, Sight, Way};
use crate::slot::Slot;
use crate::sockets::{self, RawSender};

/// A client that has sent no SYN for this time has given up (chosen: Linux doubles the time between SYNs up to 32 s).
const PATIENCE: Duration = Duration::from_secs(70);
/// Interval at which SYNs of such clients are removed (chosen).
const SWEEP: Duration = Duration::from_secs(1);
/// SYNs read before the answers of servers have their turn (chosen).
const SYNS_AT_A_TIME: usize = 64;
const EVENTS: usize = 512;
/// Tokens of the sockets that show SYNs of clients, and those of hosts beyond the satellite.
const SIGHT_TOKENS: [u64; 2] = [u64::MAX - 1, u64::MAX];
const INBOX_TOKEN: u64 = u64::MAX - 2;
const ASKED_TOKEN: u64 = u64::MAX - 3;

/// Messages of other threads to the interceptor.
pub(crate) enum Message {
    /// The engine has an answer for the SYN of this number.
    Answer { number: u64, answer: Result<Half, Refusal> },
    /// End.
    Stop,
}

/// A SYN that waits for the server.
struct Waiting {
    syn: Syn,
    class: ConnectionClass,
    manner: Manner,
    packet: Vec<u8>,
    /// The connection to the server, if the kernel makes it.
    socket: Option<OwnedFd>,
    last_seen: Instant,
    place: Place,
    /// The SYN of the proxy and its way, once known. One leaves for each SYN of the client.
    asked: Option<(Vec<u8>, Way)>,
}

/// The thread that reads SYNs.
pub(crate) struct Interceptor {
    slot: Slot,
    shared: Arc<Shared>,
    /// The relays, which take the connections that the engine accepts.
    relays: Vec<Arc<Inbox<relay::Message>>>,
    inbox: Arc<Inbox<Message>>,
    /// Sockets that receive SYNs of clients, and of hosts beyond the satellite.
    sights: [Sight; 2],
    /// Socket that receives the SYNs of the proxy.
    asked: Sight,
    /// Sends them.
    asker: RawSender,
    /// Senders of the same two kinds of SYNs to the listening sockets.
    put_back: [RawSender; 2],
    epoll: OwnedFd,
    /// Forwards SYNs that are not proxied.
    forwarder: RawSender,
    /// Sends answers to clients.
    answerer: RawSender,
    waiting: HashMap<u64, Waiting>,
    numbers: HashMap<Tuple, u64>,
    next: u64,
    swept: Instant,
}

impl Interceptor {
    /// Begins to see SYNs.
    pub fn open(
        slot: Slot,
        shared: Arc<Shared>,
        relays: Vec<Arc<Inbox<relay::Message>>>,
    ) -> Result<(Self, Arc<Inbox<Message>>), Error> {
        let marks = Marks::of(&shared.deployment());
        let raw = || Error::at("a raw socket");
        let sight = |opener| Sight::open(sight::group(slot, opener)).map_err(Error::at("nflog"));
        let sender = |opener| RawSender::marked(marks.value(Kind::PutBack(slot, opener))).map_err(raw());
        let [clients, satellite] = OPENERS;
        let failed = || Error::at("epoll");
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from).map_err(failed())?;
        let inbox = Arc::new(Inbox::new().map_err(Error::at("eventfd"))?);
        let interceptor = Self {
            slot,
            shared,
            relays,
            inbox: Arc::clone(&inbox),
            sights: [sight(clients)?, sight(satellite)?],
            asked: Sight::open(sight::group_of_asked(slot)).map_err(Error::at("nflog"))?,
            asker: RawSender::open().map_err(raw())?,
            put_back: [sender(clients)?, sender(satellite)?],
            epoll,
            forwarder: RawSender::passing().map_err(raw())?,
            answerer: RawSender::marked(marks.value(Kind::Ours)).map_err(raw())?,
            waiting: HashMap::new(),
            numbers: HashMap::new(),
            next: 0,
            swept: Instant::now(),
        };
        let add = |fd: &dyn AsFd, token| {
            let data = EventData::new_u64(token);
            epoll::add(&interceptor.epoll, fd.as_fd(), data, EventFlags::IN).map_err(io::Error::from)
        };
        add(&inbox, INBOX_TOKEN).map_err(failed())?;
        for (sight, token) in interceptor.sights.iter().zip(SIGHT_TOKENS) {
            add(sight, token).map_err(failed())?;
        }
        add(&interceptor.asked, ASKED_TOKEN).map_err(failed())?;
        Ok((interceptor, inbox))
    }

    /// Works until a message ends it.
    pub fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let second = Timespec { tv_sec: SWEEP.as_secs() as i64, tv_nsec: 0 };
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&second)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    token if SIGHT_TOKENS.contains(&token) => {
                        self.look(usize::from(token == SIGHT_TOKENS[1]))
                    }
                    ASKED_TOKEN => self.look_at_own(),
                    INBOX_TOKEN => {
                        for message in self.inbox.drain() {
                            match message {
                                Message::Answer { number, answer } => self.answered(number, answer),
                                Message::Stop => return Ok(()),
                            }
                        }
                    }
                    number => self.connected(number),
                }
            }
            if self.swept.elapsed() >= SWEEP {
                self.sweep();
            }
        }
    }

    /// Reads SYNs that one side opens connections with.
    fn look(&mut self, side: usize) {
        let mut seen = Vec::new();
        for _ in 0..SYNS_AT_A_TIME {
            let read = self.sights[side].read(|packet, way| {
                if let Some(syn) = Syn::read(packet) {
                    let mut whole = packet.to_vec();
                    // The checksum may be missing if the sender is on the same machine.
                    syn.complete_checksum(&mut whole);
                    seen.push((syn, way, whole));
                }
            });
            if read.is_err() {
                break;
            }
        }
        for (syn, way, packet) in seen {
            self.arrive(syn, OPENERS[side], way, packet);
        }
    }

    /// SYNs of the proxy are about to leave. The first one that asks in the name of a client that waits does; those that Linux or the engine repeat do
    /// not, because the client repeats its own. If no client waits, the class is `early`, and all leave.
    fn look_at_own(&mut self) {
        let mut own = Vec::new();
        while own.len() < SYNS_AT_A_TIME
            && self
                .asked
                .read(|packet, way| own.extend(Syn::read(packet).map(|syn| (syn, way, packet.to_vec()))))
                .is_ok()
        {}
        for (syn, way, mut packet) in own {
            syn.complete_checksum(&mut packet);
            let waiting = self.numbers.get(&syn.tuple).and_then(|number| self.waiting.get_mut(number));
            if waiting.as_ref().is_some_and(|waiting| waiting.asked.is_some()) {
                continue;
            }
            // A lost packet is repeated by the client's next SYN.
            let _ = self.asker.send_on(way, &packet, syn.tuple.server);
            if let Some(waiting) = waiting {
                waiting.asked = Some((packet, way));
            }
        }
    }

    /// A client has sent a SYN, for the first time or again.
    fn arrive(&mut self, syn: Syn, opener: Opener, way: Way, packet: Vec<u8>) {
        if let Some(waiting) = self.numbers.get(&syn.tuple).and_then(|number| self.waiting.get_mut(number)) {
            waiting.last_seen = Instant::now();
            if let Some((packet, way)) = &waiting.asked {
                let _ = self.asker.send_on(*way, packet, syn.tuple.server);
            }
            return;
        }
        if self.shared.expected().contains_key(&syn.tuple) {
            return self.put_back(opener, &packet, syn.tuple);
        }
        let Some(class) = self.shared.class(opener, syn.tuple, way) else {
            // By the new configuration this connection is not split.
            return self.pass_on(&syn, way, &packet, None);
        };
        let bound =
            self.shared.routes_by_arrival[usize::from(opener == Opener::Satellite)].load(Ordering::Relaxed);
        let place = self.shared.take_place(syn.tuple.client.ip());
        let untouched = self.why_engine_does_not(&class, &syn, bound);
        let place = match place.and_then(|place| untouched.map_or(Ok(place), Err)) {
            Ok(place) => place,
            Err(why) => return self.pass_on(&syn, way, &packet, Some(why)),
        };
        let asks = (class.split.syn != Early).then_some(self.slot);
        let manner = Manner { dscp: syn.dscp, mss: syn.mss, way, bound, asks };
        if asks.is_none() {
            return self.accept(&syn, Expected::new(class, manner, place), &packet);
        }
        let number = self.next;
        self.next += 1;
        match self.dial(number, &syn, &class, manner) {
            Ok(socket) => {
                self.numbers.insert(syn.tuple, number);
                let last_seen = Instant::now();
                self.waiting.insert(
                    number,
                    Waiting { syn, class, manner, packet, socket, last_seen, place, asked: None },
                );
            }
            // The connection exists already, or has just ended. So the kernel can answer.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE)) => {
                self.put_back(opener, &packet, syn.tuple)
            }
            Err(_) => self.pass_on(&syn, way, &packet, Some(Reason::Unreachable)),
        }
    }

    /// Begins the connection to the server. Returns the socket if the kernel makes the connection.
    fn dial(
        &mut self,
        number: u64,
        syn: &Syn,
        class: &ConnectionClass,
        manner: Manner,
    ) -> io::Result<Option<OwnedFd>> {
        if let (Datapath::Engine, Some(engine)) = (class.back().datapath, &self.shared.engine) {
            // If the kernel has no route, packets of the engine would be lost without an error.
            sockets::address_towards(syn.tuple.server.ip(), manner.way.mark)?;
            let inbox = Arc::clone(&self.inbox);
            let answer: Answer = Box::new(move |answer| inbox.send(Message::Answer { number, answer }));
            engine.open(&class.request(syn.tuple, manner), Opening::Active, answer);
            return Ok(None);
        }
        let socket = sockets::dial(syn.tuple, class.back(), class.split.buffer, manner)?;
        epoll::add(&self.epoll, &socket, EventData::new_u64(number), EventFlags::OUT)?;
        Ok(Some(socket))
    }

    /// The kernel has connected to a server, or has failed to.
    fn connected(&mut self, number: u64) {
        let Some(waiting) = self.waiting.get_mut(&number) else { return };
        let Some(socket) = waiting.socket.take() else { return };
        let _ = epoll::delete(&self.epoll, &socket);
        let answer = match SockRef::from(&socket).take_error() {
            Ok(None) => {
                // A kernel that refuses keeps the priority, which the rules of the packet filter take away.
                let _ = sockets::stop_asking(&socket, waiting.syn.tuple.server, waiting.manner.dscp);
                Ok(Half::Kernel(Arc::new(socket)))
            }
            Ok(Some(error)) => Err(match error.raw_os_error() {
                Some(libc::ECONNREFUSED | libc::ECONNRESET) => Refusal::Refused,
                Some(libc::ETIMEDOUT) => Refusal::TimedOut,
                _ => Refusal::Unreachable,
            }),
            Err(_) => Err(Refusal::Unreachable),
        };
        self.answered(number, answer);
    }

    fn answered(&mut self, number: u64, answer: Result<Half, Refusal>) {
        let Some(waiting) = self.waiting.remove(&number) else {
            return if let Ok(half) = answer {
                half.abort()
            };
        };
        self.numbers.remove(&waiting.syn.tuple);
        match answer {
            Ok(half) => {
                let Waiting { syn, class, manner, packet, mut place, .. } = waiting;
                place.open();
                let expected = Expected { half: Some(half), ..Expected::new(class, manner, place) };
                self.accept(&syn, expected, &packet);
            }
            Err(refusal) => self.refuse(&waiting, refusal),
        }
    }

    /// Lets the kernel or the engine answer the client's SYN, as its class says.
    fn accept(&mut self, syn: &Syn, expected: Expected, packet: &[u8]) {
        let (tuple, class) = (syn.tuple, &expected.class);
        let opener = class.opener();
        let engine = self.shared.engine.as_ref().filter(|_| engine::answers(class));
        let request = engine.map(|engine| (Arc::clone(engine), class.request(tuple, expected.manner)));
        self.shared.expected().insert(tuple, expected);
        let Some((engine, request)) = request else { return self.put_back(opener, packet, tuple) };
        let relay = Arc::clone(&self.relays[usize::from(tuple.client.port()) % self.relays.len()]);
        let answer: Answer = Box::new(move |answer| relay.send(relay::Message::Front { tuple, answer }));
        engine.open(&request, Opening::Passive(packet), answer);
    }

    fn refuse(&mut self, waiting: &Waiting, refusal: Refusal) {
        let Waiting { syn, class, manner, packet, .. } = waiting;
        match refusal {
            Refusal::Refused => {
                self.shared.metrics.refuse();
                // If the RST is lost, the client repeats its SYN.
                let _ = self.answerer.send(&syn.refusal(), syn.tuple.client);
            }
            Refusal::TimedOut => {}
            Refusal::Exists => self.put_back(class.opener(), packet, syn.tuple),
            Refusal::Unreachable => self.pass_on(syn, manner.way, packet, Some(Reason::Unreachable)),
            Refusal::Busy => self.pass_on(syn, manner.way, packet, Some(Reason::Connections)),
        }
    }

    /// Why the engine does not take a connection of a class that wants the engine. The engine's packets come from its TUN device. So they do not take
    /// the way of the SYN if that way is `bound` to the interface of arrival, and rules of the administrator may drop them.
    fn why_engine_does_not(&self, class: &ConnectionClass, syn: &Syn, bound: bool) -> Option<Reason> {
        if class.back().datapath != Datapath::Engine && !engine::answers(class) {
            None
        } else if bound {
            Some(Reason::Route)
        } else {
            self.shared.is_engine_obstructed(syn.tuple.server.is_ipv4()).then_some(Reason::Firewall)
        }
    }

    /// Passes a SYN to the listening sockets of the kernel.
    fn put_back(&self, opener: Opener, packet: &[u8], tuple: Tuple) {
        // If the kernel does not take it, the client repeats its SYN.
        let _ = self.put_back[usize::from(opener == Opener::Satellite)].send(packet, tuple.server);
    }

    /// Forwards a SYN to the server unchanged.
    fn pass_on(&self, syn: &Syn, way: Way, packet: &[u8], why: Option<Reason>) {
        if let Some(why) = why {
            self.shared.metrics.bypass(why);
        }
        let Err(error) = self.forwarder.send_on(way, packet, syn.tuple.server) else { return };
        // This machine is the router that has no route, so it must send the ICMP error.
        if let Some(why) = Unreachable::of(&error)
            && let Ok(router) = sockets::address_towards(syn.tuple.client.ip(), 0)
            && let Some(error) = packet::unreachable(packet, router, why)
        {
            let _ = self.answerer.send(&error, syn.tuple.client);
        }
    }

    /// Removes SYNs and server halves of clients that have given up.
    fn sweep(&mut self) {
        self.swept = Instant::now();
        let given_up: Vec<u64> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.last_seen.elapsed() > PATIENCE)
            .map(|(number, _)| *number)
            .collect();
        for number in given_up {
            if let Some(waiting) = self.waiting.remove(&number) {
                self.numbers.remove(&waiting.syn.tuple);
                waiting.socket.iter().for_each(sockets::reset);
            }
        }
        let mut expected = self.shared.expected();
        for (_, given_up) in expected.extract_if(|_, expected| expected.since.elapsed() > PATIENCE) {
            self.shared.give_up(given_up);
        }
    }
}
