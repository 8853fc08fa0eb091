//! The command line of Bentpipe, for programs with their own algorithms.
//!
//! [`main_with`] is all that such a program needs; `examples/own-algorithm` is one.

mod absent;
mod args;
mod compare;
#[cfg(feature = "studies")]
pub mod embed;
#[cfg(feature = "emulate")]
mod emulate;
mod failure;
#[cfg(feature = "generate")]
mod generate;
mod interrupt;
mod kernel;
// A build without the kernel programs reads these arguments only to refuse them.
#[cfg_attr(not(feature = "kernel"), allow(dead_code))]
mod kernel_args;
mod list;
mod origin;
mod output;
#[cfg(feature = "studies")]
mod paper;
#[cfg(feature = "pep")]
mod pep;
#[cfg(feature = "pep")]
mod pep_args;
#[cfg(feature = "pep")]
mod pep_status;
#[cfg(feature = "pep")]
mod pep_top;
#[cfg(feature = "pep")]
mod pep_try;
mod progress;
#[cfg(all(feature = "transfer", feature = "quic"))]
mod quic;
#[cfg(all(feature = "transfer", not(feature = "quic")))]
#[path = "no_quic.rs"]
mod quic;
#[cfg(feature = "transfer")]
mod reach;
#[cfg(feature = "transfer")]
mod receive;
#[cfg(feature = "emulate")]
mod record;
#[cfg(feature = "transfer")]
mod remembered;
#[cfg(feature = "transfer")]
mod resume;
mod run;
#[cfg(feature = "transfer")]
mod send;
mod show;
#[cfg(feature = "parquet")]
mod tables;
#[cfg(not(feature = "parquet"))]
#[path = "no_tables.rs"]
mod tables;
#[cfg(feature = "transfer")]
mod transfer;
#[cfg(feature = "transfer")]
mod transfer_args;
#[cfg(feature = "web")]
mod web;

use std::process::ExitCode;

pub use bentpipe_cc as cc;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use failure::Failure;

/// Runs the command line of this process with the algorithms of `own` in addition to the registered ones: every
/// command accepts their names, `list cc` lists them, and `compare --cc all` includes them. Returns the exit code.
///
/// It refuses a name that is in use, with exit code 2.
pub fn main_with(own: &[cc::Custom]) -> ExitCode {
    match bentpipe_scenario::bring_algorithms(own) {
        Ok(()) => command(),
        Err(error) => Failure::from(error).report(),
    }
}

/// Returns the commands with their arguments, for the reference.
pub fn arguments() -> clap::Command {
    args::Args::command()
}

/// Maximum number of characters shown of a line that refuses arguments.
const SHOWN: usize = 1000;

/// Prints a mistake in the arguments, shortened if it is very long, and ends the process. Help and version are not
/// mistakes.
fn refuse(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    if !error.use_stderr() || text.lines().all(|line| line.len() <= SHOWN) {
        error.exit()
    }
    for line in text.lines() {
        match line.char_indices().nth(SHOWN) {
            Some((end, _)) => eprintln!("{} ... ({} bytes in all)", &line[..end], line.len()),
            None => eprintln!("{line}"),
        }
    }
    std::process::exit(error.exit_code())
}

/// Runs the command with these arguments, without the program's name. Returns the exit code; for `emulate` that of
/// its command if it ran. For programs that embed the command line.
pub fn command_line(words: impl IntoIterator<Item = String>) -> u8 {
    let words = std::iter::once("bentpipe".to_owned()).chain(words);
    match args::Args::try_parse_from(words) {
        Ok(args) => dispatch(args.command).unwrap_or_else(|failure| {
            eprintln!("bentpipe: {failure}");
            failure.code()
        }),
        Err(mut error) => {
            drop_tip(&mut error);
            if let Some(failure) = absent(&error) {
                eprintln!("bentpipe: {failure}");
                return failure.code();
            }
            // Without standard error there is no reader.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    }
}

fn command() -> ExitCode {
    match args::Args::try_parse() {
        Ok(args) => dispatch(args.command).map_or_else(Failure::report, ExitCode::from),
        Err(mut error) => {
            drop_tip(&mut error);
            absent(&error).map_or_else(|| refuse(&error), Failure::report)
        }
    }
}

/// Removes the advice to write an unknown option behind `--`: no command takes such a value, except that of `emulate`.
fn drop_tip(error: &mut clap::Error) {
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
}

/// Returns the failure for arguments that only the full build accepts.
fn absent(error: &clap::Error) -> Option<Failure> {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(command)) => absent::command(command),
        _ => None,
    }
}

/// Returns the exit code: for `emulate` that of its command, else 0.
fn dispatch(command: args::Command) -> Result<u8, Failure> {
    let done = match command {
        args::Command::Run(args) => run::run(&args),
        args::Command::Compare(args) => compare::compare(&args),
        #[cfg(feature = "studies")]
        args::Command::Paper(args) => paper::paper(&args),
        args::Command::List(args) => list::list(&args),
        args::Command::Show(args) => show::show(&args),
        #[cfg(feature = "emulate")]
        args::Command::Record(args) => record::record(&args),
        #[cfg(feature = "emulate")]
        args::Command::Emulate(args) => return emulate::emulate(&args),
        #[cfg(feature = "transfer")]
        args::Command::Send(args) => send::send(&args),
        #[cfg(feature = "transfer")]
        args::Command::Receive(args) => receive::receive(&args),
        #[cfg(feature = "pep")]
        args::Command::Pep(args) => pep::pep(&args.command),
        args::Command::Kernel(args) => kernel::kernel(&args),
        #[cfg(feature = "web")]
        args::Command::Web(args) => web::web(&args),
        #[cfg(feature = "generate")]
        args::Command::Generate { folder } => generate::generate(&folder),
    };
    done.map(|()| 0)
}
