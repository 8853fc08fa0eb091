//! `bentpipe`.

use std::process::ExitCode;

fn main() -> ExitCode {
    bentpipe_cli::main_with(&[])
}
