//! A number that a study calls the paper's must be in the paper: `papers/provenance.toml` names the words of each such number.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use toml::Table;

use crate::criteria::sha256_hex;

/// The words of a text in which a number stands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Passage {
    /// The number as the text prints it, in lower case.
    says: String,
    /// Number of words.
    words: usize,
    /// First 16 hexadecimal digits of the SHA-256 of the words.
    passage: String,
}

/// By study, then by number.
type Provenance = BTreeMap<String, BTreeMap<String, Passage>>;

fn papers() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("papers")
}

fn provenance() -> Provenance {
    toml::from_str(&fs::read_to_string(papers().join("provenance.toml")).unwrap()).unwrap()
}

/// Returns the names of all that a study calls the paper's.
fn called_the_papers(study: &str) -> Vec<String> {
    let table: Table = fs::read_to_string(papers().join(format!("{study}.toml"))).unwrap().parse().unwrap();
    let parameters = table["parameter"].as_table().into_iter().flatten();
    let stated = parameters.filter(|(_, parameter)| parameter["source"].as_str() == Some("stated"));
    let mut names: Vec<String> = stated.map(|(name, _)| format!("parameter {name}")).collect();
    for (claim, content) in table["claim"].as_table().into_iter().flatten() {
        let numbers = content.get("stated").and_then(|stated| stated.as_table());
        names.extend(numbers.into_iter().flatten().map(|(number, _)| format!("{claim} {number}")));
    }
    names.sort_unstable();
    names
}

/// Returns the words of a text in lower case.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_lowercase).collect()
}

/// Returns the passages of a text with this hash.
fn passages<'a>(text: &'a [String], wanted: &'a Passage) -> impl Iterator<Item = String> + 'a {
    let passages = text.windows(wanted.words).map(|words| words.join(" "));
    passages.filter(|passage| sha256_hex(passage).starts_with(&wanted.passage))
}

#[test]
fn all_that_is_called_the_papers_has_a_passage() {
    for (study, passages) in provenance() {
        let found: Vec<String> = passages.into_keys().collect();
        assert_eq!(found, called_the_papers(&study), "{study}");
    }
}

#[test]
fn a_passage_is_found_by_its_hash() {
    let text = words("Segment  size\nis set to 1000 bytes and so on");
    let passage = Passage { says: "1000".to_owned(), words: 2, passage: "0123456789abcdef".to_owned() };
    let hash = sha256_hex("1000 bytes");
    assert_eq!(passages(&text, &passage).count(), 0);
    let passage = Passage { passage: hash[..16].to_owned(), ..passage };
    assert_eq!(passages(&text, &passage).collect::<Vec<_>>(), ["1000 bytes"]);
}

/// `BENTPIPE_PAPERS` names a folder with the texts of the papers. The project does not have them.
#[test]
fn every_passage_is_in_the_papers() {
    let Some(folder) = std::env::var_os("BENTPIPE_PAPERS") else { return };
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let texts: Vec<_> = files.map(|file| words(&String::from_utf8_lossy(&fs::read(file).unwrap()))).collect();
    for (study, wanted) in provenance() {
        for (name, wanted) in &wanted {
            let mut found = texts.iter().flat_map(|text| passages(text, wanted));
            let passage = found.next().unwrap_or_else(|| panic!("{study}: {name}: no text has the passage"));
            assert!(passage.contains(&wanted.says), "{study}: {name}: found {passage}");
        }
    }
}
