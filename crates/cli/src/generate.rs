//! `bentpipe generate`: man pages and completions, for packages.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::args::Args;
use crate::failure::Failure;

/// Writes the files into `folder`.
pub fn generate(folder: &Path) -> Result<(), Failure> {
    let work = || {
        fs::create_dir_all(folder)?;
        let mut command = Args::command();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut command, "bentpipe", folder)?;
        }
        command.build();
        pages(&command, "bentpipe", folder)
    };
    work().map_err(|error: std::io::Error| Failure::unwritable(folder, &error))
}

/// Writes a page for the command and for each command below it: bentpipe-pep-run.1.
fn pages(command: &Command, name: &str, folder: &Path) -> std::io::Result<()> {
    let page = clap_mangen::Man::new(command.clone().name(name.to_owned()));
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(folder.join(format!("{name}.1")), text)?;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    for below in below {
        pages(below, &format!("{name}-{}", below.get_name()), folder)?;
    }
    Ok(())
}
