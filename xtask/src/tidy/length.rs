//! Length of functions and files, and number of arguments.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Block, FnArg, ImplItemFn, ItemFn, Signature, TraitItemFn, Type};

use super::source::Sources;
use super::{Finding, Tree};
use crate::house::{FILE_LINES, FUNCTION_ARGUMENTS, FUNCTION_LINES};

/// Measures every function and every file.
pub fn check(tree: &Tree, sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in sources {
        let mut ruler = Ruler { path, findings: Vec::new() };
        ruler.visit_file(source);
        findings.extend(ruler.findings);
        let lines = tree.get(path).map_or(0, |text| text.lines().count());
        if lines > FILE_LINES {
            findings.push(
                Finding::new(
                    (path, 1),
                    format!("{lines} lines"),
                    "a file of more than 700 lines usually has two subjects",
                    "check if it can be split",
                )
                .hint(),
            );
        }
    }
    findings
}

struct Ruler<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl Ruler<'_> {
    /// Counts the arguments. Those in a tuple count, too: a tuple without a name explains nothing.
    fn count(&mut self, signature: &Signature) {
        let count = |argument: &FnArg| match argument {
            FnArg::Typed(typed) => match &*typed.ty {
                Type::Tuple(tuple) => tuple.elems.len(),
                _ => 1,
            },
            FnArg::Receiver(_) => 1,
        };
        let arguments: usize = signature.inputs.iter().map(count).sum();
        let is_packed = arguments > signature.inputs.len();
        if is_packed && arguments > FUNCTION_ARGUMENTS {
            self.findings.push(Finding::new(
                (self.path, signature.ident.span().start().line),
                format!("`{}` has {arguments} arguments, some in tuples", signature.ident),
                "an interface has at most five arguments",
                "give those that belong together a struct",
            ));
        }
    }

    fn measure(&mut self, signature: &Signature, block: &Block) {
        self.count(signature);
        let line_of = |span: Span| span.start().line;
        let braces = &block.brace_token.span;
        let lines = line_of(braces.close()).saturating_sub(line_of(braces.open()) + 1);
        if lines > FUNCTION_LINES {
            self.findings.push(Finding::new(
                (self.path, line_of(signature.ident.span())),
                format!("the body of `{}` has {lines} lines", signature.ident),
                "a function fits a screen (70 lines)",
                "give a step of it a name of its own",
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Ruler<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::parse;
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("a.rs", text)]);
        check(&tree, &parse(&tree).0).iter().map(ToString::to_string).collect()
    }

    fn body(lines: usize) -> String {
        "    let _ = 1;\n".repeat(lines)
    }

    #[test]
    fn seventy_lines_fit_and_seventy_one_do_not() {
        assert!(findings(&format!("fn fits() {{\n{}}}\n", body(70))).is_empty());
        let found = findings(&format!("\nfn long() {{\n{}}}\n", body(71)));
        assert!(
            found[0].starts_with("a.rs:2: the body of `long` has 71 lines: a function fits"),
            "{found:?}"
        );
    }

    /// Clippy counts the others.
    #[test]
    fn arguments_in_tuples_count() {
        assert!(findings("fn fits((a, b): (u8, u8), c: (u8, u8, u8)) {}").is_empty());
        let found = findings("impl S { fn packed(&self, (a, b): (u8, u8), c: (u8, u8, u8)) {} }");
        assert!(found[0].starts_with("a.rs:1: `packed` has 6 arguments, some in tuples"), "{found:?}");
    }

    #[test]
    fn methods_defaults_of_traits_and_functions_in_functions_count() {
        let long = |head: &str| findings(&format!("{head} {{ fn f() {{\n{}}} }}\n", body(71))).len();
        assert_eq!([long("impl S"), long("trait T"), long("mod m")], [1; 3]);
        assert_eq!(long("fn outer()"), 2);
    }

    #[test]
    fn a_long_file_is_only_a_hint() {
        let tree = Tree::of(&[("a.rs", &"// line\n".repeat(701))]);
        let found = check(&tree, &parse(&tree).0);
        assert!(found.len() == 1 && found[0].only_a_hint);
    }
}
