//! Test of a stack with random peers. The bytes of an input determine arriving packets, calls of applications and passing time.
//!
//! Random numbers are near the valid numbers of the connection, so that many segments are almost valid. Some are exactly valid,
//! so that connections make progress.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bentpipe_base::{Duration, EcnField, Flags, Instant};
use bentpipe_host::{Id, Limits, Stack, StackConfig};
use bentpipe_tcp::{Config, DelayedAck, EcnMode};
use bentpipe_wire::{Datagram, Ends, Header, IpFields, Offload, Options, Packet, Payload};

use crate::Done;

/// Limits of the stack under test. They are small, so that tests reach them.
const LIMITS: Limits = Limits { connections: 12, half_open: 4, accept_queue: 4, orphans: 6, bytes: 1 << 18 };

/// Port of the listening socket.
const PORT: u16 = 80;
/// Number of peers; half of them use IPv6.
const STRANGERS: usize = 16;
/// Maximum number of packets sent after one event: all segments of all buffers, twice.
const MOST_ANSWERS: u32 = 2 * (LIMITS.bytes as u32) / 32;

/// Source of decisions from the input's bytes; zeros after their end.
struct Dice<'a>(&'a [u8]);

impl Dice<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn long(&mut self) -> u32 {
        u32::from(self.short()) << 16 | u32::from(self.short())
    }
}

/// Information of a peer about its connection.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The peer's next sequence number, and its last acknowledged number.
    own: u32,
    acked: u32,
    /// Next expected sequence number of the stack, and the window that the stack granted.
    theirs: u32,
    window: u16,
    /// Last timestamp of the stack, if it sends timestamps.
    stamp: Option<u32>,
}

struct World {
    stack: Stack,
    now: Instant,
    known: [Known; STRANGERS],
    /// Connections open in an application.
    held: Vec<Id>,
    config: Arc<Config>,
    done: Done,
    packet: Vec<u8>,
}

fn local(is_v6: bool) -> IpAddr {
    if is_v6 { [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into() } else { [192, 0, 2, 1].into() }
}

fn stranger(number: usize) -> SocketAddr {
    let address: IpAddr = if number.is_multiple_of(2) {
        [198, 51, 100, number as u8].into()
    } else {
        [0x2001, 0xdb8, 0, 1, 0, 0, 0, number as u16].into()
    };
    SocketAddr::new(address, 1000)
}

/// Executes an input. Forbidden behaviour panics.
pub fn run(bytes: &[u8]) -> Done {
    let mut dice = Dice(bytes);
    let mut world = World::new(dice.byte());
    while !dice.0.is_empty() {
        world.act(&mut dice);
        world.check();
    }
    world.end();
    world.done
}

impl World {
    fn new(choice: u8) -> Self {
        let config = Config::default().with(|config| {
            config.ecn = [EcnMode::Off, EcnMode::Classic, EcnMode::Accurate][usize::from(choice) % 3];
            config.timestamps = choice & 2 != 0;
            config.window_scaling = choice & 4 != 0;
            config.sender.nagle = choice & 8 != 0;
            if choice & 16 != 0 {
                config.receiver.delayed_ack = DelayedAck::Off;
            }
            if choice & 32 != 0 {
                config.sender.recovery = bentpipe_tcp::Recovery::Sack;
            }
            config.sender.prr = choice & 64 != 0;
        });
        let config = Arc::new(config);
        let mut stack = Stack::new(StackConfig {
            addresses: vec![local(false), local(true)],
            mtu: 1500,
            offload: false,
            key: 1,
            limits: LIMITS,
            transparent: false,
        });
        stack.listen(PORT, Arc::clone(&config));
        let now = Instant::ZERO + Duration::from_secs(1000);
        let known = [Known::default(); STRANGERS];
        Self { stack, now, known, held: Vec::new(), config, done: Done::default(), packet: Vec::new() }
    }

    fn act(&mut self, dice: &mut Dice) {
        match dice.byte() % 16 {
            0..=5 => self.segment(dice),
            6..=8 => self.polite(dice),
            9 => {
                let len = usize::from(dice.byte()).min(dice.0.len());
                let (bytes, rest) = dice.0.split_at(len);
                dice.0 = rest;
                self.arrive(bytes);
            }
            10 | 11 => self.pass(dice),
            12 => self.write(dice),
            13 => self.read(dice),
            14 => self.leave(dice),
            _ => self.report(dice),
        }
        while let Some(id) = self.stack.accept(PORT) {
            self.held.push(id);
        }
        self.drain();
    }

    /// Passes a packet to the stack.
    fn arrive(&mut self, bytes: &[u8]) {
        self.done.packets += 1;
        self.stack.handle_packet(self.now, &Offload::default(), bytes);
        self.drain();
    }

    /// Takes the packets that the stack sends, and stores their numbers.
    fn drain(&mut self) {
        let mut answers = 0;
        let mut out = std::mem::take(&mut self.packet);
        out.clear();
        while self.stack.poll_packet(self.now, &mut out) {
            answers += 1;
            assert!(answers <= MOST_ANSWERS, "the stack answers without end");
            assert!(out.len() <= 1500, "a packet of {} bytes", out.len());
            self.learn(&out);
            out.clear();
        }
        self.packet = out;
        while self.stack.poll_event().is_some() {}
    }

    fn learn(&mut self, packet: &[u8]) {
        let datagram = Datagram::read(packet).expect("what leaves is a packet");
        let (header, payload) = Header::read(datagram.payload).expect("what leaves is TCP");
        let Some(at) = (0..STRANGERS).find(|at| stranger(*at).ip() == datagram.destination) else { return };
        let known = &mut self.known[at];
        let flags = |flag| u32::from(header.flags.contains(flag));
        known.theirs = header.seq.wrapping_add(payload.len() as u32 + flags(Flags::SYN) + flags(Flags::FIN));
        known.window = header.window;
        known.stamp = header.options.timestamps.map(|(value, _)| value);
        if header.flags.contains(Flags::ACK) {
            known.acked = header.ack;
        }
    }

    /// Sends a segment with numbers near the valid ones.
    fn segment(&mut self, dice: &mut Dice) {
        let at = usize::from(dice.byte()) % STRANGERS;
        let known = self.known[at];
        let near = |dice: &mut Dice, choices: [u32; 4]| {
            let base = choices[usize::from(dice.byte()) % 4];
            match dice.byte() {
                0..=127 => base,
                128..=191 => base.wrapping_add(u32::from(dice.byte())),
                192..=223 => base.wrapping_sub(u32::from(dice.byte())),
                224..=247 => base.wrapping_add(u32::from(dice.short())),
                _ => dice.long(),
            }
        };
        let edge = known.acked.wrapping_add(u32::from(known.window));
        let seq = near(dice, [known.own, known.acked, edge, 0]);
        let ack = near(dice, [known.theirs, known.theirs, known.theirs.wrapping_sub(1448), 0]);
        let mut flags = Flags::from_bits_truncate(u16::from(dice.byte()));
        let window =
            [0, 1, 100, 1448, 8000, 65_535, dice.short(), known.window][usize::from(dice.byte()) % 8];
        let len = [0, 0, 1, 100, 1448, usize::from(dice.byte())][usize::from(dice.byte()) % 6];
        let mut options = Options::default();
        let choice = dice.byte();
        flags.set(Flags::AE, choice & 16 != 0);
        if choice & 1 != 0 {
            let value = known.stamp.unwrap_or_default().wrapping_add(u32::from(dice.byte()));
            options.timestamps =
                Some((value, known.stamp.unwrap_or_default().wrapping_sub(u32::from(dice.byte()))));
        }
        if choice & 2 != 0 {
            options.sack_len = 1 + usize::from(choice >> 6);
            for block in &mut options.sack {
                let from = near(dice, [known.theirs, known.theirs.wrapping_sub(1448), ack, 0]);
                *block = (from, from.wrapping_add(u32::from(dice.short())));
            }
        }
        if choice & 4 != 0 || flags.contains(Flags::SYN) {
            options.mss = Some([1, 48, 536, 1460, 65_535, dice.short()][usize::from(dice.byte()) % 6]);
            options.window_scale = Some(dice.byte() % 16);
            options.sack_permitted = choice & 8 != 0;
        }
        if flags.contains(Flags::SYN) {
            self.known[at].own = seq.wrapping_add(1);
        } else if seq == known.own {
            self.known[at].own = seq.wrapping_add(len as u32);
        }
        let ecn = [EcnField::NotCapable, EcnField::L4s, EcnField::Capable, EcnField::Congested]
            [usize::from(choice >> 4) % 4];
        self.send(at, Header { seq, ack, flags, window, options, ..Header::default() }, (ecn, len));
    }

    fn send(&mut self, at: usize, header: Header, (ecn, len): (EcnField, usize)) {
        let remote = stranger(at);
        let ends = Ends { local: remote, remote: SocketAddr::new(local(remote.is_ipv6()), PORT) };
        let mut bytes = Vec::with_capacity(100 + len);
        let payload = &[7; 1448][..len.min(1448)];
        let ip = IpFields { ecn, ..IpFields::default() };
        Packet { ends, ip, tcp: header, payload: Payload::Bytes(payload) }.write_headers(&mut bytes);
        bytes.extend_from_slice(payload);
        self.arrive(&bytes);
    }

    /// Acts as a correct peer: opens a connection, acknowledges everything, and sends the next data.
    fn polite(&mut self, dice: &mut Dice) {
        let at = usize::from(dice.byte()) % STRANGERS;
        let choice = dice.byte();
        let known = self.known[at];
        let options = Options {
            timestamps: known.stamp.map(|stamp| (self.now.as_nanos() as u32, stamp)),
            ..Options::default()
        };
        if choice & 7 == 0 {
            let options = Options {
                mss: Some(1460),
                sack_permitted: true,
                window_scale: Some(7),
                ..Options::default()
            };
            let seq = dice.long();
            self.known[at].own = seq.wrapping_add(1);
            let syn = Header { seq, flags: Flags::SYN, window: 65_535, options, ..Header::default() };
            self.send(at, syn, (EcnField::NotCapable, 0));
            let known = self.known[at];
            let ack = Header { flags: Flags::ACK, window: 65_535, ..Header::default() };
            self.send(at, Header { seq: known.own, ack: known.theirs, ..ack }, (EcnField::NotCapable, 0));
            return;
        }
        let len = if choice & 8 != 0 { 1448 } else { 0 };
        let mut flags = Flags::ACK;
        flags.set(Flags::FIN, choice & 0xf0 == 0xf0);
        self.known[at].own = known.own.wrapping_add(len as u32 + u32::from(flags.contains(Flags::FIN)));
        let header =
            Header { seq: known.own, ack: known.theirs, flags, window: 1000, options, ..Header::default() };
        self.send(at, header, (EcnField::NotCapable, len));
    }

    fn pass(&mut self, dice: &mut Dice) {
        let millis = [1, 10, 40, 200, 1000, 5000, 60_000, 1_000_000][usize::from(dice.byte()) % 8];
        self.advance(Duration::from_millis(millis));
    }

    fn advance(&mut self, span: Duration) {
        let end = self.now + span;
        let mut turns = 0;
        self.drain();
        while self.stack.next_timeout() <= end {
            self.now = self.now.max(self.stack.next_timeout());
            self.stack.handle_timeouts(self.now);
            self.drain();
            turns += 1;
            assert!(turns < 100_000, "deadlines without end");
        }
        self.now = end;
    }

    fn pick(&self, dice: &mut Dice) -> Option<Id> {
        let at = usize::from(dice.byte()).checked_rem(self.held.len())?;
        Some(self.held[at])
    }

    fn write(&mut self, dice: &mut Dice) {
        let Some(id) = self.pick(dice) else { return };
        let len = usize::from(dice.short());
        let taken = self.stack.write(self.now, id, &vec![3; len]);
        assert!(taken <= len);
    }

    fn read(&mut self, dice: &mut Dice) {
        let Some(id) = self.pick(dice) else { return };
        let mut bytes = vec![0; usize::from(dice.short())];
        let read = self.stack.read(self.now, id, &mut bytes);
        // All payload bytes are 7, so the application must read only sevens.
        assert!(bytes[..read].iter().all(|byte| *byte == 7), "what was read never arrived");
    }

    fn leave(&mut self, dice: &mut Dice) {
        let choice = dice.byte();
        if choice & 7 == 7 {
            let remote = stranger(usize::from(choice >> 3) % STRANGERS);
            if let Ok(id) = self.stack.connect(self.now, remote, Config::clone(&self.config)) {
                self.held.push(id);
            }
            return;
        }
        let Some(id) = self.pick(dice) else { return };
        match choice & 3 {
            0 => self.stack.close(self.now, id),
            1 => self.stack.abort(self.now, id),
            2 => self.stack.trim(),
            _ => {
                self.stack.close(self.now, id);
                self.stack.release(id);
                self.held.retain(|held| *held != id);
            }
        }
    }

    /// Sends a router's report about a segment that may be in flight or not.
    fn report(&mut self, dice: &mut Dice) {
        let at = usize::from(dice.byte()) % STRANGERS;
        let remote = stranger(at);
        let is_v6 = remote.is_ipv6();
        let seq = self.known[at].theirs.wrapping_sub(u32::from(dice.short()));
        let ends = Ends { local: SocketAddr::new(local(is_v6), PORT), remote };
        let mut quoted = Vec::new();
        let tcp = Header { seq, ..Header::default() };
        Packet { ends, ip: IpFields::default(), tcp, payload: Payload::Zeros(0) }.write_headers(&mut quoted);
        let mtu = [0, 68, 552, 576, 1280, 1400, dice.short()][usize::from(dice.byte()) % 7];
        let code = dice.byte() % 16;
        let (kind, number) = if is_v6 { (if code == 4 { 2 } else { 1 }, 58) } else { (3, 1) };
        let mut message = vec![kind, if is_v6 && kind == 2 { 0 } else { code }, 0, 0, 0, 0];
        message.extend_from_slice(&mtu.to_be_bytes());
        message.extend_from_slice(&quoted);
        let source = remote.ip();
        let sum = match is_v6 {
            true => bentpipe_wire::Sum::pseudo_header((source, local(true)), number, message.len()),
            false => bentpipe_wire::Sum::default(),
        };
        let checksum = sum.bytes(&message).checksum();
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        let bytes = ip_packet(source, local(is_v6), number, &message);
        self.arrive(&bytes);
    }

    /// Checks the conditions that must always hold.
    fn check(&self) {
        assert!(self.stack.connections() <= LIMITS.connections, "{} connections", self.stack.connections());
        assert!(self.stack.held_bytes() <= LIMITS.bytes, "{} bytes", self.stack.held_bytes());
    }

    /// Checks that the stack frees all memory after the applications ended and the peers are silent.
    fn end(&mut self) {
        for id in std::mem::take(&mut self.held) {
            self.stack.close(self.now, id);
            self.stack.release(id);
        }
        self.advance(Duration::from_secs(2 * 3600));
        while let Some(id) = self.stack.accept(PORT) {
            self.stack.abort(self.now, id);
            self.stack.release(id);
        }
        self.drain();
        assert_eq!(self.stack.connections(), 0, "connections that nobody has");
    }
}

/// Makes an IP packet with a payload.
fn ip_packet(source: IpAddr, destination: IpAddr, number: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let len = (20 + payload.len()) as u16;
            bytes.extend([0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0, 0, 64, number, 0, 0]);
            bytes.extend(source.octets());
            bytes.extend(destination.octets());
            let checksum = bentpipe_wire::Sum::default().bytes(&bytes).checksum();
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let len = payload.len() as u16;
            bytes.extend([0x60, 0, 0, 0, (len >> 8) as u8, len as u8, number, 64]);
            bytes.extend(source.octets());
            bytes.extend(destination.octets());
        }
        _ => unreachable!("both ends are of one IP version"),
    }
    bytes.extend_from_slice(payload);
    bytes
}
