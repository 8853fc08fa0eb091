//! TCP-Swift: Peach's question asked with copies of outstanding data, and a window that grows with the data ACKs of the round
//! trip after recovery (Leung, Yeung).

use bentpipe_base::ProbeTag;
use bentpipe_cc::{
    Ack, CongestionControl, Loss, Path, Phase, ProbeKind, ProbeMoment, ProbeReply, ProbeRequest, RtoAction,
    Timeout, Wants,
};

use crate::{fixture, live};

struct Swift {
    cwnd: f64,
    /// Outstanding segments that may still be sent as probes.
    aosn: u32,
    wdsn: u32,
    due: u32,
    /// The window expanding period lasts until this is acknowledged.
    expands_until: u64,
    picked: u32,
}

impl CongestionControl for Swift {
    fn window(&self) -> f64 {
        self.cwnd
    }

    fn wants(&self) -> Wants {
        Wants { probes: true, ..Wants::default() }
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let limit = f64::from(path.receive_window);
        self.due = 0;
        match ack.phase {
            Phase::Recovery if ack.ends_episode => self.expands_until = path.snd_nxt,
            Phase::Recovery => self.due = self.aosn.min(2),
            _ if ack.acked == 0 => {}
            _ if path.snd_una <= self.expands_until => self.cwnd = limit.min(self.cwnd + 1.0),
            _ => self.cwnd = limit.min(self.cwnd + 1.0 / self.cwnd),
        }
    }

    fn on_loss(&mut self, _loss: &Loss, path: &Path) {
        let cwnd0 = libm::floor(self.cwnd.min(f64::from(path.receive_window)));
        self.aosn = cwnd0 as u32;
        self.wdsn = self.aosn / 2;
        self.cwnd = libm::floor(cwnd0 / 2.0).max(1.0);
        self.expands_until = 0;
    }

    fn on_rto(&mut self, _timeout: &Timeout, _path: &Path) -> RtoAction {
        (self.cwnd, self.aosn, self.wdsn) = (1.0, 0, 0);
        RtoAction::Retransmit { back_off: true }
    }

    fn next_probe(&mut self, moment: &ProbeMoment, _path: &Path) -> Option<ProbeRequest> {
        if moment.data_sent > 0 || self.due == 0 {
            return None;
        }
        self.due -= 1;
        self.aosn -= 1;
        self.picked = self.picked.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(ProbeRequest { kind: ProbeKind::Outstanding(self.picked), tag: ProbeTag(0) })
    }

    fn on_probe_acked(&mut self, _reply: &ProbeReply, path: &Path) {
        match self.wdsn {
            0 => self.cwnd = (self.cwnd + 1.0).min(f64::from(path.receive_window)),
            _ => self.wdsn -= 1,
        }
    }
}

fn swift() -> Swift {
    Swift { cwnd: 30.0, aosn: 0, wdsn: 0, due: 0, expands_until: 0, picked: 1 }
}

#[test]
fn the_window_expanding_period_ends_at_39() {
    let mut swift = swift();
    let path = Path { snd_una: 100, snd_nxt: 143, ..fixture::path() };
    swift.on_loss(&fixture::loss(30), &path);
    let mut probes = 0;
    for duplicate in 1..=26 {
        swift.on_ack(&Ack { phase: Phase::Recovery, sacked: 1, ..fixture::ack(0) }, &path);
        let moment = ProbeMoment { data_sent: u32::from(duplicate > 13) };
        probes += core::iter::from_fn(|| swift.next_probe(&moment, &path)).count();
    }
    assert_eq!((probes, swift.aosn), (26, 4));
    swift.on_ack(&Ack { phase: Phase::Recovery, ends_episode: true, ..fixture::ack(30) }, &path);
    for _ in 0..probes {
        swift.on_probe_acked(&ProbeReply { tag: ProbeTag(0), acked: 0, phase: Phase::Open }, &path);
    }
    assert_eq!(swift.window(), 26.0);
    for snd_una in 131..=143 {
        swift.on_ack(&fixture::ack(1), &Path { snd_una, ..path });
    }
    assert_eq!(swift.window(), 39.0);
    live(&mut swift);
}
