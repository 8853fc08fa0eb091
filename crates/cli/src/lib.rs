//! The command line of Bentpipe, for programs that bring algorithms of their own: raw flags -> plan -> work.
//!
//! [`main_with`] is all that such a program needs; `examples/own-algorithm` is one.

mod args;
mod compare;
pub mod embed;
mod emulate;
mod failure;
mod generate;
mod interrupt;
mod kernel;
// A build without the programs reads the arguments only to refuse them.
#[cfg_attr(not(feature = "kernel"), allow(dead_code))]
mod kernel_args;
mod list;
mod output;
mod paper;
mod pep;
mod pep_args;
mod pep_status;
mod pep_top;
mod pep_try;
mod progress;
mod reach;
mod receive;
mod record;
mod resume;
mod run;
mod send;
mod show;
mod transfer;
mod transfer_args;

use std::process::ExitCode;

pub use bentpipe_cc as cc;
use clap::Parser;
use failure::Failure;

/// Does what the command line of this process asks for, with the algorithms of `own` beside the registered ones: every command
/// takes them by name, `list cc` names them, and `compare --cc all` includes them. Returns the exit code.
///
/// An algorithm whose name is taken already, by a registered one or another of `own`, is refused with exit code 2.
pub fn main_with(own: &[cc::Custom]) -> ExitCode {
    match bentpipe_scenario::bring_algorithms(own) {
        Ok(()) => command(),
        Err(error) => Failure::from(error).report(),
    }
}

/// So many characters of a line that refuses arguments are shown.
const SHOWN: usize = 1000;

/// Says what is wrong with the arguments, without echoing all of a very long one, and ends. Help and version are no mistakes.
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

/// Does what these words ask for, without the name of the program in front; returns the exit code of every command but `emulate`, whose
/// code is that of its command, and 0 then. For programs that carry the command line beside other things.
pub fn command_line(words: impl IntoIterator<Item = String>) -> u8 {
    let words = std::iter::once("bentpipe".to_owned()).chain(words);
    match args::Args::try_parse_from(words) {
        Ok(args) => match dispatch(args.command) {
            Ok(_) => 0,
            Err(failure) => {
                eprintln!("bentpipe: {failure}");
                failure.code()
            }
        },
        Err(error) => {
            // Nobody is there to hear that this could not be printed.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(2)
        }
    }
}

fn command() -> ExitCode {
    let args = args::Args::try_parse().unwrap_or_else(|error| refuse(&error));
    dispatch(args.command).unwrap_or_else(Failure::report)
}

fn dispatch(command: args::Command) -> Result<ExitCode, Failure> {
    let done = match command {
        args::Command::Run(args) => run::run(&args),
        args::Command::Compare(args) => compare::compare(&args),
        args::Command::Paper(args) => paper::paper(&args),
        args::Command::List(args) => list::list(&args),
        args::Command::Show(args) => show::show(&args),
        args::Command::Record(args) => record::record(&args),
        args::Command::Emulate(args) => return emulate::emulate(&args),
        args::Command::Send(args) => send::send(&args),
        args::Command::Receive(args) => receive::receive(&args),
        args::Command::Pep(args) => pep::pep(&args.command),
        args::Command::Kernel(args) => kernel::kernel(&args),
        args::Command::Generate { folder } => generate::generate(&folder),
    };
    done.map(|()| ExitCode::SUCCESS)
}
