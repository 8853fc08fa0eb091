//! Test of the documents: every TOML example in README.md and the pages about scenarios is loaded.

use bentpipe_scenario::Draft;

const DOCUMENTS: [(&str, &str); 6] = [
    ("README.md", include_str!("../../../README.md")),
    ("docs/scenarios.md", include_str!("../../../docs/scenarios.md")),
    ("docs/flows.md", include_str!("../../../docs/flows.md")),
    ("docs/middleboxes.md", include_str!("../../../docs/middleboxes.md")),
    ("docs/howto/random-worlds.md", include_str!("../../../docs/howto/random-worlds.md")),
    ("docs/howto/write-a-scenario.md", include_str!("../../../docs/howto/write-a-scenario.md")),
];

/// A fenced block: the words after `toml`, the line of its fence, and its text.
struct Example<'a> {
    path: &'a str,
    line: usize,
    text: Vec<&'a str>,
}

fn examples(document: &str) -> Vec<Example<'_>> {
    let mut examples = Vec::new();
    let mut open: Option<Example<'_>> = None;
    for (index, line) in document.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) if info.split(' ').next() == Some("toml") => {
                open = Some(Example { path: info["toml".len()..].trim(), line: index + 1, text: Vec::new() });
            }
            (Some(_), Some(_)) => examples.extend(open.take()),
            (Some(example), None) => example.text.push(line),
            (None, _) => {}
        }
    }
    examples
}

/// A block without a path is a complete file.
#[test]
fn whole_files_are_scenarios() {
    for (name, document) in DOCUMENTS {
        for Example { line, text, .. } in examples(document).iter().filter(|example| example.path.is_empty())
        {
            let loaded = Draft::parse("example.toml", &text.join("\n")).and_then(|draft| draft.scenario());
            loaded.unwrap_or_else(|error| panic!("{name}:{line}: {error}"));
        }
    }
}

/// Each line of a block with a path is a valid value at that path.
#[test]
fn lines_are_values_of_the_table_they_are_shown_for() {
    let examples = DOCUMENTS
        .into_iter()
        .flat_map(|(name, document)| examples(document).into_iter().map(move |one| (name, one)));
    for (name, Example { path, line, text }) in examples.filter(|(_, example)| !example.path.is_empty()) {
        for (offset, setting) in text.iter().enumerate() {
            let (key, value) = setting.split_once('=').expect("each line is a setting");
            let mut draft = Draft::load("geo-dumbbell").expect("it is built in");
            let result = draft.set(&format!("{path}.{}={value}", key.trim())).and_then(|()| draft.scenario());
            result.unwrap_or_else(|error| panic!("{name}:{}: {setting}: {error}", line + 1 + offset));
        }
    }
}
