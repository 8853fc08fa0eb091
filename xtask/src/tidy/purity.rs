//! Purity: certain crates use no clock, socket, file, thread or environment.
//!
//! Clippy checks single methods and types (`clippy.toml`), this check whole modules of `std`.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{ItemMod, Path};

use super::Finding;
use super::source::{Sources, is_test_only, names_used};
use crate::house::{IMPURE_MODULES, PURE_ATTRIBUTE, Room};

const WHY: &str = "the same code runs in virtual and in real time; only the driver has a clock";

/// Checks the sources of the pure crates, without tests.
pub fn check(sources: &Sources, rooms: &[Room]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for room in rooms.iter().filter(|room| room.pure) {
        let root = format!("{}/src/lib.rs", room.folder);
        if sources.get(&*root).is_some_and(|file| !has_pure_attribute(file)) {
            findings.push(Finding::new(
                (&root, 1),
                "does not deny the disallowed methods and types of clippy.toml",
                WHY,
                format!("add {PURE_ATTRIBUTE} below the crate's documentation"),
            ));
        }
        let folder = format!("{}/src/", room.folder);
        for (path, source) in sources.iter().filter(|(path, _)| path.starts_with(&folder)) {
            let mut watch = Watch { path, findings: Vec::new() };
            watch.visit_file(source);
            findings.extend(watch.findings);
        }
    }
    findings
}

fn has_pure_attribute(file: &syn::File) -> bool {
    let words = |attribute: &syn::Attribute| match &attribute.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    };
    let wanted: syn::File = syn::parse_str(PURE_ATTRIBUTE).expect("the attribute is Rust");
    let wanted = words(&wanted.attrs[0]);
    file.attrs.iter().any(|attribute| words(attribute) == wanted)
}

struct Watch<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl Watch<'_> {
    fn see(&mut self, names: &[String], span: Span) {
        let ["std", module, ..] = names.iter().map(String::as_str).collect::<Vec<_>>()[..] else { return };
        if IMPURE_MODULES.contains(&module) {
            self.findings.push(Finding::new(
                (self.path, span.start().line),
                format!("a pure crate uses `std::{module}`"),
                WHY,
                "take the value as an argument",
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Watch<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test_only(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for name in names_used(&item.tree) {
            self.see(&name.path, name.span);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some(first) = path.segments.first() {
            self.see(&names, first.ident.span());
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::parse;
    use super::*;
    use crate::tidy::Tree;

    const ROOMS: &[Room] = &[
        Room { folder: "pure", name: "pure", pure: true, leans_on: &[], tests_lean_on: &[] },
        Room { folder: "free", name: "free", pure: false, leans_on: &[], tests_lean_on: &[] },
    ];

    fn findings(file: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[(file, text)]);
        check(&parse(&tree).0, ROOMS).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_way_to_name_a_module_is_seen() {
        for text in [
            "use std::time::Instant;",
            "use std::{fmt, time::{self, Duration}};",
            "use std::fs::*;",
            "use std::env as surroundings;",
            "fn f() { std::thread::sleep(x) }",
            "fn f(socket: &std::net::UdpSocket) {}",
        ] {
            assert!(!findings("pure/src/a.rs", text).is_empty(), "{text}");
            assert!(findings("free/src/a.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn words_that_look_alike_are_none() {
        for text in
            ["use crate::time::Instant;", "// std::time\nconst T: &str = \"std::fs\";", "use std::fmt;"]
        {
            assert!(findings("pure/src/a.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn tests_are_free() {
        assert!(findings("pure/src/a.rs", "#[cfg(test)] mod tests { use std::fs; }").is_empty());
        assert!(findings("pure/tests/a.rs", "use std::fs;").is_empty());
        assert!(!findings("pure/src/a.rs", "#[cfg(not(test))] mod real { use std::fs; }").is_empty());
    }

    #[test]
    fn a_pure_crate_says_so_at_its_root() {
        assert_eq!(findings("pure/src/lib.rs", "//! Pure.").len(), 1);
        assert!(findings("pure/src/lib.rs", PURE_ATTRIBUTE).is_empty());
        assert!(findings("free/src/lib.rs", "//! Free.").is_empty());
    }
}
