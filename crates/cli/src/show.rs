//! `bentpipe show`.

use bentpipe_scenario::Draft;

use crate::args::{ShowArgs, World};
use crate::failure::Failure;
use crate::output;

/// Prints the resolved scenario.
pub fn show(args: &ShowArgs) -> Result<(), Failure> {
    output::print(&draft(&args.world)?.scenario()?.to_toml())
}

/// The scenario that the user named, with the changes.
pub fn draft(world: &World) -> Result<Draft, Failure> {
    let mut draft = Draft::load(&world.scenario)?;
    for setting in &world.set {
        draft.set(&setting.to_string())?;
    }
    Ok(draft)
}
