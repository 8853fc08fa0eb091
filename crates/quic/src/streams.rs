//! Data in the streams of a connection: what waits to be written, and what has arrived.
//!
//! Messages use one unidirectional stream each. A request and its reply use one bidirectional stream. The first eight bytes of a
//! message are its number, those of a request the length of the reply; all other bytes are zero. A shorter message has only the low
//! bytes of its number.

use std::collections::{BTreeMap, VecDeque};

use bentpipe_transports::datagram::{Reply, Request};
use bentpipe_transports::{Fragment, Message};
use bytes::Bytes;
use noq_proto::{Connection, Dir, StreamId};

/// Payload of all streams.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Bytes at the beginning of a stream that are not zero, if it has that many.
const HEAD: usize = 8;

/// Data that is not written completely.
#[derive(Debug)]
struct Unwritten {
    /// The stream, once it is open.
    stream: Option<StreamId>,
    dir: Dir,
    head: Vec<u8>,
    /// Bytes after the head.
    bytes: u64,
    /// Number of the request.
    number: u32,
}

/// The streams of one end.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    outbox: VecDeque<Unwritten>,
    /// Requests without a complete reply, by stream.
    asked: BTreeMap<StreamId, u32>,
    /// Incoming streams with a head, and those bytes of it that have arrived.
    heads: BTreeMap<StreamId, Vec<u8>>,
    /// Streams of messages that are not acknowledged completely.
    unacknowledged: u64,
    pub deliveries: VecDeque<Fragment>,
    pub replies: VecDeque<Reply>,
}

impl Streams {
    /// Queues a message.
    pub fn send(&mut self, message: Message) {
        let mut head = message.number.to_le_bytes().to_vec();
        head.truncate(message.bytes.min(HEAD as u64) as usize);
        let bytes = message.bytes - head.len() as u64;
        self.outbox.push_back(Unwritten { stream: None, dir: Dir::Uni, head, bytes, number: 0 });
    }

    /// Queues a request. It has at least the bytes that say how long the reply is.
    pub fn ask(&mut self, request: Request) {
        let head = request.reply.to_le_bytes().to_vec();
        let (number, bytes) = (request.number, request.bytes.saturating_sub(HEAD as u64));
        self.outbox.push_back(Unwritten { stream: None, dir: Dir::Bi, head, bytes, number });
    }

    /// True if all messages are acknowledged.
    pub fn are_acknowledged(&self) -> bool {
        self.outbox.is_empty() && self.unacknowledged == 0
    }

    /// A stream is acknowledged completely.
    pub fn note_acknowledged(&mut self, id: StreamId) {
        self.unacknowledged -= u64::from(id.dir() == Dir::Uni);
    }

    /// Ends all streams with their connection.
    pub fn fail(&mut self) {
        let asked = std::mem::take(&mut self.asked).into_values();
        let unasked = self.outbox.drain(..).filter(|data| data.dir == Dir::Bi && data.stream.is_none());
        let failed = asked.chain(unasked.map(|data| data.number));
        self.replies.extend(failed.map(|number| Reply::Failed { number }));
        self.heads.clear();
        self.unacknowledged = 0;
    }

    /// Writes waiting data, as far as the connection has room.
    pub fn write(&mut self, live: &mut Connection) {
        while let Some(data) = self.outbox.front_mut() {
            if data.stream.is_none() {
                let Some(id) = live.streams().open(data.dir) else { return };
                data.stream = Some(id);
                match data.dir {
                    Dir::Uni => self.unacknowledged += 1,
                    Dir::Bi => {
                        self.asked.insert(id, data.number);
                    }
                }
            }
            if !data.write(live) {
                return;
            }
            self.outbox.pop_front();
        }
    }

    /// Reads what a stream has received in order; `is_server` answers complete requests.
    pub fn read(&mut self, live: &mut Connection, id: StreamId, is_server: bool) {
        let mut stream = live.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let has_head = is_server || id.dir() == Dir::Uni;
        let mut head = has_head.then(|| self.heads.remove(&id).unwrap_or_default());
        let before = head.as_ref().map_or(0, Vec::len);
        let mut bytes = 0;
        let is_complete = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    bytes += chunk.bytes.len() as u64;
                    if let Some(head) = &mut head {
                        let missing = HEAD - head.len();
                        head.extend(chunk.bytes.iter().take(missing));
                    }
                }
                end => break matches!(end, Ok(None)),
            }
        };
        // The answer says whether a frame waits; the caller asks for packets anyway.
        let _ = chunks.finalize().should_transmit();
        let Some(head) = head else { return self.note_reply(id, bytes, is_complete) };
        let number = number(&head);
        match id.dir() {
            Dir::Bi if is_complete => self.answer(id, number),
            // An incomplete head is delivered with the rest of it.
            Dir::Uni if is_complete || head.len() == HEAD => {
                let bytes = bytes + if before < HEAD { before as u64 } else { 0 };
                if bytes > 0 {
                    self.deliveries.push_back(Fragment { message: number, stream: 0, bytes: bytes as u32 });
                }
            }
            _ => {}
        }
        if !is_complete {
            self.heads.insert(id, head);
        }
    }

    /// Queues the reply to a request.
    fn answer(&mut self, id: StreamId, bytes: u64) {
        let (stream, dir) = (Some(id), Dir::Bi);
        self.outbox.push_back(Unwritten { stream, dir, head: Vec::new(), bytes, number: 0 });
    }

    fn note_reply(&mut self, id: StreamId, bytes: u64, is_complete: bool) {
        let Some(&number) = self.asked.get(&id) else { return };
        if is_complete {
            self.asked.remove(&id);
        }
        if bytes > 0 {
            self.replies.push_back(Reply::Arrived { number, bytes });
        }
    }
}

/// Returns the number that a head says.
fn number(head: &[u8]) -> u64 {
    head.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Unwritten {
    /// Writes to the open stream. Returns true if the data is complete.
    fn write(&mut self, live: &mut Connection) -> bool {
        let Some(id) = self.stream else { return false };
        let mut writer = live.send_stream(id);
        while !self.head.is_empty() {
            let Ok(written) = writer.write(&self.head) else { return false };
            self.head.drain(..written);
        }
        while self.bytes > 0 {
            let part = self.bytes.min(ZEROS.len() as u64) as usize;
            let mut chunk = [Bytes::from_static(&ZEROS[..part])];
            let Ok(written) = writer.write_chunks(&mut &mut chunk[..]) else { return false };
            self.bytes -= written as u64;
        }
        // Fails only for a stream that the peer has stopped; no end does.
        let _ = writer.finish();
        true
    }
}
