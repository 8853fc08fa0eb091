//! Plain words in documents: short sentences and paragraphs, openers that name their subject, and no word that the glossary avoids.
//!
//! `<!-- prose: REASON -->` exempts the text from its line to the next blank line, on the first line of a page the page.

use super::{Finding, Tree};

/// Most words of a sentence.
const SENTENCE_WORDS: usize = 35;

/// Most words of a paragraph, a list item or a cell of a table.
const PARAGRAPH_WORDS: usize = 120;

/// Beginnings of sentences that hide the subject. A question may begin like this.
const OPENERS: &[&str] =
    &["What ", "Who ", "Whoever ", "Whether ", "Such ", "Nor ", "Of those ", "As long as "];

const GLOSSARY: &str = "docs/glossary.md";

/// Checks every document but those of which the path begins like an entry of `unrevised`; such an entry must still be needed.
pub fn check(tree: &Tree, unrevised: &[&str]) -> Vec<Finding> {
    let avoided = tree.get(GLOSSARY).map(avoided_words).unwrap_or_default();
    let mut findings = Vec::new();
    let mut needed = vec![false; unrevised.len()];
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        let found = check_page(path, text, &avoided);
        match unrevised.iter().position(|entry| path.starts_with(entry)) {
            Some(index) => needed[index] |= !found.is_empty(),
            None => findings.extend(found),
        }
    }
    for (entry, _) in unrevised.iter().zip(needed).filter(|(_, needed)| !needed) {
        findings.push(Finding::new(
            ("xtask/src/house.rs", 1),
            format!("`{entry}` is plain by now"),
            "the list of documents that are not may only shrink",
            "take it off `UNREVISED_DOCUMENTS`",
        ));
    }
    findings
}

/// Words in the first column of the glossary's last table, with those of the second.
fn avoided_words(glossary: &str) -> Vec<(String, String)> {
    let section = glossary.split("\n## Words to avoid\n").nth(1).unwrap_or_default();
    let rows =
        section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let words = rows.skip(1).flat_map(|(avoid, write)| avoid.split(", ").map(move |word| (word, write)));
    words.map(|(word, write)| (word.to_lowercase(), write.to_owned())).collect()
}

fn check_page(path: &str, text: &str, avoided: &[(String, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Block { line, text } in blocks(text) {
        let mut add =
            |what: String, why, remedy: String| findings.push(Finding::new((path, line), what, why, remedy));
        let text = plain(&text);
        if count(&text) > PARAGRAPH_WORDS {
            let what = format!("a paragraph of {} words", count(&text));
            add(
                what,
                "a reader needs a rest after 120",
                "split it, or make a list or table of it".to_owned(),
            );
        }
        for sentence in sentences(&text) {
            let begin: String = sentence.chars().take(50).collect();
            if count(sentence) > SENTENCE_WORDS {
                let what = format!("a sentence of {} words: {begin:?}", count(sentence));
                add(what, "a sentence has one idea and at most 35 words", "make two of it".to_owned());
            }
            let hides = OPENERS.iter().any(|opener| sentence.starts_with(opener)) && !sentence.ends_with('?');
            if hides || (sentence.starts_with("Where ") && !sentence.contains(',')) {
                let what = format!("a sentence begins without its subject: {begin:?}");
                add(what, "subject, verb, object", "begin with what acts or is defined".to_owned());
            }
        }
        for (word, write) in avoided.iter().filter(|(word, _)| contains_word(&text, word)) {
            add(format!("says {word:?}"), "the glossary avoids it", format!("write {write}"));
        }
    }
    findings
}

/// A paragraph, list item or cell of a table, with the line where it begins.
struct Block {
    line: usize,
    text: String,
}

/// The text of a page without headings, code blocks and what is exempt.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    if page.lines().next().is_some_and(is_exemption) {
        return blocks;
    }
    let (mut in_code, mut is_exempt, mut goes_on) = (false, false, false);
    for (index, line) in page.lines().enumerate() {
        let text = line.trim();
        if text.starts_with("```") {
            in_code = !in_code;
        }
        is_exempt = (is_exempt && !text.is_empty()) || is_exemption(text);
        let is_mark = text.is_empty() || ["#", "```", "<!--"].iter().any(|mark| text.starts_with(mark));
        if in_code || is_exempt || is_mark {
            goes_on = false;
            continue;
        }
        let block = |text: &str| Block { line: index + 1, text: text.to_owned() };
        if let Some(row) = text.strip_prefix('|') {
            blocks.extend(row.split('|').map(block));
            goes_on = false;
        } else if let Some(item) = list_item(text) {
            blocks.push(block(item));
            goes_on = true;
        } else if goes_on && let Some(last) = blocks.last_mut() {
            last.text.push(' ');
            last.text.push_str(text);
        } else {
            blocks.push(block(text));
            goes_on = true;
        }
    }
    blocks
}

/// True for `<!-- prose: REASON -->` somewhere in the line.
fn is_exemption(line: &str) -> bool {
    let reason = line.split_once("<!-- prose:").and_then(|(_, rest)| rest.split_once("-->"));
    reason.is_some_and(|(reason, _)| !reason.trim().is_empty())
}

/// The text of a list item, after its mark.
fn list_item(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (digits.len() < text.len()).then(|| digits.strip_prefix(". ")).flatten();
    text.strip_prefix("* ").or_else(|| text.strip_prefix("- ")).or(numbered)
}

/// The text without marks: code is one word, of a link its text is left.
fn plain(text: &str) -> String {
    let code: String =
        text.split('`').enumerate().map(|(i, part)| if i % 2 == 1 { "Code" } else { part }).collect();
    let mut plain = String::new();
    let mut rest = code.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain.replace(['*', '['], "")
}

/// Words: what stands between spaces and has a letter or a digit.
fn count(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// Parts that end in a mark and are followed by no small letter.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    for (position, _) in text.match_indices(' ') {
        let ends = text[begin..position].trim_end_matches([')', '"']).ends_with(['.', '!', '?']);
        if ends && !text[position + 1..].starts_with(char::is_lowercase) {
            sentences.push(text[begin..position].trim());
            begin = position + 1;
        }
    }
    sentences.push(text[begin..].trim());
    sentences
}

/// True if `word` stands in `text` by itself, whatever its case.
fn contains_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    text.match_indices(word).any(|(position, _)| {
        let before = text[..position].chars().next_back();
        let after = text[position + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVOIDED: &str = "# Glossary\n\n## Words to avoid\n\n<!-- prose: the words -->\n| avoid | write |\n|---|---|\n| in vain, others' | as duplicates |\n";

    fn findings(page: &str) -> Vec<String> {
        let tree = Tree::of(&[(GLOSSARY, AVOIDED), ("docs/a.md", page)]);
        check(&tree, &[]).iter().map(ToString::to_string).collect()
    }

    fn words(count: usize) -> String {
        vec!["word"; count].join(" ")
    }

    #[test]
    fn thirty_five_words_are_a_sentence_and_thirty_six_are_not() {
        assert!(
            findings(&format!("# A\n\n{}.\n{}.\n", words(35), words(35))).len() == 1,
            "lower case goes on"
        );
        assert!(findings(&format!("A {}.\nA {}.\n", words(34), words(34))).is_empty());
        let found = findings(&format!("Text.\n\nA {}.\n", words(35)));
        assert!(found[0].starts_with("docs/a.md:3: a sentence of 36 words"), "{found:?}");
    }

    #[test]
    fn list_items_and_cells_are_paragraphs_of_their_own() {
        let sentence = format!("A {}.", words(29));
        let paragraph = [&*sentence; 5].join(" ");
        assert_eq!(findings(&paragraph).len(), 1);
        assert!(findings(&format!("* {sentence}\n  {sentence}\n1. {sentence} {sentence}\n")).is_empty());
        assert!(
            findings(&format!("| {sentence} {sentence} | {sentence} {sentence} {sentence} |\n")).is_empty()
        );
        assert_eq!(findings(&format!("| a | {paragraph} |\n")).len(), 1);
    }

    #[test]
    fn code_headings_and_marks_do_not_count() {
        let long = words(40);
        assert!(
            findings(&format!("# {long}\n\n```\n{long}\n```\n\nA `{long}` [b](https://{long}).\n"))
                .is_empty()
        );
        assert!(findings(&format!("{} - ± |", words(35))).is_empty());
    }

    #[test]
    fn a_sentence_begins_with_its_subject_unless_it_asks() {
        for bad in ["What falls is lost.", "A rate. Who sends waits.", "Where it stood was a queue."] {
            assert_eq!(findings(bad).len(), 1, "{bad}");
        }
        for good in ["What falls?", "Where queues are short, it drops.", "A `What` falls."] {
            assert!(findings(good).is_empty(), "{good}");
        }
    }

    #[test]
    fn words_of_the_glossary_are_found_as_words() {
        assert!(findings("It sends in vain.")[0].ends_with("write as duplicates"));
        assert_eq!(findings("The others' queues.").len(), 1);
        assert!(findings("A paragraph in vainglory.").is_empty());
    }

    #[test]
    fn a_comment_with_a_reason_exempts_to_the_next_blank_line_or_the_page() {
        let bad = "What falls is lost.";
        assert!(findings(&format!("<!-- prose: a quotation -->\n{bad}\n")).is_empty());
        assert_eq!(findings(&format!("A page.\n\n<!-- prose: a quotation -->\n{bad}\n\n{bad}\n")).len(), 1);
        assert_eq!(findings(&format!("A page.\n\n<!-- prose: -->\n{bad}\n")).len(), 1, "without a reason");
    }

    #[test]
    fn an_unrevised_document_is_left_alone_as_long_as_it_needs_that() {
        let tree =
            Tree::of(&[("old/a.md", "What falls is lost."), ("old/b.md", "Fine."), ("new.md", "Fine.")]);
        assert!(check(&tree, &["old/"]).is_empty());
        let found = check(&tree, &["old/", "new.md"]);
        assert!(found[0].to_string().contains("`new.md` is plain by now"));
    }
}
