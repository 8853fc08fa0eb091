//! Skeletons of algorithms that are still to come. They prove that the contract carries them: each goes from the handshake
//! through ACKs, a loss and a timeout, and gives one number of its paper. A sketch goes when the real algorithm comes.

use bentpipe_cc::{
    Ack, Cause, CongestionControl, Loss, Path, PeerProbes, Phase, ProbeMoment, ProbeReply, Sent, Timeout,
};

mod tfrc;

#[path = "../../src/fixture.rs"]
mod fixture;

/// Drives an algorithm through what happens to every connection, as the engine would.
fn live(cc: &mut dyn CongestionControl) {
    let wants = cc.wants();
    cc.on_established(&fixture::path_at(0.55));
    let mut sequence = 1;
    for i in 1..=60_u32 {
        let acked = sequence;
        sequence += u64::from(fixture::MSS);
        let now = 0.55 + f64::from(i) * 0.1;
        let path = Path {
            snd_una: acked,
            snd_nxt: sequence + 10_000,
            outstanding: 10,
            in_flight: 10,
            ..fixture::path_at(now)
        };
        if wants.sent || wants.feedback > 0 {
            let sent = Sent { seq: path.snd_nxt, len: fixture::MSS, retransmission: false };
            cc.on_sent(&sent, &path);
            cc.stamp(&sent, &path);
        }
        if cc.wake_at() <= path.now {
            cc.on_wake(&path);
        }
        match i {
            20 => cc.on_loss(&fixture::loss(10), &path),
            40 => drop(cc.on_rto(&Timeout { consecutive: 1, outstanding: 10, answered: false }, &path)),
            _ => {}
        }
        let in_recovery = (20..30).contains(&i);
        let ack = Ack {
            acked: u32::from(!in_recovery),
            sacked: u32::from(in_recovery),
            rtt: Some(path.srtt),
            phase: if (20..=30).contains(&i) { Phase::Recovery } else { Phase::Open },
            ends_episode: i == 30,
            ..fixture::ack(1)
        };
        cc.on_ack(&ack, &path);
        let moment = ProbeMoment { data_sent: 0 };
        while wants.probes
            && let Some(probe) = cc.next_probe(&moment, &path)
        {
            cc.on_probe_acked(&ProbeReply { tag: probe.tag, acked: 0, phase: ack.phase }, &path);
        }
        assert!(cc.window().is_finite() && cc.window() >= 1.0, "window {} at {i}", cc.window());
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * b.abs()
}
