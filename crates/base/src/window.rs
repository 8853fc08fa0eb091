use serde::Serialize;

/// State of a congestion control for display. The engine compares it before and after each call, and traces changes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct WindowState {
    /// Congestion window in segments, including any inflation of a classical fast recovery.
    pub cwnd: f64,
    /// Slow-start threshold in segments; infinite while unset.
    pub ssthresh: f64,
    /// Pacing rate in bits per second; zero if the algorithm sets none.
    pub pacing_bps: u64,
    /// Name of the algorithm's phase, as in its paper.
    pub phase: &'static str,
}
