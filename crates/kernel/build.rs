//! Compiles the window laws natively for the tests and, with the feature `bpf`, the programs for the kernel.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// `bpf/` of the checkout.
fn programs() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../bpf")
}

/// The names of the laws: every `bpf/law/NAME.h` that has a program `bpf/NAME.bpf.c`.
fn laws() -> Vec<String> {
    let files = fs::read_dir(programs()).expect("bpf/ is part of the checkout");
    let mut names: Vec<String> = files
        .filter_map(|file| Some(file.ok()?.file_name().to_str()?.strip_suffix(".bpf.c")?.to_owned()))
        .filter(|name| programs().join("law").join(format!("{name}.h")).exists())
        .collect();
    names.sort();
    names
}

fn main() {
    println!("cargo::rerun-if-changed=native");
    println!("cargo::rerun-if-changed={}", programs().display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    compile_natively(&out);
    if env::var_os("CARGO_FEATURE_BPF").is_some() {
        compile_programs(&out);
    }
}

/// A static library that only the tests link.
fn compile_natively(out: &Path) {
    let mut library = cc::Build::new();
    library.cargo_metadata(false).opt_level(2);
    for law in laws() {
        let mut one = cc::Build::new();
        one.cargo_metadata(false)
            .opt_level(2)
            .include(programs().join("law"))
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
    println!("cargo::rustc-link-search=native={}", out.display());
}

/// One object per program, and a table of them to be included.
fn compile_programs(out: &Path) {
    let files = fs::read_dir(programs()).expect("bpf/ is part of the checkout");
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
        // Every law has the same functions, and few need all that these are told.
        .arg("-Wno-unused-parameter")
        // The type information would otherwise tell where this checkout lies.
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
