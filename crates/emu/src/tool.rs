//! Programs of the system that set up networks.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use crate::error::Error;

/// Feeds `script` to the program `name`, which is in the Debian package `package`; returns what it wrote.
pub(crate) fn run(name: &str, package: &str, arguments: &[&str], script: &str) -> Result<String, Error> {
    let spawned = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Error::Missing(format!("the program `{name}` is missing: install the package {package}"))
        }
        _ => Error::at(name)(error),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends before it has read everything says why on its standard error.
        let _ = stdin.write_all(script.as_bytes());
    }
    let output = child.wait_with_output().map_err(Error::at(name))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(Error::at(name)(std::io::Error::other(why.trim().to_owned())))
}

/// Configures addresses, devices and routes in the network namespace of the calling thread.
pub(crate) fn ip(lines: &[String]) -> Result<(), Error> {
    run("ip", "iproute2", &["-batch", "-"], &(lines.join("\n") + "\n")).map(|_| ())
}

/// Changes the packet filter of the network namespace of the calling thread.
pub(crate) fn nft(script: &str) -> Result<(), Error> {
    run("nft", "nftables", &["-f", "-"], script).map(|_| ())
}
