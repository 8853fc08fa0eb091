//! The family "network": routers or links report. An XCP router grants a rate in a field of each segment, which the receiver
//! returns.
//!
//! `cargo run --package bentpipe-cc --example network`
#![allow(missing_docs)]

use bentpipe_cc::base::{Duration, Extension, Instant, Segment};
use bentpipe_cc::{Algorithm, Path, PeerProbes, Sent, Start, xcp};

/// Bytes per second that the router grants to each segment.
const GRANT: f32 = 20_000.0;

pub fn main() {
    let start = Start {
        mss: 1000,
        initial_window: 2.0,
        initial_ssthresh: f64::INFINITY,
        paced: false,
        seed: 1,
        memory: None,
    };
    let rtt = Duration::from_millis(550);
    let path = Path {
        now: Instant::ZERO + Duration::from_secs(1),
        mss: 1000,
        srtt: rtt,
        rttvar: Duration::ZERO,
        min_rtt: rtt,
        rto: Duration::from_secs(1),
        in_flight: 1,
        outstanding: 1,
        receive_window: 1000,
        snd_una: 1,
        snd_nxt: 1001,
        unsent: 1_000_000,
        delivered: 0,
        peer_probes: PeerProbes::Unknown,
        ecn: false,
    };
    let mut sender = Algorithm::from_name("xcp").expect("it is registered").build(&start);
    let mut receiver = (xcp::RECEIVER.build)();
    for segment in 1..=5 {
        let sent = Sent { seq: 1, len: 1000, retransmission: false };
        let mut field = sender.feedback().expect("XCP has fields").stamp(&sent, &path);
        // The router lowers the request of the sender to its grant.
        if let Extension::Xcp { delta_bytes_per_s, .. } = &mut field {
            *delta_bytes_per_s = delta_bytes_per_s.min(GRANT);
        }
        let arrived = Segment { seq: 1, len: 1000, extension: field, ..Segment::default() };
        receiver.on_data(path.now, &arrived, false);
        let answer = receiver.reply(path.now);
        sender.feedback().expect("as before").on_feedback(&answer, &path);
        println!("after {segment} grants: a window of {} segments", sender.window());
    }
}
