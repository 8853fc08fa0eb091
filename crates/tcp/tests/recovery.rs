//! Loss detection and repair as packet traces: a window of ten segments of 1000 bytes, a round trip of 100 ms.

#[path = "common/script.rs"]
mod script;

use bentpipe_base::Segment;
use bentpipe_tcp::{Config, EcnMode, InitialWindow, Recovery, RtoBounds, SpuriousTimeout};
use script::{Script, plain};

const NOTHING: [&str; 0] = [];

fn config(recovery: Recovery) -> Config {
    plain().with(|config| {
        config.sender.recovery = recovery;
        config.sender.initial_window = InitialWindow::Segments(10);
        config.sender.spurious_timeout = SpuriousTimeout::Off;
    })
}

/// Makes an end that has sent ten segments; the first ACK is about to arrive.
fn flight(config: Config, bytes: u64) -> Script {
    let mut end = Script::established(config);
    end.write(bytes);
    assert_eq!(end.trace().len() as u64, bytes.div_ceil(1000).min(10));
    end.wait(100);
    end
}

fn duplicates(end: &mut Script, ack: u64, number: usize) -> Vec<String> {
    (0..number).for_each(|_| end.ack(ack));
    end.trace()
}

/// RFC 5681 section 3.2: fast recovery.
#[test]
fn reno_repairs_one_loss() {
    let mut end = flight(config(Recovery::Reno), 50_000);
    assert_eq!(duplicates(&mut end, 1, 2), NOTHING);
    assert_eq!(duplicates(&mut end, 1, 1), ["1+1000"]);
    assert_eq!(end.window(), 8.0, "half of ten and three");
    assert_eq!(duplicates(&mut end, 1, 2), NOTHING);
    assert_eq!(duplicates(&mut end, 1, 4), ["10001+1000", "11001+1000", "12001+1000", "13001+1000"]);
    end.wait(100);
    end.ack(10_001);
    assert_eq!((end.trace(), end.window()), (vec!["14001+1000".into()], 5.0), "deflated");
}

/// Reno ends its recovery at a partial ACK; further losses of the same flight start none (RFC 6582 section 3.2 step 1).
#[test]
fn reno_waits_for_the_timeout_at_the_second_loss() {
    let mut end = flight(config(Recovery::Reno), 50_000);
    duplicates(&mut end, 1, 8);
    end.ack(4001);
    assert_eq!(end.window(), 5.0);
    assert_eq!(duplicates(&mut end, 4001, 3), NOTHING);
    end.wait(400);
    assert_eq!((end.trace(), end.end.stats().timeouts), (vec!["4001+1000".into()], 1));
}

/// RFC 6582 section 3.2 steps 2 and 3: partial ACKs.
#[test]
fn newreno_repairs_two_losses_and_deflates() {
    let mut end = flight(config(Recovery::NewReno), 50_000);
    assert_eq!(duplicates(&mut end, 1, 8), ["1+1000", "10001+1000", "11001+1000", "12001+1000"]);
    assert_eq!(end.window(), 13.0);
    end.wait(100);
    end.ack(4001);
    assert_eq!(end.window(), 10.0, "four acknowledged, one added back");
    assert_eq!(end.trace(), ["4001+1000", "13001+1000"]);
    assert_eq!(duplicates(&mut end, 4001, 3), ["14001+1000", "15001+1000", "16001+1000"]);
    end.wait(100);
    end.ack(13_001);
    assert_eq!((end.window(), end.trace()), (5.0, vec!["17001+1000".into()]));
    assert_eq!((end.end.stats().recoveries, end.end.stats().retransmitted_segments), (1, 2));
}

/// RFC 6582 section 3.2 step 1: duplicates of data sent before a timeout prove no new loss.
#[test]
fn newreno_ignores_duplicates_below_the_recovery_point() {
    let mut end = flight(config(Recovery::NewReno), 50_000);
    end.wait(1000);
    assert_eq!(end.trace(), ["1+1000", "1+1000"], "at 300 ms and 900 ms");
    end.ack(10_001);
    end.trace();
    assert_eq!(duplicates(&mut end, 10_001, 3), NOTHING);
    end.ack(11_001);
    end.trace();
    assert_eq!(duplicates(&mut end, 11_001, 3)[0], "11001+1000");
}

/// The path becomes longer during a repair. Reports of earlier data arrive late, and the repair's ACK arrives after the timeout
/// that was right at its departure.
#[test]
fn sacks_of_what_left_before_the_repair_may_restart_the_timer() {
    for (restart_on_sacks, timeouts) in [(false, 1), (true, 0)] {
        let rto = RtoBounds { restart_on_sacks, ..plain().sender.rto };
        let mut end = flight(config(Recovery::Sack).with(|config| config.sender.rto = rto), 50_000);
        [2001, 3001, 4001].into_iter().for_each(|top| end.sack(1, &[(1001, top)]));
        assert_eq!(end.trace(), ["1+1000"], "the timer expires within 300 ms");
        end.wait(150);
        end.sack(1, &[(1001, 5001)]);
        end.wait(170);
        assert_eq!(end.end.stats().timeouts, timeouts, "{restart_on_sacks}");
    }
}

/// SACKs of data sent after the repair give no information about the path: the timer continues.
#[test]
fn sacks_of_what_left_behind_the_repair_do_not_restart_the_timer() {
    let rto = RtoBounds { restart_on_sacks: true, ..plain().sender.rto };
    let mut end = flight(config(Recovery::Sack).with(|config| config.sender.rto = rto), 50_000);
    end.sack(1, &[(1001, 4001)]);
    end.sack(1, &[(1001, 10_001)]);
    let sent = end.trace();
    assert!(sent.len() > 2 && sent[0] == "1+1000", "new data behind the repair: {sent:?}");
    end.wait(150);
    end.sack(1, &[(1001, 11_001)]);
    end.wait(170);
    assert_eq!(end.end.stats().timeouts, 1);
}

/// RFC 3042: limited transmit.
#[test]
fn limited_transmit() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut end = flight(config(recovery).with(|config| config.sender.limited_transmit = true), 50_000);
        end.sack(1, if recovery == Recovery::Sack { &[(1001, 2001)] } else { &[] });
        end.sack(1, if recovery == Recovery::Sack { &[(1001, 3001)] } else { &[] });
        assert_eq!(end.trace(), ["10001+1000", "11001+1000"], "{recovery:?}");
        end.sack(1, if recovery == Recovery::Sack { &[(1001, 4001)] } else { &[] });
        assert_eq!(end.trace(), ["1+1000"]);
        assert_eq!(end.end.stats().recoveries, 1);
    }
}

/// RFC 5681 section 3.2 step 2: segments sent by limited transmit are not part of the flight that a loss halves.
#[test]
fn limited_transmit_does_not_count_in_the_reduction() {
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let mut end = flight(config(recovery).with(|config| config.sender.limited_transmit = true), 50_000);
        assert_eq!(duplicates(&mut end, 1, 3), ["10001+1000", "11001+1000", "1+1000"]);
        assert_eq!(end.window(), 5.0 + 3.0, "{recovery:?}");
    }
    for recovery in [Recovery::Sack, Recovery::Rack] {
        let mut end = flight(config(recovery).with(|config| config.sender.limited_transmit = true), 50_000);
        [2001, 3001, 4001].into_iter().for_each(|top| end.sack(1, &[(1001, top)]));
        assert_eq!((end.trace().len(), end.window()), (3, 5.0), "{recovery:?}");
    }
}

/// RFC 3168 section 6.1.2: a mark and a loss in the same window of data cause one reduction, in either order.
#[test]
fn a_mark_and_a_loss_of_one_window_reduce_once() {
    let marked = |segment: &mut Segment| segment.flags |= bentpipe_base::Flags::ECE;
    for recovery in [Recovery::NewReno, Recovery::Sack, Recovery::Rack] {
        let mut end = flight(Config { ecn: EcnMode::Classic, ..config(recovery) }, 50_000);
        end.ack_with(1001, marked);
        let window = end.window();
        assert_eq!(window, 5.0, "half of the ten under way before the ACK, which lets nothing grow");
        for top in [3001, 4001, 5001, 6001] {
            end.sack(1001, [(2001, top)].get(..usize::from(recovery != Recovery::NewReno)).unwrap());
        }
        let inflation = if recovery == Recovery::NewReno { 4.0 } else { 0.0 };
        assert_eq!(end.end.stats().recoveries, 1, "{recovery:?}");
        assert!((end.window() - inflation - window).abs() < 1e-6, "{recovery:?}: {}", end.window());
        // The repair arrives, together with the mark of the same window.
        end.wait(100);
        end.ack_with(end.end.stats().sent_bytes - 1000 + 1, marked);
        assert_eq!(end.end.stats().ecn_reductions, 1, "{recovery:?}");
    }
}

/// RFC 6675: two losses in one window are repaired as the pipe drains.
#[test]
fn sack_repairs_two_losses_within_one_round_trip() {
    let mut end = flight(config(Recovery::Sack), 50_000);
    end.sack(1, &[(1001, 2001)]);
    end.sack(1, &[(1001, 3001)]);
    assert_eq!(end.trace(), NOTHING);
    end.sack(1, &[(1001, 4001)]);
    assert_eq!(end.trace(), ["1+1000"], "pipe 7, window 5");
    end.sack(1, &[(5001, 6001), (1001, 4001)]);
    end.sack(1, &[(5001, 7001), (1001, 4001)]);
    assert_eq!(end.trace(), NOTHING, "pipe 5");
    end.sack(1, &[(5001, 8001), (1001, 4001)]);
    assert_eq!(end.trace(), ["4001+1000", "10001+1000"], "another loss: pipe 3");
    end.sack(1, &[(5001, 9001), (1001, 4001)]);
    end.sack(1, &[(5001, 10_001), (1001, 4001)]);
    assert_eq!(end.trace(), ["11001+1000", "12001+1000"]);
    end.wait(100);
    end.sack(4001, &[(5001, 10_001)]);
    assert_eq!(end.trace(), ["13001+1000"]);
    end.ack(10_001);
    assert_eq!((end.trace(), end.window()), (vec!["14001+1000".into()], 5.0));
    assert_eq!((end.end.stats().recoveries, end.end.stats().retransmitted_segments), (1, 2));
}

/// RFC 6675 `NextSeg` rule 3: without new data, segments not yet proven lost are retransmitted, one for each that left the
/// network.
#[test]
fn holes_are_filled_early_as_the_pipe_allows() {
    let mut end = flight(config(Recovery::Sack), 10_000);
    end.sack(1, &[(1001, 2001)]);
    end.sack(1, &[(3001, 4001), (1001, 2001)]);
    end.sack(1, &[(9001, 10_001), (3001, 4001), (1001, 2001)]);
    assert_eq!(end.trace(), ["1+1000"], "pipe 7 of 5");
    end.sack(1, &[(8001, 10_001), (3001, 4001), (1001, 2001)]);
    assert_eq!(end.trace(), NOTHING, "2001 is lost too: pipe 5");
    end.sack(1, &[(7001, 10_001), (3001, 4001), (1001, 2001)]);
    assert_eq!(end.trace(), ["2001+1000", "4001+1000", "5001+1000", "6001+1000"], "all below: pipe 1");
}

#[test]
fn an_early_hole_counts_in_the_pipe() {
    let mut end = flight(config(Recovery::Sack).with(|config| config.sender.dup_thresh = 4), 10_000);
    end.sack(1, &[(1001, 2001)]);
    end.sack(1, &[(3001, 4001), (1001, 2001)]);
    end.sack(1, &[(5001, 6001), (3001, 4001), (1001, 2001)]);
    end.sack(1, &[(7001, 8001), (5001, 6001), (3001, 4001), (1001, 2001)]);
    assert_eq!(end.trace(), ["1+1000"], "pipe 6 of 5");
    end.sack(2001, &[(7001, 8001), (5001, 6001), (3001, 4001)]);
    assert_eq!(end.trace(), NOTHING, "pipe 5");
    end.sack(2001, &[(9001, 10_001), (7001, 8001), (5001, 6001), (3001, 4001)]);
    assert_eq!(end.trace(), ["2001+1000", "4001+1000"], "proven lost; the first hole that is not");
    end.sack(4001, &[(9001, 10_001), (7001, 8001), (5001, 6001)]);
    assert_eq!(end.trace(), ["6001+1000"], "one arrived, one leaves");
}

/// RFC 2018 section 8: after a timeout no report counts if the receiver discarded its data.
#[test]
fn a_receiver_that_reneges() {
    let mut end = flight(config(Recovery::Sack), 10_000);
    end.sack(1, &[(1001, 3001)]);
    end.ack(1001);
    assert_eq!(end.trace(), NOTHING);
    end.wait(1000);
    assert_eq!(end.trace()[0], "1001+1000");
    end.ack(2001);
    assert_eq!(end.trace(), ["2001+1000", "3001+1000"]);
}

/// RFC 9937: eight segments were in flight before the third report, and five must remain.
#[test]
fn proportional_rate_reduction() {
    let mut end = flight(config(Recovery::Sack).with(|config| config.sender.prr = true), 50_000);
    let mut sent = vec![];
    for top in 2..=10 {
        end.sack(1, &[(1001, top * 1000 + 1)]);
        sent.push(end.trace().join(" "));
    }
    assert_eq!(
        sent,
        ["", "", "1+1000", "10001+1000", "", "", "11001+1000", "12001+1000", "13001+1000"],
        "five for eight that arrive until five are in flight, then one for one"
    );
    end.wait(100);
    end.ack(10_001);
    assert_eq!(end.trace(), ["14001+1000"]);
}

/// RFC 9937: below ssthresh as many segments leave as arrive, plus one for each ACK that advances without a loss.
#[test]
fn proportional_rate_reduction_regains_what_burst_losses_took() {
    let mut end = flight(config(Recovery::Sack).with(|config| config.sender.prr = true), 50_000);
    end.sack(1, &[(9001, 10_001)]);
    end.sack(1, &[(8001, 10_001)]);
    end.sack(1, &[(7001, 10_001)]);
    assert_eq!(end.trace(), ["1+1000"], "three in flight of five: seven are lost");
    end.wait(100);
    end.ack(1001);
    assert_eq!(end.trace(), ["1001+1000", "2001+1000"], "one for one, and one more");
    end.wait(100);
    end.ack(2001);
    end.ack(3001);
    assert_eq!(end.trace(), ["3001+1000", "4001+1000", "5001+1000", "6001+1000"]);
}

/// PRR does not apply to an algorithm that sets its window in recovery itself.
#[test]
fn algorithms_with_a_window_of_their_own_are_not_reduced_proportionally() {
    let bbr = || bentpipe_cc::Algorithm::from_name("bbr").expect("registered");
    let sent = [false, true].map(|prr| {
        let mut end = flight(
            config(Recovery::Rack).with(|config| {
                config.sender.cc = bbr();
                config.sender.prr = prr;
            }),
            50_000,
        );
        (2..=10).for_each(|top| end.sack(1, &[(1001, top * 1000 + 1)]));
        end.trace()
    });
    assert_eq!(sent[0], sent[1]);
}

fn rack(bytes: u64) -> Script {
    flight(config(Recovery::Rack), bytes)
}

#[test]
fn rack_repairs_a_lost_retransmission() {
    let mut end = rack(50_000);
    for top in [2001, 3001, 4001] {
        end.sack(1, &[(1001, top)]);
    }
    assert_eq!(end.trace(), ["1+1000"]);
    end.wait(1);
    end.sack(1, &[(1001, 7001)]);
    assert_eq!(end.trace(), ["10001+1000"]);
    end.wait(99);
    end.sack(1, &[(1001, 8001)]);
    end.trace();
    end.wait(1);
    end.sack(1, &[(10_001, 11_001), (1001, 8001)]);
    assert_eq!(end.trace()[0], "1+1000", "what left after it has arrived");
    assert_eq!((end.end.stats().timeouts, end.end.stats().recoveries), (0, 1));
}

/// RFC 8985 section 6.2 step 5: of two segments sent at the same time, the second shows the loss of the first.
#[test]
fn rack_orders_what_leaves_at_one_instant() {
    let mut end = rack(50_000);
    for top in [2001, 3001, 4001, 7001] {
        end.sack(1, &[(1001, top)]);
    }
    assert_eq!(end.trace(), ["1+1000", "10001+1000"]);
    end.wait(100);
    end.sack(1, &[(10_001, 11_001), (1001, 8001)]);
    assert_eq!(end.trace()[0], "1+1000", "it left before the new segment, which has arrived");
    end.wait(50);
    end.sack(1, &[(1001, 11_001)]);
    assert_eq!(end.trace(), ["13001+1000", "14001+1000"], "what has arrived left before the second repair");
    assert_eq!(end.end.stats().timeouts, 0);
}

#[test]
fn rack_waits_a_quarter_of_a_round_trip_for_what_was_overtaken() {
    let mut end = rack(10_000);
    end.sack(1, &[(1001, 2001)]);
    end.wait(24);
    end.ack(2001);
    end.wait(1);
    assert_eq!((end.trace(), end.end.stats().recoveries), (vec![], 0));
    end.sack(2001, &[(3001, 4001)]);
    end.wait(60);
    assert_eq!(end.trace(), ["2001+1000"], "but no longer");
}

/// RFC 8985 section 6.2 step 4: a needless retransmission, reported by D-SACK, widens the reordering window.
#[test]
fn rack_learns_patience_from_duplicates() {
    let mut end = rack(50_000);
    end.sack(1, &[(1001, 2001)]);
    end.wait(26);
    assert_eq!(end.trace()[0], "1+1000", "25 ms were too few");
    end.ack(2001);
    end.sack(2001, &[(1, 1001)]);
    end.trace();
    end.wait(100);
    end.ack(10_001);
    end.wait(100);
    let at = end.sent.first().map_or(10_001, |(_, segment)| segment.seq);
    end.trace();
    end.sack(at, &[(at + 1000, at + 2000)]);
    let start = end.now;
    end.wait(49);
    assert!(!end.trace().contains(&format!("{at}+1000")), "two quarters of the smallest round trip");
    end.wait(2);
    assert_eq!(end.timed(start)[0], format!("50 {at}+1000"));
}

/// RFC 8985 section 7: the probe reveals the tail loss before the timeout.
#[test]
fn a_tail_loss_is_probed() {
    let mut end = Script::established(config(Recovery::Rack));
    let start = end.now;
    end.write(3000);
    end.wait(250);
    assert_eq!(end.timed(start), ["0 1+1000", "0 1001+1000", "0 2001+1000", "200 2001+1000"]);
    end.wait(50);
    end.sack(1, &[(2001, 3001)]);
    assert_eq!(end.trace(), ["1+1000", "1001+1000"]);
    assert_eq!((end.end.stats().timeouts, end.end.stats().tail_loss_probes), (0, 1));
}

/// RFC 8985 section 7.2: a probe due after the timeout leaves at the timeout instead, so a lone segment also has a probe.
#[test]
fn a_lone_segment_is_probed_no_later_than_it_would_time_out() {
    let mut end = Script::established(config(Recovery::Rack));
    let start = end.now;
    end.write(1000);
    end.wait(1000);
    assert_eq!(end.timed(start), ["0 1+1000", "300 1+1000", "600 1+1000"], "PTO 400 ms, RTO 300 ms");
    assert_eq!((end.end.stats().tail_loss_probes, end.end.stats().timeouts), (1, 1));
}

/// RFC 6298 rule 5.1, RFC 8985 section 7.2: departures delay the probe, but neither it nor the timeout beyond the timeout of the
/// oldest segment.
#[test]
fn writes_do_not_put_off_the_timeout() {
    for (recovery, probes, timeouts) in [(Recovery::Rack, 1, 1), (Recovery::Sack, 0, 2)] {
        let mut end = Script::established(
            config(recovery).with(|config| config.sender.initial_window = InitialWindow::Segments(64)),
        );
        for _ in 0..33 {
            end.write(1000);
            end.wait(30);
        }
        let stats = end.end.stats();
        assert_eq!((stats.tail_loss_probes, stats.timeouts), (probes, timeouts), "{recovery:?}");
    }
}

/// RFC 8985 section 6.2 step 2: an echo older than the repair shows that the original arrived, whatever the age of the repair.
#[test]
fn rack_takes_no_late_original_for_the_repair() {
    let with_echo = |echo: u32| move |segment: &mut Segment| segment.timestamps = Some((2000, echo));
    let mut end = flight(Config { timestamps: true, ..config(Recovery::Rack) }, 50_000);
    let sent = end.clock() - 100;
    for top in [2001, 3001, 4001] {
        end.ack_with(1, |segment| {
            segment.sack.push(bentpipe_base::SackRange { start: 1001, end: top });
            with_echo(sent)(segment);
        });
    }
    assert_eq!(end.trace(), ["1+1000"]);
    // The path is now slower than the minimum round trip of 100 ms.
    end.wait(150);
    end.ack_with(4001, with_echo(sent));
    assert!(end.trace().iter().all(|line| line.starts_with("1")), "new data only: the rest is not lost");
    assert_eq!(end.end.stats().retransmitted_segments, 1);
}

/// RFC 8985 section 6.3: segments sent within the last round trip are not marked lost at a timeout.
#[test]
fn a_timeout_spares_what_left_lately() {
    let mut end = Script::established(config(Recovery::Rack));
    let start = end.now;
    end.write(3000);
    end.wait(450);
    end.write(1000);
    end.wait(60);
    let sent = ["0 1+1000", "0 1001+1000", "0 2001+1000", "200 2001+1000", "450 3001+1000", "500 1+1000"];
    assert_eq!(end.timed(start), sent, "a probe at 200 ms, a timeout 300 ms later");
    end.wait(20);
    end.ack(3001);
    assert_eq!(end.trace(), NOTHING, "the last one left 80 ms ago");
    end.wait(20);
    end.ack(4001);
    assert_eq!((end.end.stats().retransmitted_segments, end.end.stats().timeouts), (2, 1));
}

/// Segments reported earlier do not count again when the cumulative ACK covers them (as in Linux).
#[test]
fn a_filled_hole_grows_the_window_by_what_is_news() {
    let mut end = flight(config(Recovery::Rack), 50_000);
    end.sack(1, &[(1001, 3001)]);
    end.wait(5);
    let before = end.window();
    end.ack(3001);
    assert_eq!(end.window(), before + 1.0, "one of three");
}

/// RFC 8985 section 7.4: a probe that repaired the only loss hides it, and the window is still reduced.
#[test]
fn a_probe_that_repaired_the_loss_shrinks_the_window() {
    let mut end = Script::established(config(Recovery::Rack));
    end.write(2000);
    end.wait(200);
    end.ack(2001);
    end.write(1000);
    end.ack(3001);
    assert!(end.window() < 10.0, "{}", end.window());
}

#[test]
fn a_probe_for_a_late_ack_changes_nothing() {
    let mut end = Script::established(config(Recovery::Rack));
    end.write(2000);
    end.wait(200);
    end.ack(2001);
    // The probe arrives as a duplicate, and the receiver does not support D-SACK.
    end.ack(2001);
    end.write(1000);
    end.ack(3001);
    assert_eq!((end.window() >= 10.0, end.end.stats().tail_loss_probes), (true, 1));
}

fn timeout(spurious_timeout: SpuriousTimeout, recovery: Recovery, bytes: u64) -> Script {
    let mut end =
        flight(config(recovery).with(|config| config.sender.spurious_timeout = spurious_timeout), bytes);
    end.wait(250);
    assert_eq!((end.trace(), end.window()), (vec!["1+1000".into()], 1.0));
    end
}

/// RFC 5682 section 2.1: F-RTO.
#[test]
fn frto_takes_a_spurious_timeout_back() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut end = timeout(SpuriousTimeout::FRto, recovery, 50_000);
        end.ack(1001);
        assert_eq!(end.trace(), ["10001+1000", "11001+1000"]);
        end.ack(2001);
        assert_eq!((end.end.stats().undone, end.window() >= 10.0), (1, true), "{recovery:?}");
        assert!(end.trace().iter().all(|line| line.starts_with('1')), "only new data");
    }
}

#[test]
fn frto_believes_a_genuine_timeout() {
    let mut end = timeout(SpuriousTimeout::FRto, Recovery::NewReno, 50_000);
    end.ack(1001);
    assert_eq!(end.trace(), ["10001+1000", "11001+1000"]);
    end.ack(1001);
    assert_eq!(end.trace().first().map(String::as_str), Some("1001+1000"));
    assert_eq!(end.end.stats().undone, 0);
}

/// RFC 5682 section 2.1 step 2b: without new data F-RTO cannot decide.
#[test]
fn frto_without_new_data_is_an_ordinary_timeout() {
    let mut end = timeout(SpuriousTimeout::FRto, Recovery::NewReno, 10_000);
    end.ack(1001);
    assert_eq!(end.trace(), ["1001+1000", "2001+1000"]);
}

/// RFC 3522: Eifel detection.
#[test]
fn eifel_takes_a_spurious_timeout_back() {
    for (echo, undone) in [(1100, 1), (1450, 0)] {
        let config = config(Recovery::NewReno).with(|config| {
            config.timestamps = true;
            config.sender.spurious_timeout = SpuriousTimeout::Eifel;
        });
        let mut end = flight(config, 50_000);
        end.wait(250);
        let value = end.clock();
        assert_eq!(end.trace(), ["1+1000"]);
        end.ack_with(1001, |segment| segment.timestamps = Some((value, echo)));
        assert_eq!(end.end.stats().undone, undone, "echo {echo}");
    }
}

/// Karn's algorithm: an ACK of a retransmitted segment yields no sample, and the timeout stays doubled until the next sample (RFC
/// 6298 section 5.7).
#[test]
fn the_back_off_stays_until_a_sample_comes() {
    let mut end = Script::established(config(Recovery::NewReno));
    let start = end.now;
    end.write(1000);
    end.wait(1000);
    end.ack(1001);
    end.write(1000);
    end.wait(1300);
    assert_eq!(
        end.timed(start),
        ["0 1+1000", "300 1+1000", "900 1+1000", "1000 1001+1000", "2200 1001+1000"],
        "1200 ms: four times 300"
    );
}

#[test]
fn a_loss_after_the_recovery_point_begins_another_episode() {
    let mut end = rack(50_000);
    for top in [2001, 3001, 4001, 10_001] {
        end.sack(1, &[(1001, top)]);
    }
    let first = end.trace();
    assert_eq!(first[0], "1+1000");
    assert_eq!(first[1], "10001+1000");
    end.wait(100);
    // 10001 is also lost, which is known before the first episode ends.
    end.sack(1, &[(11_001, 14_001), (1001, 10_001)]);
    end.sack(10_001, &[(11_001, 14_001)]);
    assert_eq!((end.end.stats().recoveries, end.window() < 5.0), (2, true));
}

#[test]
fn a_peer_without_sack_is_served_by_newreno() {
    let mut end = Script::connecting(config(Recovery::Rack));
    end.trace();
    end.wait(100);
    let flags = bentpipe_base::Flags::SYN | bentpipe_base::Flags::ACK;
    end.give(Segment { flags, ack: 1, window: 60_000, ..Segment::default() });
    end.seq = 1;
    end.write(10_000);
    end.trace();
    end.wait(100);
    (0..3).for_each(|_| end.ack_with(1, |segment| segment.window = 60_000));
    assert_eq!(
        end.trace(),
        ["1+536"],
        "and by the smallest segments if it names none (RFC 9293 section 3.7.1)"
    );
}
