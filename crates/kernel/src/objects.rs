//! Compiled programs in this build.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::error::Error;

/// Name and bytes of each.
const OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Messages of libbpf and the verifier since the last call.
static SAID: Mutex<String> = Mutex::new(String::new());

fn listen(_level: PrintLevel, words: String) {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).push_str(&words);
}

/// Returns the bytes of a program's object.
pub(crate) fn object(name: &str) -> &'static [u8] {
    let found = OBJECTS.iter().find(|(other, _)| *other == name);
    found.expect("the build compiles every program of the catalogue").1
}

/// Opens a program without loading it into the kernel.
pub(crate) fn open(name: &str) -> Result<OpenObject, Error> {
    libbpf_rs::set_print(Some((PrintLevel::Info, listen)));
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
    ObjectBuilder::default().open_memory(object(name)).map_err(|error| explain(name, &error))
}

/// Loads an opened program into the kernel, which verifies it.
pub(crate) fn give(name: &str, open: OpenObject) -> Result<Object, Error> {
    open.load().map_err(|error| explain(name, &error))
}

/// Reports the cause instead of the whole log.
pub(crate) fn explain(name: &str, error: &libbpf_rs::Error) -> Error {
    let said = std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner));
    cause(name, &said, &error.to_string(), error.kind() == libbpf_rs::ErrorKind::PermissionDenied)
}

fn cause(name: &str, said: &str, error: &str, denied: bool) -> Error {
    let has = |words: &str| said.contains(words);
    if has("BTF is required") || has("failed to find valid kernel BTF") || has("kernel BTF is missing") {
        return Error::Missing(
            "this kernel does not describe its types (BTF): it needs CONFIG_DEBUG_INFO_BTF=y; kernels of Debian, Ubuntu, Fedora and \
             RHEL have it"
                .into(),
        );
    }
    if let Some(line) =
        said.lines().find(|line| line.contains("struct_ops") && line.contains("not found in kernel BTF"))
    {
        return Error::Missing(format!(
            "this kernel has no congestion controls in BPF (kernel 5.6 with CONFIG_BPF_JIT, CONFIG_DEBUG_INFO_BTF): {}",
            line.trim_start_matches("libbpf: ")
        ));
    }
    if let Some(line) = verdict(said) {
        return Error::Work(format!("the kernel's verifier refuses {name}: {line}"));
    }
    if denied {
        return Error::Missing(format!(
            "the kernel refuses to load {name}: run as root (CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN), and see \
             `bentpipe kernel doctor`"
        ));
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Error::Work(format!("cannot load {name}: {error}; {}", last.trim_start_matches("libbpf: ")))
}

/// Returns the verifier's reason: the last line of its log before the instruction count.
fn verdict(said: &str) -> Option<&str> {
    let log = said.split_once("BEGIN PROG LOAD LOG")?.1;
    let end = log.find("\nprocessed ")?;
    log[..end].lines().next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "libbpf: prog 'bp_use': -- BEGIN PROG LOAD LOG --\n0: R1=ctx() R10=fp0\n33: (61) r2 = *(u32 *)(r2 +0)\n\
        dereference of modified ctx ptr R2 off=24 disallowed\nprocessed 27 insns (limit 1000000)\n-- END PROG LOAD LOG --\n";

    #[test]
    fn a_refusal_of_the_verifier_is_one_line() {
        let Error::Work(words) = cause("use", LOG, "Permission denied", true) else {
            panic!("not a missing right")
        };
        assert_eq!(
            words,
            "the kernel's verifier refuses use: dereference of modified ctx ptr R2 off=24 disallowed"
        );
    }

    #[test]
    fn a_missing_right_or_kernel_feature_is_named() {
        assert!(
            matches!(cause("hybla", "", "Permission denied", true), Error::Missing(words) if words.contains("root"))
        );
        let said =
            "libbpf: struct_ops init_kern bp_ops: struct tcp_congestion_ops is not found in kernel BTF\n";
        assert!(
            matches!(cause("hybla", said, "No such process", false), Error::Missing(words) if words.contains("5.6"))
        );
        let said = "libbpf: Error loading vmlinux BTF: kernel BTF is missing at '/sys/kernel/btf/vmlinux'\n";
        assert!(
            matches!(cause("hybla", said, "No such file", false), Error::Missing(words) if words.contains("BTF"))
        );
    }
}
