//! Finished points, kept in a file so that an interrupted study goes on where it stopped.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What was measured in one run: values by the keys of their measures, absent where they have none.
pub type Values = BTreeMap<String, Option<f64>>;

/// A curve over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Course {
    /// Name of the flow.
    pub flow: String,
    /// Seconds and height.
    pub points: Vec<(f64, f64)>,
}

/// What is kept of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Numbers.
    #[serde(default)]
    pub values: Values,
    /// Curves, by the keys of their sketches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub curves: BTreeMap<String, Vec<Course>>,
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    world: String,
    seed: u64,
    #[serde(flatten)]
    kept: Kept,
}

/// Runs that were finished, by world and seed.
#[derive(Debug, Default)]
pub struct Store {
    done: HashMap<(String, u64), Kept>,
    file: Option<File>,
}

impl Kept {
    fn learn(&mut self, more: Self) {
        self.values.extend(more.values);
        self.curves.extend(more.curves);
    }
}

impl Store {
    /// A store that forgets.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// A store in a file; what an earlier process kept there is known. A last line that was cut off is ignored.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut done = HashMap::new();
        if path.exists() {
            for line in BufReader::new(File::open(path)?).lines() {
                if let Ok(entry) = serde_json::from_str::<Entry>(&line?) {
                    let known: &mut Kept = done.entry((entry.world, entry.seed)).or_default();
                    known.learn(entry.kept);
                }
            }
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(b"\n")?; // whatever was cut off stays alone on its line
        Ok(Self { done, file: Some(file) })
    }

    /// What is known of a run.
    pub fn get(&self, world: &str, seed: u64) -> Option<&Kept> {
        self.done.get(&(world.to_owned(), seed))
    }

    /// Keeps what a run gave.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&mut self, world: &str, seed: u64, kept: Kept) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            let entry = Entry { world: world.to_owned(), seed, kept: kept.clone() };
            let mut line = serde_json::to_vec(&entry)?;
            line.push(b'\n');
            file.write_all(&line)?;
        }
        self.done.entry((world.to_owned(), seed)).or_default().learn(kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_known_again_and_half_a_line_does_no_harm() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("points.jsonl");
        let values =
            |key: &str, value| Kept { values: Values::from([(key.to_owned(), value)]), ..Kept::default() };
        let course = Course { flow: "f".into(), points: vec![(0.5, 1.0), (1.5, 2.0)] };
        let mut store = Store::open(&path).unwrap();
        store.keep("w", 1, values("a", Some(0.1 + 0.2))).unwrap();
        store.keep("w", 1, values("b", None)).unwrap();
        let curves = BTreeMap::from([("c".to_owned(), vec![course.clone()])]);
        store.keep("w", 1, Kept { curves, ..Kept::default() }).unwrap();
        drop(store);
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"world\":\"x\",")
            .unwrap();
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.get("w", 1).unwrap().values["a"], Some(0.1 + 0.2));
        assert_eq!(store.get("w", 1).unwrap().values["b"], None);
        assert_eq!(store.get("w", 1).unwrap().curves["c"], [course]);
        assert_eq!(store.get("w", 2), None);
        store.keep("w", 2, values("a", Some(1.0))).unwrap();
        assert_eq!(Store::open(&path).unwrap().get("w", 2).unwrap().values["a"], Some(1.0));
    }
}
