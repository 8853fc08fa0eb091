//! Refuses import cycles between the files of a crate. Each file can then be read after the files that it uses.
//!
//! `mod name;` is not an import, nor is the re-export of an item from a module below.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, Path, Visibility};

use super::Finding;
use super::dead::as_module;
use super::source::{Sources, UsedName, is_test_only, names_used};
use crate::house::Room;

/// Path of a module from the root of its crate.
type Module = Vec<String>;

/// Checks the sources of all crates, without tests.
pub fn check(sources: &Sources, rooms: &[Room]) -> Vec<Finding> {
    rooms.iter().flat_map(|room| check_crate(&Crate::read(sources, room))).collect()
}

fn check_crate(krate: &Crate) -> Vec<Finding> {
    let edges: BTreeMap<&Module, BTreeMap<&Module, usize>> =
        krate.files.keys().map(|module| (module, krate.imports(module))).collect();
    let mut findings = Vec::new();
    for (from, targets) in &edges {
        for (to, line) in targets.iter().filter(|(to, _)| reaches(&edges, to, from)) {
            findings.push(Finding::new(
                (krate.files[*from].path, *line),
                format!("imports {}, which imports it, directly or through others", krate.files[*to].path),
                "files in a cycle can only be read and changed together",
                "move the common code into a file below both",
            ));
        }
    }
    findings
}

/// Checks that files import from the folders of their crate before their own only.
pub fn check_floors(sources: &Sources, rooms: &[Room], (folder, floors): (&str, &[&str])) -> Vec<Finding> {
    let Some(room) = rooms.iter().find(|room| room.folder == folder) else { return Vec::new() };
    let krate = Crate::read(sources, room);
    let floor =
        |module: &Module| floors.iter().position(|floor| module.first().is_some_and(|first| first == floor));
    let mut findings = Vec::new();
    for from in krate.files.keys() {
        for (to, line) in krate.imports(from) {
            if floor(from).zip(floor(to)).is_some_and(|(from, to)| to > from) {
                findings.push(Finding::new(
                    (krate.files[from].path, line),
                    format!("imports {}, which is above it", krate.files[to].path),
                    "a part can be read and tested without the parts above it",
                    "move the common code down, or the using code up",
                ));
            }
        }
    }
    findings
}

fn reaches(edges: &BTreeMap<&Module, BTreeMap<&Module, usize>>, from: &Module, to: &Module) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(module) = open.pop() {
        if module == to {
            return true;
        }
        open.extend(edges[module].keys().copied().filter(|next| seen.insert(next)));
    }
    false
}

/// Returns the files of a crate, keyed by module.
struct Crate<'a> {
    files: BTreeMap<Module, Names<'a>>,
}

impl<'a> Crate<'a> {
    fn read(sources: &'a Sources, room: &Room) -> Self {
        let folder = format!("{}/src/", room.folder);
        let has_library = sources.contains_key(format!("{folder}lib.rs").as_str());
        let mut files = BTreeMap::new();
        for (path, source) in sources {
            let Some(stem) = path.strip_prefix(&folder).and_then(|rest| rest.strip_suffix(".rs")) else {
                continue;
            };
            // Programs of a crate with a library are separate crates.
            if stem.starts_with("bin/") || stem == "main" && has_library {
                continue;
            }
            let mut module: Module = stem.split('/').map(str::to_owned).collect();
            module.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
            let mut names = Names::new(path, module.clone());
            names.visit_file(source);
            files.insert(module, names);
        }
        let tests: Vec<Module> = files.values().flat_map(|names| names.tests.clone()).collect();
        files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Self { files }
    }

    /// Returns the files that a file imports, each with the line of the first import.
    fn imports(&self, module: &Module) -> BTreeMap<&Module, usize> {
        let mut found = BTreeMap::new();
        for name in &self.files[module].names {
            let Some(target) = self.file_of(&name.path, 0).filter(|target| *target != module) else {
                continue;
            };
            if !(name.exported && target.starts_with(module)) {
                let line = found.entry(target).or_insert(name.line);
                *line = name.line.min(*line);
            }
        }
        found
    }

    /// Returns the file that defines the item at a path, through re-exports.
    fn file_of(&self, path: &[String], depth: usize) -> Option<&Module> {
        let length = (0..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, names) = self.files.get_key_value(&path[..length])?;
        let exported = path.get(length).and_then(|name| names.exports.get(name)).filter(|_| depth < 8);
        let onward = exported.and_then(|onward| {
            let path = [onward, &path[length + 1..]].concat();
            self.file_of(&path, depth + 1)
        });
        onward.or(Some(module))
    }
}

/// A used name of this crate.
struct Name {
    /// Path from the root of the crate.
    path: Module,
    line: usize,
    exported: bool,
}

/// Names that a file uses.
struct Names<'a> {
    path: &'a str,
    /// Present module, inner modules included.
    module: Module,
    names: Vec<Name>,
    /// Re-exported items, keyed by their new names.
    exports: BTreeMap<String, Module>,
    /// Modules in separate files that only tests have.
    tests: Vec<Module>,
    /// Declared modules.
    children: BTreeSet<String>,
}

impl<'a> Names<'a> {
    fn new(path: &'a str, module: Module) -> Self {
        let (names, exports, tests, children) = Default::default();
        Self { path, module, names, exports, tests, children }
    }

    /// Returns the path from the root of the crate; `None` outside the crate.
    fn absolute(&self, names: &[String]) -> Option<Module> {
        let (first, rest) = names.split_first()?;
        let above = names.iter().take_while(|name| *name == "super").count();
        Some(match first.as_str() {
            "crate" => rest.to_vec(),
            "self" => [&self.module, rest].concat(),
            "super" => [self.module.get(..self.module.len().checked_sub(above)?)?, &names[above..]].concat(),
            child if self.children.contains(child) => [&self.module, names].concat(),
            _ => return None,
        })
    }

    fn see(&mut self, names: &[String], span: Span, exported: bool) {
        if let Some(path) = self.absolute(names) {
            self.names.push(Name { path, line: span.start().line, exported });
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_file(&mut self, file: &'ast syn::File) {
        self.children = file.items.iter().filter_map(as_module).map(|item| item.ident.to_string()).collect();
        visit::visit_file(self, file);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(attributes(item)) {
            visit::visit_item(self, item);
        } else if let Item::Mod(ItemMod { ident, content: None, .. }) = item {
            self.tests.push([&self.module[..], &[ident.to_string()]].concat());
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let exported = !matches!(item.vis, Visibility::Inherited);
        for UsedName { path, alias, span } in names_used(&item.tree) {
            self.see(&path, span, exported);
            if let (true, Some(alias), Some(path)) = (exported, alias, self.absolute(&path)) {
                self.exports.insert(alias, path);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let ["crate" | "super" | "self", _, ..] = names.iter().map(String::as_str).collect::<Vec<_>>()[..]
        {
            self.see(&names, path.segments[0].ident.span(), false);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        for (names, span) in paths_in(mac.tokens.clone()) {
            self.see(&names, span, false);
        }
        visit::visit_macro(self, mac);
    }
}

/// Returns the paths from `crate`, `super` or `self` in the tokens of a macro.
fn paths_in(tokens: TokenStream) -> Vec<(Vec<String>, Span)> {
    let (mut found, mut path, mut colons) = (Vec::<(Vec<String>, Span)>::new(), false, 0);
    for token in tokens {
        match token {
            TokenTree::Ident(name) if path && colons == 2 => {
                found.last_mut().expect("a path has begun").0.push(name.to_string());
                colons = 0;
            }
            TokenTree::Ident(name) => {
                path = ["crate", "super", "self"].iter().any(|first| name == first);
                if path {
                    found.push((vec![name.to_string()], name.span()));
                }
                colons = 0;
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                path = false;
                found.extend(paths_in(group.stream()));
            }
            _ => path = false,
        }
    }
    found.retain(|(names, _)| names.len() > 1);
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::parse;
    use super::*;
    use crate::tidy::Tree;

    const ROOMS: &[Room] = &[Room { folder: "a", name: "a", pure: true, leans_on: &[], tests_lean_on: &[] }];

    /// Returns file and line of each import in a cycle.
    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let found = check(&parse(&tree).0, ROOMS);
        found.iter().map(|finding| format!("{}:{}", finding.file, finding.line)).collect()
    }

    #[test]
    fn files_that_import_each_other_are_found_directly_and_round_about() {
        let pair = [("a/src/b.rs", "use crate::c::C;"), ("a/src/c.rs", "\nuse super::b::{self, B};")];
        assert_eq!(cycles(&pair), ["a/src/b.rs:1", "a/src/c.rs:2"]);
        let three = [
            ("a/src/b.rs", "use crate::c::C;"),
            ("a/src/c.rs", "fn f() -> crate::d::D {}"),
            ("a/src/d.rs", "fn f() { assert!(crate::b::b()); }"),
            ("a/src/e.rs", "use crate::{b::B, c::C, d::D};"),
        ];
        assert_eq!(cycles(&three), ["a/src/b.rs:1", "a/src/c.rs:1", "a/src/d.rs:1"]);
    }

    #[test]
    fn a_file_imports_from_the_folders_below_its_own() {
        let files = [
            ("a/src/low/b.rs", "use crate::d::D;\nuse crate::high::c::C;"),
            ("a/src/high/c.rs", "use crate::low::b::B;"),
            ("a/src/d.rs", "pub struct D;"),
        ];
        let found = check_floors(&parse(&Tree::of(&files)).0, ROOMS, ("a", &["low", "high"]));
        let found: Vec<_> = found.iter().map(|finding| (finding.file.as_str(), finding.line)).collect();
        assert_eq!(found, [("a/src/low/b.rs", 2)]);
    }

    #[test]
    fn a_name_counts_for_the_file_that_defines_it() {
        let files = [
            ("a/src/lib.rs", "mod b; mod c; pub use b::B; pub use c::C as See;"),
            ("a/src/b.rs", "pub struct B;"),
            ("a/src/c.rs", "use crate::B; pub struct C;"),
        ];
        assert!(cycles(&files).is_empty());
        let turned = [files[0], ("a/src/b.rs", "use crate::See;"), files[2]];
        assert_eq!(cycles(&turned), ["a/src/b.rs:1", "a/src/c.rs:1"]);
    }

    #[test]
    fn a_module_may_declare_what_imports_it_but_not_import_it() {
        let child = ("a/src/b/c.rs", "use super::B;");
        assert!(cycles(&[("a/src/b/mod.rs", "mod c; pub struct B;"), child]).is_empty());
        assert!(cycles(&[("a/src/b/mod.rs", "mod c; pub use c::C; pub struct B;"), child]).is_empty());
        assert_eq!(cycles(&[("a/src/b/mod.rs", "mod c; use c::C; pub struct B;"), child]).len(), 2);
    }

    #[test]
    fn tests_may_import_what_they_test() {
        let low = ("a/src/c.rs", "use crate::b::B;");
        assert!(cycles(&[("a/src/b.rs", "#[cfg(test)] mod tests { use crate::c::C; }"), low]).is_empty());
        let apart =
            [("a/src/b/mod.rs", "#[cfg(test)] mod tests;"), ("a/src/b/tests.rs", "use crate::c::C;"), low];
        assert!(cycles(&apart).is_empty());
        assert_eq!(cycles(&[("a/src/b.rs", "mod inner { use crate::c::C; }"), low]).len(), 2);
    }
}
