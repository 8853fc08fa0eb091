//! Compiles the window laws natively.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The names of the laws: every `law/NAME.h` that has a program `NAME.bpf.c`.
fn laws(programs: &Path) -> Vec<String> {
    let files = fs::read_dir(programs).expect("bpf/ is part of the checkout");
    let mut names: Vec<String> = files
        .filter_map(|file| Some(file.ok()?.file_name().to_str()?.strip_suffix(".bpf.c")?.to_owned()))
        .filter(|name| programs.join("law").join(format!("{name}.h")).exists())
        .collect();
    names.sort();
    names
}

fn main() {
    let programs = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../bpf");
    println!("cargo::rerun-if-changed=native");
    println!("cargo::rerun-if-changed={}", programs.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut library = cc::Build::new();
    for law in laws(&programs) {
        let mut one = cc::Build::new();
        one.cargo_metadata(false)
            .opt_level(2)
            .include(programs.join("law"))
            .define("BP_LAW", law.replace('-', "_").as_str())
            .define("BP_LAW_HEADER", format!("\"{law}.h\"").as_str())
            .flag_if_supported("-Wno-unused-parameter")
            .out_dir(out.join(&law))
            .file("native/law.c");
        one.compile_intermediates().into_iter().for_each(|object| {
            library.object(object);
        });
    }
    library.compile("bentpipe_laws");
}
