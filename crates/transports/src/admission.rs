//! Datagrams with measurement-based admission control: a stream begins only after low-priority probes have shown free capacity.
//!
//! G. Bianchi, A. Capone, C. Petrioli, "Throughput Analysis of End-to-End Measurement-Based Admission Control in IP", IEEE
//! INFOCOM 2000, cited by TCP-Peach for its low-priority packets. `papers/admission.md` lists the deviations.

use bentpipe_base::{Duration, Instant, Rate};

use crate::outbox::Outbox;
use crate::seen::Seen;
use crate::{Config, Fragment, IP_HEADER, Message, Progress};

/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;
/// Maximum queueing time of the last probe, in queues that serve low priority last.
const GRACE: Duration = Duration::from_millis(500);
/// Interval between two questions, and their maximum number.
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_QUESTIONS: u32 = 5;

/// Options of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Probing rate on the wire: the maximum rate of the stream.
    pub rate: Rate,
    /// Duration of the probing.
    pub probe: Duration,
    /// Fraction of the probes that may be lost, from 0 to 1.
    pub threshold: f64,
}

impl Default for Options {
    /// Defaults for the default video plus 25 %. The video has 31 packets per second, of which one may be lost.
    fn default() -> Self {
        Self { rate: Rate::from_bps(250_000), probe: Duration::from_secs(2), threshold: 0.02 }
    }
}

/// A packet of this transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// Sequence number.
    number: u64,
    content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    /// A probe of low priority with this many bytes of padding.
    Probe(u32),
    /// Question of the sender, with the number of probes sent.
    Question(u64),
    /// Answer of the receiver, with the number of probes that arrived.
    Answer(u64),
    /// A part of a message.
    Data(Fragment),
}

impl Pdu {
    pub(crate) fn bytes(&self) -> u32 {
        let payload = match self.content {
            Content::Probe(bytes) => bytes,
            Content::Question(_) | Content::Answer(_) => 8,
            Content::Data(fragment) => fragment.bytes,
        };
        IP_HEADER + UDP_HEADER + payload
    }

    pub(crate) fn has_low_priority(&self) -> bool {
        matches!(self.content, Content::Probe(_))
    }

    pub(crate) fn is_data(&self) -> bool {
        matches!(self.content, Content::Probe(_) | Content::Data(_))
    }
}

/// Stage of the admission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Probing; the next probe leaves at this time.
    Probing(Instant),
    /// Asking; the next question leaves at this time, after this many questions.
    Asking(Instant, u32),
    Admitted,
    Refused,
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    options: Options,
    packet_bytes: u32,
    begins: Instant,
    stage: Stage,
    probes: u64,
    due: Option<Content>,
    /// Number of packets sent.
    sent: u64,
    outbox: Outbox,
    progress: Progress,
}

impl Sender {
    /// Makes a sender that begins probing at `start`.
    pub fn new(config: Config, options: Options, start: Instant) -> Self {
        Self {
            options,
            packet_bytes: config.packet_bytes,
            begins: start,
            stage: Stage::Probing(start),
            probes: 0,
            due: None,
            sent: 0,
            outbox: Outbox::default(),
            progress: Progress::default(),
        }
    }

    /// Queues a message. Messages before the admission are discarded, because the stream is live.
    pub(crate) fn write(&mut self, message: Message) {
        if self.stage == Stage::Admitted {
            self.outbox.push(message);
        }
    }

    pub(crate) fn handle(&mut self, pdu: &Pdu) {
        if let (Content::Answer(arrived), Stage::Asking(..)) = (pdu.content, self.stage) {
            let lost = self.probes.saturating_sub(arrived) as f64 / self.probes as f64;
            self.decide(lost <= self.options.threshold);
        }
    }

    fn decide(&mut self, admitted: bool) {
        self.stage = if admitted { Stage::Admitted } else { Stage::Refused };
        self.progress.failed = (!admitted).then_some("not admitted");
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        match self.stage {
            Stage::Probing(at) | Stage::Asking(at, _) => at,
            Stage::Admitted | Stage::Refused => Instant::FAR_FUTURE,
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self.stage {
            Stage::Probing(at) if at <= now => {
                self.due = Some(Content::Probe(self.packet_bytes));
                self.probes += 1;
                // Computed from the start time, so that rounding errors do not accumulate.
                let bytes = u64::from(IP_HEADER + UDP_HEADER + self.packet_bytes);
                let sent = self.probes.saturating_mul(bytes);
                let next = self.begins + self.options.rate.time_for(sent);
                let over = next >= self.begins + self.options.probe;
                self.stage = if over { Stage::Asking(next + GRACE, 0) } else { Stage::Probing(next) };
            }
            Stage::Asking(at, asked) if at <= now && asked < MOST_QUESTIONS => {
                self.due = Some(Content::Question(self.probes));
                self.stage = Stage::Asking(now + PATIENCE, asked + 1);
            }
            // Without an answer the stream is refused.
            Stage::Asking(at, _) if at <= now => self.decide(false),
            _ => {}
        }
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Pdu> {
        let content = match self.due.take() {
            Some(due) => due,
            None => Content::Data(self.outbox.fragment(self.packet_bytes)?),
        };
        let pdu = Pdu { number: self.sent, content };
        self.sent += 1;
        if let Content::Data(_) = content {
            self.progress.sent_packets += 1;
        } else {
            self.progress.control_packets += 1;
            self.progress.control_bytes += u64::from(pdu.bytes());
        }
        Some(pdu)
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }
}

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    seen: Seen,
    probes: u64,
    answer: Option<Pdu>,
    part: Option<Fragment>,
    progress: Progress,
}

impl Receiver {
    pub(crate) fn handle(&mut self, pdu: &Pdu) {
        if !self.seen.is_new(pdu.number) {
            return;
        }
        match pdu.content {
            Content::Probe(_) => self.probes += 1,
            Content::Question(_) => {
                self.answer = Some(Pdu { number: 0, content: Content::Answer(self.probes) });
            }
            Content::Data(fragment) => {
                self.progress.fresh_packets += 1;
                self.part = Some(fragment);
            }
            Content::Answer(_) => {}
        }
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Pdu> {
        self.answer.take()
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

    const CONFIG: Config = Config { packet_bytes: 972, initial_window: 1, window: 1 };

    fn message(number: u64) -> Message {
        Message { number, stream: 0, bytes: 1500 }
    }

    /// Probes for a second at 80 kbit/s: ten packets of 1000 bytes, of which the first `lost` are lost.
    fn asked(lost: usize) -> (Sender, Receiver) {
        let options = Options { rate: Rate::from_bps(80_000), probe: Duration::from_secs(1), threshold: 0.1 };
        let mut sender = Sender::new(CONFIG, options, Instant::ZERO);
        let mut receiver = Receiver::default();
        sender.write(message(1));
        let mut probes = 0;
        while let Stage::Probing(at) = sender.stage {
            sender.handle_timeout(at);
            let probe = sender.poll_transmit().unwrap();
            assert!(probe.has_low_priority() && probe.bytes() == 1000);
            probes += 1;
            if probes > lost {
                receiver.handle(&probe);
            }
        }
        assert_eq!(probes, 10);
        (sender, receiver)
    }

    fn answered((mut sender, mut receiver): (Sender, Receiver)) -> Sender {
        let at = sender.next_timeout();
        assert_eq!(at, Instant::ZERO + Duration::from_millis(1500));
        sender.handle_timeout(at);
        receiver.handle(&sender.poll_transmit().unwrap());
        sender.handle(&receiver.poll_transmit().unwrap());
        sender
    }

    #[test]
    fn a_stream_whose_probes_arrive_is_sent_from_then_on() {
        let mut sender = answered(asked(1));
        assert_eq!((sender.poll_transmit(), sender.next_timeout()), (None, Instant::FAR_FUTURE));
        sender.write(message(2));
        let parts: Vec<_> = std::iter::from_fn(|| sender.poll_transmit()).map(|pdu| pdu.bytes()).collect();
        assert_eq!(parts, [1000, 556]);
        assert_eq!((sender.progress().sent_packets, sender.progress().failed), (2, None));
    }

    #[test]
    fn a_stream_that_would_find_no_room_is_not_sent() {
        let mut sender = answered(asked(2));
        sender.write(message(2));
        assert_eq!((sender.poll_transmit(), sender.progress().failed), (None, Some("not admitted")));
    }

    #[test]
    fn a_question_without_an_answer_is_repeated_and_then_given_up() {
        let (mut sender, _) = asked(0);
        let mut questions = 0;
        while sender.next_timeout() < Instant::FAR_FUTURE {
            sender.handle_timeout(sender.next_timeout());
            questions += sender.poll_transmit().iter().count();
        }
        assert_eq!((questions, sender.progress().failed), (5, Some("not admitted")));
    }

    /// Copies made by the network count neither as probes nor as data.
    #[test]
    fn a_copy_is_none() {
        let mut receiver = Receiver::default();
        let part = Fragment { message: 3, stream: 0, bytes: 100 };
        for content in [Content::Probe(972), Content::Data(part)] {
            let number = u64::from(content != Content::Probe(972));
            (0..2).for_each(|_| receiver.handle(&Pdu { number, content }));
        }
        assert_eq!((receiver.poll_delivery(), receiver.poll_delivery()), (Some(part), None));
        assert_eq!((receiver.probes, receiver.progress().fresh_packets), (1, 1));
    }
}
