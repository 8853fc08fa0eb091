//! Requirements of kernel algorithms on this machine, with remedies.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde::Serialize;

use crate::CAN_LOAD;
#[cfg(feature = "bpf")]
use crate::leftovers;

/// Result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The requirement is fulfilled.
    Ok,
    /// A restriction: something is slower or does not work everywhere.
    Warning,
    /// Nothing works without it.
    Missing,
}

/// A checked requirement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Check {
    /// Name of the requirement.
    pub what: &'static str,
    /// Result of the check.
    pub finding: Finding,
    /// Value found.
    pub found: String,
    /// Remedy; empty if nothing is wrong.
    pub fix: String,
}

fn ok(what: &'static str, found: impl Into<String>) -> Check {
    Check { what, finding: Finding::Ok, found: found.into(), fix: String::new() }
}

fn warning(what: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { what, finding: Finding::Warning, found: found.into(), fix: fix.into() }
}

fn missing(what: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { what, finding: Finding::Missing, found: found.into(), fix: fix.into() }
}

/// Checks all requirements.
pub fn examine() -> Vec<Check> {
    let types = fs::read("/sys/kernel/btf/vmlinux").ok();
    vec![
        programs(),
        kernel(&read("/proc/sys/kernel/osrelease")),
        btf(types.as_deref()),
        struct_ops(types.as_deref()),
        links(types.as_deref()),
        interfaces(types.as_deref()),
        jit(&read("/proc/sys/net/core/bpf_jit_enable")),
        rights(&read("/proc/self/status")),
        lockdown(&read("/sys/kernel/security/lockdown")),
        file_system(&read("/proc/self/mounts")),
        dead_commands(&leftovers()),
        control_groups(&read("/proc/self/mounts")),
        pacing(&read("/proc/sys/net/core/default_qdisc")),
        reverse_path(&read("/proc/sys/net/ipv4/conf/all/rp_filter")),
    ]
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn programs() -> Check {
    match CAN_LOAD {
        true => ok("programs", "this build carries them"),
        false => missing("programs", "this build carries none", "make kernel"),
    }
}

/// Returns major and minor version of a release such as `6.1.0-18-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn kernel(release: &str) -> Check {
    const CURE: &str = "a newer kernel; in Debian 12: apt install -t bookworm-backports linux-image-amd64";
    match version(release) {
        Some(at) if at >= (6, 1) => ok("kernel", release),
        _ => missing("kernel", format!("{release}; the programs are made for 6.1 and later"), CURE),
    }
}

/// True if the kernel's type information contains this name.
fn knows(types: Option<&[u8]>, name: &str) -> bool {
    let name = [b"\0", name.as_bytes(), b"\0"].concat();
    types.is_some_and(|types| types.windows(name.len()).any(|bytes| bytes == name))
}

fn btf(types: Option<&[u8]>) -> Check {
    match types {
        Some(_) => ok("types (BTF)", "/sys/kernel/btf/vmlinux"),
        None => missing(
            "types (BTF)",
            "/sys/kernel/btf/vmlinux is not there",
            "a kernel with CONFIG_DEBUG_INFO_BTF=y (those of Debian, Ubuntu, Fedora and RHEL have it)",
        ),
    }
}

fn struct_ops(types: Option<&[u8]>) -> Check {
    match knows(types, "bpf_struct_ops_tcp_congestion_ops") {
        true => ok("struct_ops", "congestion controls may be BPF programs"),
        false => missing(
            "struct_ops",
            "this kernel takes no congestion controls in BPF",
            "a kernel from 5.6 on with CONFIG_BPF_JIT=y, CONFIG_BPF_SYSCALL=y and CONFIG_DEBUG_INFO_BTF=y",
        ),
    }
}

fn links(types: Option<&[u8]>) -> Check {
    match knows(types, "bpf_struct_ops_link_create") {
        true => ok("struct_ops links", "a control stays loaded after its command"),
        false => warning(
            "struct_ops links",
            "they came with kernel 6.4; a control is held by its map, and only `unload` takes it out",
            "a newer kernel",
        ),
    }
}

/// True if programs can be attached to interfaces, for the probes of `peach` and `swift` (tcx, kernel 6.6).
pub fn has_tcx() -> bool {
    knows(fs::read("/sys/kernel/btf/vmlinux").ok().as_deref(), TCX)
}

/// Kernel function that attaches programs to interfaces by links.
const TCX: &str = "tcx_link_attach";

fn interfaces(types: Option<&[u8]>) -> Check {
    const WHAT: &str = "programs at interfaces (tcx)";
    if !knows(types, TCX) {
        return warning(
            WHAT,
            "they came with kernel 6.6; peach and swift cannot be loaded",
            "a newer kernel",
        );
    }
    let own = fs::metadata("/proc/thread-self/ns/net").map(|namespace| namespace.ino() as u32).ok();
    let silent = crate::loaded().unwrap_or_default().into_iter().find(|control| {
        control.sends_probes() && !crate::places(control).iter().any(|(namespace, _)| Some(*namespace) == own)
    });
    match silent {
        Some(control) => warning(
            WHAT,
            format!(
                "no interface of this network namespace sends the probes of {}: it is NewReno here",
                control.name
            ),
            format!("bentpipe kernel load {}", control.name),
        ),
        None => ok(WHAT, "peach and swift can send probes"),
    }
}

fn jit(setting: &str) -> Check {
    match setting {
        "" => warning("JIT", "/proc/sys/net/core/bpf_jit_enable cannot be read", "run as root"),
        "0" => missing("JIT", "off", "sysctl net.core.bpf_jit_enable=1"),
        on => ok("JIT", format!("on ({on})")),
    }
}

/// Numbers of the capabilities for loading.
const NEEDED: [(&str, u32); 3] = [("CAP_NET_ADMIN", 12), ("CAP_PERFMON", 38), ("CAP_BPF", 39)];
const CAP_SYS_ADMIN: u32 = 21;

fn rights(status: &str) -> Check {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let has = |number: u32| effective >> number & 1 == 1;
    let lacking: Vec<&str> = NEEDED
        .iter()
        .filter(|(name, number)| !has(*number) && (*name == "CAP_NET_ADMIN" || !has(CAP_SYS_ADMIN)))
        .map(|(name, _)| *name)
        .collect();
    match lacking[..] {
        [] => ok("rights", "CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN"),
        _ => missing("rights", format!("no {}", lacking.join(", ")), "run as root"),
    }
}

fn lockdown(setting: &str) -> Check {
    match setting.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some(("confidentiality", _)) => missing(
            "lockdown",
            "confidentiality: BPF programs may not read the kernel",
            "boot with lockdown=integrity, or without Secure Boot",
        ),
        Some((mode, _)) => ok("lockdown", mode),
        None => ok("lockdown", "none"),
    }
}

/// Returns the first mount point of this type of file system.
fn mounted<'a>(mounts: &'a str, kind: &str) -> Option<&'a str> {
    let mut lines = mounts.lines().map(|line| line.split(' '));
    lines.find_map(|mut fields| {
        let at = fields.nth(1)?;
        (fields.next()? == kind).then_some(at)
    })
}

fn file_system(mounts: &str) -> Check {
    match mounted(mounts, "bpf") {
        Some(at) => ok("file system for pins", at),
        None => warning(
            "file system for pins",
            "not mounted; `load` mounts it",
            format!("mount -t bpf bpffs {}", crate::pins::BPF_FS),
        ),
    }
}

/// A build without the programs leaves nothing behind.
#[cfg(not(feature = "bpf"))]
fn leftovers() -> Vec<PathBuf> {
    Vec::new()
}

fn dead_commands(left: &[PathBuf]) -> Check {
    const WHAT: &str = "leftovers of killed commands";
    match left {
        [] => ok(WHAT, "nothing"),
        [first, ..] => warning(
            WHAT,
            format!("{} and the kernel objects that it holds", first.display()),
            "bentpipe kernel unload --all; the next `load` and `use` clear it as well",
        ),
    }
}

fn control_groups(mounts: &str) -> Check {
    match mounted(mounts, "cgroup2") {
        Some(at) => ok("control groups", at),
        None => warning(
            "control groups",
            "version 2 is not mounted; `use` needs it",
            "mount -t cgroup2 none /sys/fs/cgroup",
        ),
    }
}

fn pacing(discipline: &str) -> Check {
    match discipline {
        "fq" => ok("pacing", "by the queueing discipline fq"),
        other => warning(
            "pacing",
            format!(
                "by TCP's own timers, as the default queueing discipline is {other}; works, at some cost"
            ),
            "sysctl net.core.default_qdisc=fq (and tc qdisc replace dev DEVICE root fq)",
        ),
    }
}

fn reverse_path(setting: &str) -> Check {
    match setting {
        "1" => warning(
            "rp_filter",
            "strict: replies on another reverse path, as with a one-way satellite, are dropped",
            "sysctl net.ipv4.conf.all.rp_filter=2",
        ),
        "" => warning("rp_filter", "cannot be read", "run as root"),
        other => ok("rp_filter", other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_judged() {
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("6.18.44-fc"), Some((6, 18)));
        assert_eq!(version("?"), None);
        assert_eq!(kernel("5.15.0-91-generic").finding, Finding::Missing);
        assert_eq!(kernel("6.1.0-18-amd64").finding, Finding::Ok);
        assert_eq!(kernel("6.0.9").finding, Finding::Missing);
        assert_eq!(kernel("6.18.44").finding, Finding::Ok);
    }

    #[test]
    fn every_lack_has_its_cure() {
        let lacks = [
            btf(None),
            struct_ops(None),
            jit("0"),
            rights("CapEff:\t0000000000000000"),
            lockdown("none integrity [confidentiality]"),
        ];
        for check in lacks {
            assert_eq!(check.finding, Finding::Missing, "{check:?}");
            assert!(!check.fix.is_empty(), "{check:?}");
        }
        assert_eq!(links(None).finding, Finding::Warning);
        assert_eq!(links(Some(b"\0bpf_struct_ops_link_create\0")).finding, Finding::Ok);
        assert_eq!(interfaces(None).finding, Finding::Warning);
        assert_eq!(dead_commands(&[]).finding, Finding::Ok);
        assert_eq!(dead_commands(&["/peach-copies".into()]).finding, Finding::Warning);
        assert_eq!(rights("CapEff:\t000001ffffffffff").finding, Finding::Ok);
        assert_eq!(lockdown("[none] integrity confidentiality").finding, Finding::Ok);
        assert_eq!(mounted("none /sys/fs/bpf bpf rw 0 0", "bpf"), Some("/sys/fs/bpf"));
    }
}
