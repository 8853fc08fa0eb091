//! Checks if packets of the user-space stack can pass this host, with the commands that allow it. The kernel drops
//! them silently.

use std::fs;
use std::net::{IpAddr, UdpSocket};

use bentpipe_host::Network;

use crate::failure::Failure;

/// Refuses a destination that this host does not forward to.
///
/// # Errors
/// [`Failure::Missing`] with the commands that allow it.
pub fn check(ours: &Network, remote: IpAddr) -> Result<(), Failure> {
    // Networks of the device itself need no other route.
    if remote == ours.kernel() {
        return Ok(());
    }
    let Some(source) = source_towards(remote) else {
        let accepted = "a host that this one has a route to (see: ip route)";
        return Err(Failure::Missing(format!("found no route to {remote}, accepted: {accepted}")));
    };
    if source == remote || forwards(remote) {
        return Ok(());
    }
    Err(Failure::Missing(format!(
        "this host does not forward packets, so packets of this program do not reach {remote}; as root:\n  {}\n{}",
        forwarding(remote),
        translation(ours)
    )))
}

/// Returns the possible reason why a host does not answer, with the commands that help; nothing for an address of
/// this host.
pub fn silence(ours: &Network, remote: IpAddr) -> Option<String> {
    let beyond = remote != ours.kernel() && source_towards(remote) != Some(remote);
    beyond.then(|| {
        format!(
            "no answer from {remote} yet. If it has no route back to {}, its answers need the address of this host:\n{}\n\
             A firewall of this host may also drop forwarded packets (see: nft list ruleset).",
            ours.own,
            translation(ours)
        )
    })
}

/// Returns the kernel's source address for `remote`, which equals `remote` for an address of this host.
fn source_towards(remote: IpAddr) -> Option<IpAddr> {
    let any = if remote.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect((remote, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// True if the kernel forwards packets, or if its setting is unreadable.
fn forwards(remote: IpAddr) -> bool {
    let file = if remote.is_ipv4() { "ipv4/ip_forward" } else { "ipv6/conf/all/forwarding" };
    fs::read_to_string(format!("/proc/sys/net/{file}")).map_or(true, |text| text.trim() != "0")
}

fn forwarding(remote: IpAddr) -> &'static str {
    if remote.is_ipv4() { "sysctl net.ipv4.ip_forward=1" } else { "sysctl net.ipv6.conf.all.forwarding=1" }
}

/// Returns the commands that translate the stack's packets to the host's address.
fn translation(ours: &Network) -> String {
    let (family, own) = (if ours.own.is_ipv4() { "ip" } else { "ip6" }, ours.own);
    format!(
        "  nft add table {family} bentpipe\n  \
         nft add chain {family} bentpipe out '{{ type nat hook postrouting priority srcnat; }}'\n  \
         nft add rule {family} bentpipe out {family} saddr {own} masquerade"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_itself_needs_no_forwarding() {
        let ours: Network = "10.105.0.2/30".parse().unwrap();
        assert!(check(&ours, "10.105.0.1".parse().unwrap()).is_ok());
        assert_eq!(silence(&ours, "10.105.0.1".parse().unwrap()), None);
        let beyond = silence(&ours, "192.0.2.1".parse().unwrap()).unwrap();
        assert!(beyond.contains("ip saddr 10.105.0.2 masquerade"), "{beyond}");
    }
}
