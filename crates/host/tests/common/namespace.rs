//! Tests that run themselves again in a new network namespace, where they have root privileges.

use std::process::Command;

/// Returns true in the namespace. Outside, runs the test there, and reports why if that is not possible.
pub fn inside(test: &str) -> bool {
    if std::env::var_os("BENTPIPE_IN_NAMESPACE").is_some() {
        return true;
    }
    let possible = Command::new("unshare").args(["-rn", "python3", "-c", ""]).output();
    if !possible.is_ok_and(|output| output.status.success()) || !std::path::Path::new("/dev/net/tun").exists()
    {
        println!("skipped: this needs python3, /dev/net/tun and network namespaces (unshare -rn) or root");
        return false;
    }
    let status = Command::new("unshare")
        .arg("-rn")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env("BENTPIPE_IN_NAMESPACE", "1")
        .status()
        .unwrap();
    assert!(status.success());
    false
}
