//! Your own congestion control beside the built-in ones: `cargo run --release -p own-algorithm`.
//!
//! Copy this folder to begin with. The algorithm here is Reno with a second thought: it halves its window after a loss
//! only if there is a queue on the path; otherwise the loss was probably an error of the radio link.

use std::error::Error;

use bentpipe_cc::{Algorithm, Classic, CongestionControl, Custom, Loss, Path, Rule, Start, Windows};
use bentpipe_scenario::Draft;
use bentpipe_sim::{RunOptions, run};

/// Less queueing delay than this, in seconds, is no queue.
const QUEUE_S: f64 = 0.010;

/// What the algorithm remembers between calls: nothing, since the engine measures the round-trip times.
#[derive(Clone)]
struct SecondThought;

impl Rule for SecondThought {
    // What is not written here is Reno's: growth in slow start and in congestion avoidance, timeouts, undo.
    fn reduce(&mut self, _windows: &Windows, loss: &Loss, path: &Path) -> f64 {
        let queueing_s = path.srtt.as_secs_f64() - path.min_rtt.as_secs_f64();
        let kept = if queueing_s > QUEUE_S { 0.5 } else { 0.9 };
        f64::from(loss.outstanding) * kept
    }
}

fn build(start: &Start) -> Box<dyn CongestionControl> {
    let windows = Windows { cwnd: start.initial_window, ssthresh: start.initial_ssthresh };
    Box::new(Classic::new(windows, SecondThought))
}

/// Goodput of the built-in GEO world in Mbit/s, with every flow under `algorithm`.
fn goodput(algorithm: &Algorithm, loss_rate: &str) -> Result<f64, Box<dyn Error>> {
    let mut draft = Draft::load("geo-dumbbell")?;
    draft.set(&format!("link.satellite.loss.rate={loss_rate}"))?;
    draft.set("duration=200 s")?;
    let mut scenario = draft.scenario()?;
    scenario.set_algorithm(algorithm.clone());
    let outcome = run(&scenario, &RunOptions::default())?.outcome;
    Ok(outcome.totals.goodput_bps / 1e6)
}

fn main() -> Result<(), Box<dyn Error>> {
    let own = Algorithm::Custom(Custom { name: "second-thought", build });
    let known = ["reno", "cubic"].map(|name| Algorithm::from_name(name).expect("it is registered"));
    let algorithms = [&[own], &known[..]].concat();

    println!("goodput of 20 flows over a GEO satellite of 10 Mbit/s, in Mbit/s\n");
    print!("{:>16}", "packet loss");
    algorithms.iter().for_each(|algorithm| print!("{:>16}", algorithm.name()));
    println!();
    for loss_rate in ["1e-5", "1e-4", "1e-3", "1e-2"] {
        print!("{loss_rate:>16}");
        for algorithm in &algorithms {
            print!("{:>16.2}", goodput(algorithm, loss_rate)?);
        }
        println!();
    }
    Ok(())
}
