//! The interface as C programs see it: the header is current, and programs run clean under sanitizers and valgrind.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Warnings that a C compiler turns into errors.
const WARNINGS: [&str; 5] = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

fn room() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Folder of the libraries that cargo has built for this test.
fn built() -> PathBuf {
    let this = env::current_exe().expect("a test has a path");
    this.parent().expect("it is in a folder").to_owned()
}

/// Finds the static library: cargo adds a hash to its name. The newest one belongs to this build.
fn library() -> PathBuf {
    let files = built().read_dir().expect("the folder can be read").map(|file| file.expect("a file").path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libbentpipe_ffi") && name.ends_with(".a")
    };
    let changed = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).expect("it has a time");
    files.filter(is_ours).max_by_key(changed).expect("cargo builds the library before its tests")
}

/// Compiles `program`.c with further options, for the test `test`. Returns the program, or what the compiler says.
fn compile(program: &str, test: &str, options: &[&str]) -> Result<PathBuf, String> {
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}-{test}"));
    let result = Command::new("cc")
        .args(WARNINGS)
        .args(["-g", "-O1"])
        .args(options)
        .arg(room().join("c").join(format!("{program}.c")))
        .arg(library())
        .arg("-I")
        .arg(room().join("include"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&output)
        .output()
        .expect("cc is needed to link Rust, too");
    let said = String::from_utf8_lossy(&result.stderr).into_owned();
    if result.status.success() { Ok(output) } else { Err(said) }
}

fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the program runs");
    let (said, complaint) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{said}{complaint}");
    said.into_owned()
}

#[test]
fn the_header_is_current() {
    let path = room().join("include/bentpipe_cc.h");
    let config =
        cbindgen::Config::from_file(room().join("cbindgen.toml")).expect("the configuration is readable");
    let mut header = Vec::new();
    let sources = ["src/state.rs", "src/error.rs", "src/lib.rs"];
    let builder = sources.iter().fold(cbindgen::Builder::new(), |all, file| all.with_src(room().join(file)));
    builder.with_config(config).generate().expect("the sources are readable").write(&mut header);
    if env::var_os("BENTPIPE_WRITE_HEADER").is_some() {
        std::fs::write(&path, &header).expect("the header can be written");
    }
    let found = std::fs::read(&path).unwrap_or_default();
    assert!(found == header, "include/bentpipe_cc.h is not current: `make header` writes it");
}

#[test]
fn cubic_hybla_and_zenith_transfer() {
    let said = run(&mut Command::new(compile("transfer", "plain", &[]).expect("it compiles")));
    assert!(["cubic", "hybla", "zenith"].iter().all(|name| said.contains(name)), "{said}");
}

#[test]
fn the_shape_of_picoquic_grows_and_shrinks_a_window() {
    run(&mut Command::new(compile("picoquic", "plain", &[]).expect("it compiles")));
}

#[test]
fn sanitizers_find_nothing() {
    for program in ["transfer", "picoquic"] {
        match compile(program, "sanitized", &["-fsanitize=address,undefined"]) {
            Ok(program) => drop(run(Command::new(program).env("UBSAN_OPTIONS", "halt_on_error=1"))),
            Err(said) if said.contains("sanitize") || said.contains("asan") => {
                println!("skipped: this compiler has no sanitizers (make ffi-test installs gcc): {said}");
            }
            Err(said) => panic!("{said}"),
        }
    }
}

#[test]
fn valgrind_finds_nothing() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is missing (make ffi-test installs it)");
        return;
    }
    for name in ["transfer", "picoquic"] {
        let program = compile(name, "valgrind", &[]).expect("it compiles");
        run(Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
            .arg(program));
    }
}
