//! Configuration of both ends of a connection.

use std::sync::Arc;

use bentpipe_transports::datagram::Options;
use noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use noq_proto::{ClientConfig, IdleTimeout, NoneTokenStore, ServerConfig, TransportConfig, VarInt};

use crate::control::Factory;
use crate::crypto::{self, Limits};
use crate::random::NoTokens;
use crate::watched::{Seen, Watch};

/// Streams of each kind that a peer may have open at once; the usual limit of HTTP/3.
const STREAMS: u32 = 100;
/// Streams that deliver messages; a video has one per frame.
const MESSAGES: u32 = 10_000;

/// Ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that connects.
    Client,
    /// The end that waits.
    Server,
}

/// Congestion control of an end.
#[derive(Clone, Debug)]
pub enum Control {
    /// CUBIC of the stack.
    StackCubic,
    /// NewReno of the stack.
    StackNewReno,
    /// BBRv3 of the stack. It draws random numbers that no seed decides, so no simulation uses it.
    StackBbr3,
    /// One of Bentpipe's algorithms.
    Own(Box<Factory>),
}

/// Configuration of both ends of a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// Congestion control.
    pub control: Control,
    /// Congestion window of the stack's own controls at the start, in bytes.
    pub initial_window: u64,
    /// Bytes of a segment, the unit of windows in traces.
    pub segment: u32,
    /// Largest UDP payload of the path, at least [`crate::LEAST_PAYLOAD`]. All full packets have it.
    pub payload: u16,
    /// Receive window of a stream and of the connection, in bytes.
    pub receive_window: u64,
    /// Options of the flow.
    pub options: Options,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Control {
    /// Makes the control of another end.
    pub(crate) fn for_another_end(&self) -> Self {
        match self {
            Self::Own(factory) => Self::Own(Box::new(factory.for_another_end())),
            stack => stack.clone(),
        }
    }

    /// Returns the factory of the controllers. `initial_window` is that of the stack's own controls, in bytes.
    pub fn controllers(&self, initial_window: u64) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::Own(factory) => Arc::new(Factory::clone(factory)),
            Self::StackCubic => {
                let mut config = CubicConfig::default();
                config.initial_window(initial_window);
                Arc::new(config)
            }
            Self::StackNewReno => {
                let mut config = NewRenoConfig::default();
                config.initial_window(initial_window);
                Arc::new(config)
            }
            Self::StackBbr3 => {
                let mut config = Bbr3Config::default();
                config.initial_window(initial_window);
                Arc::new(config)
            }
        }
    }
}

impl Config {
    fn transport(&self, seen: Arc<Seen>) -> Arc<TransportConfig> {
        let mut config = TransportConfig::default();
        let window = varint(self.receive_window);
        config.receive_window(window).stream_receive_window(window);
        // The send buffer holds one receive window of the peer, because no more may leave.
        config.send_window(self.receive_window);
        config.max_concurrent_bidi_streams(STREAMS.into()).max_concurrent_uni_streams(MESSAGES.into());
        let idle = self.options.idle_timeout.map(|timeout| varint(timeout.as_nanos() / 1_000_000));
        config.max_idle_timeout(idle.map(IdleTimeout::from));
        // The path MTU is known. A probe of it during the handshake would be in flight until its end, and could prevent that end.
        config.initial_mtu(self.payload).mtu_discovery_config(None);
        let watch = Watch { inner: self.control.controllers(self.initial_window), seen };
        config.congestion_controller_factory(Arc::new(watch));
        config.enable_segmentation_offload(false);
        Arc::new(config)
    }

    pub(crate) fn server(&self, seen: Arc<Seen>) -> ServerConfig {
        let mut config = ServerConfig::new(Arc::new(crypto::Server), Arc::new(NoTokens));
        config.transport_config(self.transport(seen));
        config.validation_token.sent(0);
        config
    }

    pub(crate) fn client(&self, seen: Arc<Seen>) -> ClientConfig {
        let limits = Limits { bytes: self.receive_window, streams: u64::from(STREAMS) };
        let remembered = self.options.resumes.then(|| crypto::remembered(&limits)).flatten();
        let mut config = ClientConfig::new(Arc::new(crypto::Client { remembered }));
        config.transport_config(self.transport(seen));
        config.token_store(Arc::new(NoneTokenStore));
        config
    }
}

fn varint(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}
