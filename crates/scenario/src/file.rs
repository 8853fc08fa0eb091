//! Reading of files named by users: only regular files of limited size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

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
    String::from_utf8(bytes).map_err(|_| {
        let message = "found bytes that are no text, accepted: a file of UTF-8";
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_directories_are_no_scenarios() {
        for (path, found) in [("/dev/zero", "a pipe or a device"), ("/", "a directory")] {
            let error = read_text(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(found) && error.contains("accepted"), "{path}: {error}");
        }
        assert!(read_text(Path::new("/no/such/file")).is_err());
    }
}
