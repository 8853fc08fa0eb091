//! Numbers passed from the engine to an algorithm, and state that the engine keeps for it.

#[path = "common/notes.rs"]
mod notes;
#[path = "common/script.rs"]
mod script;

use bentpipe_base::Rate;
use bentpipe_cc::{
    Accounting, Ack, Algorithm, BackOff, CongestionControl, ConnectionEvent, Custom, Loss, Path,
    Requirements, Spacing, Start, Timeout, TimeoutProbe,
};
use bentpipe_tcp::{Config, InitialWindow, Recovery, SpuriousTimeout, WindowValidation};
use notes::{note, told};
use script::{Script, ms, plain};

/// Algorithm with a constant window of 100 segments and an optional rate; it records its calls.
struct Listener {
    requirements: Requirements,
    rate: Option<Rate>,
}

impl CongestionControl for Listener {
    fn window(&self) -> f64 {
        100.0
    }

    fn on_ack(&mut self, _ack: &Ack, path: &Path) {
        note(format!("rto {:?}", path.rto));
    }

    fn on_loss(&mut self, loss: &Loss, _path: &Path) {
        note(format!("validated {:?}", loss.validated));
    }

    fn on_rto(&mut self, timeout: &Timeout, _path: &Path) -> BackOff {
        note(format!("timeout {}", timeout.consecutive));
        BackOff::Double
    }

    fn on_event(&mut self, event: ConnectionEvent, _path: &Path) {
        if let ConnectionEvent::Idle { restart } = event {
            note(format!("restart {restart}"));
        }
    }

    fn spacing(&self) -> Spacing {
        Spacing::at(self.rate)
    }

    fn requirements(&self) -> Requirements {
        self.requirements
    }
}

fn listener(requirements: Requirements, rate: Option<Rate>) -> Config {
    let build = move |_: &Start| Box::new(Listener { requirements, rate }) as Box<dyn CongestionControl>;
    plain().with(|config| {
        config.sender.cc = Algorithm::Custom(Custom::new("listener", build));
        config.sender.initial_window = InitialWindow::Segments(10);
    })
}

/// RFC 6298, rules 2.2 and 2.3: a first sample of 100 ms yields 100 + 4 * 50 ms, a second one 100 + 4 * 37.5 ms.
#[test]
fn the_timeout_follows_rfc_6298() {
    let mut end = Script::established(listener(Requirements::default(), None));
    end.write(1000);
    told();
    end.wait(100);
    end.ack(1001);
    assert_eq!(told(), ["rto 250 ms"]);
}

/// RFC 7323, section 4.2: the ACK of half a flight has half of the weight. A sample of 180 ms after 100 ms moves SRTT by 1/16 of
/// the difference, to 105 ms, and RTTVAR by 1/8, from 50 to 53.75 ms. With a sixth segment SACKed the weight is 3/5: 106 and 54.5
/// ms.
#[test]
fn a_sample_weighs_as_much_as_its_part_of_the_flight() {
    for (sacked, told_of) in [(&[][..], "rto 320 ms"), (&[(6001, 7001)], "rto 324 ms")] {
        let mut end = Script::established(listener(Requirements::default(), None));
        end.write(10_000);
        end.wait(180);
        told();
        end.sack(5001, sacked);
        assert_eq!(told(), [told_of]);
    }
}

/// A timeout that the engine answered with its own probe does not count in the number of consecutive timeouts.
#[test]
fn a_timeout_that_was_probed_does_not_count() {
    let spurious_timeout = SpuriousTimeout::Aen { probe: TimeoutProbe::Newest, max_probes: 1, paced: false };
    let config = listener(Requirements::default(), None).with(|config| {
        config.sender.spurious_timeout = spurious_timeout;
        config.sender.recovery = Recovery::NewReno;
    });
    let mut end = Script::established(config);
    end.write(3000);
    told();
    end.wait(3000);
    assert_eq!(told(), ["timeout 1", "timeout 2"], "at 900 and 2100 ms, after a probe at 300");
    assert_eq!(end.end.stats().timeouts, 3);
}

/// RFC 9293, section 3.8.6.1: the persist timer starts when the window closes with nothing outstanding, not while data awaits its
/// ACK. With samples of 100 and 150 ms it is 307 ms.
#[test]
fn a_closed_window_is_probed_a_timeout_after_it_closed() {
    let config =
        listener(Requirements::default(), None).with(|config| config.sender.recovery = Recovery::NewReno);
    let mut end = Script::established(config);
    end.window = 2000;
    end.ack(1);
    end.write(5000);
    assert_eq!(end.trace(), ["1+1000", "1001+1000"]);
    end.wait(150);
    end.window = 0;
    end.ack(2001);
    end.wait(300);
    assert!(end.sent.is_empty(), "{:?}", end.trace());
    end.wait(10);
    assert_eq!(end.trace(), ["ack 1"]);
}

/// Without RFC 7661 the used window is not reported.
#[test]
fn without_validation_no_window_is_called_unused() {
    let config =
        listener(Requirements::default(), None).with(|config| config.sender.recovery = Recovery::NewReno);
    let mut end = Script::established(config);
    end.write(10_000);
    end.wait(100);
    told();
    (0..3).for_each(|_| end.ack(1));
    assert!(told().contains(&"validated None".to_owned()));
}

/// RFC 5681, section 4.1: a window restarts after a pause if configured; an algorithm's own rate model always does.
#[test]
fn who_hears_of_a_pause() {
    let by_rate = Requirements { accounting: Accounting::Own, ..Requirements::default() };
    let rate = Some(Rate::from_mbps(100));
    for (requirements, rate, window_validation, hears) in [
        (Requirements::default(), None, WindowValidation::Off, false),
        (Requirements::default(), rate, WindowValidation::Off, false),
        (by_rate, None, WindowValidation::Off, false),
        (by_rate, rate, WindowValidation::Off, true),
        (Requirements::default(), None, WindowValidation::Restart, true),
    ] {
        let mut end = Script::established(
            listener(requirements, rate).with(|config| config.sender.window_validation = window_validation),
        );
        end.write(1000);
        end.wait(100);
        end.ack(1001);
        told();
        end.wait(5000);
        end.write(1000);
        let restarts: &[String] = if hears { &["restart 10".to_owned()] } else { &[] };
        assert_eq!(told(), restarts, "{requirements:?} {rate:?} {window_validation:?}");
    }
}

/// A sender makes up for a late timer, but not after it had nothing to send.
#[test]
fn lateness_before_a_pause_is_no_burst_after_it() {
    let config = listener(Requirements::default(), None)
        .with(|config| config.sender.rate_limit = Some(Rate::from_mbps(8)));
    let mut end = Script::established(config);
    end.write(5000);
    end.now = end.end.next_timeout() + ms(9);
    end.end.handle_timeout(end.now);
    end.drain();
    assert_eq!(end.sent.len(), 5, "at 1 ms a segment");
    end.wait(100);
    end.ack(5001);
    end.wait(1000);
    end.sent.clear();
    end.write(50_000);
    assert!((1..=3).contains(&end.sent.len()), "{} leave at once", end.sent.len());
}

/// State kept per segment counts in the memory of a connection.
#[test]
fn memory_counts_what_is_kept_for_each_segment() {
    let memory = |requirements: Requirements, recovery: Recovery| {
        let mut end = Script::established(
            listener(requirements, None).with(|config| config.sender.recovery = recovery),
        );
        end.write(100_000);
        (end.end.memory_bytes(), end)
    };
    let window_only = Requirements { window_only: true, ..Requirements::default() };
    let (without_rate, _) = memory(window_only, Recovery::Sack);
    let (with_rate, _) = memory(Requirements::default(), Recovery::Sack);
    assert!(with_rate >= without_rate + 100 * 24, "{with_rate} and {without_rate}");
    let (before, mut end) = memory(window_only, Recovery::Rack);
    end.wait(100);
    end.ack(1001);
    assert!(end.end.memory_bytes() > before, "what RACK knows");
    for last in 60..100 {
        end.sack(1001, &[(50_001, last * 1000 + 1)]);
    }
    let resent = end.end.stats().retransmitted_segments;
    assert!(resent >= 40, "{resent}");
    let after = end.end.memory_bytes();
    assert!(after >= before + 40 * 40, "{after} and {before}");
}
