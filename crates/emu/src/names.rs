//! Name resolution of the command.

use std::fs;
use std::net::IpAddr;

/// Returns a resolver configuration with only the name servers that the command can reach. `None` if the host's
/// configuration works; empty if the host has no such server.
pub(crate) fn resolver_configuration() -> Option<String> {
    let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    if !text.lines().any(is_local_server) {
        return None;
    }
    // Returns the name servers that systemd-resolved uses.
    let upstream = fs::read_to_string("/run/systemd/resolve/resolv.conf").unwrap_or_default();
    Some(without_local_servers(&text).or_else(|| without_local_servers(&upstream)).unwrap_or_default())
}

fn server(line: &str) -> Option<IpAddr> {
    line.trim().strip_prefix("nameserver")?.trim().parse().ok()
}

/// True if a name server listens on the host's loopback device, which the command cannot reach.
fn is_local_server(line: &str) -> bool {
    server(line).is_some_and(|address| address.is_loopback())
}

/// Removes local servers from the text, if another server remains.
fn without_local_servers(text: &str) -> Option<String> {
    let kept = text.lines().filter(|line| !is_local_server(line));
    let kept: Vec<&str> = kept.collect();
    kept.iter().any(|line| server(line).is_some()).then(|| kept.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_the_loopback_device_are_left_out() {
        let text = "search example.org\nnameserver 127.0.0.53\nnameserver 192.0.2.53\nnameserver ::1\n";
        assert_eq!(without_local_servers(text).unwrap(), "search example.org\nnameserver 192.0.2.53\n");
        assert_eq!(without_local_servers("nameserver 127.0.0.1\noptions edns0\n"), None);
    }
}
