//! TCP Vegas: the difference between the expected and the actual rate of the window measures the queue.
//!
//! L. S. Brakmo, L. L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE Journal on Selected
//! Areas in Communications 13(8), 1995. The details follow ns-2 (`tcp-vegas.cc`) or Linux (`tcp_vegas.c`).
//!
//! | paper              | here                         | unit            |
//! |--------------------|------------------------------|-----------------|
//! | BaseRTT            | `Epoch::base`                | time            |
//! | Expected           | window / BaseRTT             | segments / s    |
//! | Actual             | sent in the epoch / its RTT  | segments / s    |
//! | Diff · BaseRTT     | `Measured::delta`            | segments        |
//! | α, β               | [`Config::alpha`], [`Config::beta`] | segments |
//! | γ                  | [`Config::gamma`]            | segments        |
//! | fine-grained timeout | `FineTimeout::timeout`     | time            |
//! | `worried`          | `FineTimeout::worried`       | ACKs            |
//! | `t_cut`            | `FineTimeout::cut_at`        | time            |

use alloc::boxed::Box;

use bentpipe_base::Instant;
use serde::{Deserialize, Serialize};

use crate::parameters::{not_negative, positive};
use crate::parts::epoch::{Epoch, Growth, Measured, SMALLEST, hold_between, leave_slow_start};
use crate::parts::fine_timeout::FineTimeout;
use crate::{
    Ack, Cause, Classic, CongestionControl, ConnectionEvent, Detector, EarlyRetransmit, Entry, Family, Loss,
    Path, Phase, Priority, Requirements, Rule, SENDER_ONLY, Sent, Start, Windows, forward,
};

/// Entry of this algorithm in `bentpipe list cc`.
pub const ENTRY: Entry = Entry {
    name: "vegas",
    title: "keeps between one and three segments in the queue, by the difference of expected and actual rate",
    paper: "Brakmo, Peterson, IEEE Journal on Selected Areas in Communications 13(8)",
    year: 1995,
    in_kernel: true,
    family: Family::Delay,
    advice: "For an unshared link with a short queue. Senders that fill queues displace it.",
    ..SENDER_ONLY
};

/// Parameters of TCP Vegas.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Config {
    /// Variant of Vegas.
    pub mode: Mode,
    /// Grow while fewer segments than this are queued. Default: 1, in Linux 2.
    pub alpha: f64,
    /// Shrink while more segments than this are queued. Default: 3, in Linux 4.
    pub beta: f64,
    /// End slow start when more segments than this are queued.
    pub gamma: f64,
    /// Length of the base round-trip time filter in seconds, because routes change; 0 never forgets.
    pub base_rtt_window_s: f64,
}

/// Parameters as written by the user; absent ones depend on the mode.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    mode: Mode,
    #[serde(deserialize_with = "positive")]
    alpha: f64,
    #[serde(deserialize_with = "positive")]
    beta: f64,
    #[serde(deserialize_with = "positive")]
    gamma: f64,
    #[serde(deserialize_with = "not_negative")]
    base_rtt_window_s: f64,
}

/// Marks an absent threshold; a written threshold is always larger.
const LEFT_OUT: f64 = 0.0;

impl Default for Written {
    fn default() -> Self {
        Self { mode: Mode::Ns2, alpha: LEFT_OUT, beta: LEFT_OUT, gamma: 1.0, base_rtt_window_s: 0.0 }
    }
}

impl From<Written> for Config {
    fn from(written: Written) -> Self {
        let Written { mode, alpha, beta, gamma, base_rtt_window_s } = written;
        let or = |written: f64, usual: f64| if written > LEFT_OUT { written } else { usual };
        let (least, most) = match mode {
            Mode::Ns2 => (1.0, 3.0),
            Mode::Linux => (2.0, 4.0),
        };
        Self { mode, alpha: or(alpha, least), beta: or(beta, most), gamma, base_rtt_window_s }
    }
}

impl Default for Config {
    fn default() -> Self {
        Written::default().into()
    }
}

/// Variant of Vegas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The original, as in ns-2: mean round-trip time of an epoch, slow start every second epoch, 1/4 less after a loss.
    #[serde(rename = "ns-2")]
    Ns2,
    /// The Linux kernel module: minimum round-trip time of an epoch, slow start every epoch, 1/2 less after a loss.
    Linux,
}

impl Config {
    /// A Vegas sender.
    pub fn build(&self, start: &Start) -> Box<dyn CongestionControl> {
        let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
        Box::new(Sender::new(windows, Vegas::new(*self)))
    }
}

/// Window law that keeps α to β segments in queues.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    config: Config,
    epoch: Epoch,
    growth: Growth,
    /// True if the window was constant in the epoch just ended: slow start doubles it every second epoch (`inc_flag`).
    stood: bool,
    /// Queued segments in the last epoch.
    delta: Option<f64>,
    fine_timeout: FineTimeout,
}

impl Vegas {
    /// Makes the congestion control in its initial state.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            epoch: Epoch::new(config.base_rtt_window_s),
            growth: Growth::None,
            stood: false,
            delta: None,
            fine_timeout: FineTimeout::new(),
        }
    }

    /// Returns the segments queued in the last epoch.
    pub(crate) fn last_delta(&self) -> Option<f64> {
        self.delta
    }

    /// Decides at the end of an epoch, as the original.
    fn decide(&mut self, windows: &mut Windows, measured: &Measured) {
        let Config { alpha, beta, gamma, .. } = self.config;
        if !windows.in_slow_start() {
            self.growth = hold_between(alpha, beta, measured.delta, windows);
            return;
        }
        let stood = self.stood;
        self.stood = !stood;
        self.growth = Growth::None;
        if stood && measured.delta > gamma {
            leave_slow_start(windows);
        } else if stood {
            self.growth = Growth::Doubling;
        }
    }

    /// Decides as Linux: whole segments, at once.
    fn decide_as_linux(&mut self, windows: &mut Windows, measured: &Measured) {
        let Config { alpha, beta, gamma, .. } = self.config;
        self.growth = if windows.in_slow_start() { Growth::Doubling } else { Growth::None };
        if measured.samples <= 2 {
            // Delayed ACKs alone could explain the delay: Reno's growth for this ACK.
            if !windows.in_slow_start() {
                windows.cwnd += 1.0 / windows.cwnd;
            }
            return;
        }
        let queued = measured.queued(windows.cwnd);
        let before = windows.cwnd;
        if windows.in_slow_start() && queued > gamma {
            let base = measured.base.as_secs_f64();
            let target = windows.cwnd * base / measured.min_rtt.as_secs_f64() + 1.0;
            windows.cwnd = windows.cwnd.min(target).max(SMALLEST);
            windows.ssthresh = windows.ssthresh.min(windows.cwnd - 1.0).max(SMALLEST);
            self.growth = Growth::None;
        } else if !windows.in_slow_start() && queued > beta {
            windows.cwnd = (before - 1.0).max(SMALLEST);
            windows.ssthresh = windows.ssthresh.min(windows.cwnd - 1.0).max(SMALLEST);
        } else if !windows.in_slow_start() && queued < alpha {
            windows.cwnd += 1.0;
        }
    }
}

impl Rule for Vegas {
    fn on_event(&mut self, _windows: &mut Windows, event: ConnectionEvent, path: &Path) {
        if event == ConnectionEvent::Established {
            self.epoch.establish(path);
        }
    }

    fn observe(&mut self, windows: &mut Windows, ack: &Ack, path: &Path) {
        self.fine_timeout.on_ack(ack, path);
        let linux = self.config.mode == Mode::Linux;
        // In ns-2, the sample of the ACK that ends an epoch belongs to the next.
        if let Some(rtt) = ack.rtt.filter(|_| linux) {
            self.epoch.sample(rtt, path);
        }
        if ack.acked > 0
            && let Some(measured) = self.epoch.on_ack(path)
            && ack.phase != Phase::Recovery
        {
            self.delta = Some(measured.delta);
            if linux {
                self.decide_as_linux(windows, &measured);
            } else {
                self.decide(windows, &measured);
            }
        }
        if let Some(rtt) = ack.rtt.filter(|_| !linux) {
            self.epoch.sample(rtt, path);
        }
    }

    fn slow_start(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        self.growth.slow_start(windows, ack);
    }

    fn avoid(&mut self, windows: &mut Windows, ack: &Ack, _path: &Path) {
        self.growth.avoid(windows, ack);
    }

    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        let linux = self.config.mode == Mode::Linux;
        if loss.cause == Cause::Timeout {
            self.fine_timeout.mark_cut(path);
            self.growth = Growth::None;
            windows.halve(loss);
            windows.cwnd = if linux { 1.0 } else { SMALLEST };
        } else if linux {
            windows.halve(loss);
        } else {
            self.growth = Growth::None;
            windows.reduce_to(self.fine_timeout.lost(windows, path), loss.cause);
        }
    }
}

/// Early detection of losses, for senders that use it.
impl Vegas {
    /// True for the original, which watches the oldest segment.
    pub(crate) fn is_original(&self) -> bool {
        self.config.mode == Mode::Ns2
    }

    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        self.fine_timeout.sent(sent);
    }

    pub(crate) fn early_retransmit(
        &mut self,
        windows: &mut Windows,
        oldest_sent: Instant,
        path: &Path,
    ) -> EarlyRetransmit {
        let before = windows.cwnd;
        let doubt = self.fine_timeout.early_retransmit(windows, oldest_sent, path);
        if windows.cwnd < before {
            self.growth = Growth::None;
        }
        doubt
    }
}

/// Vegas's window control together with its fine-grained timeout.
#[derive(Clone, Debug)]
struct Sender {
    classic: Classic<Vegas>,
}

impl Sender {
    fn new(windows: Windows, rule: Vegas) -> Self {
        Self { classic: Classic::new(windows, rule) }
    }
}

impl CongestionControl for Sender {
    forward!(classic: window, on_ack, on_loss, on_rto, on_undo, adopt, on_event, snapshot);

    fn on_sent(&mut self, sent: &Sent, _path: &Path) -> Priority {
        self.classic.rule.on_sent(sent);
        Priority::Normal
    }

    fn requirements(&self) -> Requirements {
        Requirements { sent: self.classic.rule.is_original(), ..Requirements::default() }
    }

    fn detector(&mut self) -> Option<&mut dyn Detector> {
        if self.classic.rule.is_original() { Some(self) } else { None }
    }
}

impl Detector for Sender {
    fn early_retransmit(&mut self, oldest_sent: Instant, path: &Path) -> EarlyRetransmit {
        self.classic.rule.early_retransmit(&mut self.classic.windows, oldest_sent, path)
    }
}

#[cfg(test)]
mod tests;
