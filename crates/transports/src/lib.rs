//! Transports other than TCP, as agents at hosts and, for some of them, at nodes on the path.
//!
//! An agent is a pure state machine with the contract of TCP's engine: something happens to it ([`Agent::write`], [`Agent::handle_packet`],
//! [`Agent::handle_timeout`]), then [`Agent::poll_transmit`] and [`Agent::poll_delivery`] until they return nothing, then
//! [`Agent::next_timeout`]. What it is given are [`Message`]s, what it hands over are their [`Fragment`]s. Packets are typed, and have the size that they
//! would have as bytes.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod admission;
mod counts;
pub mod dtn;
mod outbox;
pub mod petra;
mod ranges;
pub mod sctp;
mod seen;
pub mod stp;
mod tcp_end;
pub mod tfrc;

use bentpipe_base::{Duration, Instant};

pub use outbox::{Fragment, Message};

/// Size of an IPv4 header, part of every packet.
pub const IP_HEADER: u32 = 20;

/// What the two ends of a transport agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Payload of a full packet, at least one byte.
    pub packet_bytes: u32,
    /// Packets sent before anything is known of the path, at least one.
    pub initial_window: u32,
    /// Packets that the receiver holds at most, at least one.
    pub window: u32,
}

/// What a flow chooses of its transport, for each.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Options {
    /// Of [`admission`].
    pub admission: admission::Options,
    /// Of [`stp`].
    pub stp: stp::Options,
    /// Of [`sctp`].
    pub sctp: sctp::Options,
    /// Of [`dtn`].
    pub dtn: dtn::Policy,
    /// Of [`petra`].
    pub petra: petra::Options,
}

/// A packet between agents.
#[derive(Clone, PartialEq, Debug)]
pub enum Packet {
    /// Of [`stp`].
    Stp(stp::Pdu),
    /// Of [`sctp`].
    Sctp(sctp::Chunk),
    /// Of [`dtn`].
    Dtn(dtn::Pdu),
    /// Of [`tfrc`].
    Tfrc(tfrc::Pdu),
    /// Of [`admission`].
    Admission(admission::Pdu),
    /// Of [`petra`].
    Petra(Box<petra::Pdu>),
}

impl Packet {
    /// Size on the wire from the IP header on.
    pub fn bytes(&self) -> u32 {
        match self {
            Self::Stp(pdu) => pdu.bytes(),
            Self::Sctp(chunk) => chunk.bytes(),
            Self::Dtn(pdu) => pdu.bytes(),
            Self::Tfrc(pdu) => pdu.bytes(),
            Self::Admission(pdu) => pdu.bytes(),
            Self::Petra(pdu) => pdu.bytes(),
        }
    }

    /// Whether queues with priorities may drop it in favour of others.
    pub fn has_low_priority(&self) -> bool {
        matches!(self, Self::Admission(pdu) if pdu.has_low_priority())
    }

    /// Whether it carries payload.
    pub fn is_data(&self) -> bool {
        match self {
            Self::Stp(pdu) => matches!(pdu, stp::Pdu::Data { .. }),
            Self::Sctp(chunk) => matches!(chunk, sctp::Chunk::Data { .. }),
            Self::Dtn(pdu) => pdu.is_data(),
            Self::Tfrc(pdu) => pdu.is_data(),
            Self::Admission(pdu) => pdu.is_data(),
            Self::Petra(pdu) => pdu.is_data(),
        }
    }
}

/// A packet that leaves an agent.
#[derive(Clone, PartialEq, Debug)]
pub struct Departure {
    /// The port by which it leaves: a number for each path to each peer. It arrives at the corresponding port of the peer.
    pub port: u8,
    /// The packet.
    pub packet: Packet,
}

/// What an agent counted, and how it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    /// Data packets sent, repetitions included.
    pub sent_packets: u64,
    /// Those that were sent before.
    pub repeated_packets: u64,
    /// Timers that expired because nothing was received.
    pub timeouts: u64,
    /// Data packets received that brought something new.
    pub fresh_packets: u64,
    /// Packets sent that carry no payload.
    pub control_packets: u64,
    /// Bytes of those.
    pub control_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Everything given to it was acknowledged.
    pub all_acknowledged: bool,
    /// Why something given to it never will be acknowledged, once nothing is left to try.
    pub incomplete: Option<&'static str>,
    /// Why it gave up, if it did.
    pub failed: Option<&'static str>,
}

/// One end of a transport.
#[derive(Debug)]
pub enum Agent {
    /// The end of [`stp`] that sends.
    StpSender(stp::Sender),
    /// The end of [`stp`] that receives.
    StpReceiver(stp::Receiver),
    /// The end of [`sctp`] that sends.
    SctpSender(sctp::Sender),
    /// The end of [`sctp`] that receives.
    SctpReceiver(sctp::Receiver),
    /// The end of [`tfrc`] that sends.
    TfrcSender(tfrc::Sender),
    /// The end of [`tfrc`] that receives.
    TfrcReceiver(Box<tfrc::Receiver>),
    /// The end of [`admission`] that sends.
    AdmissionSender(admission::Sender),
    /// The end of [`admission`] that receives.
    AdmissionReceiver(admission::Receiver),
    /// Any agent of [`dtn`].
    Dtn(Box<dtn::Node>),
    /// Any agent of [`petra`].
    Petra(Box<petra::Node>),
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
        }
    };
}

impl Agent {
    /// Gives the sending end something to send.
    pub fn write(&mut self, now: Instant, message: Message) {
        match self {
            Self::StpSender(sender) => sender.write(now, message),
            Self::SctpSender(sender) => sender.write(now, message),
            Self::TfrcSender(sender) => sender.write(now, message),
            Self::AdmissionSender(sender) => sender.write(message),
            Self::Dtn(source) => source.write(now, message),
            Self::Petra(source) => source.write(now, message),
            Self::StpReceiver(_)
            | Self::SctpReceiver(_)
            | Self::TfrcReceiver(_)
            | Self::AdmissionReceiver(_) => {
                debug_assert!(false, "a receiver has nothing to send");
            }
        }
    }

    /// Nothing more will be given to the sending end. Transports without connections ignore it.
    pub fn finish(&mut self, now: Instant) {
        match self {
            Self::StpSender(sender) => sender.finish(),
            Self::Petra(source) => source.finish(now),
            _ => {}
        }
    }

    /// A packet arrived at a port. One that means nothing to this end is ignored.
    pub fn handle_packet(&mut self, now: Instant, port: u8, packet: &Packet) {
        match (self, packet) {
            (Self::StpSender(sender), Packet::Stp(pdu)) => sender.handle(now, pdu),
            (Self::StpReceiver(receiver), Packet::Stp(pdu)) => receiver.handle(pdu),
            (Self::SctpSender(sender), Packet::Sctp(chunk)) => sender.handle(now, port, chunk),
            (Self::SctpReceiver(receiver), Packet::Sctp(chunk)) => receiver.handle(now, port, chunk),
            (Self::TfrcSender(sender), Packet::Tfrc(pdu)) => sender.handle(now, pdu),
            (Self::TfrcReceiver(receiver), Packet::Tfrc(pdu)) => receiver.handle(now, pdu),
            (Self::AdmissionSender(sender), Packet::Admission(pdu)) => sender.handle(pdu),
            (Self::AdmissionReceiver(receiver), Packet::Admission(pdu)) => receiver.handle(pdu),
            (Self::Dtn(node), Packet::Dtn(pdu)) => node.handle(now, port, pdu),
            (Self::Petra(node), Packet::Petra(pdu)) => node.handle(now, port, pdu),
            _ => {}
        }
    }

    /// A time came that it asked for.
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
        }
    }

    /// The next packet to leave.
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
        };
        Some(Departure { port, packet })
    }

    /// The next piece for the application, in the order of its stream.
    pub fn poll_delivery(&mut self) -> Option<Fragment> {
        match self {
            Self::StpSender(_) | Self::SctpSender(_) | Self::TfrcSender(_) | Self::AdmissionSender(_) => None,
            Self::AdmissionReceiver(receiver) => receiver.poll_delivery(),
            Self::TfrcReceiver(receiver) => receiver.poll_delivery(),
            Self::StpReceiver(receiver) => receiver.poll_delivery(),
            Self::SctpReceiver(receiver) => receiver.poll_delivery(),
            Self::Dtn(node) => node.poll_delivery(),
            Self::Petra(node) => node.poll_delivery(),
        }
    }

    /// When it wants to be called; [`Instant::FAR_FUTURE`] if it waits for a packet only.
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
        }
    }

    /// What it counted, and how it is.
    pub fn progress(&self) -> Progress {
        each!(self, agent => agent.progress())
    }
}

fn of_sctp((port, chunk): (u8, sctp::Chunk)) -> (u8, Packet) {
    (port, Packet::Sctp(chunk))
}
