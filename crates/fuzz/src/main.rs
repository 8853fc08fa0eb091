//! Tests a target with random inputs from a seed: `bentpipe-fuzz TARGET COUNT [SEED]`. COUNT is a number of packets for the
//! stack, and a number of inputs for other targets. A failing input is written to `fuzz-failure.bin`; `bentpipe-fuzz TARGET FILE`
//! repeats it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use bentpipe_fuzz::{Generator, Target};

const USAGE: &str = "bentpipe-fuzz TARGET COUNT [SEED]\nbentpipe-fuzz TARGET FILE";
const FAILURE: &str = "fuzz-failure.bin";

fn feed(target: Target, count: u64, seed: u64) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut generator =
        Generator::new(target, &root, seed).map_err(|error| format!("{}: {error}", root.display()))?;
    let (mut inputs, mut packets) = (0_u64, 0_u64);
    while (if target == Target::Stack { packets } else { inputs }) < count {
        let input = generator.next_input();
        match catch_unwind(AssertUnwindSafe(|| target.run(input))) {
            Ok(done) => packets += done.packets,
            Err(_) => {
                fs::write(FAILURE, input).map_err(|error| format!("{FAILURE}: {error}"))?;
                return Err(format!("input {inputs} of seed {seed} failed; it is in {FAILURE}"));
            }
        }
        inputs += 1;
    }
    println!("{}: seed {seed}, {inputs} inputs, {packets} packets", target.name());
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let names: Vec<&str> = Target::ALL.iter().map(|(name, _)| *name).collect();
    let target = arguments.first().and_then(|name| Target::from_name(name));
    let wrong = || format!("found {arguments:?}, accepted:\n{USAGE}\nwith a TARGET of {}", names.join(", "));
    let done = match (target, &arguments[..]) {
        (Some(target), [_, count, seed @ ..]) if seed.len() <= 1 => match (count.parse(), seed.first()) {
            (Ok(count), None) => feed(target, count, 1),
            (Ok(count), Some(seed)) => {
                seed.parse().map_err(|_| wrong()).and_then(|seed| feed(target, count, seed))
            }
            (Err(_), _) => fs::read(count).map_err(|_| wrong()).map(|bytes| {
                target.run(&bytes);
            }),
        },
        _ => Err(wrong()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
