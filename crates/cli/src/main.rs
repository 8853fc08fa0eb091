//! `bentpipe`: raw flags -> plan -> work.

mod args;
mod compare;
mod failure;
mod interrupt;
mod list;
mod output;
mod progress;
mod run;
mod show;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let done = match args::Args::parse().command {
        args::Command::Run(args) => run::run(&args),
        args::Command::Compare(args) => compare::compare(&args),
        args::Command::List(args) => list::list(&args),
        args::Command::Show(args) => show::show(&args),
    };
    done.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}
