//! Tells the program from which commit it is built, and whether the source differs from it. Outside a git checkout it tells nothing.
//!
//! Also lists the files of the page that `bentpipe web` serves, if `make web` has built it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Folders and files of the repository that the program is built from.
const SOURCES: [&str; 7] = ["crates", "bpf", "scenarios", "papers", "python/src", "Cargo.toml", "Cargo.lock"];

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_WEB").is_some() {
        list_page(&root.join("web/dist")).expect("the folder of a build can be written");
    }
    let version = env!("CARGO_PKG_VERSION");
    let Some(commit) = commit(&root) else {
        println!("cargo::rustc-env=BENTPIPE_COMMIT=");
        println!("cargo::rustc-env=BENTPIPE_CHANGED=");
        println!("cargo::rustc-env=BENTPIPE_VERSION={version}");
        return;
    };
    let sources = SOURCES.iter().filter(|source| root.join(source).exists());
    sources.for_each(|source| println!("cargo::rerun-if-changed={}", root.join(source).display()));
    // A new commit of the same files changes this log only.
    // Cargo would run this again each time if it were told of a file that does not exist.
    if let Some(log) = git(&root, &["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    let status = ["status", "--porcelain", "--untracked-files=no", "--"];
    let changed = git(&root, &[&status[..], &SOURCES].concat()).is_none_or(|status| !status.is_empty());
    let note = if changed { ", changed" } else { "" };
    println!("cargo::rustc-env=BENTPIPE_COMMIT={commit}");
    println!("cargo::rustc-env=BENTPIPE_CHANGED={}", if changed { "changed" } else { "" });
    println!("cargo::rustc-env=BENTPIPE_VERSION={version} ({}{note})", &commit[..12]);
}

/// Writes a list of the files in `dist`, which is empty without a page.
fn list_page(dist: &Path) -> io::Result<()> {
    let mut list = "const PAGE: Page = &[\n".to_owned();
    if dist.exists() {
        println!("cargo::rerun-if-changed={}", dist.display());
    }
    if dist.join("index.html").exists() {
        for folder in ["", "assets/"] {
            for entry in fs::read_dir(dist.join(folder))? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.file_type()?.is_file() && !name.starts_with('.') {
                    let path = entry.path().canonicalize()?;
                    writeln!(list, "    ({:?}, include_bytes!({path:?})),", format!("{folder}{name}"))
                        .expect("a string takes everything");
                }
            }
        }
    }
    list += "];\n";
    fs::write(PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("page.rs"), list)
}

/// Returns the commit of the checkout at `root`; `None` if that is none, even if it lies inside another one.
fn commit(root: &Path) -> Option<String> {
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    (top.canonicalize().ok()? == root.canonicalize().ok()?).then_some(())?;
    git(root, &["rev-parse", "HEAD"]).filter(|commit| commit.len() >= 12)
}

/// Returns what git prints, without the end of the line; `None` if it fails.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
