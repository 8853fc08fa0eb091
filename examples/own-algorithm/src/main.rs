//! A custom congestion control next to the built-in ones, in every command of Bentpipe:
//!
//! ```text
//! cargo run --release -p own-algorithm -- compare geo-dumbbell --cc second-thought,reno,cubic \\
//!     --vary link.satellite.loss.rate=1e-5,1e-4,1e-3 --report own.html --csv own.csv
//! ```
//!
//! Start from a copy of this folder, and change the path in its `Cargo.toml`. The example algorithm is Reno with a check: a loss
//! halves its window only if there is a queue on the path. Otherwise the loss was probably an error of the radio link.

use std::process::ExitCode;

use bentpipe_cli::cc::{Cause, Classic, CongestionControl, Custom, Loss, Path, Rule, Start, Windows};

/// Queueing delay in seconds below which the path counts as having no queue.
const QUEUE_S: f64 = 0.010;

/// State of the algorithm: none, since the engine measures the round-trip times.
#[derive(Clone)]
struct SecondThought;

impl Rule for SecondThought {
    // All other methods are Reno's: growth in slow start and in congestion avoidance, and undo.
    fn reduce(&mut self, windows: &mut Windows, loss: &Loss, path: &Path) {
        let queueing_s = path.srtt.as_secs_f64() - path.min_rtt.as_secs_f64();
        let kept = if queueing_s > QUEUE_S || loss.cause == Cause::Timeout { 0.5 } else { 0.9 };
        windows.reduce_to(f64::from(loss.outstanding) * kept, loss.cause);
    }
}

fn build(start: &Start) -> Box<dyn CongestionControl> {
    let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
    Box::new(Classic::new(windows, SecondThought))
}

fn main() -> ExitCode {
    bentpipe_cli::main_with(&[Custom::new("second-thought", build)])
}
