//! Short fuzzing test: the corpus, and a few random inputs for each target.
//!
//! `BENTPIPE_FUZZ=100 cargo test -p bentpipe-fuzz` uses a hundred times as many inputs. `bentpipe-fuzz` and `scripts/fuzz` run
//! longer tests.

use std::env;
use std::path::Path;

use bentpipe_fuzz::{Generator, Target};

fn feed(target: Target, inputs: u64) {
    let times: u64 =
        env::var("BENTPIPE_FUZZ").map_or(1, |times| times.parse().expect("BENTPIPE_FUZZ is a number"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut generator = Generator::new(target, &root, 1).expect("the corpus is there");
    assert!(!generator.known().is_empty(), "there is something to begin with");
    for known in generator.known() {
        target.run(known);
    }
    for _ in 0..inputs * times {
        target.run(generator.next_input());
    }
}

#[test]
fn packets_are_read_without_a_panic() {
    feed(Target::Wire, 200_000);
}

#[test]
fn a_stack_survives_strangers_within_its_limits() {
    feed(Target::Stack, 500);
}

#[test]
fn scenarios_are_read_without_a_panic() {
    feed(Target::Scenario, 500);
}

#[test]
fn studies_are_read_without_a_panic() {
    feed(Target::Study, 300);
}

#[test]
fn settings_are_read_without_a_panic() {
    feed(Target::Setting, 1000);
}

#[test]
fn packet_scripts_are_read_without_a_panic() {
    feed(Target::Script, 2000);
}
