//! The interceptor: it holds SYNs back whose clients get an answer only when the server has answered.
//!
//! The packet filter routes them into a TUN device, where they wait while the proxy connects to the server in the client's name. Then
//!
//! * the SYN is put back through the device, and the kernel accepts the client's connection with options of its own;
//! * or a RST answers it, if the server answered the proxy with a RST;
//! * or it is not answered, if the server did not answer the proxy;
//! * or it is forwarded unchanged: if the server is unreachable, so that the client gets the ICMP error, and if the proxy has reached a limit.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bentpipe_host::{Device, DeviceConfig};
use bentpipe_scenario::deployment::{Datapath, Opener, Opening::Early};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use socket2::SockRef;

use crate::engine;
use crate::error::Error;
use crate::half::{Answer, Half, Opening, Refusal};
use crate::metrics::Reason;
use crate::packet::{self, Syn, Tuple, Unreachable};
use crate::relay;
use crate::rules::OPENERS;
use crate::shared::{Established, Inbox, Shared};
use crate::slot::Slot;
use crate::sockets::{self, MARK_OURS, RawSender};

/// A client that has sent no SYN for this time has given up (chosen: Linux doubles the time between SYNs up to 32 s).
const PATIENCE: Duration = Duration::from_secs(70);
/// How often SYNs of such clients are removed (chosen).
const SWEEP: Duration = Duration::from_secs(1);
/// SYNs read before the answers of servers have their turn (chosen).
const SYNS_AT_A_TIME: usize = 64;
const EVENTS: usize = 512;
/// Tokens of the devices.
const DEVICE_TOKENS: [u64; 2] = [u64::MAX - 1, u64::MAX];
const INBOX_TOKEN: u64 = u64::MAX - 2;
/// Bytes of the virtio header before each packet of the device.
const VIRTIO_HEADER: usize = 10;

/// What others tell the interceptor.
pub(crate) enum Message {
    /// The engine has an answer for the SYN of this number.
    Answer { number: u64, answer: Result<Half, Refusal> },
    /// End.
    Stop,
}

/// A SYN that waits for the server.
struct Waiting {
    syn: Syn,
    opener: Opener,
    /// The packet, behind the virtio header that says whether its checksum is still to be completed.
    packet: Vec<u8>,
    /// The connection to the server, if the kernel makes it.
    socket: Option<OwnedFd>,
    last_seen: Instant,
}

/// A device through which SYNs come and go back.
fn device(name: &str) -> Result<Device, Error> {
    let config = DeviceConfig { name: Some(name.to_owned()), networks: Vec::new(), mtu: 1500 };
    let device = Device::new(&config).map_err(|error| Error::Missing(error.to_string()))?;
    // SYNs that are put back have the addresses of clients, which the reverse-path filter would drop on this device.
    let filter = format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
    std::fs::write(&filter, "0").map_err(Error::at(filter))?;
    Ok(device)
}

/// The thread that reads SYNs.
pub(crate) struct Interceptor {
    shared: Arc<Shared>,
    /// The relays, which take the connections that the engine accepts.
    relays: Vec<Arc<Inbox<relay::Message>>>,
    inbox: Arc<Inbox<Message>>,
    /// The devices for SYNs of clients, and for those of hosts beyond the satellite.
    devices: [Device; 2],
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
    /// Makes the devices.
    pub fn open(
        slot: Slot,
        shared: Arc<Shared>,
        relays: Vec<Arc<Inbox<relay::Message>>>,
    ) -> Result<(Self, Arc<Inbox<Message>>), Error> {
        let [clients, satellite] = OPENERS.map(|opener| device(slot.device(opener)));
        let devices = [clients?, satellite?];
        let raw = |mark| RawSender::open(mark).map_err(Error::at("a raw socket"));
        let failed = || Error::at("epoll");
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from).map_err(failed())?;
        let inbox = Arc::new(Inbox::new().map_err(Error::at("eventfd"))?);
        let add = |fd: &dyn AsFd, token| {
            epoll::add(&epoll, fd.as_fd(), EventData::new_u64(token), EventFlags::IN).map_err(io::Error::from)
        };
        add(&inbox, INBOX_TOKEN).map_err(failed())?;
        for (device, token) in devices.iter().zip(DEVICE_TOKENS) {
            add(device, token).map_err(failed())?;
        }
        let interceptor = Self {
            shared,
            relays,
            inbox: Arc::clone(&inbox),
            devices,
            epoll,
            forwarder: raw(None)?,
            answerer: raw(Some(MARK_OURS))?,
            waiting: HashMap::new(),
            numbers: HashMap::new(),
            next: 0,
            swept: Instant::now(),
        };
        Ok((interceptor, inbox))
    }

    /// Works until it is told to stop.
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
                    token if DEVICE_TOKENS.contains(&token) => {
                        self.read_device(OPENERS[usize::from(token == DEVICE_TOKENS[1])]);
                    }
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

    fn device(&self, opener: Opener) -> &Device {
        &self.devices[usize::from(opener == Opener::Satellite)]
    }

    fn read_device(&mut self, opener: Opener) {
        let mut buffer = [0u8; 2048];
        for _ in 0..SYNS_AT_A_TIME {
            let Ok(length) = self.device(opener).read(&mut buffer) else { return };
            let packet = &buffer[..length.min(buffer.len())];
            if let Some(syn) = packet.get(VIRTIO_HEADER..).and_then(Syn::read) {
                self.arrive(syn, opener, packet);
            }
        }
    }

    /// A client has sent a SYN, for the first time or again.
    fn arrive(&mut self, syn: Syn, opener: Opener, packet: &[u8]) {
        if let Some(waiting) = self.numbers.get(&syn.tuple).and_then(|number| self.waiting.get_mut(number)) {
            waiting.last_seen = Instant::now();
            return;
        }
        if self.shared.ready().contains_key(&syn.tuple) {
            return self.accept(&syn, opener, packet);
        }
        if let Some(why) = self.shared.lacks_room() {
            return self.pass_on(&syn, packet, why);
        }
        if self.is_answered_at_once(&syn, opener) {
            return self.accept(&syn, opener, packet);
        }
        let number = self.next;
        self.next += 1;
        let whole = packet.to_vec();
        match self.dial(number, &syn, opener) {
            Ok(socket) => {
                self.shared.active.fetch_add(1, Ordering::Relaxed);
                self.numbers.insert(syn.tuple, number);
                let last_seen = Instant::now();
                self.waiting.insert(number, Waiting { syn, opener, packet: whole, socket, last_seen });
            }
            // The connection exists already, or has just ended, so that the kernel knows what to answer.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE)) => {
                self.put_back(opener, &whole)
            }
            Err(_) => self.pass_on(&syn, &whole, Reason::Unreachable),
        }
    }

    /// Whether the engine is to answer before the server has.
    fn is_answered_at_once(&self, syn: &Syn, opener: Opener) -> bool {
        let class = self.shared.class(opener, syn.tuple);
        engine::answers(&class) && class.split.syn == Early
    }

    /// Begins the connection to the server. Returns the socket if the kernel makes the connection.
    fn dial(&mut self, number: u64, syn: &Syn, opener: Opener) -> io::Result<Option<OwnedFd>> {
        let class = self.shared.class(opener, syn.tuple);
        if let (Datapath::Engine, Some(engine)) = (class.back().datapath, &self.shared.engine) {
            // If the kernel has no route, packets of the engine would be lost without an error.
            sockets::address_towards(syn.tuple.server.ip())?;
            let inbox = Arc::clone(&self.inbox);
            let answer: Answer = Box::new(move |answer| inbox.send(Message::Answer { number, answer }));
            engine.open(&class.request(syn.tuple, syn.dscp), Opening::Active, answer);
            return Ok(None);
        }
        let socket = sockets::dial(syn.tuple, class.back(), class.split.buffer, syn.dscp)?;
        epoll::add(&self.epoll, &socket, EventData::new_u64(number), EventFlags::OUT)?;
        Ok(Some(socket))
    }

    /// The kernel has connected to a server, or has failed to.
    fn connected(&mut self, number: u64) {
        let Some(socket) = self.waiting.get_mut(&number).and_then(|waiting| waiting.socket.take()) else {
            return;
        };
        let _ = epoll::delete(&self.epoll, &socket);
        let answer = match SockRef::from(&socket).take_error() {
            Ok(None) => Ok(Half::Kernel(Arc::new(socket))),
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
                let since = Instant::now();
                self.shared.ready().insert(waiting.syn.tuple, Established { half, since });
                self.accept(&waiting.syn, waiting.opener, &waiting.packet);
            }
            Err(refusal) => {
                self.shared.active.fetch_sub(1, Ordering::Relaxed);
                self.refuse(&waiting, refusal);
            }
        }
    }

    /// Lets the kernel or the engine answer the client's SYN, as its class says.
    fn accept(&mut self, syn: &Syn, opener: Opener, packet: &[u8]) {
        let class = self.shared.class(opener, syn.tuple);
        let Some(engine) = self.shared.engine.as_ref().filter(|_| engine::answers(&class)) else {
            return self.put_back(opener, packet);
        };
        let (tuple, dscp) = (syn.tuple, syn.dscp);
        let relay = Arc::clone(&self.relays[usize::from(tuple.client.port()) % self.relays.len()]);
        let answer: Answer =
            Box::new(move |answer| relay.send(relay::Message::Front { tuple, opener, dscp, answer }));
        engine.open(&class.request(tuple, dscp), Opening::Passive(&packet[VIRTIO_HEADER..]), answer);
    }

    fn refuse(&mut self, waiting: &Waiting, refusal: Refusal) {
        match refusal {
            Refusal::Refused => {
                self.shared.metrics.refuse();
                // If the RST is lost, the client repeats its SYN.
                let _ = self.answerer.send(&waiting.syn.refusal(), waiting.syn.tuple.client);
            }
            Refusal::TimedOut => {}
            Refusal::Exists => self.put_back(waiting.opener, &waiting.packet),
            Refusal::Unreachable => self.pass_on(&waiting.syn, &waiting.packet, Reason::Unreachable),
            Refusal::Busy => self.pass_on(&waiting.syn, &waiting.packet, Reason::Connections),
        }
    }

    /// Passes a SYN to the listening sockets of the kernel.
    fn put_back(&self, opener: Opener, packet: &[u8]) {
        // If the kernel does not take it, the client repeats its SYN.
        let _ = self.device(opener).write(packet);
    }

    /// Forwards a SYN to the server unchanged.
    fn pass_on(&self, syn: &Syn, packet: &[u8], why: Reason) {
        self.shared.metrics.bypass(why);
        let mut whole = packet[VIRTIO_HEADER..].to_vec();
        syn.complete_checksum(&mut whole);
        let Err(error) = self.forwarder.send(&whole, syn.tuple.server) else { return };
        // This machine is the router that has no route, so it must send the ICMP error.
        if let Some(why) = Unreachable::of(&error)
            && let Ok(router) = sockets::address_towards(syn.tuple.client.ip())
            && let Some(packet) = packet::unreachable(&whole, router, why)
        {
            let _ = self.answerer.send(&packet, syn.tuple.client);
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
                self.shared.active.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let mut ready = self.shared.ready();
        let stale: Vec<Tuple> = ready
            .iter()
            .filter(|(_, half)| half.since.elapsed() > PATIENCE)
            .map(|(tuple, _)| *tuple)
            .collect();
        for tuple in stale {
            if let Some(established) = ready.remove(&tuple) {
                established.half.abort();
                self.shared.active.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}
