use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};

use super::message::{Kind, Message};
use super::now_ns;
use super::stamped::{Received, StampedSocket};
use crate::error::Error;

/// Maximum number of remembered runs (chosen). The run with the longest silence is forgotten first.
const SESSIONS: usize = 1024;

/// Maximum size of an answered packet in bytes.
const LARGEST: usize = 2048;

/// State of one run at the server.
#[derive(Debug, Default)]
struct Session {
    /// Latest number received.
    latest: u32,
    /// Bit mask of the 64 numbers before it that were received.
    before: u64,
    /// Present packet train.
    train: Train,
    received_ns: u64,
}

/// Packets of a train that have arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    packets: u8,
    /// Number and arrival time of the first packet.
    first: (u32, u64),
}

impl Session {
    /// Records a packet of a train; returns the train after its last packet.
    fn note_train_packet(&mut self, number: u32, packets: u8, received_ns: u64) -> Option<Train> {
        if self.train.packets == 0 {
            self.train.first = (number, received_ns);
        }
        self.train.packets = self.train.packets.saturating_add(1).min(packets);
        (number + 1 == u32::from(packets)).then(|| std::mem::take(&mut self.train))
    }

    /// Records a probe; returns the bit mask of the 64 numbers before it.
    fn note(&mut self, number: u32) -> u64 {
        if number > self.latest {
            let ahead = number - self.latest;
            let with_latest = self.before.checked_shl(1).unwrap_or(0) | 1;
            self.before = with_latest.checked_shl(ahead - 1).unwrap_or(0);
            self.latest = number;
            return self.before;
        }
        let behind = self.latest - number;
        if behind > 0 {
            self.before |= 1_u64.checked_shl(behind - 1).unwrap_or(0);
        }
        self.before.checked_shr(behind).unwrap_or(0)
    }
}

/// Answers probes at `address` forever. An answer is never larger than its request, and there are never more answers
/// than requests.
///
/// # Errors
/// If it cannot listen there.
pub fn serve(address: SocketAddr) -> Result<(), Error> {
    let failed = || Error::at(format!("cannot listen at {address}"));
    let socket = UdpSocket::bind(address).map_err(failed())?;
    let socket = StampedSocket::new(socket).map_err(failed())?;
    let mut sessions: BTreeMap<(SocketAddr, u64), Session> = BTreeMap::new();
    let mut bytes = [0; LARGEST];
    loop {
        // An error here belongs to an earlier answer, for example because the client closed its port.
        let Ok(Received { len, from, at_ns: received_ns }) = socket.receive(&mut bytes) else { continue };
        let Some(message) = Message::read(&bytes[..len]) else { continue };
        let session = session(&mut sessions, (from, message.session), received_ns);
        let mut answer = |kind, before| {
            let reply = Message { kind, received_ns, replied_ns: now_ns(), before, ..message };
            reply.write(&mut bytes);
            // A reply that cannot be sent counts as lost.
            let _ = socket.0.send_to(&bytes[..len], from);
        };
        match message.kind {
            Kind::Probe => answer(Kind::Reply, session.note(message.number)),
            Kind::Train { packets } => {
                let Some(train) = session.note_train_packet(message.number, packets, received_ns) else {
                    continue;
                };
                let distance = message.number.saturating_sub(train.first.0) as u8;
                for index in 0..train.packets {
                    answer(Kind::Echo { index, of: train.packets, distance }, train.first.1);
                }
            }
            Kind::Reply | Kind::Echo { .. } => {}
        }
    }
}

fn session(
    sessions: &mut BTreeMap<(SocketAddr, u64), Session>,
    key: (SocketAddr, u64),
    now_ns: u64,
) -> &mut Session {
    if sessions.len() >= SESSIONS && !sessions.contains_key(&key) {
        let oldest = sessions.iter().min_by_key(|(_, session)| session.received_ns).map(|(key, _)| *key);
        oldest.map(|key| sessions.remove(&key));
    }
    let session = sessions.entry(key).or_default();
    session.received_ns = now_ns;
    session
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_tells_which_probes_came_before() {
        let mut session = Session::default();
        assert_eq!(session.note(0) & 1, 0);
        assert_eq!(session.note(1), 1);
        assert_eq!(session.note(4) & 0b111, 0b100, "2 and 3 are missing, 1 is not");
        assert_eq!(session.note(3) & 0b11, 0b10, "a late one sees those before it");
        assert_eq!(session.note(5) & 0b11111, 0b11011);
        assert_eq!(session.note(1000), 0);
    }
}
