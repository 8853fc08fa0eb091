//! Reading of files named by users: only regular files of limited size.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// SHA-256 of each file that was read, in hexadecimal, keyed by path; built-in files have the path `built-in/NAME`.
pub type FilesRead = BTreeMap<String, String>;

thread_local! {
    /// Files read by this thread since the start of the innermost [`files_read_by`].
    static READ: RefCell<FilesRead> = const { RefCell::new(FilesRead::new()) };
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
    fn devices_and_directories_are_no_scenarios() {
        for (path, found) in [("/dev/zero", "a pipe or a device"), ("/", "a directory")] {
            let error = read_text(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(found) && error.contains("accepted"), "{path}: {error}");
        }
        assert!(read_text(Path::new("/no/such/file")).is_err());
    }
}
