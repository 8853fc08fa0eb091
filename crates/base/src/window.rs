use serde::Serialize;

/// What a congestion control shows of itself: the engine compares it before and after each call and traces the change.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct WindowState {
    /// Congestion window in segments, including any inflation of a classical fast recovery.
    pub cwnd: f64,
    /// Slow-start threshold in segments; infinite while unset.
    pub ssthresh: f64,
    /// Pacing rate in bits per second; zero when the algorithm sets none.
    pub pacing_bps: u64,
    /// Name of the phase the algorithm is in, as its paper calls it.
    pub phase: &'static str,
}
