//! Every family of algorithms has an example, and it runs.

// Examples share the transport, and each is a program of its own.
#![allow(clippy::duplicate_mod)]

use bentpipe_cc::REGISTRY;

#[path = "../examples/bandwidth.rs"]
mod bandwidth;
#[path = "../examples/delay.rs"]
mod delay;
#[path = "../examples/loss.rs"]
mod loss;
#[path = "../examples/memory.rs"]
mod memory;
#[path = "../examples/model.rs"]
mod model;
#[path = "../examples/network.rs"]
mod network;
#[path = "../examples/probes.rs"]
mod probes;
#[path = "../examples/receiver.rs"]
mod receiver;

#[test]
fn every_family_has_an_example_that_runs() {
    let examples: [(&str, fn()); 8] = [
        ("bandwidth", bandwidth::main),
        ("delay", delay::main),
        ("loss", loss::main),
        ("memory", memory::main),
        ("model", model::main),
        ("network", network::main),
        ("probes", probes::main),
        ("receiver", receiver::main),
    ];
    for entry in REGISTRY {
        let family = format!("{:?}", entry.family).to_lowercase();
        assert!(examples.iter().any(|(name, _)| *name == family), "no example of {family}");
    }
    examples.iter().for_each(|(_, example)| example());
}
