//! A simulated recovery and train of few segments, for the worked examples of the schemes.

use super::{Inquirer, Law, State};
use crate::parts::probe_peer::Peer;
use crate::{
    Accounting, Ack, CongestionControl, ConnectionEvent, Path, Phase, ProbeMoment, ProbeReply, ProbeRequest,
    fixture,
};

const MSS: u64 = fixture::MSS as u64;

/// Transmissions of a recovery, and its final state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Outcome {
    pub probes: u32,
    /// New data segments.
    pub new: u32,
    /// Probes still allowed at the end.
    pub left: u32,
    pub after_replies: f64,
    pub after_data: f64,
}

/// Makes a prober in congestion avoidance whose receiver replies to probes.
pub(crate) fn avoiding<L: Law>(law: L, cwnd: f64) -> Inquirer<L> {
    let mut prober = Inquirer::new(law, f64::INFINITY);
    prober.windows.cwnd = cwnd;
    prober.state = State::Avoidance;
    prober.peer = Peer::Replies;
    prober
}

/// Returns all probes that may leave now.
pub(crate) fn drain(cc: &mut dyn CongestionControl, data_sent: u32, path: &Path) -> Vec<ProbeRequest> {
    asked(cc, &ProbeMoment { data_sent, sent_newest: data_sent > 0 }, path)
}

/// Returns all probes that may leave at `moment`.
pub(crate) fn asked(cc: &mut dyn CongestionControl, moment: &ProbeMoment, path: &Path) -> Vec<ProbeRequest> {
    std::iter::from_fn(|| cc.prober().and_then(|prober| prober.next_probe(moment, path))).collect()
}

pub(crate) fn reply(cc: &mut dyn CongestionControl, probe: ProbeRequest, phase: Phase) {
    let prober = cc.prober().expect("it sends probes");
    prober.on_probe_acked(&ProbeReply { tag: probe.tag, acked: 0, phase }, &fixture::path());
}

/// The first of 30 segments is lost, and its 29 successors are acknowledged one by one. After the recovery, one of `each`
/// probes is answered, then the recovery's data.
pub(crate) fn recovery<L: Law>(prober: &mut Inquirer<L>, each: usize) -> Outcome {
    let path = |una: u64, nxt: u64, in_flight| Path {
        snd_una: 1 + una * MSS,
        snd_nxt: 1 + nxt * MSS,
        outstanding: (nxt - una) as u32,
        in_flight,
        ..fixture::path()
    };
    let mut new = 0;
    let mut probes = Vec::new();
    for duplicate in 3..30_u32 {
        let pipe = 30 - duplicate + new;
        let now = path(100, 130 + u64::from(new), pipe);
        if duplicate == 3 {
            prober.on_loss(&fixture::loss(30), &now);
        }
        prober.on_ack(&Ack { sacked: 1, phase: Phase::Recovery, ..fixture::ack(0) }, &now);
        let used = if prober.requirements().accounting != Accounting::Outstanding { pipe } else { 30 + new };
        let sent = (prober.window() as u32).saturating_sub(used);
        new += sent;
        // The third duplicate triggers the retransmission.
        probes.extend(drain(prober, sent + u32::from(duplicate == 3), &now));
    }
    let left = match prober.state {
        State::Recovery(recovery) => recovery.allowed,
        _ => 0,
    };
    let nxt = 130 + u64::from(new);
    let full = Ack { phase: Phase::Recovery, ends_episode: true, ..fixture::ack(30) };
    prober.on_ack(&full, &path(130, nxt, new));
    for probe in probes.iter().step_by(each) {
        reply(prober, *probe, Phase::Open);
    }
    let after_replies = prober.window();
    for una in 131..=nxt {
        prober.on_ack(&fixture::ack(1), &path(una, nxt + 20, 20));
    }
    Outcome { probes: probes.len() as u32, new, left, after_replies, after_data: prober.window() }
}

/// Sends the first data of the connection, and all probes of its train.
pub(crate) fn train(cc: &mut dyn CongestionControl, path: &Path) -> Vec<(Path, ProbeRequest)> {
    cc.on_event(ConnectionEvent::Established, path);
    let data = cc.window() as u32;
    let mut path = Path { outstanding: data, in_flight: data, ..*path };
    assert!(drain(cc, data, &path).is_empty(), "data first");
    let mut probes = Vec::new();
    while cc.snapshot().phase.ends_with("-start")
        && let Some(sleeper) = cc.sleeper().filter(|sleeper| sleeper.wake_at() < path.now + path.srtt)
    {
        path.now = sleeper.wake_at();
        sleeper.on_wake(&path);
        probes.extend(drain(cc, 0, &path).into_iter().map(|probe| (path, probe)));
    }
    probes
}
