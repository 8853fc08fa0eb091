//! Store of finished runs in a folder, so that an interrupted or extended study repeats no run.
//!
//! The key of a run is the name of its world, a hash of scenario and version, and its seed. The value is a set of named
//! quantities and curves. The folder holds Parquet files. Each is written under a temporary name and renamed when complete, so
//! that a partial file is never read.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::builder::{
    Float64Builder, ListBuilder, StringBuilder, StringDictionaryBuilder, UInt64Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bentpipe_scenario::{Scenario, own_algorithms};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::batch::Kind;

/// Quantities measured in a run, keyed by name; `None` without a value.
pub type Values = BTreeMap<String, Option<f64>>;

/// Curve over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Course {
    /// Name of the flow.
    pub flow: String,
    /// Points of seconds and value.
    pub points: Vec<(f64, f64)>,
}

/// Stored result of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Kept {
    /// Measured numbers of the run.
    pub values: Values,
    /// Curves, keyed by name.
    pub curves: BTreeMap<String, Vec<Course>>,
}

impl Kept {
    fn learn(&mut self, more: Self) {
        self.values.extend(more.values);
        for (name, courses) in more.curves {
            self.curves.insert(name, courses);
        }
    }
}

/// Reason why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder cannot be read or written.
    #[error("cannot use {} as a store: {why}", path.display())]
    Unusable {
        /// Path of the folder, or of a file in it.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// A file was damaged after it had been written.
    #[error("{}: found no readable store of finished runs ({why}), accepted: a file that `--keep` wrote; if you delete it, its runs are repeated", path.display())]
    Damaged {
        /// Path of the damaged file.
        path: PathBuf,
        /// Message of the reader.
        why: String,
    },
}

/// Returns the name of a world: a hash of the version and of the scenario without its seed. Files read by the scenario are
/// included, so that equal names mean equal worlds.
pub fn world_name(scenario: &Scenario) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.write(format!("{:?}", Scenario { seed: 0, ..scenario.clone() }).as_bytes());
    format!("{:032x}", hasher.finish128().as_u128())
}

/// Refuses a world with an algorithm from outside Bentpipe: its code is not part of the name, so stored results could be
/// outdated.
///
/// # Errors
/// A message with what was found and what is accepted.
pub fn refuse_own(scenario: &Scenario) -> Result<(), String> {
    let own = own_algorithms();
    let law = |cc: &str| cc.split('+').next().unwrap_or_default().to_owned();
    match scenario.flows.iter().find(|flow| own.iter().any(|custom| custom.name == law(&flow.cc))) {
        Some(flow) => Err(format!(
            "keep: found the algorithm {} of flow.{}, accepted: registered algorithms; the code of others may change between runs",
            flow.cc, flow.name
        )),
        None => Ok(()),
    }
}

/// Minimum time between two files, and the maximum fraction of the work that a kill may lose.
const PAUSE: Duration = Duration::from_secs(1);
const SHARE: u32 = 50;

/// Finished runs, keyed by world and seed.
#[derive(Debug)]
pub struct Store {
    folder: Option<PathBuf>,
    done: HashMap<(String, u64), Kept>,
    /// Results not yet in a file.
    fresh: Vec<((String, u64), Kept)>,
    begun: Instant,
    written: Instant,
}

/// Prefix and suffix of the store's file names.
const PREFIX: &str = "runs-";
const SUFFIX: &str = ".parquet";

impl Store {
    /// Makes a store without files.
    pub fn in_memory() -> Self {
        let now = Instant::now();
        Self { folder: None, done: HashMap::new(), fresh: Vec::new(), begun: now, written: now }
    }

    /// Opens a store in a folder, which is created if absent, and reads results of earlier processes.
    ///
    /// # Errors
    /// See [`StoreError`]. A folder without write permission is detected here, before the work.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let unusable = |why| StoreError::Unusable { path: folder.to_owned(), why };
        fs::create_dir_all(folder).map_err(unusable)?;
        drop(
            tempfile::Builder::new()
                .prefix(".bentpipe-")
                .suffix(".part")
                .tempfile_in(folder)
                .map_err(unusable)?,
        );
        let mut store = Self::in_memory();
        store.folder = Some(folder.to_owned());
        for path in files(folder).map_err(unusable)? {
            let learnt = read(&path).map_err(|why| StoreError::Damaged { path, why })?;
            for (run, kept) in learnt {
                store.done.entry(run).or_default().learn(kept);
            }
        }
        Ok(store)
    }

    /// Removes the files of a store from a folder.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn forget(folder: &Path) -> Result<(), StoreError> {
        for path in files(folder).unwrap_or_default() {
            fs::remove_file(&path).map_err(|why| StoreError::Unusable { path, why })?;
        }
        Ok(())
    }

    /// True if results outlast the process.
    pub const fn keeps(&self) -> bool {
        self.folder.is_some()
    }

    /// Returns the stored result of a run.
    pub fn get(&self, world: &str, seed: u64) -> Option<&Kept> {
        self.done.get(&(world.to_owned(), seed))
    }

    /// Stores the result of a run. It is written within one second, or within 2 % of the elapsed work time if that is longer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&mut self, world: &str, seed: u64, kept: Kept) -> Result<(), StoreError> {
        let run = (world.to_owned(), seed);
        if self.folder.is_some() {
            self.fresh.push((run.clone(), kept.clone()));
        }
        self.done.entry(run).or_default().learn(kept);
        if self.written.elapsed() > PAUSE.max(self.begun.elapsed() / SHARE) { self.flush() } else { Ok(()) }
    }

    /// Writes all pending results to a file.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        if let Some(folder) = self.folder.as_deref().filter(|_| !self.fresh.is_empty()) {
            let unusable = |why| StoreError::Unusable { path: folder.to_owned(), why };
            write_part(folder, &encode(&self.fresh)).map_err(unusable)?;
            self.fresh.clear();
        }
        self.written = Instant::now();
        Ok(())
    }
}

impl Drop for Store {
    /// Ignores write errors; call [`Store::flush`] before to see them.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Returns the files of a store in a folder.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Writes a file under a temporary name, and renames it once it is complete on disk. Its name is a hash of its content.
fn write_part(folder: &Path, batch: &RecordBatch) -> io::Result<()> {
    let mut bytes = Vec::new();
    crate::file::write(batch, &mut bytes)?;
    let mut hasher = SipHasher13::new();
    hasher.write(&bytes);
    let name = format!("{PREFIX}{:032x}{SUFFIX}", hasher.finish128().as_u128());
    let mut part = tempfile::Builder::new().prefix(".bentpipe-").suffix(".part").tempfile_in(folder)?;
    part.write_all(&bytes)?;
    part.as_file().sync_all()?;
    part.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}

fn schema() -> SchemaRef {
    let name = |name: &str| {
        Field::new(name, DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), false)
    };
    let list = || DataType::List(Arc::new(Field::new("item", DataType::Float64, true)));
    let fields = vec![
        name("world"),
        Field::new("seed", DataType::UInt64, false),
        name("quantity"),
        Field::new("value", DataType::Float64, true),
        Field::new("flow", DataType::Utf8, true),
        Field::new("t_s", list(), true),
        Field::new("height", list(), true),
    ];
    Arc::new(Schema::new_with_metadata(fields, Kind::Store.metadata()))
}

/// Returns finished runs as a table: one row per quantity and per curve.
pub fn encode(runs: &[((String, u64), Kept)]) -> RecordBatch {
    let mut world = StringDictionaryBuilder::<Int32Type>::new();
    let mut quantity = StringDictionaryBuilder::<Int32Type>::new();
    let (mut seed, mut value, mut flow) = (UInt64Builder::new(), Float64Builder::new(), StringBuilder::new());
    let (mut t_s, mut height) =
        (ListBuilder::new(Float64Builder::new()), ListBuilder::new(Float64Builder::new()));
    for ((of, number), kept) in runs {
        for (name, found) in &kept.values {
            world.append_value(of);
            seed.append_value(*number);
            quantity.append_value(name);
            value.append_option(*found);
            flow.append_null();
            t_s.append_null();
            height.append_null();
        }
        for (name, course) in
            kept.curves.iter().flat_map(|(name, all)| all.iter().map(move |course| (name, course)))
        {
            world.append_value(of);
            seed.append_value(*number);
            quantity.append_value(name);
            value.append_null();
            flow.append_value(&course.flow);
            t_s.append_value(course.points.iter().map(|point| Some(point.0)));
            height.append_value(course.points.iter().map(|point| Some(point.1)));
        }
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(world.finish()),
        Arc::new(seed.finish()),
        Arc::new(quantity.finish()),
        Arc::new(value.finish()),
        Arc::new(flow.finish()),
        Arc::new(t_s.finish()),
        Arc::new(height.finish()),
    ];
    RecordBatch::try_new(schema(), columns).expect("every line has all columns, in the order of the schema")
}

/// Returns the finished runs in a table made by [`encode`].
///
/// # Errors
/// If the table has another form.
pub fn decode(batch: &RecordBatch) -> Result<HashMap<(String, u64), Kept>, String> {
    let (found, wanted) = (batch.schema(), schema());
    let types = |schema: &Schema| {
        schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect::<Vec<_>>()
    };
    if types(&found) != types(&wanted) {
        return Err("other columns than those of a store".into());
    }
    let names = |column: usize| {
        let array = batch.column(column).as_dictionary::<Int32Type>();
        array.downcast_dict::<arrow_array::StringArray>().ok_or("names that are no text")
    };
    let (worlds, quantities) = (names(0)?, names(2)?);
    let seeds = batch.column(1).as_primitive::<UInt64Type>();
    let values = batch.column(3).as_primitive::<Float64Type>();
    let flows = batch.column(4).as_string::<i32>();
    let lists = [batch.column(5).as_list::<i32>(), batch.column(6).as_list::<i32>()];
    let mut runs: HashMap<(String, u64), Kept> = HashMap::new();
    let (worlds, quantities): (Vec<_>, Vec<_>) =
        (worlds.into_iter().collect(), quantities.into_iter().collect());
    for line in 0..batch.num_rows() {
        let (Some(world), Some(quantity)) = (worlds[line], quantities[line]) else {
            return Err("a line without a name".into());
        };
        let kept = runs.entry((world.to_owned(), seeds.value(line))).or_default();
        if flows.is_null(line) {
            let value = values.is_valid(line).then(|| values.value(line));
            kept.values.insert(quantity.to_owned(), value);
            continue;
        }
        let [t_s, heights] =
            lists.map(|list| list.value(line).as_primitive::<Float64Type>().values().to_vec());
        let course =
            Course { flow: flows.value(line).to_owned(), points: t_s.into_iter().zip(heights).collect() };
        kept.curves.entry(quantity.to_owned()).or_default().push(course);
    }
    Ok(runs)
}

fn read(path: &Path) -> Result<HashMap<(String, u64), Kept>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(1 << 16).build());
    let mut runs: HashMap<(String, u64), Kept> = HashMap::new();
    for batch in reader.map_err(|error| error.to_string())? {
        for (run, kept) in decode(&batch.map_err(|error| error.to_string())?)? {
            // A run may be split over two batches: its curves are joined.
            let known = runs.entry(run).or_default();
            known.values.extend(kept.values);
            for (name, courses) in kept.curves {
                known.curves.entry(name).or_default().extend(courses);
            }
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(name: &str, value: Option<f64>) -> Kept {
        Kept { values: Values::from([(name.to_owned(), value)]), ..Kept::default() }
    }

    #[test]
    fn what_was_kept_is_known_again_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let course = Course { flow: "f".into(), points: vec![(0.5, 1.0), (1.5, 2.0)] };
        let mut store = Store::open(folder.path()).unwrap();
        store.keep("w", 1, kept("a", Some(0.1 + 0.2))).unwrap();
        store.keep("w", 1, kept("b", None)).unwrap();
        let curves = BTreeMap::from([("c".to_owned(), vec![course.clone(), course.clone()])]);
        store.keep("w", 1, Kept { curves, ..Kept::default() }).unwrap();
        drop(store);
        let mut store = Store::open(folder.path()).unwrap();
        assert_eq!(store.get("w", 1).unwrap().values["a"], Some(0.1 + 0.2));
        assert_eq!(store.get("w", 1).unwrap().values["b"], None);
        assert_eq!(store.get("w", 1).unwrap().curves["c"], [course.clone(), course]);
        assert_eq!(store.get("w", 2), None);
        store.keep("w", 2, kept("a", Some(1.0))).unwrap();
        store.flush().unwrap();
        assert_eq!(Store::open(folder.path()).unwrap().get("w", 2).unwrap().values["a"], Some(1.0));
        Store::forget(folder.path()).unwrap();
        assert_eq!(Store::open(folder.path()).unwrap().get("w", 2), None);
    }

    #[test]
    fn a_half_written_file_is_not_read_and_a_damaged_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        store.keep("w", 1, kept("a", Some(1.0))).unwrap();
        drop(store);
        let names =
            || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        let whole = names().remove(0);
        let bytes = fs::read(&whole).unwrap();
        fs::write(folder.path().join(".bentpipe-xyz.part"), &bytes[..bytes.len() / 2]).unwrap();
        fs::write(folder.path().join("notes.parquet"), b"mine").unwrap();
        assert!(Store::open(folder.path()).unwrap().get("w", 1).is_some());
        fs::write(&whole, &bytes[..bytes.len() / 2]).unwrap();
        let why = Store::open(folder.path()).unwrap_err().to_string();
        assert!(why.contains(whole.to_str().unwrap()) && why.contains("accepted"), "{why}");
    }

    #[test]
    fn a_store_that_cannot_be_written_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let why = Store::open(&file).unwrap_err().to_string();
        assert!(why.contains("file") && why.contains("store"), "{why}");
    }

    #[test]
    fn a_world_is_named_by_what_it_is_not_by_its_seed() {
        let scenario = bentpipe_scenario::load("geo-single").unwrap();
        let name = world_name(&scenario);
        assert_eq!(name, world_name(&Scenario { seed: 99, ..scenario.clone() }));
        let mut draft = bentpipe_scenario::Draft::load("geo-single").unwrap();
        draft.set("link.satellite.loss.rate=0.5").unwrap();
        assert_ne!(name, world_name(&draft.scenario().unwrap()));
    }

    #[test]
    fn what_a_scenario_reads_from_other_files_is_part_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorded.toml");
        let scenario = |delay_ms: u32| {
            let toml = "duration = '9 s'\n[node.a]\n[node.b]\n[link.l]\nbetween = ['a', 'b']\nrate = '1 Mbit/s'\n\
                        [link.l.delay-one-way]\nfile = 'delays.csv'\ncolumn = 'delay'\nunit = 'ms'\n\
                        [flow.f]\nfrom = 'a'\nto = 'b'\ntraffic = 'bulk'\n";
            fs::write(&path, toml).unwrap();
            fs::write(folder.path().join("delays.csv"), format!("time_s,delay\n0,{delay_ms}\n5,40\n"))
                .unwrap();
            world_name(&bentpipe_scenario::load(path.to_str().unwrap()).unwrap())
        };
        assert_eq!(scenario(20), scenario(20));
        assert_ne!(scenario(20), scenario(21));
    }
}
