//! Rust files as syntax trees.

use std::collections::BTreeMap;

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

/// True for `#[cfg(test)]` and `#[cfg(all(test, ..))]`.
pub fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let words = list.tokens.to_string();
        attribute.path().is_ident("cfg") && !words.contains("not") && mentions(&words, "test")
    })
}

/// True if `word` stands in `text` as a word of its own.
pub fn mentions(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}
