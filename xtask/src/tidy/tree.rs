//! The files of the checkout.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Text files, keyed by path from the root with `/` between folders.
#[derive(Default)]
pub struct Tree(BTreeMap<String, String>);

/// Folders with build output. Names with a leading dot are also skipped.
const NOT_OURS: &[&str] = &["target", "out", "dist", "node_modules", "__pycache__"];

/// Hidden folders that belong to the repository.
const HIDDEN_OURS: &[&str] = &[".cargo", ".ci", ".github"];

impl Tree {
    /// Reads a checkout without its binary files.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                let ours = !name.starts_with('.') || HIDDEN_OURS.contains(&name.as_str());
                if ours && !NOT_OURS.contains(&name.as_str()) {
                    self.read_folder(&entry.path(), &format!("{path}/"))?;
                }
            } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
                self.0.insert(path, text);
            }
        }
        Ok(())
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the text of a file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Returns all files in order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the names of the files directly in `folder` with the suffix `ending`, without it.
    pub fn stems<'a>(&'a self, folder: &'a str, ending: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .keys()
            .filter_map(move |path| path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(ending))
            .filter(|stem| !stem.contains('/'))
    }

    /// Makes a tree of literals.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }
}
