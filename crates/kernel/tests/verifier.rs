//! The verifier of this machine's kernel accepts every program, and none stays loaded.
//!
//! The test needs root and a kernel with congestion control in BPF; otherwise it prints a reason and passes.
#![cfg(feature = "bpf")]

use bentpipe_kernel::doctor::has_tcx;
use bentpipe_kernel::{CONTROLS, Control, Error, Loaded, Options, Unloaded, load, loaded, unload};

#[test]
fn every_program_is_taken_and_goes() {
    if loaded().map_or(true, |there| !there.is_empty()) {
        return eprintln!("skipped: no right to look, or algorithms are loaded on this machine already");
    }
    let all: Vec<&Control> = CONTROLS.iter().filter(|control| has_tcx() || !control.sends_probes()).collect();
    match load(&all, &Options { rate_bps: Some(8_000_000), ..Options::default() }) {
        Err(Error::Missing(words)) => return eprintln!("skipped: {words}"),
        done => assert!(done.expect("the kernel takes them").iter().all(|one| *one == Loaded::Now)),
    }
    for control in all {
        assert_eq!(unload(control).expect("it goes"), Unloaded::Gone { rules: 0 });
    }
    assert!(!std::path::Path::new("/sys/fs/bpf/bentpipe").exists(), "a folder is left behind");
}
