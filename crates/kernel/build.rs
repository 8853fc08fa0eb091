//! With the feature `bpf`, compiles the BPF programs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The programs; in a checkout, a link to `bpf/` at its root.
fn programs() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("bpf")
}

fn main() {
    println!("cargo::rerun-if-changed={}", programs().display());
    if env::var_os("CARGO_FEATURE_BPF").is_some() {
        compile_programs(&PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")));
    }
}

/// Writes one object per program, and a table of them to include.
fn compile_programs(out: &Path) {
    let files = fs::read_dir(programs()).expect("bpf/ is part of the crate");
    let mut names: Vec<String> = files
        .filter_map(|file| Some(file.ok()?.file_name().to_str()?.strip_suffix(".bpf.c")?.to_owned()))
        .collect();
    names.sort();
    let mut table = String::from("&[\n");
    for name in names {
        let object = out.join(format!("{name}.bpf.o"));
        compile_program(&programs().join(format!("{name}.bpf.c")), &object);
        table += &format!("    ({name:?}, include_bytes!({object:?})),\n");
    }
    table += "]\n";
    fs::write(out.join("objects.rs"), table).expect("the build may write to its own folder");
}

fn compile_program(source: &Path, object: &Path) {
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let done = Command::new(&clang)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"])
        // Every law has the same functions, and few functions use all of their arguments.
        .arg("-Wno-unused-parameter")
        // Otherwise the type information would contain the path of this checkout.
        .arg(format!("-ffile-prefix-map={}=.", programs().display()))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status();
    match done {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} does not compile {}: {status}", clang.display(), source.display()),
        Err(error) => {
            panic!("cannot run {}: {error}. `make kernel` installs what is missing", clang.display())
        }
    }
}
