//! Build of this program, for results.

use bentpipe_lab::{Build, Origin};
use bentpipe_scenario::FilesRead;

/// Version with the commit that the program was built from.
pub const VERSION: &str = env!("BENTPIPE_VERSION");

const COMMIT: &str = env!("BENTPIPE_COMMIT");
const BUILD: Build = Build {
    commit: if COMMIT.is_empty() { None } else { Some(COMMIT) },
    changed: !env!("BENTPIPE_CHANGED").is_empty(),
};

/// Returns the origin of a result for which these files were read.
pub fn of(files: FilesRead) -> Origin {
    Origin { build: BUILD, files }
}
