//! `bentpipe show`.

use bentpipe_scenario::Draft;

use crate::args::{Proxies, ShowArgs, World};
use crate::failure::Failure;
use crate::output;

/// Prints the resolved scenario, and as comments what loss rates count and which satellites are left out.
pub fn show(args: &ShowArgs) -> Result<(), Failure> {
    let scenario = draft(&args.world, &args.proxies)?.scenario()?;
    let comments = [scenario.loss_rates(), scenario.satellites_left_out()].concat();
    let comments: String = comments.iter().map(|line| format!("# {line}\n")).collect();
    output::print(&(scenario.to_toml() + &comments))
}

/// Returns the user's scenario with the changes.
pub fn draft(world: &World, proxies: &Proxies) -> Result<Draft, Failure> {
    let mut draft = Draft::load(&world.scenario)?;
    set_all(&mut draft, world)?;
    if let Some(path) = &proxies.proxy {
        draft.set_proxies(path, proxies.proxy_class.as_deref())?;
        // These settings override every file.
        set_all(&mut draft, world)?;
    }
    Ok(draft)
}

fn set_all(draft: &mut Draft, world: &World) -> Result<(), Failure> {
    world.set.iter().try_for_each(|setting| Ok(draft.set(&setting.to_string())?))
}
