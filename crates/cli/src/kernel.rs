//! `bentpipe kernel`: the algorithms in the kernel of this machine.

use bentpipe_kernel::doctor::{self, Finding};
use bentpipe_kernel::{CONTROLS, Control, Error};
use bentpipe_lab::table;
use serde::Serialize;

use crate::failure::Failure;
use crate::kernel_args::{KernelArgs, KernelCommand};
use crate::output;

#[cfg(feature = "kernel")]
#[path = "kernel_load.rs"]
mod load;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Request(words) => Self::Request(words),
            Error::Missing(words) => Self::Missing(words),
            Error::Work(words) => Self::Work(words),
        }
    }
}

/// Runs the command.
pub fn kernel(args: &KernelArgs) -> Result<(), Failure> {
    #[cfg(feature = "kernel")]
    bentpipe_kernel::enter_mounts_of_machine()?;
    match &args.command {
        KernelCommand::List(json) => list(json.json),
        KernelCommand::Doctor(json) => examine(json.json),
        #[cfg(feature = "kernel")]
        KernelCommand::Unload(args) => load::unload(args),
        #[cfg(feature = "kernel")]
        KernelCommand::Load(args) => load::load(args),
        #[cfg(feature = "kernel")]
        KernelCommand::Status(json) => load::status(json.json),
        #[cfg(feature = "kernel")]
        KernelCommand::Watch(args) => load::watch(args),
        #[cfg(feature = "kernel")]
        KernelCommand::Use(args) => load::use_for(args),
        #[cfg(not(feature = "kernel"))]
        _ => Err(Failure::Missing(
            "this build cannot load programs into the kernel: build it with `make kernel`, which installs clang, libelf and zlib".into(),
        )),
    }
}

/// Entry of the list.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    control: Control,
    loaded: bool,
}

fn list(json: bool) -> Result<(), Failure> {
    // Without privileges the loaded algorithms are unknown.
    let loaded = bentpipe_kernel::loaded().unwrap_or_default();
    let listed =
        CONTROLS.iter().map(|control| Listed { control: *control, loaded: loaded.contains(&control) });
    let listed: Vec<Listed> = listed.collect();
    if json {
        return output::print_json(&listed);
    }
    let mut rows = vec![["NAME", "IN THE KERNEL", "LOADED", "DIFFERS"].map(str::to_owned).to_vec()];
    rows.extend(listed.iter().map(|Listed { control, loaded }| {
        let loaded = if *loaded { "yes" } else { "" };
        [control.name, control.kernel_name, loaded, control.differs].map(str::to_owned).to_vec()
    }));
    output::print(&table::list(&rows, output::look()))
}

fn examine(json: bool) -> Result<(), Failure> {
    let checks = doctor::examine();
    if json {
        output::print_json(&checks)?;
    } else {
        for check in &checks {
            let finding = match check.finding {
                Finding::Ok => "ok",
                Finding::Warning => "warning",
                Finding::Missing => "missing",
            };
            let fix = if check.fix.is_empty() { String::new() } else { format!("; fix: {}", check.fix) };
            output::print(&format!("{finding:<9} {}: {}{fix}\n", check.what, check.found))?;
        }
    }
    let missing: Vec<&str> =
        checks.iter().filter(|check| check.finding == Finding::Missing).map(|check| check.what).collect();
    match missing[..] {
        [] => Ok(()),
        _ => Err(Failure::Missing(format!("needed and missing: {}", missing.join(", ")))),
    }
}
