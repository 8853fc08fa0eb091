//! Storage of a comparison's runs, so that no run is repeated.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bentpipe_lab::{Measured, Point, Prepared, Progress, Sample, Workers};

use crate::store::{Kept, Store, refuse_own, world_name};

/// A store, with the names of the worlds of a comparison.
pub struct Keeper {
    store: Arc<Mutex<Store>>,
    /// World name of each cell of the plan.
    worlds: Arc<[String]>,
}

impl Keeper {
    /// Opens the store in `folder` for the runs of `prepared`.
    ///
    /// # Errors
    /// A message if the folder is unusable, or if an algorithm is not part of Bentpipe.
    pub fn open(folder: &Path, prepared: &Prepared) -> Result<Self, String> {
        prepared.scenarios.iter().try_for_each(refuse_own)?;
        let store = Store::open(folder).map_err(|error| error.to_string())?;
        let worlds = prepared.scenarios.iter().map(world_name).collect();
        Ok(Self { store: Arc::new(Mutex::new(store)), worlds })
    }

    /// Returns the stored result of a run.
    pub fn known(&self, point: &Point) -> Option<Sample> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        Sample::from_quantities(point.seed, &store.get(&self.worlds[point.cell], point.seed)?.values)
    }

    /// Stores the result of a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, point: &Point, sample: &Sample) -> Result<(), String> {
        let kept = Kept { values: sample.quantities().collect(), ..Kept::default() };
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.keep(&self.worlds[point.cell], point.seed, kept).map_err(|error| error.to_string())
    }

    /// Writes all pending results to a file.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn flush(&self) -> Result<(), String> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.flush().map_err(|error| error.to_string())
    }
}

/// Executes the runs of a comparison that are not stored, and stores their results.
///
/// # Errors
/// If the last results could not be stored.
pub fn measure(
    prepared: &Prepared,
    keeper: Option<Keeper>,
    workers: &Workers,
    observe: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Measured, String> {
    let Some(keeper) = keeper else {
        return Ok(prepared.measure(prepared.plan.points(), workers, |_, _| Ok(()), observe));
    };
    let keeper = Arc::new(keeper);
    let known = |point: Point| keeper.known(&point).map(|sample| (point.clone(), sample)).ok_or(point);
    let (known, missing): (Vec<_>, Vec<_>) =
        prepared.plan.points().into_iter().map(known).partition(Result::is_ok);
    let missing = missing.into_iter().filter_map(Result::err).collect();
    let keep = Arc::clone(&keeper);
    let mut measured =
        prepared.measure(missing, workers, move |point, sample| keep.keep(point, sample), observe);
    measured.done.extend(known.into_iter().flatten());
    keeper.flush()?;
    Ok(measured)
}
