//! Rust files as syntax trees.

use std::collections::BTreeMap;

use proc_macro2::Span;
use syn::UseTree;

use super::{Finding, Tree};

/// Syntax trees by path.
pub type Sources<'a> = BTreeMap<&'a str, syn::File>;

/// Parses every Rust file.
pub fn parse(tree: &Tree) -> (Sources<'_>, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut sources = Sources::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        match syn::parse_file(text) {
            Ok(file) => {
                sources.insert(path, file);
            }
            Err(error) => findings.push(Finding::new(
                (path, error.span().start().line),
                format!("cannot be parsed ({error})"),
                "tidy reads the syntax tree",
                "mend it as the compiler says",
            )),
        }
    }
    (sources, findings)
}

/// A name that a `use` imports.
pub struct UsedName {
    /// The segments of its path; for a `*` those before it.
    pub path: Vec<String>,
    /// Its local name; `None` for a `*`.
    pub alias: Option<String>,
    pub span: Span,
}

/// Expands every path of a `use`.
pub fn names_used(tree: &UseTree) -> Vec<UsedName> {
    let mut names = Vec::new();
    spell_out(tree, &[], &mut names);
    names
}

fn spell_out(tree: &UseTree, before: &[String], names: &mut Vec<UsedName>) {
    let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
    let used = |ident: &syn::Ident, alias: &syn::Ident| {
        // `{self}` imports the path before it.
        let path = if ident == "self" { before.to_vec() } else { with(ident) };
        let alias = if alias == "self" { path.last().cloned() } else { Some(alias.to_string()) };
        UsedName { path, alias, span: ident.span() }
    };
    match tree {
        UseTree::Path(path) => spell_out(&path.tree, &with(&path.ident), names),
        UseTree::Name(name) => names.push(used(&name.ident, &name.ident)),
        UseTree::Rename(name) => names.push(used(&name.ident, &name.rename)),
        UseTree::Group(group) => group.items.iter().for_each(|tree| spell_out(tree, before, names)),
        UseTree::Glob(glob) => {
            names.push(UsedName { path: before.to_vec(), alias: None, span: glob.star_token.spans[0] });
        }
    }
}

/// True for `#[cfg(test)]` and `#[cfg(all(test, ..))]`.
pub fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let words = list.tokens.to_string();
        attribute.path().is_ident("cfg") && !words.contains("not") && mentions(&words, "test")
    })
}

/// True if `text` contains `word` as a whole word.
pub fn mentions(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}
