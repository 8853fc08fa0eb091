//! Each algorithm of the registry needs a file, a paper note and a unit test.

use syn::parse::{Parse, ParseStream};
use syn::{Expr, ExprLit, Ident, Item, Lit, Member, Token};

use super::source::{Sources, is_test_only};
use super::{Finding, Tree};

const REGISTRY: &str = "crates/cc/src/lib.rs";

/// Folder of the algorithms, with one folder per family.
const ALGORITHMS: &str = "crates/cc/src/algorithms";

/// One line of the registry: `Variant, family::module;`.
struct Line {
    family: Ident,
    module: Ident,
}

impl Parse for Line {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        input.parse::<Ident>()?;
        input.parse::<Token![,]>()?;
        let family = input.parse()?;
        input.parse::<Token![::]>()?;
        Ok(Self { family, module: input.parse()? })
    }
}

/// An algorithm of the registry.
struct Entry {
    /// Path of the module's file, without its ending.
    stem: String,
    name: String,
    line: usize,
}

/// Returns the name in `const ENTRY: Entry = Entry { name: "…", .. }` of a module.
fn name_of(source: &syn::File) -> Option<String> {
    let entry = source.items.iter().find_map(|item| match item {
        Item::Const(item) if item.ident == "ENTRY" => Some(&*item.expr),
        _ => None,
    })?;
    let Expr::Struct(entry) = entry else { return None };
    let is_name = |member: &Member| matches!(member, Member::Named(ident) if ident == "name");
    match &entry.fields.iter().find(|field| is_name(&field.member))?.expr {
        Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => Some(name.value()),
        _ => None,
    }
}

/// Compares the registry with `papers/` and with the unit tests of the algorithms.
pub fn check(tree: &Tree, sources: &Sources) -> Vec<Finding> {
    let Some(registry) = sources.get(REGISTRY) else { return Vec::new() };
    let mut findings = Vec::new();
    let entries = entries(registry, sources, &mut findings);
    for entry in &entries {
        let note = format!("papers/{}.md", entry.name);
        if tree.get(&note).is_none() {
            findings.push(Finding::new(
                (REGISTRY, entry.line),
                format!("`{}` has no paper note", entry.name),
                "a reader must find the citation, the symbols and every deviation with its reason",
                format!("write {note}"),
            ));
        }
        if !has_unit_tests(sources, &entry.stem) {
            findings.push(Finding::new(
                (REGISTRY, entry.line),
                format!("`{}` has no unit tests beside its code", entry.name),
                "the worked examples of a paper are its first tests",
                format!("add `#[cfg(test)] mod tests` to {}.rs", entry.stem),
            ));
        }
    }
    let has_file = |name: &str| {
        let (rooms, file) = (["cc", "middlebox", "transports"], name.replace('-', "_"));
        rooms.iter().any(|room| sources.get(&*format!("crates/{room}/src/{file}.rs")).is_some())
    };
    let is_registered = |name: &str| entries.iter().any(|entry| entry.name == name) || has_file(name);
    // A log of what was tried stands beside its note.
    let described = |stem: &str| is_registered(stem.strip_suffix("-log").unwrap_or(stem));
    for stem in tree.stems("papers", ".md").filter(|stem| !described(stem)) {
        findings.push(Finding::new(
            (&format!("papers/{stem}.md"), 1),
            "belongs to no algorithm of the registry, nothing around one, no middlebox and no transport",
            "a note needs code that runs",
            "name it after its algorithm in crates/cc/src/lib.rs or its file in crates/middlebox/src or crates/transports/src, or take it out",
        ));
    }
    findings
}

fn entries(registry: &syn::File, sources: &Sources, findings: &mut Vec<Finding>) -> Vec<Entry> {
    let calls = registry.items.iter().filter_map(|item| match item {
        Item::Macro(item) if item.mac.path.is_ident("registry") => Some(&item.mac),
        _ => None,
    });
    let list = |input: ParseStream| input.parse_terminated(Line::parse, Token![;]);
    let mut unreadable = |line: usize, what: String| {
        findings.push(Finding::new(
            (REGISTRY, line),
            what,
            "tidy looks for the paper note of each algorithm",
            "write it like the others, or extend xtask/src/tidy/papers.rs",
        ));
    };
    let mut entries = Vec::new();
    for call in calls {
        let lines = match call.parse_body_with(list) {
            Ok(lines) => lines,
            Err(error) => {
                unreadable(error.span().start().line, format!("an entry cannot be read ({error})"));
                continue;
            }
        };
        for Line { family, module } in lines {
            let line = module.span().start().line;
            let stem = format!("{ALGORITHMS}/{family}/{module}");
            match sources.get(&*format!("{stem}.rs")).and_then(name_of) {
                Some(name) => entries.push(Entry { stem, name, line }),
                None => {
                    unreadable(line, format!("`{module}` has no `ENTRY` whose `name` is a literal string"))
                }
            }
        }
    }
    entries
}

fn has_unit_tests(sources: &Sources, stem: &str) -> bool {
    let (file, folder) = (format!("{stem}.rs"), format!("{stem}/"));
    let is_test = |item: &Item| matches!(item, Item::Mod(module) if is_test_only(&module.attrs));
    sources
        .iter()
        .filter(|(path, _)| **path == file || path.starts_with(&folder))
        .any(|(_, source)| source.items.iter().any(is_test))
}

#[cfg(test)]
mod tests {
    use super::super::source::parse;
    use super::*;

    /// A module of this name, and what follows.
    fn module(name: &str, rest: &str) -> String {
        format!("pub const ENTRY: Entry = Entry {{ name: \"{name}\", ..ONE }};\n{rest}")
    }

    fn tested(name: &str) -> String {
        module(name, "#[cfg(test)]\nmod tests {}\n")
    }

    fn registry_of(names: &[&str]) -> String {
        let entries = names.iter().map(|name| format!("X, loss::{name};\n"));
        format!("mod registry;\nregistry! {{\n{}}}\n", entries.collect::<String>())
    }

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let (sources, broken) = parse(&tree);
        assert!(broken.is_empty());
        check(&tree, &sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_algorithm_with_note_and_tests_is_complete() {
        let registry = registry_of(&["reno"]);
        let files = [
            (REGISTRY, &*registry),
            ("crates/cc/src/algorithms/loss/reno.rs", &*tested("reno")),
            ("papers/reno.md", ""),
        ];
        assert!(findings(&files).is_empty());
    }

    #[test]
    fn tests_may_live_in_a_file_of_the_module() {
        let registry = registry_of(&["peach"]);
        let peach = module("peach", "#[cfg(test)]\nmod tests;");
        let module = ("crates/cc/src/algorithms/loss/peach.rs", &*peach);
        assert!(findings(&[(REGISTRY, &*registry), module, ("papers/peach.md", "")]).is_empty());
    }

    #[test]
    fn what_is_missing_is_named_at_its_line() {
        let registry = registry_of(&["reno", "hybla"]);
        let files = [
            (REGISTRY, &*registry),
            ("crates/cc/src/algorithms/loss/reno.rs", &*tested("reno")),
            ("crates/cc/src/algorithms/loss/hybla.rs", &*module("hybla", "mod tests {}")),
            ("papers/reno.md", ""),
        ];
        let found = findings(&files);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|finding| finding.starts_with("crates/cc/src/lib.rs:4: `hybla` has no")));
    }

    #[test]
    fn a_note_without_code_is_found() {
        let registry = registry_of(&[]);
        let found = findings(&[(REGISTRY, &*registry), ("papers/atlantis.md", "")]);
        assert!(found[0].starts_with("papers/atlantis.md:1: belongs to no algorithm"));
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_no_silence() {
        let found = findings(&[(REGISTRY, "registry! { Reno, loss::reno, ENTRY; }")]);
        assert!(found[0].contains("cannot be read"), "{found:?}");
        let found = findings(&[
            (REGISTRY, "registry! { Reno, loss::reno; }"),
            ("crates/cc/src/algorithms/loss/reno.rs", ""),
        ]);
        assert!(found[0].contains("has no `ENTRY`"), "{found:?}");
    }
}
