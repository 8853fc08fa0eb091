//! Registry, file, paper note and unit test of an algorithm belong together.

use syn::parse::{Parse, ParseStream};
use syn::{Expr, ExprLit, Ident, Item, Lit, Member, Token};

use super::source::{Sources, is_test_only};
use super::{Finding, Tree};

const REGISTRY: &str = "crates/cc/src/registry.rs";

/// One line of the registry: `Variant, module, Entry { name: "…", .. };`.
struct Entry {
    module: String,
    name: String,
    line: usize,
}

impl Parse for Entry {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        input.parse::<Ident>()?;
        input.parse::<Token![,]>()?;
        let module: Ident = input.parse()?;
        input.parse::<Token![,]>()?;
        let entry: syn::ExprStruct = input.parse()?;
        let is_name = |member: &Member| matches!(member, Member::Named(ident) if ident == "name");
        let field = entry.fields.iter().find(|field| is_name(&field.member));
        match field.map(|field| &field.expr) {
            Some(Expr::Lit(ExprLit { lit: Lit::Str(name), .. })) => {
                Ok(Self { module: module.to_string(), name: name.value(), line: module.span().start().line })
            }
            _ => Err(syn::Error::new(module.span(), "an entry has a `name` that is a literal string")),
        }
    }
}

/// Compares the registry with `papers/` and with the unit tests of the algorithms.
pub fn check(tree: &Tree, sources: &Sources) -> Vec<Finding> {
    let Some(registry) = sources.get(REGISTRY) else { return Vec::new() };
    let mut findings = Vec::new();
    let entries = entries(registry, &mut findings);
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
        if !has_unit_tests(sources, &entry.module) {
            findings.push(Finding::new(
                (REGISTRY, entry.line),
                format!("`{}` has no unit tests beside its code", entry.name),
                "the worked examples of a paper are its first tests",
                format!("add `#[cfg(test)] mod tests` to the module `{}`", entry.module),
            ));
        }
    }
    let has_file = |name: &str| {
        let rooms = ["middlebox", "transports"];
        rooms.iter().any(|room| sources.get(&*format!("crates/{room}/src/{name}.rs")).is_some())
    };
    let is_registered = |name: &str| entries.iter().any(|entry| entry.name == name) || has_file(name);
    for stem in tree.stems("papers", ".md").filter(|stem| !is_registered(stem)) {
        findings.push(Finding::new(
            (&format!("papers/{stem}.md"), 1),
            "belongs to no algorithm of the registry, no middlebox and no transport",
            "a note without code describes nothing that runs",
            "name it after its entry in crates/cc/src/registry.rs or its file in crates/middlebox/src or crates/transports/src, or take it out",
        ));
    }
    findings
}

fn entries(registry: &syn::File, findings: &mut Vec<Finding>) -> Vec<Entry> {
    let calls = registry.items.iter().filter_map(|item| match item {
        Item::Macro(item) if item.mac.path.is_ident("registry") => Some(&item.mac),
        _ => None,
    });
    let list = |input: ParseStream| input.parse_terminated(Entry::parse, Token![;]);
    let mut entries = Vec::new();
    for call in calls {
        match call.parse_body_with(list) {
            Ok(list) => entries.extend(list),
            Err(error) => findings.push(Finding::new(
                (REGISTRY, error.span().start().line),
                format!("an entry cannot be read ({error})"),
                "tidy looks for the paper note of each entry",
                "write it as the others, or teach xtask/src/tidy/papers.rs the new form",
            )),
        }
    }
    entries
}

fn has_unit_tests(sources: &Sources, module: &str) -> bool {
    let file = format!("crates/cc/src/{module}.rs");
    let folder = format!("crates/cc/src/{module}/");
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

    const TESTED: &str = "fn window() {}\n#[cfg(test)]\nmod tests {}\n";

    fn registry_of(names: &[&str]) -> String {
        let entries = names.iter().map(|name| format!("X, {name}, Entry {{ name: \"{name}\", ..ONE }};\n"));
        format!("const ONE: Entry = Entry {{}};\nregistry! {{\n{}}}\n", entries.collect::<String>())
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
        let files = [(REGISTRY, &*registry), ("crates/cc/src/reno.rs", TESTED), ("papers/reno.md", "")];
        assert!(findings(&files).is_empty());
    }

    #[test]
    fn tests_may_live_in_a_file_of_the_module() {
        let registry = registry_of(&["peach"]);
        let module = ("crates/cc/src/peach/mod.rs", "#[cfg(test)]\nmod tests;");
        assert!(findings(&[(REGISTRY, &*registry), module, ("papers/peach.md", "")]).is_empty());
    }

    #[test]
    fn what_is_missing_is_named_at_its_line() {
        let registry = registry_of(&["reno", "hybla"]);
        let files = [
            (REGISTRY, &*registry),
            ("crates/cc/src/reno.rs", TESTED),
            ("crates/cc/src/hybla.rs", "mod tests {}"),
            ("papers/reno.md", ""),
        ];
        let found = findings(&files);
        assert_eq!(found.len(), 2);
        assert!(
            found.iter().all(|finding| finding.starts_with("crates/cc/src/registry.rs:4: `hybla` has no"))
        );
    }

    #[test]
    fn a_note_without_code_is_found() {
        let registry = registry_of(&[]);
        let found = findings(&[(REGISTRY, &*registry), ("papers/atlantis.md", "")]);
        assert!(found[0].starts_with("papers/atlantis.md:1: belongs to no algorithm"));
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_no_silence() {
        let found = findings(&[(REGISTRY, "registry! { Reno, reno, ENTRY; }")]);
        assert!(found[0].contains("cannot be read"), "{found:?}");
    }
}
