//! Reading of files named by users: only regular files of limited size.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// SHA-256 of each file that was read, in hexadecimal, keyed by path; built-in files have the path `built-in/NAME`.
pub type FilesRead = BTreeMap<String, String>;

thread_local! {
    /// Files read by this thread since the start of the innermost [`files_read_by`].
    static READ: RefCell<FilesRead> = const { RefCell::new(FilesRead::new()) };
}

/// Texts of files by name, for a program without a file system.
pub type FilesGiven = Arc<BTreeMap<String, String>>;

thread_local! {
    /// The only files that [`read_text`] finds on this thread; `None` for those of the file system.
    static GIVEN: RefCell<Option<FilesGiven>> = const { RefCell::new(None) };
}

/// Returns the result of `work`, which finds the files of `given` only, if there is such a list.
pub(crate) fn with_files<T>(given: Option<&FilesGiven>, work: impl FnOnce() -> T) -> T {
    let before = GIVEN.replace(given.cloned());
    let result = work();
    GIVEN.set(before);
    result
}

/// Returns the text of a given file. Folders in `path` are ignored, because a browser tells the name of a file only.
fn given_text(given: &FilesGiven, path: &Path) -> io::Result<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("the file `{name}` is missing"));
    let text = given.get(name.as_ref()).ok_or_else(missing)?;
    note_read(&path.display().to_string(), text.as_bytes());
    Ok(text.clone())
}

/// Returns the result of `work` with the files that it read.
pub(crate) fn files_read_by<T>(work: impl FnOnce() -> T) -> (T, FilesRead) {
    let before = READ.take();
    let result = work();
    (result, READ.replace(before))
}

/// Records a file that was read.
pub(crate) fn note_read(path: &str, content: &[u8]) {
    let mut hash = String::new();
    for byte in Sha256::digest(content) {
        write!(hash, "{byte:02x}").expect("a string takes everything");
    }
    READ.with_borrow_mut(|read| read.insert(path.to_owned(), hash));
}

/// Maximum size in bytes of a file, above that of any scenario, study or recording.
const MOST_BYTES: u64 = 256 << 20;

/// Returns the text of a file. Pipes and devices are refused, because they may never end.
///
/// # Errors
/// The errors of the system. [`io::ErrorKind::InvalidInput`] if it is not a regular file, [`io::ErrorKind::FileTooLarge`] above
/// 256 MiB, [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    if let Some(given) = GIVEN.with_borrow(Clone::clone) {
        return given_text(&given, path);
    }
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a directory" } else { "a pipe or a device" };
        let message = format!("found {what}, accepted: a file of at most {} MiB", MOST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let message =
            format!("found a file of {} bytes, accepted: at most {} MiB", metadata.len(), MOST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    note_read(&path.display().to_string(), &bytes);
    String::from_utf8(bytes).map_err(|_| {
        let message = "found bytes that are no text, accepted: a file of UTF-8";
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of "abc" is the first example of FIPS 180-2.
    #[test]
    fn files_that_are_read_are_told_with_their_hashes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc.txt");
        std::fs::write(&path, "abc").unwrap();
        let ((), read) = files_read_by(|| drop(read_text(&path)));
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(read, FilesRead::from([(path.display().to_string(), hash.to_owned())]));
        assert_eq!(files_read_by(|| ()).1, FilesRead::new());
    }

    #[test]
    fn a_given_file_is_found_by_its_name_and_no_other_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.csv");
        std::fs::write(&path, "on the disk").unwrap();
        let given = FilesGiven::new(BTreeMap::from([("rates.csv".to_owned(), "0,1".to_owned())]));
        let read = |path: &Path| with_files(Some(&given), || read_text(path));
        assert_eq!(read(Path::new("folder/rates.csv")).unwrap(), "0,1");
        assert!(read(&path).unwrap_err().to_string().contains("the file `other.csv` is missing"));
        assert_eq!(read_text(&path).unwrap(), "on the disk");
    }

    #[test]
    fn devices_and_directories_are_no_scenarios() {
        for (path, found) in [("/dev/zero", "a pipe or a device"), ("/", "a directory")] {
            let error = read_text(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(found) && error.contains("accepted"), "{path}: {error}");
        }
        assert!(read_text(Path::new("/no/such/file")).is_err());
    }
}
