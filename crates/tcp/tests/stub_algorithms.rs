//! Services that an algorithm may request from the engine, each tested with a minimal algorithm.

mod common;
#[path = "common/notes.rs"]
mod notes;
#[path = "common/script.rs"]
mod script;

use bentpipe_base::{Extension, Instant, Probe, ProbeTag, Segment};
use bentpipe_cc::{
    Ack, Algorithm, BackOff, CongestionControl, Custom, Feedback, Loss, Path, ProbeKind, ProbeMoment,
    ProbeReply, ProbeRequest, Prober, Reflector, Requirements, Sent, Start, Timeout,
};
use bentpipe_tcp::{Config, DelayedAck, Events, InitialWindow, ReceiveWindow, Recovery, Reflection};
use common::Pair;
use notes::{note, told};
use script::{Script, ms, plain};

/// Algorithm with a constant window of ten segments; flags select the rest.
#[derive(Default)]
struct Double {
    asks_first: Option<ProbeKind>,
    keeps_timer: bool,
    distrusts: bool,
    feedback: u8,
    /// True if the algorithm copies each new segment once, directly after it.
    copies: bool,
    copied: u32,
}

impl CongestionControl for Double {
    fn window(&self) -> f64 {
        10.0
    }

    fn on_ack(&mut self, ack: &Ack, _path: &Path) {
        note(format!("ack {}", ack.acked));
    }

    fn on_loss(&mut self, _loss: &Loss, _path: &Path) {
        note("loss".into());
    }

    fn on_rto(&mut self, timeout: &Timeout, _path: &Path) -> BackOff {
        note(format!("timeout {} {}", timeout.consecutive, timeout.answered));
        BackOff::if_true(!self.keeps_timer)
    }

    fn prober(&mut self) -> Option<&mut dyn Prober> {
        Some(self)
    }

    fn requirements(&self) -> Requirements {
        Requirements { timeout_probes: self.asks_first.is_some(), ..Requirements::default() }
    }

    fn timeout_probe(&mut self, timeout: &Timeout, _path: &Path) -> Option<ProbeKind> {
        let kind = self.asks_first.filter(|_| !timeout.answered);
        if kind.is_some() {
            note(format!("question {}", timeout.consecutive));
        }
        kind
    }

    fn feedback(&mut self) -> Option<&mut dyn Feedback> {
        if self.feedback > 0 { Some(self) } else { None }
    }
}

impl Prober for Double {
    fn next_probe(&mut self, moment: &ProbeMoment, _path: &Path) -> Option<ProbeRequest> {
        if !self.copies || moment.data_sent == std::mem::replace(&mut self.copied, moment.data_sent) {
            return None;
        }
        moment.sent_newest.then_some(ProbeRequest { kind: ProbeKind::Newest, tag: ProbeTag(0) })
    }

    fn follows_each_segment(&self) -> bool {
        self.copies
    }

    fn distrusts_duplicates(&self) -> bool {
        self.distrusts
    }

    fn on_probe_acked(&mut self, reply: &ProbeReply, _path: &Path) {
        note(format!("reply {} {}", reply.tag.0, reply.acked));
    }
}

impl Feedback for Double {
    fn receiver(&self) -> u8 {
        self.feedback
    }

    fn stamp(&mut self, sent: &Sent, _path: &Path) -> Extension {
        Extension::Value(sent.seq)
    }

    fn on_feedback(&mut self, fields: &Extension, _path: &Path) {
        if let Extension::Value(value) = fields {
            note(format!("feedback {value}"));
        }
    }
}

/// Receiver half that returns the last value that it saw.
#[derive(Default)]
struct Mirror(u64);

impl Reflector for Mirror {
    fn on_data(&mut self, _now: Instant, segment: &Segment, duplicate: bool) {
        if let (Extension::Value(value), false) = (segment.extension, duplicate) {
            self.0 = value;
        }
    }

    fn reply(&mut self, _now: Instant) -> Extension {
        Extension::Value(self.0)
    }
}

fn with(build: fn(&Start) -> Box<dyn CongestionControl>) -> Config {
    plain().with(|config| {
        config.sender.cc = Algorithm::Custom(Custom::new("double", build));
        config.sender.initial_window = InitialWindow::Segments(10);
        config.sender.recovery = Recovery::NewReno;
    })
}

fn asks_newest(_: &Start) -> Box<dyn CongestionControl> {
    Box::new(Double { asks_first: Some(ProbeKind::Newest), ..Double::default() })
}

fn asks_for_acks(_: &Start) -> Box<dyn CongestionControl> {
    Box::new(Double { asks_first: Some(ProbeKind::AckPath), ..Double::default() })
}

#[test]
fn a_question_before_a_timeout_is_believed() {
    for (config, question) in [(with(asks_newest), "2001+1000"), (with(asks_for_acks), "ack 1")] {
        let mut end = Script::established(config);
        end.write(3000);
        end.trace();
        told();
        end.wait(300);
        end.write(1000);
        assert_eq!(end.trace(), [question], "and nothing else leaves");
        end.wait(50);
        end.ack(1);
        assert_eq!(told(), ["question 1", "timeout 1 true", "ack 0"], "one expiry");
        assert_eq!(end.trace()[0], "1+1000");
        assert_eq!(end.end.stats().timeouts, 1);
    }
}

#[test]
fn a_question_answered_with_progress_was_no_loss() {
    let mut end = Script::established(with(asks_newest));
    end.write(3000);
    end.wait(350);
    end.trace();
    told();
    end.ack(3001);
    end.write(1000);
    assert_eq!((told(), end.trace()), (vec!["ack 3".to_owned()], vec!["3001+1000".to_owned()]));
}

#[test]
fn a_question_without_an_answer_expires_again() {
    let mut end = Script::established(with(asks_for_acks).with(|config| config.lifetime.retries = 3));
    end.write(1000);
    told();
    end.wait(60_000);
    assert_eq!(told(), ["question 1", "question 2", "question 3"]);
    assert!(end.events.contains(Events::TIMED_OUT));
}

fn keeps_timer(_: &Start) -> Box<dyn CongestionControl> {
    Box::new(Double { keeps_timer: true, ..Double::default() })
}

#[test]
fn who_does_not_back_off_does_not_give_up_earlier() {
    let mut end = Script::established(with(keeps_timer).with(|config| config.lifetime.retries = 4));
    end.write(1000);
    end.trace();
    // In timeouts of 300 ms: four without back-off. Then the engine backs off until 1 + 2 + 4 + 8 have passed, as with regular
    // back-off.
    let mut sent = Vec::new();
    for at in 1..=20 {
        end.wait(300);
        sent.extend(end.trace().iter().map(|_| at));
        assert_eq!(end.events.contains(Events::TIMED_OUT), at >= 19, "after {at} timeouts");
    }
    assert_eq!(sent, [1, 2, 3, 4, 5, 7, 11, 19]);
}

#[test]
fn replies_are_no_duplicate_acks() {
    let mut end = Script::established(with(|_| Box::new(Double::default())));
    end.write(10_000);
    end.trace();
    told();
    for tag in 0..5 {
        end.ack_with(1, |segment| segment.probe = Probe::Reply(ProbeTag(tag)));
    }
    assert_eq!(end.trace(), [""; 0]);
    assert_eq!(told(), ["reply 0 0", "reply 1 0", "reply 2 0", "reply 3 0", "reply 4 0"]);
    (0..3).for_each(|_| end.ack(1));
    assert_eq!(end.trace()[0], "1+1000", "three of the others are");
}

#[test]
fn probes_may_leave_between_segments() {
    let mut end = Script::established(with(|_| Box::new(Double { copies: true, ..Double::default() })));
    end.write(3000);
    assert_eq!(
        end.trace(),
        ["1+1000", "1+1000 probe", "1001+1000", "1001+1000 probe", "2001+1000", "2001+1000 probe"]
    );
    (0..3).for_each(|_| end.ack(1));
    assert_eq!(end.trace(), ["1+1000"], "the segment sent again is not the newest");
}

#[test]
fn an_algorithm_may_distrust_duplicates() {
    let mut end = Script::established(with(|_| Box::new(Double { distrusts: true, ..Double::default() })));
    end.write(10_000);
    end.trace();
    (0..9).for_each(|_| end.ack(1));
    assert_eq!(end.trace(), [""; 0]);
}

fn probe(end: &mut Script, seq: u64, tag: u16) {
    end.ack_with(1, |segment| {
        segment.seq = seq;
        segment.len = 1000;
        segment.probe = Probe::Probe(ProbeTag(tag));
        segment.low_priority = true;
    });
}

#[test]
fn every_probe_has_one_reply_of_low_priority() {
    let mut end = Script::established(plain().with(|config| config.receiver.dsack = true));
    end.data(1, 1000, 1);
    end.trace();
    (7..10).for_each(|tag| probe(&mut end, 1, tag));
    let replies: Vec<_> = end.sent.iter().map(|(_, s)| (s.probe, s.low_priority, s.sack.len())).collect();
    assert_eq!(replies, [7, 8, 9].map(|tag| (Probe::Reply(ProbeTag(tag)), true, 0)));
}

/// A copy of delivered data repairs nothing. A copy that fills or opens a hole carries new data.
#[test]
fn a_probe_that_holds_something_new_is_a_repair() {
    let mut end = Script::established(plain());
    end.data(1, 1000, 1);
    probe(&mut end, 1, 7);
    assert_eq!(end.end.stats().probe_repairs, 0);
    end.data(2001, 1000, 1);
    probe(&mut end, 2001, 8);
    assert_eq!(end.end.stats().probe_repairs, 0);
    probe(&mut end, 1001, 9);
    probe(&mut end, 1001, 10);
    assert_eq!(end.end.stats().probe_repairs, 1);
    probe(&mut end, 4001, 11);
    assert_eq!(end.end.stats().probe_repairs, 2);
    end.data(1001, 1000, 1);
    assert_eq!(end.end.stats().duplicate_segments, 4, "the repetition comes too late");
}

#[test]
fn a_receiver_that_knows_no_probes_answers_with_duplicates() {
    let mut end = Script::established(plain().with(|config| config.receiver.probe_replies = false));
    end.data(1, 1000, 1);
    end.trace();
    probe(&mut end, 1, 7);
    assert_eq!(end.trace(), ["ack 1001"]);
}

#[test]
fn a_probe_after_the_fin_has_its_reply_and_no_more() {
    let mut end = Script::established(plain());
    end.data(1, 1000, 1);
    end.fin(1);
    end.trace();
    probe(&mut end, 1, 7);
    assert_eq!(end.trace(), ["ack 1002 reply"]);
}

/// A reply may be dropped first: it must not replace an ACK.
#[test]
fn a_reply_does_not_replace_a_delayed_ack() {
    let delayed_ack = DelayedAck::On { every: 2, timer: ms(40), quick: 0, after_duplicate: 0 };
    let mut end = Script::established(plain().with(|config| config.receiver.delayed_ack = delayed_ack));
    let start = end.now;
    end.data(1, 1000, 1);
    probe(&mut end, 1, 7);
    end.wait(100);
    assert_eq!(end.timed(start), ["0 ack 1001 reply", "40 ack 1001"]);
}

#[test]
fn fields_travel_with_data_and_come_back_with_acks() {
    let sender = with(|_| Box::new(Double { feedback: 9, ..Double::default() }));
    let reflection = Some(Reflection { number: 9, build: || Box::new(Mirror::default()) });
    for (receiver, expected) in
        [(plain().with(|config| config.receiver.reflection = reflection), true), (plain(), false)]
    {
        let mut pair = Pair::new(sender.clone(), receiver);
        told();
        pair.write(0, 3000);
        pair.run(ms(1000));
        let feedback: Vec<_> = told().into_iter().filter(|line| line.starts_with("feedback")).collect();
        let all = ["feedback 1", "feedback 1001", "feedback 2001"].map(String::from);
        assert_eq!(feedback, if expected { all.to_vec() } else { vec![] });
        let stamped =
            pair.log.iter().any(|(_, end, segment)| *end == 0 && segment.extension != Extension::None);
        assert_eq!(stamped, expected);
    }
}

/// Peach's Sudden Start: dummies leave in the first round trip, and their replies open the window in the second.
#[test]
fn sudden_start_opens_the_window_within_two_round_trips() {
    let config = plain().with(|config| {
        config.sender.cc = Algorithm::from_name("peach").expect("it is registered");
        config.sender.initial_window = InitialWindow::Segments(1);
        config.receiver.receive_window = ReceiveWindow::Fixed(64_000);
        config.sender.recovery = Recovery::Sack;
    });
    let mut pair = Pair::symmetric(config.clone());
    pair.write(0, 1_000_000);
    pair.run(ms(100 + 215));
    let window = pair.ends[0].window_state().cwnd;
    assert!((60.0..=66.0).contains(&window), "{window}");
    assert_eq!(pair.ends[0].stats().probes_sent, 63);
    assert_eq!(pair.ends[0].stats().probes_acked, 63);
    // With a receiver that does not reply it behaves as Reno, and its answers cause no retransmission.
    let mut pair = Pair::new(config.clone(), config.with(|config| config.receiver.probe_replies = false));
    pair.write(0, 300_000);
    pair.run(ms(10_000));
    assert_eq!((pair.delivered(1), pair.ends[0].stats().retransmitted_segments), (300_000, 0));
}
