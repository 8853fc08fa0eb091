//! Checks and helpers for contributors: `cargo xtask`.

mod demo;
mod house;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask tidy     arrows between crates and between files, registry and papers, length of functions, dead files, purity, words
cargo xtask demo     run a short comparison of the release build and check what it prints
cargo xtask pure     the names of the pure crates, one per line";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::main(&root()),
        ["demo"] => demo::main(&root()),
        ["pure"] => {
            house::ROOMS.iter().filter(|room| room.pure).for_each(|room| println!("{}", room.name));
            ExitCode::SUCCESS
        }
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{HELP}");
            ExitCode::from(2)
        }
    }
}

/// Root of the checkout.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_path_buf()
}
