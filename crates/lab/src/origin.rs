//! Origin of a result: the build of Bentpipe and the files that were read.

use bentpipe_scenario::FilesRead;
use serde::Serialize;

/// Build of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Build {
    /// Commit of the source; `None` for a build outside a git checkout.
    pub commit: Option<&'static str>,
    /// True if the source differed from that commit.
    pub changed: bool,
}

/// Build and input files of a result.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Origin {
    /// Build of the program.
    pub build: Build,
    /// SHA-256 of each file that was read, keyed by path.
    pub files: FilesRead,
}

/// Document of a result with its origin.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WithOrigin<'a, T: Serialize> {
    /// The result.
    #[serde(flatten)]
    pub document: &'a T,
    /// Its origin.
    #[serde(flatten)]
    pub origin: &'a Origin,
}

impl Build {
    /// Returns the abbreviated commit, and whether the source differed from it; empty without a commit.
    pub fn short(&self) -> String {
        let commit = self.commit.map_or("", |commit| &commit[..commit.len().min(12)]);
        if self.changed { format!("{commit}, changed") } else { commit.to_owned() }
    }
}

impl Origin {
    /// Returns the files with the first twelve digits of their hashes, as `PATH=HASH PATH=HASH`.
    pub fn files_in_short(&self) -> String {
        let one = |(path, hash): (&String, &String)| format!("{path}={}", &hash[..hash.len().min(12)]);
        self.files.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Returns names and values for the metadata of a table.
    pub fn metadata(&self) -> Vec<(&'static str, String)> {
        let files = serde_json::to_string(&self.files).unwrap_or_default();
        let commit = self.build.commit.map(|commit| ("bentpipe.commit", commit.to_owned()));
        let changed = ("bentpipe.changed", self.build.changed.to_string());
        commit.into_iter().chain([changed, ("bentpipe.files", files)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_its_origin_beside_its_fields() {
        let build = Build { commit: Some("967f4685e0982872e2082776dcedbe1ac5fe74a3"), changed: true };
        let files = FilesRead::from([("geo.toml".to_owned(), "ba7816bf8f01cfea41".to_owned())]);
        let origin = Origin { build, files };
        let comparison = crate::example::comparison();
        let document = serde_json::to_value(WithOrigin { document: &comparison, origin: &origin }).unwrap();
        assert_eq!(document["build"]["commit"], "967f4685e0982872e2082776dcedbe1ac5fe74a3");
        assert_eq!(
            (&document["scenario"], &document["files"]["geo.toml"]),
            (&"example".into(), &"ba7816bf8f01cfea41".into())
        );
        assert_eq!(
            (build.short(), origin.files_in_short()),
            ("967f4685e098, changed".into(), "geo.toml=ba7816bf8f01".into())
        );
        assert_eq!(Build::default().short(), "", "outside a checkout");
    }
}
