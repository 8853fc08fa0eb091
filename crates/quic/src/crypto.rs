//! TLS 1.3 without ciphers: messages, sizes and round trips of the handshake, and packets in plain text.
//!
//! Message sizes are those of a typical handshake with an ECDSA certificate chain of two certificates. A resumed handshake has no
//! certificate. Each packet carries 16 bytes in place of the authentication tag of AES-GCM.

use std::any::Any;

use bytes::{Buf, BytesMut};
use noq_proto::coding::Encodable;
use noq_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError, TransportErrorCode, VarInt};

/// Bytes of an authentication tag.
const TAG_BYTES: usize = 16;
/// Packets that AES-GCM may protect, and packets that may fail (RFC 9001, section 6.6).
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// Bytes of the ClientHello.
const CLIENT_HELLO: usize = 320;
/// Bytes that a resumed ClientHello has more: ticket and binder.
const PRE_SHARED_KEY: usize = 270;
/// Bytes of the ServerHello.
const SERVER_HELLO: usize = 122;
/// Bytes of EncryptedExtensions and Finished.
const EXTENSIONS_AND_FINISHED: usize = 150;
/// Bytes of Certificate and CertificateVerify.
const CERTIFICATES: usize = 2_300;
/// Bytes of the client's Finished.
const FINISHED: usize = 36;
/// Bytes of a NewSessionTicket.
const TICKET: usize = 250;

/// Bytes in front of each message: its length, whether it resumes, and the length of the transport parameters.
const PREFIX: usize = 5;

/// Next step of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The client sends ClientHello.
    SendHello,
    /// The server waits for ClientHello, the client for ServerHello.
    AwaitHello,
    /// The server sends ServerHello; the client has read it. Both have the keys of the handshake.
    Hello,
    /// The server sends the rest of its flight.
    SendFlight,
    /// The server waits for Finished, the client for the rest of the server's flight.
    AwaitFlight,
    /// The client sends Finished, the server its ticket.
    SendLast,
    Complete,
}

/// One end of a handshake.
pub(crate) struct Session {
    side: Side,
    step: Step,
    /// True if the connection continues an earlier one, with data in the first flight.
    resumes: bool,
    own: Vec<u8>,
    /// Parameters of the peer: those of the earlier connection until this one's arrive.
    peer: Option<TransportParameters>,
    unread: Vec<u8>,
}

impl Session {
    fn new(side: Side, own: &TransportParameters) -> Self {
        let mut encoded = Vec::new();
        own.write(&mut encoded);
        let step = if side.is_client() { Step::SendHello } else { Step::AwaitHello };
        Self { side, step, resumes: false, own: encoded, peer: None, unread: Vec::new() }
    }

    /// Appends a message of `size` bytes with these transport parameters; at least the size of its content.
    fn put(&self, out: &mut Vec<u8>, size: usize, parameters: &[u8]) {
        let begin = out.len();
        let size = size.max(PREFIX + parameters.len());
        out.extend_from_slice(&(size as u16).to_be_bytes());
        out.push(u8::from(self.resumes));
        out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        out.extend_from_slice(parameters);
        out.resize(begin + size, 0);
    }

    /// Returns the next complete message that has arrived.
    fn take(&mut self) -> Option<Vec<u8>> {
        let size = usize::from(u16::from_be_bytes([*self.unread.first()?, *self.unread.get(1)?]));
        (size >= PREFIX && self.unread.len() >= size).then(|| self.unread.drain(..size).collect())
    }

    fn read_parameters(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let length = usize::from(u16::from_be_bytes([message[3], message[4]]));
        let mut encoded = message.get(PREFIX..PREFIX + length).unwrap_or_default();
        self.peer = Some(TransportParameters::read(self.side, &mut encoded)?);
        Ok(())
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, _: ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.resumes
            .then(|| -> (Box<dyn HeaderKey>, Box<dyn PacketKey>) { (Box::new(Plain), Box::new(Plain)) })
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.side.is_client().then_some(self.resumes)
    }

    fn is_handshaking(&self) -> bool {
        !matches!(self.step, Step::SendLast | Step::Complete)
    }

    fn read_handshake(&mut self, data: &[u8]) -> Result<bool, TransportError> {
        self.unread.extend_from_slice(data);
        while let Some(message) = self.take() {
            match self.step {
                Step::AwaitHello => {
                    if self.side.is_server() {
                        self.resumes = message[2] != 0;
                        self.read_parameters(&message)?;
                    }
                    self.step = Step::Hello;
                }
                Step::AwaitFlight => {
                    if self.side.is_client() {
                        self.read_parameters(&message)?;
                    }
                    self.step = Step::SendLast;
                }
                // A ticket changes nothing: the next connection knows the parameters from its configuration.
                Step::Complete if self.side.is_client() => {}
                _ => return Err(unexpected()),
            }
            // The stack asks for keys between two messages.
            if self.step == Step::Hello && !self.unread.is_empty() {
                return Err(unexpected());
            }
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let (is_client, resumed) = (self.side.is_client(), self.resumes);
        match self.step {
            Step::SendHello => {
                let size = CLIENT_HELLO + if resumed { PRE_SHARED_KEY } else { 0 };
                self.put(out, size, &self.own);
                self.step = Step::AwaitHello;
                None
            }
            Step::Hello if is_client => {
                self.step = Step::AwaitFlight;
                Some(keys())
            }
            Step::Hello => {
                self.put(out, SERVER_HELLO, &[]);
                self.step = Step::SendFlight;
                Some(keys())
            }
            Step::SendFlight => {
                let size = EXTENSIONS_AND_FINISHED + if resumed { 0 } else { CERTIFICATES };
                self.put(out, size, &self.own);
                self.step = Step::AwaitFlight;
                Some(keys())
            }
            Step::SendLast => {
                self.put(out, if is_client { FINISHED } else { TICKET }, &[]);
                self.step = Step::Complete;
                is_client.then(keys)
            }
            Step::AwaitHello | Step::AwaitFlight | Step::Complete => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(KeyPair { local: Box::new(Plain), remote: Box::new(Plain) })
    }

    fn is_valid_retry(&self, _: ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// TLS of clients.
pub(crate) struct Client {
    /// The server's parameters in the connection that is resumed.
    pub remembered: Option<TransportParameters>,
}

impl crypto::ClientConfig for Client {
    fn start_session(
        &self,
        _: u32,
        _: &str,
        own: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let resumes = self.remembered.is_some();
        Ok(Box::new(Session { resumes, peer: self.remembered, ..Session::new(Side::Client, own) }))
    }
}

/// Limits that a server grants at the start, as a client remembers them.
pub(crate) struct Limits {
    /// Bytes in all streams, and in one.
    pub bytes: u64,
    /// Streams of each kind.
    pub streams: u64,
}

/// Returns the parameters that a server with these limits sent in an earlier connection.
pub(crate) fn remembered(limits: &Limits) -> Option<TransportParameters> {
    // Numbers of RFC 9000, section 18.2: initial_max_data, three of initial_max_stream_data, two of initial_max_streams.
    let (bytes, streams) = (limits.bytes, limits.streams);
    let values = [(4, bytes), (5, bytes), (6, bytes), (7, bytes), (8, streams), (9, streams)];
    let mut encoded = Vec::new();
    for (number, value) in values {
        let mut content = Vec::new();
        VarInt::from_u64(value).ok()?.encode(&mut content);
        // Numbers and lengths below 64 are one byte.
        encoded.extend_from_slice(&[number, content.len() as u8]);
        encoded.extend_from_slice(&content);
    }
    TransportParameters::read(Side::Client, &mut encoded.as_slice()).ok()
}

/// TLS of servers.
pub(crate) struct Server;

impl crypto::ServerConfig for Server {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _: u32, own: &TransportParameters) -> Box<dyn crypto::Session> {
        Box::new(Session::new(Side::Server, own))
    }
}

/// The alert of TLS for a message at the wrong time.
fn unexpected() -> TransportError {
    const UNEXPECTED_MESSAGE: u8 = 10;
    TransportError::new(TransportErrorCode::crypto(UNEXPECTED_MESSAGE), "unexpected message".to_owned())
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(Plain), remote: Box::new(Plain) },
        packet: KeyPair { local: Box::new(Plain), remote: Box::new(Plain) },
    }
}

/// The key that protects nothing.
struct Plain;

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        TAG_BYTES
    }
}

impl PacketKey for Plain {
    fn encrypt(&self, _: PathId, _: u64, _: &mut [u8], _: usize) {}
    fn decrypt(&self, _: PathId, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let rest = payload.remaining().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        payload.truncate(rest);
        Ok(())
    }
    fn tag_len(&self) -> usize {
        TAG_BYTES
    }
    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }
    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}
