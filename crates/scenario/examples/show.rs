//! Reads a scenario, changes it, and prints its flows and links.
//!
//! `cargo run --package bentpipe-scenario --example show geo-dumbbell link.satellite.loss.rate=1e-3`

use bentpipe_scenario::{Draft, Error};

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "geo-dumbbell".to_owned());
    let mut draft = Draft::load(&name)?;
    for change in arguments {
        draft.set(&change)?;
    }
    let scenario = draft.scenario()?;
    for link in &scenario.links {
        println!("link {}: {} to {}, loss {:?}", link.name, link.from, link.to, link.forward.loss.model);
    }
    for flow in &scenario.flows {
        println!("flow {}: {} with {}, {} to {}", flow.name, flow.count, flow.cc, flow.from, flow.to);
    }
    Ok(())
}
