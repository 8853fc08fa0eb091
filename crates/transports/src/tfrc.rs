//! TFRC as a transport: packets without retransmission, at TCP's rate (RFC 5348).
//!
//! `bentpipe_cc::tfrc` implements rate, reports and loss intervals; this file adds packet sizes and messages. After losses the
//! last part does not complete a message, so the application counts the bytes of each message.

use bentpipe_base::{Extension, Instant, Segment};
use bentpipe_cc::tfrc::{Config, StreamReceiver, StreamSender};

use crate::Progress;
use crate::outbox::{Fragment, Message};
use crate::seen::Seen;

/// TFRC packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// Sequence number.
    number: u64,
    /// Header bytes.
    header: u32,
    content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    /// Part of a message, with its send time in nanoseconds and the fields for the receiver (section 3.2.1).
    Data { message: u64, bytes: u32, left: u64, stamp: Option<u64> },
    /// Report with the echoed time and the measurements (section 3.2.2).
    Report { echo: u64, measured: Option<u64> },
}

impl Pdu {
    pub(crate) fn bytes(&self) -> u32 {
        match self.content {
            Content::Data { bytes, .. } => self.header + bytes,
            Content::Report { .. } => self.header,
        }
    }

    pub(crate) fn is_data(&self) -> bool {
        matches!(self.content, Content::Data { .. })
    }
}

fn value(extension: Extension) -> Option<u64> {
    if let Extension::Value(value) = extension { Some(value) } else { None }
}

fn extension(value: Option<u64>) -> Extension {
    value.map_or(Extension::None, Extension::Value)
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    stream: StreamSender,
    packet_bytes: u32,
    header_bytes: u32,
    is_greedy: bool,
}

impl Sender {
    /// Makes a sender of packets with `packet_bytes` of payload and `header_bytes` of headers, from `start` on. A greedy one has
    /// unlimited data, others send their messages.
    pub fn new(
        config: Config,
        (packet_bytes, header_bytes): (u32, u32),
        is_greedy: bool,
        start: Instant,
    ) -> Self {
        let build = if is_greedy { StreamSender::new } else { StreamSender::fed };
        Self {
            stream: build(config, packet_bytes, start),
            packet_bytes: packet_bytes.max(1),
            header_bytes,
            is_greedy,
        }
    }

    pub(crate) fn write(&mut self, now: Instant, message: Message) {
        let mut rest = if self.is_greedy { 0 } else { message.bytes };
        while rest > 0 {
            let part = rest.min(u64::from(self.packet_bytes)) as u32;
            rest -= u64::from(part);
            self.stream.push(now, message.number, part);
        }
    }

    pub(crate) fn handle(&mut self, now: Instant, pdu: &Pdu) {
        if let Content::Report { echo, measured } = pdu.content {
            let report = Segment { ack: echo, extension: extension(measured), ..Segment::default() };
            self.stream.handle_report(now, &report);
        }
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Pdu> {
        let number = self.stream.sent();
        let Segment { seq: message, ack: left, len: bytes, extension, .. } =
            self.stream.poll_transmit(now)?;
        let content = Content::Data { message, bytes, left, stamp: value(extension) };
        Some(Pdu { number, header: self.header_bytes, content })
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.stream.next_timeout()
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress { sent_packets: self.stream.sent(), srtt: self.stream.srtt(), ..Progress::default() }
    }
}

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Receiver {
    stream: StreamReceiver,
    header_bytes: u32,
    seen: Seen,
    report: Option<Pdu>,
    part: Option<Fragment>,
    progress: Progress,
}

impl Receiver {
    /// Makes a receiver whose reports have `header_bytes` bytes of headers.
    pub fn new(header_bytes: u32) -> Self {
        let (stream, progress) = (StreamReceiver::default(), Progress::default());
        Self { stream, header_bytes, seen: Seen::default(), report: None, part: None, progress }
    }

    pub(crate) fn handle(&mut self, now: Instant, pdu: &Pdu) {
        let Content::Data { message, bytes, left, stamp } = pdu.content else { return };
        if !self.seen.is_new(pdu.number) {
            return;
        }
        self.progress.fresh_packets += 1;
        self.part = Some(Fragment { message, stream: 0, bytes });
        let packet = Segment {
            seq: message,
            ack: left,
            len: bytes,
            extension: extension(stamp),
            ..Segment::default()
        };
        if let Some(Segment { ack: echo, extension, .. }) = self.stream.handle_packet(now, &packet) {
            let content = Content::Report { echo, measured: value(extension) };
            self.report = Some(Pdu { number: 0, header: self.header_bytes, content });
            self.progress.control_packets += 1;
            self.progress.control_bytes += u64::from(self.header_bytes);
        }
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Pdu> {
        self.report.take()
    }

    pub(crate) fn poll_delivery(&mut self) -> Option<Fragment> {
        self.part.take()
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(1_000_000 * ms)
    }

    #[test]
    fn a_message_leaves_in_packets_and_a_copy_is_none() {
        let mut sender = Sender::new(Config::default(), (1000, 52), false, at(0));
        let mut receiver = Receiver::new(52);
        sender.write(at(0), Message { number: 7, stream: 0, bytes: 1500 });
        let first = sender.poll_transmit(at(0)).unwrap();
        assert_eq!((first.bytes(), first.is_data()), (1052, true));
        for _ in 0..2 {
            receiver.handle(at(50), &first);
        }
        let part = Fragment { message: 7, stream: 0, bytes: 1000 };
        assert_eq!((receiver.poll_delivery(), receiver.poll_delivery()), (Some(part), None));
        assert_eq!(receiver.progress().fresh_packets, 1);
        let report = receiver.poll_transmit().unwrap();
        assert_eq!((report.bytes(), report.is_data()), (52, false));
        sender.handle(at(100), &report);
        assert_eq!(sender.progress().srtt, Some(bentpipe_base::Duration::from_millis(100)));
        let second = sender.poll_transmit(at(100)).unwrap();
        assert_eq!((second.bytes(), sender.poll_transmit(at(100))), (552, None));
    }
}
