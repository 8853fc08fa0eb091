//! Programs of the system that set up networks: `ip`, `tc` and `nft`.

use std::io::{self, ErrorKind, Write};
use std::process::{Command, Stdio};

/// A program of the operating system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Program {
    /// Name of the executable.
    pub name: &'static str,
    /// Debian package that contains the program.
    pub package: &'static str,
}

/// The program that configures addresses, devices and routes.
pub const IP: Program = Program { name: "ip", package: "iproute2" };
/// The program that configures queues.
pub const TC: Program = Program { name: "tc", package: "iproute2" };
/// The program that configures the packet filter (nftables).
pub const NFT: Program = Program { name: "nft", package: "nftables" };

/// Reason for the failure of a program.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The program is not installed.
    #[error("the program `{}` is missing: install the package {}", .0.name, .0.package)]
    Missing(Program),
    /// The program could not be started, or ended with an error.
    #[error("{program}: {source}")]
    Failed {
        /// Name of the program.
        program: &'static str,
        /// Text that the program wrote to standard error. Its kind is [`ErrorKind::PermissionDenied`] if rights were missing.
        source: io::Error,
    },
}

impl Program {
    /// Runs the program with `script` as its standard input, in the network namespace of the calling thread. Returns the standard
    /// output.
    ///
    /// # Errors
    /// [`Failure`] if the program is missing or did not succeed.
    pub fn run(self, arguments: &[&str], script: &str) -> Result<String, Failure> {
        let failed = |source| Failure::Failed { program: self.name, source };
        let spawned = Command::new(self.name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::Missing(self),
            _ => failed(error),
        })?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that ends before it has read its input reports the reason on standard error.
            let _ = stdin.write_all(script.as_bytes());
        }
        let output = child.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let why = String::from_utf8_lossy(&output.stderr);
        let kind = if why.contains("not permitted") { ErrorKind::PermissionDenied } else { ErrorKind::Other };
        Err(failed(io::Error::new(kind, why.trim().to_owned())))
    }
}

/// Changes the packet filter of the network namespace of the calling thread, in one transaction.
///
/// # Errors
/// Those of [`Program::run`].
pub fn nft(script: &str) -> Result<(), Failure> {
    NFT.run(&["-f", "-"], script).map(drop)
}

/// Changes addresses, devices and routes in the network namespace of the calling thread. Each line is one command; `options`
/// apply to all.
///
/// # Errors
/// Those of [`Program::run`].
pub fn ip(options: &[&str], lines: &[String]) -> Result<(), Failure> {
    let arguments: Vec<&str> = options.iter().copied().chain(["-batch", "-"]).collect();
    IP.run(&arguments, &(lines.join("\n") + "\n")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_its_script_and_gives_its_output() {
        let cat = Program { name: "cat", package: "coreutils" };
        assert_eq!(cat.run(&["-"], "one line\n").unwrap(), "one line\n");
    }

    #[test]
    fn a_missing_program_and_a_failed_one_are_told_apart() {
        let missing = Program { name: "bentpipe-no-such-program", package: "none" };
        assert!(matches!(missing.run(&[], ""), Err(Failure::Missing(program)) if program == missing));
        let fails = Program { name: "ls", package: "coreutils" };
        let failure = fails.run(&["/no-such-folder"], "").unwrap_err();
        assert!(failure.to_string().starts_with("ls: "), "{failure}");
    }
}
