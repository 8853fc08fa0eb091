//! The family "probes": dummies of low priority test the path. The transport sends what `Prober` requests and reports the replies.
//!
//! `cargo run --package bentpipe-cc --example probes`
#![allow(missing_docs)]

use bentpipe_cc::base::{Duration, Instant};
use bentpipe_cc::{
    Algorithm, CongestionControl, ConnectionEvent, Path, PeerProbes, Phase, ProbeMoment, ProbeReply, Start,
};

/// Returns the state that a TCP engine reports, after `millis` on a path of 550 ms to a peer that answers probes.
fn path(millis: u64, outstanding: u32) -> Path {
    let rtt = Duration::from_millis(550);
    Path {
        now: Instant::ZERO + Duration::from_millis(millis),
        mss: 1000,
        srtt: rtt,
        rttvar: Duration::ZERO,
        min_rtt: rtt,
        rto: Duration::from_secs(1),
        in_flight: outstanding,
        outstanding,
        receive_window: 64,
        snd_una: 1,
        snd_nxt: 1 + u64::from(outstanding) * 1000,
        unsent: 1_000_000,
        delivered: 0,
        peer_probes: PeerProbes::Agreed,
        ecn: false,
    }
}

/// Sends the dummies that are due. Returns their tags.
fn send_dummies(peach: &mut dyn CongestionControl, path: &Path) -> Vec<bentpipe_cc::base::ProbeTag> {
    let moment = ProbeMoment { data_sent: u32::from(path.now == Instant::ZERO), sent_newest: true };
    let prober = peach.prober().expect("TCP-Peach sends dummies");
    core::iter::from_fn(|| prober.next_probe(&moment, path)).map(|request| request.tag).collect()
}

pub fn main() {
    let start = Start {
        mss: 1000,
        initial_window: 1.0,
        initial_ssthresh: f64::INFINITY,
        paced: false,
        seed: 1,
        memory: None,
    };
    let mut peach = Algorithm::from_name("peach").expect("it is registered").build(&start);
    peach.on_event(ConnectionEvent::Established, &path(0, 0));
    let mut tags = send_dummies(&mut *peach, &path(0, 1));
    // Sudden Start spaces one dummy per segment of the receive window over the first round trip.
    while let Some(at) = peach.sleeper().map(|sleeper| sleeper.wake_at()).filter(|at| *at < path(550, 0).now)
    {
        let now = Path { now: at, ..path(0, 1) };
        peach.sleeper().expect("it sets timers").on_wake(&now);
        tags.extend(send_dummies(&mut *peach, &now));
    }
    let sent = tags.len();
    for tag in tags {
        let reply = ProbeReply { tag, acked: 0, phase: Phase::Open };
        peach.prober().expect("as before").on_probe_acked(&reply, &path(600, 1));
    }
    println!("{sent} dummies in the first round trip open a window of {} segments", peach.window());
}
