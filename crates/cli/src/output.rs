//! Files that are complete or absent, and what goes to standard output.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use bentpipe_lab::table::Look;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// A file that is being written. It stands at its path only after [`Target::finish`]; until then, a file that was
/// there stays as it was.
#[derive(Debug)]
pub enum Target {
    /// A new file beside the path, which takes its place in the end.
    Beside(NamedTempFile, PathBuf),
    /// A device or a pipe, written as it is.
    Direct(File, PathBuf),
}

impl Target {
    /// Begins a file, so that a path that cannot be written is refused before the work.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        Self::try_open(path).map_err(|error| Failure::unwritable(path, &error))
    }

    fn try_open(path: &Path) -> io::Result<Self> {
        // A link stays a link: what it points at is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(found) if !found.is_file() => {
                return Ok(Self::Direct(File::options().write(true).open(&path)?, path));
            }
            Ok(_) => drop(File::options().append(true).open(&path)?),
            Err(_) => {}
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        builder.prefix(".bentpipe-").suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666)); // less what the umask forbids
        }
        Ok(Self::Beside(builder.tempfile_in(directory.unwrap_or(Path::new(".")))?, path))
    }

    /// Where to write.
    pub fn writer(&self) -> Result<BufWriter<File>, Failure> {
        let (file, path) = match self {
            Self::Beside(file, path) => (file.as_file(), path),
            Self::Direct(file, path) => (file, path),
        };
        let file = file.try_clone().map_err(|error| Failure::unwritable(path, &error))?;
        Ok(BufWriter::with_capacity(1 << 18, file))
    }

    /// Puts the file in its place.
    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Beside(file, path) => match file.persist(&path) {
                Ok(_) => Ok(()),
                Err(error) => Err(Failure::Work(format!("cannot write {}: {}", path.display(), error.error))),
            },
            Self::Direct(..) => Ok(()),
        }
    }

    /// Writes `bytes` and puts the file in its place.
    pub fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut writer = self.writer()?;
        let written = writer.write_all(bytes).and_then(|()| writer.flush());
        written.map_err(|error| Failure::Work(format!("cannot write {}: {error}", self.path().display())))?;
        self.finish()
    }

    /// Where the file will stand.
    pub fn path(&self) -> &Path {
        match self {
            Self::Beside(_, path) | Self::Direct(_, path) => path,
        }
    }
}

/// Opens the paths that are given.
pub fn open(path: Option<&PathBuf>) -> Result<Option<Target>, Failure> {
    path.map(|path| Target::open(path)).transpose()
}

/// Two outputs to one file would overwrite each other.
pub fn refuse_twice(paths: &[Option<&PathBuf>]) -> Result<(), Failure> {
    let given: Vec<&PathBuf> = paths.iter().copied().flatten().collect();
    let twice = given.iter().enumerate().find(|(index, path)| given[..*index].contains(path));
    twice.map_or(Ok(()), |(_, path)| {
        Err(Failure::Request(format!("two outputs are to be written to {}", path.display())))
    })
}

/// Writes text to standard output; a reader that has gone away is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Work(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one JSON document to standard output.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(|error| Failure::Work(error.to_string()))?;
    print(&format!("{text}\n"))
}

/// How tables look on standard output.
pub fn look() -> Look {
    let terminal = io::stdout().is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let width =
        terminal.then(|| console::Term::stdout().size_checked()).flatten().map(|(_, columns)| columns);
    Look { width, colour: terminal && !plain }
}

/// The command line as it was typed, for reports.
pub fn typed() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    std::iter::once("bentpipe".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.csv");
        fs::write(&path, "old").unwrap();
        let target = Target::open(&path).unwrap();
        target.writer().unwrap().write_all(b"half").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(target);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
        Target::open(&path).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn devices_are_written_as_they_are() {
        Target::open(Path::new("/dev/null")).unwrap().write(b"x").unwrap();
        assert!(Target::open(Path::new("/")).is_err());
        assert!(Target::open(Path::new("/no/such/directory/file")).is_err());
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("link.x.rate=1e-4"), "link.x.rate=1e-4");
        assert_eq!(quoted("duration=60 s"), "'duration=60 s'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
