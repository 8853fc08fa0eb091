//! `bentpipe emulate` for tests.

use std::fs::File;
use std::process::{Command, Output, Stdio};

/// Guard of a test; `None` if something is missing. One test runs at a time, those of the Python package included, because the
/// host's settings are compared before and after.
pub fn ready(programs: &[&str]) -> Option<File> {
    let runs = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !runs("unshare", &["--net", "true"]) {
        eprintln!("skipped: no right to make network namespaces (run as root)");
        return None;
    }
    for program in ["ip", "nft", "ping"].iter().chain(programs) {
        if !runs("which", &[program]) {
            eprintln!("skipped: the program {program} is missing");
            return None;
        }
    }
    // The operating system unlocks a file that is closed.
    let alone = File::create(std::env::temp_dir().join("bentpipe-emulation.lock")).unwrap();
    rustix::fs::flock(&alone, rustix::fs::FlockOperation::LockExclusive).unwrap();
    Some(alone)
}

/// Returns the command `bentpipe ARGUMENTS`.
pub fn bentpipe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
    command.args(arguments);
    command
}

/// Returns the output of `bentpipe emulate ARGUMENTS -- sh -c SCRIPT`.
pub fn emulate(arguments: &[&str], script: &str) -> Output {
    let mut command = bentpipe(&["emulate"]);
    command.args(arguments).args(["--", "sh", "-c", script]);
    command.output().expect("the binary is there")
}

/// Returns the standard output of a command that succeeded.
pub fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}\n{output:?}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
