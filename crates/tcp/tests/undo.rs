//! Undo of spurious reductions as packet traces: a window of ten segments of 1000 bytes, a round trip of 100 ms. D-SACK (RFC
//! 3708) and timestamps (RFC 3522) are the evidence.

#[path = "common/script.rs"]
mod script;

use bentpipe_base::{Flags, SackRange, Segment};
use bentpipe_tcp::{Config, EcnMode, InitialWindow, Pacing, Recovery, SpuriousTimeout};
use script::{Script, plain};

fn config(recovery: Recovery) -> Config {
    plain().with(|config| {
        config.sender.recovery = recovery;
        config.sender.initial_window = InitialWindow::Segments(10);
        config.timestamps = true;
    })
}

/// Makes an end that sent ten segments 100 ms ago. Also returns their timestamp.
fn flight(config: Config, bytes: u64) -> (Script, u32) {
    let mut end = Script::established(config);
    let sent = end.clock();
    end.write(bytes);
    end.trace();
    end.wait(100);
    (end, sent)
}

/// Delivers an ACK with these ranges and this echo.
fn ack(end: &mut Script, ack: u64, ranges: &[(u64, u64)], echo: u32) {
    let value = end.clock();
    end.ack_with(ack, |segment| {
        ranges.iter().for_each(|&(start, end)| segment.sack.push(SackRange { start, end }));
        segment.timestamps = Some((value, echo));
    });
}

/// Three segments overtake the first, which counts as lost. Returns the time of the repair.
fn mistaken(config: Config) -> (Script, u32, u32) {
    let (mut end, sent) = flight(config, 50_000);
    [2001, 3001, 4001].into_iter().for_each(|top| ack(&mut end, 1, &[(1001, top)], sent));
    assert_eq!((end.trace(), end.window()), (vec!["1+1000".into()], 5.0));
    let repaired = end.clock();
    end.wait(10);
    (end, sent, repaired)
}

const WITH_SACK: [Recovery; 2] = [Recovery::Sack, Recovery::Rack];

#[test]
fn an_echo_older_than_the_repair_takes_a_fast_retransmit_back() {
    for recovery in WITH_SACK {
        let (mut end, sent, repaired) = mistaken(config(recovery));
        ack(&mut end, 4001, &[], sent);
        assert_eq!((end.end.stats().undone, end.window() >= 10.0), (1, true), "{recovery:?}");
        assert!(end.trace().iter().all(|line| line.starts_with('1')), "new data only");
        let (mut end, ..) = mistaken(config(recovery));
        ack(&mut end, 4001, &[], repaired);
        assert_eq!((end.end.stats().undone, end.window()), (0, 5.0), "the repair filled the hole");
    }
}

/// Without SACK, duplicate ACKs prove the loss, and timestamps disprove it.
#[test]
fn timestamps_do_without_sack() {
    let (mut end, sent) = flight(config(Recovery::NewReno), 50_000);
    (0..3).for_each(|_| ack(&mut end, 1, &[], sent));
    assert_eq!(end.trace(), ["1+1000"]);
    end.wait(10);
    ack(&mut end, 5001, &[], sent);
    assert_eq!((end.end.stats().undone, end.window() >= 10.0), (1, true));
}

#[test]
fn a_report_of_the_repair_as_a_duplicate_takes_it_back() {
    for (recovery, ended) in WITH_SACK.into_iter().flat_map(|recovery| [(recovery, false), (recovery, true)])
    {
        let (mut end, ..) = mistaken(Config { timestamps: false, ..config(recovery) });
        let reached = if ended { 10_001 } else { 4001 };
        end.ack(reached);
        assert_eq!((end.end.stats().undone, end.window() < 6.0), (0, true), "{recovery:?}");
        end.trace();
        end.wait(100);
        end.sack(reached, &[(1, 1001)]);
        assert_eq!((end.end.stats().undone, end.window() >= 10.0), (1, true), "{recovery:?}, ended: {ended}");
        end.sack(reached, &[(1, 1001)]);
        assert_eq!(end.end.stats().undone, 1, "once");
    }
}

/// RFC 3708 section 3: every repair must have been needless.
#[test]
fn one_duplicate_of_two_repairs_proves_nothing() {
    for recovery in WITH_SACK {
        let (mut end, _) = flight(Config { timestamps: false, ..config(recovery) }, 50_000);
        [(1001, 2001), (3001, 4001), (3001, 5001), (3001, 6001), (3001, 10_001)].into_iter().for_each(
            |range| {
                end.sack(1, &[range, (1001, 2001)]);
            },
        );
        let repairs = end.trace().into_iter().filter(|line| line == "1+1000" || line == "2001+1000").count();
        assert_eq!(repairs, 2, "{recovery:?}");
        end.wait(100);
        end.sack(2001, &[(1, 1001), (3001, 10_001)]);
        assert_eq!(end.end.stats().undone, 0, "{recovery:?}");
        end.sack(10_001, &[(2001, 3001)]);
        assert_eq!(end.end.stats().undone, 1, "{recovery:?}: both");
    }
}

/// RFC 4015 step 5: the path is congested, even if segments were only late.
#[test]
fn a_mark_forbids_it() {
    let (mut end, sent, _) = mistaken(Config { ecn: EcnMode::Classic, ..config(Recovery::Rack) });
    end.ack_with(4001, |segment: &mut Segment| {
        segment.flags |= Flags::ECE;
        segment.timestamps = Some((2000, sent));
    });
    assert_eq!(end.end.stats().undone, 0);
    end.wait(10);
    end.sack(4001, &[(1, 1001)]);
    assert_eq!(end.end.stats().undone, 0);
}

#[test]
fn it_can_be_switched_off_and_then_forgets() {
    let (mut end, sent, _) = mistaken(config(Recovery::Rack).with(|config| config.sender.undo = false));
    ack(&mut end, 4001, &[], sent);
    ack(&mut end, 4001, &[(1, 1001)], sent);
    assert_eq!((end.end.stats().undone, end.window()), (0, 5.0));
}

/// The report of a repair arrives before the ACK of data sent after the recovery. Later reports are no evidence.
#[test]
fn a_late_duplicate_says_nothing() {
    let next = |end: &Script| {
        let stats = end.end.stats();
        stats.sent_bytes - 1000 * stats.retransmitted_segments + 1
    };
    for (windows, undone) in [(1, 1), (2, 0)] {
        let (mut end, ..) = mistaken(Config { timestamps: false, ..config(Recovery::Sack) });
        let mut acknowledged = 0;
        for _ in 0..windows {
            acknowledged = next(&end);
            end.wait(100);
            end.ack(acknowledged);
        }
        end.sack(acknowledged, &[(1, 1001)]);
        assert_eq!(end.end.stats().undone, undone, "{windows}");
    }
}

/// RFC 5682 needs new data and a second ACK, which the last segment lacks. Timestamps or a duplicate report also prove it.
#[test]
fn the_timeout_of_a_lone_segment_is_taken_back() {
    let lone = |timestamps| {
        let mut end = Script::established(Config { timestamps, ..config(Recovery::Sack) });
        let sent = end.clock();
        end.write(1000);
        end.wait(310);
        assert_eq!((end.end.stats().timeouts, end.window()), (1, 1.0));
        (end, sent)
    };
    let (mut end, sent) = lone(true);
    ack(&mut end, 1001, &[], sent);
    assert_eq!((end.end.stats().undone, end.window() >= 10.0), (1, true), "the echo of the original");
    let (mut end, sent) = lone(true);
    ack(&mut end, 1001, &[], sent + 300);
    assert_eq!((end.end.stats().undone, end.window() < 3.0), (0, true), "the echo of the repair");
    let (mut end, _) = lone(false);
    end.ack(1001);
    end.wait(10);
    end.sack(1001, &[(1, 1001)]);
    assert_eq!((end.end.stats().undone, end.window() >= 10.0), (1, true), "a duplicate");
}

/// Two consecutive timeouts are one reduction: an echo of the original undoes both.
#[test]
fn timeouts_in_a_row_are_taken_back_together() {
    let mut end = Script::established(config(Recovery::Sack));
    let sent = end.clock();
    end.write(5000);
    end.wait(1000);
    assert_eq!(end.end.stats().timeouts, 2);
    ack(&mut end, 3001, &[], sent);
    assert_eq!((end.end.stats().undone, end.window() >= 10.0), (1, true));
}

/// At the reduced window's pacing rate, one segment would leave per round trip.
#[test]
fn the_pace_of_a_mistaken_timeout_holds_nothing_back() {
    let pacing = Pacing::Window { slow_start_gain: 1.0, avoidance_gain: 1.0 };
    let mut end = Script::established(config(Recovery::Sack).with(|config| config.sender.pacing = pacing));
    let sent = end.clock();
    end.write(50_000);
    end.wait(310);
    assert_eq!((end.end.stats().timeouts, end.window()), (1, 1.0));
    ack(&mut end, 3001, &[], sent);
    assert_eq!(end.end.stats().undone, 1);
    end.trace();
    end.wait(25);
    assert_eq!(end.trace().len(), 2, "ten milliseconds apart");
}

#[test]
fn timeouts_stand_where_nothing_doubts_them() {
    let mut end = Script::established(
        config(Recovery::Sack).with(|config| config.sender.spurious_timeout = SpuriousTimeout::Off),
    );
    let sent = end.clock();
    end.write(1000);
    end.wait(310);
    ack(&mut end, 1001, &[], sent);
    assert_eq!((end.end.stats().undone, end.window() < 3.0), (0, true));
}
