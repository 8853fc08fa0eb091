//! Transports other than TCP, as agents at hosts and, for some, at nodes on the path.
//!
//! An agent is a pure state machine with the interface of the TCP engine. Events are [`Agent::write`], [`Agent::handle_packet`]
//! and [`Agent::handle_timeout`]. After each event call [`Agent::poll_transmit`] and [`Agent::poll_delivery`] until they return
//! nothing, then [`Agent::next_timeout`]. Inputs are [`Message`]s, outputs are their [`Fragment`]s. Packets are typed, and have
//! the size of their byte encoding.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod admission;
mod counts;
pub mod datagram;
pub mod dtn;
mod outbox;
pub mod petra;
mod ranges;
pub mod sctp;
mod seen;
pub mod stp;
mod tcp_end;
pub mod tfrc;

use bentpipe_base::{Duration, Instant, WindowState};

pub use outbox::{Fragment, Message};

/// Bytes of an IPv4 header, part of every packet.
pub const IP_HEADER: u32 = 20;

/// Configuration of both ends of a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload bytes of a full packet, at least one.
    pub packet_bytes: u32,
    /// Packets sent before the first information about the path, at least one.
    pub initial_window: u32,
    /// Maximum number of packets held by the receiver, at least one.
    pub window: u32,
}

/// Options of a flow for each transport.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Options {
    /// Options of [`admission`].
    pub admission: admission::Options,
    /// Options of [`stp`].
    pub stp: stp::Options,
    /// Options of [`sctp`].
    pub sctp: sctp::Options,
    /// Options of [`dtn`].
    pub dtn: dtn::Policy,
    /// Options of [`petra`].
    pub petra: petra::Options,
    /// Options of QUIC.
    pub quic: datagram::Options,
}

/// Packet between agents.
#[derive(Clone, PartialEq, Debug)]
pub enum Packet {
    /// Packet of [`stp`].
    Stp(stp::Pdu),
    /// Packet of [`sctp`].
    Sctp(sctp::Chunk),
    /// Packet of [`dtn`].
    Dtn(dtn::Pdu),
    /// Packet of [`tfrc`].
    Tfrc(tfrc::Pdu),
    /// Packet of [`admission`].
    Admission(admission::Pdu),
    /// Packet of [`petra`].
    Petra(Box<petra::Pdu>),
    /// A UDP datagram of [`datagram`].
    Datagram(datagram::Datagram),
}

impl Packet {
    /// Returns the size on the wire in bytes, IP header included.
    pub fn bytes(&self) -> u32 {
        match self {
            Self::Stp(pdu) => pdu.bytes(),
            Self::Sctp(chunk) => chunk.bytes(),
            Self::Dtn(pdu) => pdu.bytes(),
            Self::Tfrc(pdu) => pdu.bytes(),
            Self::Admission(pdu) => pdu.bytes(),
            Self::Petra(pdu) => pdu.bytes(),
            Self::Datagram(datagram) => datagram.bytes(),
        }
    }

    /// True if priority queues may drop it first.
    pub fn has_low_priority(&self) -> bool {
        matches!(self, Self::Admission(pdu) if pdu.has_low_priority())
    }

    /// True if it carries payload.
    pub fn is_data(&self) -> bool {
        match self {
            Self::Stp(pdu) => matches!(pdu, stp::Pdu::Data { .. }),
            Self::Sctp(chunk) => matches!(chunk, sctp::Chunk::Data { .. }),
            Self::Dtn(pdu) => pdu.is_data(),
            Self::Tfrc(pdu) => pdu.is_data(),
            Self::Admission(pdu) => pdu.is_data(),
            Self::Petra(pdu) => pdu.is_data(),
            Self::Datagram(datagram) => datagram.is_data,
        }
    }
}

/// Packet that leaves an agent.
#[derive(Clone, PartialEq, Debug)]
pub struct Departure {
    /// Outgoing port: a number for each path to each peer. The packet arrives at the corresponding port of the peer.
    pub port: u8,
    /// Content of the packet.
    pub packet: Packet,
}

/// Counters and state of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Data packets retransmitted.
    pub repeated_packets: u64,
    /// Timer expiries because nothing was received.
    pub timeouts: u64,
    /// Data packets received with new data.
    pub fresh_packets: u64,
    /// Packets sent without payload.
    pub control_packets: u64,
    /// Bytes of packets sent without payload.
    pub control_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// True if all data written was acknowledged.
    pub all_acknowledged: bool,
    /// Reason why some data can never be acknowledged, once all attempts have ended.
    pub incomplete: Option<&'static str>,
    /// Reason why the agent gave up, if it did.
    pub failed: Option<&'static str>,
}

/// One end of a transport.
#[derive(Debug)]
pub enum Agent {
    /// Sending end of [`stp`].
    StpSender(stp::Sender),
    /// Receiving end of [`stp`].
    StpReceiver(stp::Receiver),
    /// Sending end of [`sctp`].
    SctpSender(sctp::Sender),
    /// Receiving end of [`sctp`].
    SctpReceiver(sctp::Receiver),
    /// Sending end of [`tfrc`].
    TfrcSender(tfrc::Sender),
    /// Receiving end of [`tfrc`].
    TfrcReceiver(Box<tfrc::Receiver>),
    /// Sending end of [`admission`].
    AdmissionSender(admission::Sender),
    /// Receiving end of [`admission`].
    AdmissionReceiver(admission::Receiver),
    /// Any agent of [`dtn`].
    Dtn(Box<dtn::Node>),
    /// Any agent of [`petra`].
    Petra(Box<petra::Node>),
    /// Any end of [`datagram`].
    Datagrams(Box<dyn datagram::DatagramEnd>),
}

macro_rules! each {
    ($self:ident, $agent:ident => $call:expr) => {
        match $self {
            Agent::StpSender($agent) => $call,
            Agent::StpReceiver($agent) => $call,
            Agent::SctpSender($agent) => $call,
            Agent::SctpReceiver($agent) => $call,
            Agent::TfrcSender($agent) => $call,
            Agent::TfrcReceiver($agent) => $call,
            Agent::AdmissionSender($agent) => $call,
            Agent::AdmissionReceiver($agent) => $call,
            Agent::Dtn($agent) => $call,
            Agent::Petra($agent) => $call,
            Agent::Datagrams($agent) => $call,
        }
    };
}

impl Agent {
    /// Queues a message at the sending end.
    pub fn write(&mut self, now: Instant, message: Message) {
        match self {
            Self::StpSender(sender) => sender.write(now, message),
            Self::SctpSender(sender) => sender.write(now, message),
            Self::TfrcSender(sender) => sender.write(now, message),
            Self::AdmissionSender(sender) => sender.write(message),
            Self::Dtn(source) => source.write(now, message),
            Self::Petra(source) => source.write(now, message),
            Self::Datagrams(end) => end.write(now, message),
            Self::StpReceiver(_)
            | Self::SctpReceiver(_)
            | Self::TfrcReceiver(_)
            | Self::AdmissionReceiver(_) => {
                debug_assert!(false, "a receiver has nothing to send");
            }
        }
    }

    /// Sends a request at the end of a client.
    pub fn ask(&mut self, now: Instant, request: datagram::Request) {
        match self {
            Self::Datagrams(end) => end.ask(now, request),
            _ => debug_assert!(false, "this transport carries no requests"),
        }
    }

    /// Returns the next event of a reply at the end of a client.
    pub fn poll_reply(&mut self) -> Option<datagram::Reply> {
        if let Self::Datagrams(end) = self { end.poll_reply() } else { None }
    }

    /// Takes the last round-trip sample of a datagram end, with the smoothed round-trip time after it.
    pub fn take_rtt(&mut self) -> Option<(Duration, Duration)> {
        if let Self::Datagrams(end) = self { end.take_rtt() } else { None }
    }

    /// Returns the state of the congestion control of a datagram end if it has changed since the last call.
    pub fn take_window(&mut self) -> Option<WindowState> {
        if let Self::Datagrams(end) = self { end.take_window() } else { None }
    }

    /// Marks the end of the data at the sending end. Transports without connections ignore it.
    pub fn finish(&mut self, now: Instant) {
        match self {
            Self::StpSender(sender) => sender.finish(),
            Self::Petra(source) => source.finish(now),
            _ => {}
        }
    }

    /// Handles a packet at a port. A packet without meaning for this end is ignored.
    pub fn handle_packet(&mut self, now: Instant, port: u8, packet: Packet) {
        match (self, packet) {
            (Self::StpSender(sender), Packet::Stp(pdu)) => sender.handle(now, &pdu),
            (Self::StpReceiver(receiver), Packet::Stp(pdu)) => receiver.handle(&pdu),
            (Self::SctpSender(sender), Packet::Sctp(chunk)) => sender.handle(now, port, &chunk),
            (Self::SctpReceiver(receiver), Packet::Sctp(chunk)) => receiver.handle(now, port, &chunk),
            (Self::TfrcSender(sender), Packet::Tfrc(pdu)) => sender.handle(now, &pdu),
            (Self::TfrcReceiver(receiver), Packet::Tfrc(pdu)) => receiver.handle(now, &pdu),
            (Self::AdmissionSender(sender), Packet::Admission(pdu)) => sender.handle(&pdu),
            (Self::AdmissionReceiver(receiver), Packet::Admission(pdu)) => receiver.handle(&pdu),
            (Self::Dtn(node), Packet::Dtn(pdu)) => node.handle(now, port, &pdu),
            (Self::Petra(node), Packet::Petra(pdu)) => node.handle(now, port, &pdu),
            (Self::Datagrams(end), Packet::Datagram(datagram)) => end.handle(now, datagram),
            _ => {}
        }
    }

    /// Handles the time returned by `next_timeout`.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::StpSender(sender) => sender.handle_timeout(now),
            Self::AdmissionSender(sender) => sender.handle_timeout(now),
            Self::StpReceiver(_)
            | Self::TfrcSender(_)
            | Self::TfrcReceiver(_)
            | Self::AdmissionReceiver(_) => {}
            Self::SctpSender(sender) => sender.handle_timeout(now),
            Self::SctpReceiver(receiver) => receiver.handle_timeout(now),
            Self::Dtn(node) => node.handle_timeout(now),
            Self::Petra(node) => node.handle_timeout(now),
            Self::Datagrams(end) => end.handle_timeout(now),
        }
    }

    /// Returns the next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Departure> {
        let (port, packet) = match self {
            Self::StpSender(sender) => (0, Packet::Stp(sender.poll_transmit(now)?)),
            Self::StpReceiver(receiver) => (0, Packet::Stp(receiver.poll_transmit()?)),
            Self::SctpSender(sender) => sender.poll_transmit(now).map(of_sctp)?,
            Self::SctpReceiver(receiver) => receiver.poll_transmit().map(of_sctp)?,
            Self::TfrcSender(sender) => (0, Packet::Tfrc(sender.poll_transmit(now)?)),
            Self::TfrcReceiver(receiver) => (0, Packet::Tfrc(receiver.poll_transmit()?)),
            Self::AdmissionSender(sender) => (0, Packet::Admission(sender.poll_transmit()?)),
            Self::AdmissionReceiver(receiver) => (0, Packet::Admission(receiver.poll_transmit()?)),
            Self::Dtn(node) => node.poll_transmit(now).map(|(port, pdu)| (port, Packet::Dtn(pdu)))?,
            Self::Petra(node) => {
                node.poll_transmit(now).map(|(port, pdu)| (port, Packet::Petra(Box::new(pdu))))?
            }
            Self::Datagrams(end) => (0, Packet::Datagram(end.poll_transmit(now)?)),
        };
        Some(Departure { port, packet })
    }

    /// Returns the next fragment for the application, in stream order.
    pub fn poll_delivery(&mut self) -> Option<Fragment> {
        match self {
            Self::StpSender(_) | Self::SctpSender(_) | Self::TfrcSender(_) | Self::AdmissionSender(_) => None,
            Self::AdmissionReceiver(receiver) => receiver.poll_delivery(),
            Self::TfrcReceiver(receiver) => receiver.poll_delivery(),
            Self::StpReceiver(receiver) => receiver.poll_delivery(),
            Self::SctpReceiver(receiver) => receiver.poll_delivery(),
            Self::Dtn(node) => node.poll_delivery(),
            Self::Petra(node) => node.poll_delivery(),
            Self::Datagrams(end) => end.poll_delivery(),
        }
    }

    /// Returns the time of the next timeout; [`Instant::FAR_FUTURE`] if the agent only waits for packets.
    pub fn next_timeout(&self) -> Instant {
        match self {
            Self::StpSender(sender) => sender.next_timeout(),
            Self::StpReceiver(_) | Self::TfrcReceiver(_) | Self::AdmissionReceiver(_) => Instant::FAR_FUTURE,
            Self::AdmissionSender(sender) => sender.next_timeout(),
            Self::TfrcSender(sender) => sender.next_timeout(),
            Self::SctpSender(sender) => sender.next_timeout(),
            Self::SctpReceiver(receiver) => receiver.next_timeout(),
            Self::Dtn(node) => node.next_timeout(),
            Self::Petra(node) => node.next_timeout(),
            Self::Datagrams(end) => end.next_timeout(),
        }
    }

    /// Returns counters and state.
    pub fn progress(&self) -> Progress {
        each!(self, agent => agent.progress())
    }
}

fn of_sctp((port, chunk): (u8, sctp::Chunk)) -> (u8, Packet) {
    (port, Packet::Sctp(chunk))
}
