//! Rust files that the compiler never reads.

use std::collections::BTreeSet;

use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

use super::source::Sources;
use super::{Finding, Tree};

/// Finds Rust files that no `mod` includes.
pub fn check(tree: &Tree, sources: &Sources) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    for root in sources.keys().filter(|path| is_root(tree, path)) {
        reach(sources, root, Place::Root, &mut reached);
    }
    let dead = sources.keys().filter(|path| !reached.contains(**path));
    dead.map(|path| {
        let why = "the compiler never reads it";
        Finding::new((path, 1), "no `mod` leads here", why, "declare it, or delete it")
    })
    .collect()
}

/// Returns the root files of compilations, as Cargo finds them.
fn is_root(tree: &Tree, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    (0..parts.len()).any(|depth| {
        let folder = parts[..depth].join("/");
        let manifest = if depth == 0 { "Cargo.toml".to_owned() } else { format!("{folder}/Cargo.toml") };
        let inside = matches!(
            parts[depth..],
            ["build.rs"]
                | ["src", "lib.rs" | "main.rs"]
                | ["src", "bin", _]
                | ["src", "bin", _, "main.rs"]
                | ["tests" | "benches" | "examples", _]
                | ["tests" | "benches" | "examples", _, "main.rs"]
        );
        inside && tree.get(&manifest).is_some()
    })
}

/// Way in which a file is included, which determines the folder of its modules.
#[derive(Clone, Copy)]
enum Place {
    /// Root of a compilation, or target of `#[path]`: its modules are in the same folder.
    Root,
    /// Included by `mod name;`: its modules are in the folder of that name, which is the own folder of `name/mod.rs`.
    Module,
}

/// Follows `mod` from `path`.
fn reach(sources: &Sources, path: &str, place: Place, reached: &mut BTreeSet<String>) {
    if !reached.insert(path.to_owned()) {
        return;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let home = match place {
        Place::Module if name != "mod.rs" => format!("{folder}/{}", name.trim_end_matches(".rs")),
        _ => folder.to_owned(),
    };
    follow(sources, &sources[path].items, (folder, &home), reached);
}

/// Follows the modules in `items`. `home` is the folder of modules, `folder` the base of `#[path]`.
fn follow(sources: &Sources, items: &[Item], (folder, home): (&str, &str), reached: &mut BTreeSet<String>) {
    for module in items.iter().flat_map(registered) {
        let file = format!("{home}/{module}.rs");
        if sources.contains_key(file.as_str()) {
            reach(sources, &file, Place::Module, reached);
        }
    }
    for module in items.iter().filter_map(as_module) {
        let name = module.ident.to_string();
        if let Some((_, inline)) = &module.content {
            let home = format!("{home}/{name}");
            follow(sources, inline, (&home, &home), reached);
            continue;
        }
        let candidates = match module.attrs.iter().find_map(path_attribute) {
            Some(path) => vec![(normalise(&format!("{folder}/{path}")), Place::Root)],
            None => vec![
                (format!("{home}/{name}.rs"), Place::Module),
                (format!("{home}/{name}/mod.rs"), Place::Module),
            ],
        };
        for (file, place) in candidates.iter().filter(|(file, _)| sources.contains_key(file.as_str())) {
            reach(sources, file, *place, reached);
        }
    }
}

/// Returns the modules of the registry of algorithms, one per line `Variant, module;`.
fn registered(item: &Item) -> Vec<String> {
    let Item::Macro(item) = item else { return Vec::new() };
    if !item.mac.path.is_ident("registry") {
        return Vec::new();
    }
    let tokens = item.mac.tokens.to_string();
    tokens.split(';').filter_map(|line| Some(line.split_once(',')?.1.trim().to_owned())).collect()
}

pub fn as_module(item: &Item) -> Option<&ItemMod> {
    if let Item::Mod(module) = item { Some(module) } else { None }
}

/// Returns the file in `#[path = "file"]`.
fn path_attribute(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(file), .. }) => Some(file.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Resolves `..` in a path.
fn normalise(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::source::parse;
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(&[files, &[("a/Cargo.toml", "")]].concat());
        check(&tree, &parse(&tree).0).into_iter().map(|finding| finding.file).collect()
    }

    #[test]
    fn modules_are_followed_through_files_and_folders() {
        let files = [
            ("a/src/lib.rs", "mod one; mod two; #[cfg(test)] mod check;"),
            ("a/src/one.rs", "mod deep;"),
            ("a/src/one/deep.rs", ""),
            ("a/src/two/mod.rs", "mod deep;"),
            ("a/src/two/deep.rs", ""),
            ("a/src/check.rs", ""),
        ];
        assert!(dead(&files).is_empty());
    }

    #[test]
    fn inline_modules_and_paths_are_followed() {
        let files = [
            ("a/src/lib.rs", "mod outer { mod inner; } #[path = \"../apart/far.rs\"] mod far;"),
            ("a/src/outer/inner.rs", ""),
            ("a/apart/far.rs", ""),
        ];
        assert!(dead(&files).is_empty());
    }

    #[test]
    fn a_module_looks_in_its_own_folder_only() {
        let files = [("a/src/lib.rs", "mod one;"), ("a/src/one.rs", "mod deep;"), ("a/src/deep.rs", "")];
        assert_eq!(dead(&files), ["a/src/deep.rs"]);
    }

    #[test]
    fn what_no_module_declares_is_dead() {
        let files = [
            ("a/src/lib.rs", "// mod ghost;"),
            ("a/src/ghost.rs", "mod child;"),
            ("a/src/ghost/child.rs", ""),
        ];
        assert_eq!(dead(&files), ["a/src/ghost.rs", "a/src/ghost/child.rs"]);
    }

    #[test]
    fn cargo_finds_tests_benches_and_programs_itself() {
        let files = [
            ("a/tests/link.rs", "mod common;"),
            ("a/tests/common/mod.rs", ""),
            ("a/benches/speed.rs", ""),
            ("a/src/bin/tool.rs", ""),
            ("a/src/main.rs", ""),
            ("a/build.rs", ""),
        ];
        assert!(dead(&files).is_empty());
        assert_eq!(dead(&[("loose/src/lib.rs", "")]), ["loose/src/lib.rs"]);
    }
}
