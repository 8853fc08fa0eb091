use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::analysis::{Clocks, Recording, Sample};
use super::message::{Kind, LEN, Message};
use super::now_ns;
use super::stamped::StampedSocket;
use crate::error::Error;

/// Packets of a train (chosen).
const TRAIN_PACKETS: u8 = 32;
/// Payload of a train's packets in bytes.
const TRAIN_PAYLOAD: usize = 1400;
/// IPv4 and UDP headers.
const HEADER_BYTES: usize = 28;
/// Number of trains for the rate (chosen).
const TRAINS: usize = 5;
/// Maximum wait for a reply (chosen: several round trips over a geostationary satellite).
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum wait for another echo after the last one (chosen).
const PAUSE: Duration = Duration::from_millis(300);

/// Configuration of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The server.
    pub server: SocketAddr,
    /// Duration of the measurement.
    pub duration: Duration,
    /// Time between two probes.
    pub interval: Duration,
    /// Knowledge about the clocks.
    pub clocks: Clocks,
}

/// Measures the path to a server that runs [`serve`](super::serve()).
///
/// # Errors
/// If the socket fails, or no reply comes.
pub fn record(plan: &Plan) -> Result<Recording, Error> {
    let failed = || Error::at(format!("cannot measure the path to {}", plan.server));
    let here: SocketAddr =
        if plan.server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(here).map_err(failed())?;
    socket.connect(plan.server).map_err(failed())?;
    let mut client = Client { socket: StampedSocket::new(socket).map_err(failed())?, session: now_ns() };
    let rates = (0..TRAINS).map(|_| client.train()).collect::<Result<Vec<_>, _>>().map_err(failed())?;
    // Probes form a separate run, because their numbers start again.
    client.session += 1;
    let samples = client.probes(plan).map_err(failed())?;
    if samples.iter().all(|sample| sample.arrived_ns.is_none()) {
        let silent = format!("{}: no reply; is `bentpipe record serve` running there?", plan.server);
        return Err(failed()(std::io::Error::new(ErrorKind::TimedOut, silent)));
    }
    let probe_bytes = LEN + HEADER_BYTES;
    Ok(Recording { samples, clocks: plan.clocks, rates, probe_bytes, interval: plan.interval })
}

struct Client {
    socket: StampedSocket,
    session: u64,
}

impl Client {
    /// Sends a packet train. Returns the bottleneck rate there and back in bits per second, from the dispersion of
    /// the train.
    fn train(&mut self) -> std::io::Result<[Option<f64>; 2]> {
        self.session += 1;
        let mut bytes = [0; TRAIN_PAYLOAD];
        for number in 0..u32::from(TRAIN_PACKETS) {
            self.message(Kind::Train { packets: TRAIN_PACKETS }, number).write(&mut bytes);
            self.send(&bytes)?;
        }
        let (mut forth, mut first, mut last) = (None, None, None);
        let mut end = Instant::now() + PATIENCE;
        while let Some((reply, arrived_ns)) = self.receive(end)? {
            end = Instant::now() + PAUSE;
            let Kind::Echo { index, of, distance } = reply.kind else { continue };
            forth = dispersion_rate(distance, reply.before, reply.received_ns);
            first = first.or(Some((index, arrived_ns)));
            last = Some((index, arrived_ns));
            if index + 1 >= of {
                break;
            }
        }
        let back = first
            .zip(last)
            .and_then(|(first, last)| dispersion_rate(last.0.saturating_sub(first.0), first.1, last.1));
        Ok([forth, back])
    }

    fn probes(&mut self, plan: &Plan) -> std::io::Result<Vec<Sample>> {
        let mut bytes = [0; LEN];
        let mut samples: Vec<Sample> = Vec::new();
        let count = (plan.duration.as_secs_f64() / plan.interval.as_secs_f64()).ceil() as u32;
        let begin = Instant::now();
        for number in 0..count {
            while let Some((reply, arrived_ns)) = self.receive(begin + plan.interval * number)? {
                note(&mut samples, &reply, arrived_ns);
            }
            let message = self.message(Kind::Probe, number);
            message.write(&mut bytes);
            samples.push(Sample { sent_ns: message.sent_ns, ..Sample::default() });
            self.send(&bytes)?;
        }
        let end = Instant::now() + PATIENCE;
        while samples.iter().any(|sample| sample.arrived_ns.is_none())
            && let Some((reply, arrived_ns)) = self.receive(end)?
        {
            note(&mut samples, &reply, arrived_ns);
        }
        Ok(samples)
    }

    fn message(&self, kind: Kind, number: u32) -> Message {
        let session = self.session;
        Message { kind, session, number, sent_ns: now_ns(), received_ns: 0, replied_ns: 0, before: 0 }
    }

    /// A path with outages can refuse packets; these count as lost.
    fn send(&self, bytes: &[u8]) -> std::io::Result<()> {
        match self.socket.0.send(bytes) {
            Ok(_) => Ok(()),
            Err(error) if is_passing(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the next reply of this run until `end`, with its arrival time.
    fn receive(&self, end: Instant) -> std::io::Result<Option<(Message, u64)>> {
        let mut bytes = [0; 2048];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.0.set_read_timeout(Some(left))?;
            match self.socket.receive(&mut bytes) {
                Ok(received) => {
                    let reply = Message::read(&bytes[..received.len]);
                    if let Some(reply) = reply.filter(|reply| reply.session == self.session) {
                        return Ok(Some((reply, received.at_ns)));
                    }
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// True if an error describes only the present state of the path, so that the measurement can continue.
fn is_passing(error: &std::io::Error) -> bool {
    use ErrorKind::{
        ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, TimedOut, WouldBlock,
    };
    let passing = [ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, TimedOut, WouldBlock];
    passing.contains(&error.kind())
}

/// Returns the bottleneck rate in bits per second from the arrival times of two packets of a train, `distance`
/// packets apart; `None` if they are too close. Lost packets between them count, because they occupied the link.
fn dispersion_rate(distance: u8, first_ns: u64, last_ns: u64) -> Option<f64> {
    let bits = (usize::from(distance) * (TRAIN_PAYLOAD + HEADER_BYTES) * 8) as f64;
    (distance >= TRAIN_PACKETS / 2 && last_ns > first_ns).then(|| bits * 1e9 / (last_ns - first_ns) as f64)
}

/// Adds a reply to the samples, with its information about earlier probes.
fn note(samples: &mut [Sample], reply: &Message, arrived_ns: u64) {
    let number = reply.number as usize;
    for ahead in (0..64).filter(|bit| reply.before >> bit & 1 == 1) {
        if let Some(earlier) = number.checked_sub(ahead + 1).and_then(|earlier| samples.get_mut(earlier)) {
            earlier.reached = true;
        }
    }
    let Some(sample) = samples.get_mut(number).filter(|sample| sample.arrived_ns.is_none()) else { return };
    sample.reached = true;
    sample.received_ns = reply.received_ns;
    sample.replied_ns = reply.replied_ns;
    sample.arrived_ns = Some(arrived_ns);
}
