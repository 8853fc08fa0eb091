//! Prints the initial window of every registered algorithm, and its window after a loss.
//!
//! `cargo run --package bentpipe-cc --example windows`

use bentpipe_cc::{Algorithm, REGISTRY, Start};

fn main() {
    let start = Start {
        mss: 1448,
        initial_window: 10.0,
        initial_ssthresh: f64::INFINITY,
        paced: false,
        seed: 1,
        memory: None,
    };
    for entry in REGISTRY {
        let algorithm = Algorithm::from_name(entry.name).expect("it is registered");
        let sender = algorithm.build(&start);
        println!("{:14} {:4.1} segments  {}", entry.name, sender.window(), entry.title);
    }
}
