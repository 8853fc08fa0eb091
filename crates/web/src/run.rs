//! Progress of a run, and the origin of its result.

use bentpipe_lab::{Build, Origin};
use bentpipe_scenario::FilesRead;

/// Receives the simulated seconds of a run at intervals.
pub type Progress<'a> = &'a (dyn Fn(f64) + Sync);

/// Returns the origin of a result for which these files were read: the same as that of the command line.
pub fn origin(files: FilesRead) -> Origin {
    let commit = Some(env!("BENTPIPE_COMMIT")).filter(|commit| !commit.is_empty());
    Origin { build: Build { commit, changed: !env!("BENTPIPE_CHANGED").is_empty() }, files }
}
