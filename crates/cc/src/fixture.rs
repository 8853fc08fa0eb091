//! Inputs of the unit tests: a GEO path without losses and an ordinary ACK, to be changed by struct update.

use bentpipe_base::{Duration, Instant};

use crate::{Ack, Cause, Loss, Path, PeerProbes, Phase, Start};

/// Segment size of the tests.
pub const MSS: u32 = 1000;

/// Makes a connection with an initial window of `initial_window` segments, no ssthresh and no saved state.
pub fn start(initial_window: f64) -> Start {
    Start { mss: MSS, initial_window, initial_ssthresh: f64::INFINITY, paced: false, seed: 1, memory: None }
}

/// Returns a GEO path of 550 ms with a receive window of 64 segments.
pub fn path() -> Path {
    let rtt = Duration::from_millis(550);
    Path {
        now: Instant::ZERO,
        mss: MSS,
        srtt: rtt,
        rttvar: Duration::ZERO,
        min_rtt: rtt,
        rto: Duration::from_secs(1),
        in_flight: 0,
        outstanding: 0,
        receive_window: 64,
        snd_una: 1,
        snd_nxt: 1,
        unsent: 0,
        delivered: 0,
        peer_probes: PeerProbes::Agreed,
        ecn: false,
    }
}

/// The path at `seconds`.
pub fn path_at(seconds: f64) -> Path {
    Path { now: Instant::ZERO + Duration::from_secs_f64(seconds), ..path() }
}

/// An ACK of `acked` segments while the window limits the sender.
pub fn ack(acked: u32) -> Ack {
    Ack {
        acked,
        counted: acked,
        sacked: 0,
        delivered_bytes: u64::from(acked * MSS),
        lost: 0,
        rtt: None,
        peer_clock: None,
        rate: None,
        phase: Phase::Open,
        ends_episode: false,
        window_limited: true,
        ecn_echo: false,
        marks: 0,
        dsack: false,
    }
}

/// A loss of one segment out of `outstanding`.
pub fn loss(outstanding: u32) -> Loss {
    Loss { cause: Cause::Loss, lost: 1, outstanding, in_flight: outstanding - 4, validated: None }
}

/// True if `a` is `b` within a hundredth of a percent, the precision of the numbers in the papers.
pub fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * b.abs()
}
