//! Transfers that resume an interrupted one and verify the result.
//!
//! Both ends exchange a few lines around the file (docs/on-the-wire.md). The receiver sends the number of bytes that
//! it has and their SHA-256, the sender the total number. Then the sender sends the rest and the SHA-256 of the whole
//! file, and the receiver confirms that its file is equal.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Prefix of every line.
const WORD: &str = "bentpipe-resume 1";
/// Maximum length of a line.
const LONGEST: usize = 120;
/// Bytes that are hashed at a time; the connection is served between two pieces.
const PIECE: usize = 4 << 20;
/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// Last line of the receiver.
const SAME: &str = "same";
/// Word of the sender in place of the size: the receiver's part is not the beginning of the file.
const OTHER: &str = "other";
const DIFFERENT: &str = "different";

/// Formats a digest in hexadecimal digits.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn strange(line: &[u8]) -> Failure {
    let line = String::from_utf8_lossy(&line[..line.len().min(LONGEST)]).into_owned();
    Failure::Work(format!("the other end sent {line:?}, accepted: --resume at both ends"))
}

/// State of the sender.
pub struct Offer {
    file: File,
    path: PathBuf,
    total: u64,
    hash: Sha256,
    /// Number of hashed bytes of the file.
    read: u64,
    /// The receiver's part: number of bytes and digest.
    theirs: Option<(u64, String)>,
    /// Why nothing of the file is sent.
    refusal: Option<String>,
}

/// The rest of the file, with the lines around it.
pub struct Rest {
    head: Vec<u8>,
    file: File,
    left: u64,
    hash: Sha256,
    /// Digest of the whole file, after everything was read.
    digits: Option<String>,
    /// Only the head is sent.
    is_refusal: bool,
}

impl Offer {
    /// Opens a file, which must not grow during the transfer.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let refused =
            |what: &str| Failure::Request(format!("--resume: found {what}, accepted: a regular file"));
        let file = File::open(path)
            .map_err(|error| Failure::Request(format!("cannot read {}: {error}", path.display())))?;
        let metadata = file.metadata().map_err(|error| refused(&error.to_string()))?;
        if !metadata.is_file() {
            return Err(refused(&path.display().to_string()));
        }
        let (hash, path, total) = (Sha256::new(), path.to_owned(), metadata.len());
        Ok(Self { file, path, total, hash, read: 0, theirs: None, refusal: None })
    }

    /// True after the receiver's first line; then a long part may have to be hashed.
    pub fn is_busy(&self) -> bool {
        self.theirs.is_some()
    }

    /// Continues with all that the receiver has sent so far. Returns the rest of the file after the receiver's part
    /// was verified.
    pub fn step(&mut self, said: &[u8]) -> Result<Option<Rest>, Failure> {
        if self.theirs.is_none() {
            let Some(end) = said.iter().position(|byte| *byte == b'\n') else {
                return if said.len() > LONGEST { Err(strange(said)) } else { Ok(None) };
            };
            let line = &said[..end];
            let text = std::str::from_utf8(line).ok().and_then(|text| text.strip_prefix(WORD));
            let mut words = text.ok_or_else(|| strange(line))?.split_whitespace();
            let bytes = words.next().and_then(|word| word.parse().ok()).ok_or_else(|| strange(line))?;
            self.theirs = Some((bytes, words.next().unwrap_or_default().to_owned()));
        }
        let Some((bytes, digits)) = self.theirs.clone() else { return Ok(None) };
        if bytes > self.total {
            return self.refuse(bytes).map(Some);
        }
        let unreadable =
            |error: io::Error| Failure::Work(format!("cannot read {}: {error}", self.path.display()));
        let mut piece = vec![0; PIECE.min((bytes - self.read) as usize)];
        self.file.read_exact(&mut piece).map_err(unreadable)?;
        self.hash.update(&piece);
        self.read += piece.len() as u64;
        if self.read < bytes {
            return Ok(None);
        }
        if hex(&self.hash.clone().finalize()) != digits {
            return self.refuse(bytes).map(Some);
        }
        Ok(Some(Rest {
            head: format!("{WORD} {}\n", self.total).into_bytes(),
            file: self.file.try_clone().map_err(unreadable)?,
            left: self.total - bytes,
            hash: self.hash.clone(),
            digits: None,
            is_refusal: false,
        }))
    }

    /// Returns why nothing of the file is sent.
    pub fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }

    /// Makes the answer that refuses the receiver's part of `bytes` bytes.
    fn refuse(&mut self, bytes: u64) -> Result<Rest, Failure> {
        self.refusal = Some(format!(
            "the receiver has {bytes} bytes that are not the beginning of {}; nothing was sent. There, remove the file that ends in .part",
            self.path.display()
        ));
        let unreadable =
            |error: io::Error| Failure::Work(format!("cannot read {}: {error}", self.path.display()));
        Ok(Rest {
            head: format!("{WORD} {OTHER}\n").into_bytes(),
            file: self.file.try_clone().map_err(unreadable)?,
            left: 0,
            hash: Sha256::new(),
            digits: None,
            is_refusal: true,
        })
    }

    /// Returns the result from all that the receiver has sent.
    pub fn verdict(said: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(said);
        match text.lines().nth(1).and_then(|line| line.strip_prefix(WORD)).map(str::trim) {
            Some(SAME) => None,
            Some(DIFFERENT) => Some("the received data has another SHA-256 than the sent data".to_owned()),
            _ => Some("the receiver did not confirm the whole file".to_owned()),
        }
    }
}

impl Rest {
    /// Returns the number of bytes of the file not yet read.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns the SHA-256 of the whole file in hexadecimal digits, after everything was read.
    pub fn digits(&self) -> Option<String> {
        self.digits.clone()
    }

    /// Returns the next piece of at most `most` bytes; empty at the end.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.head.is_empty() && self.left == 0 {
            if self.digits.is_some() || self.is_refusal {
                return Ok(0);
            }
            let digits = hex(&self.hash.clone().finalize());
            self.head = format!("{digits}\n").into_bytes();
            self.digits = Some(digits);
        }
        if !self.head.is_empty() {
            let len = self.head.len().min(into.len());
            into[..len].copy_from_slice(&self.head[..len]);
            self.head.drain(..len);
            return Ok(len);
        }
        let most = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let len = self.file.read(&mut into[..most])?;
        if len == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the file became shorter"));
        }
        self.hash.update(&into[..len]);
        self.left -= len as u64;
        Ok(len)
    }
}

/// State of the receiver. The file has the suffix `.part` until it is complete and verified.
pub struct Partial {
    file: File,
    part: PathBuf,
    path: PathBuf,
    hash: Sha256,
    have: u64,
    total: Option<u64>,
    /// Incomplete line.
    line: Vec<u8>,
    same: Option<bool>,
    /// The sender said that the part is not the beginning of its file.
    is_foreign: bool,
}

impl Partial {
    /// Continues the part of an earlier transfer, or starts a new one.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(Failure::Request(format!(
                "{}: exists, so it was not overwritten; accepted: a path without a file",
                path.display()
            )));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let unwritable = |error: io::Error| Failure::unwritable(&part, &error);
        let mut file =
            File::options().read(true).append(true).create(true).open(&part).map_err(unwritable)?;
        if !file.metadata().map_err(unwritable)?.is_file() {
            return Err(Failure::Request(format!("{}: accepted: a file, or nothing", part.display())));
        }
        let mut hash = Sha256::new();
        file.rewind().map_err(unwritable)?;
        let mut piece = vec![0; PIECE];
        let mut have = 0;
        loop {
            match file.read(&mut piece).map_err(unwritable)? {
                0 => break,
                len => {
                    hash.update(&piece[..len]);
                    have += len as u64;
                }
            }
        }
        let (path, total, line, same) = (path.to_owned(), None, Vec::new(), None);
        Ok(Self { file, part, path, hash, have, total, line, same, is_foreign: false })
    }

    /// Returns the first line.
    pub fn greeting(&self) -> String {
        format!("{WORD} {} {}\n", self.have, self.digits())
    }

    /// Returns the path of the part.
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Returns the SHA-256 of the part in hexadecimal digits.
    pub fn digits(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// Returns the number of bytes of the part, and the total if known.
    pub fn progress(&self) -> (u64, Option<u64>) {
        (self.have, self.total)
    }

    /// Stores received data.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let Some(total) = self.total else {
                let (byte, rest) = (bytes[0], &bytes[1..]);
                bytes = rest;
                if byte == b'\n' {
                    self.total = Some(self.announced()?);
                    self.line.clear();
                } else if self.line.len() < LONGEST {
                    self.line.push(byte);
                } else {
                    return Err(strange(&self.line));
                }
                continue;
            };
            let len = bytes.len().min(usize::try_from(total - self.have).unwrap_or(usize::MAX));
            let (body, rest) = bytes.split_at(len);
            let written = self.file.write_all(body);
            written
                .map_err(|error| Failure::Work(format!("cannot write {}: {error}", self.part.display())))?;
            self.hash.update(body);
            self.have += len as u64;
            bytes = rest;
            if self.have == total && !bytes.is_empty() {
                self.line.extend(bytes);
                if self.line.len() > DIGITS + 1 {
                    return Err(strange(&self.line));
                }
                if self.line.len() == DIGITS + 1 {
                    self.same = Some(self.line[..DIGITS] == *self.digits().as_bytes());
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// True if the sender said that the part is not the beginning of its file: the same command would fail again.
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    fn announced(&mut self) -> Result<u64, Failure> {
        let text = std::str::from_utf8(&self.line).ok().and_then(|text| text.strip_prefix(WORD));
        if text.is_some_and(|text| text.trim() == OTHER) {
            self.is_foreign = true;
            return Err(Failure::Work(format!(
                "{} holds {} bytes that are not the beginning of the sender's file; remove it, and the same command receives the whole file",
                self.part.display(),
                self.have
            )));
        }
        let total = text.and_then(|text| text.trim().parse().ok()).ok_or_else(|| strange(&self.line))?;
        if total < self.have { Err(strange(&self.line)) } else { Ok(total) }
    }

    /// Returns the last line, if everything has arrived.
    pub fn last_word(&self) -> Option<String> {
        self.same.map(|same| format!("{WORD} {}\n", if same { SAME } else { DIFFERENT }))
    }

    /// Gives the complete file its name.
    pub fn finish(self) -> Result<(), Failure> {
        let failed =
            |error: io::Error| Failure::Work(format!("cannot write {}: {error}", self.path.display()));
        match self.same {
            Some(true) => {
                self.file.sync_all().map_err(failed)?;
                // A hard link never replaces an existing file.
                fs::hard_link(&self.part, &self.path).map_err(failed)?;
                fs::remove_file(&self.part).map_err(failed)
            }
            Some(false) => {
                fs::remove_file(&self.part).map_err(failed)?;
                Err(Failure::Work(
                    "the received data has another SHA-256 than the sent data; it is not kept".into(),
                ))
            }
            None => Err(Failure::Work("the stream ended before the file was complete".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &[u8] = b"the quick brown fox jumps over the lazy dog";

    /// Returns the data that `offer` sends to a receiver with this first line.
    fn sent(offer: &mut Offer, greeting: &str) -> Result<Vec<u8>, Failure> {
        assert!(offer.step(&greeting.as_bytes()[..5]).unwrap().is_none(), "half a line says nothing");
        let mut rest = offer.step(greeting.as_bytes())?.expect("a small file is read at once");
        let (mut all, mut piece) = (Vec::new(), [0; 7]);
        loop {
            match rest.read(&mut piece).unwrap() {
                0 => return Ok(all),
                len => all.extend(&piece[..len]),
            }
        }
    }

    fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (data, got) = (folder.path().join("data"), folder.path().join("got"));
        fs::write(&data, DATA).unwrap();
        (folder, data, got)
    }

    #[test]
    fn a_transfer_goes_on_where_it_broke_off() {
        let (_folder, data, got) = folder();
        let mut partial = Partial::open(&got).unwrap();
        assert_eq!(partial.greeting(), format!("bentpipe-resume 1 0 {}\n", hex(&Sha256::digest(b""))));
        let all = sent(&mut Offer::of(&data).unwrap(), &partial.greeting()).unwrap();
        partial.take(&all[..30]).unwrap();
        assert!(partial.finish().is_err() && !got.exists());

        let mut partial = Partial::open(&got).unwrap();
        let (have, _) = partial.progress();
        assert_eq!(have, 30 - "bentpipe-resume 1 43\n".len() as u64);
        let all = sent(&mut Offer::of(&data).unwrap(), &partial.greeting()).unwrap();
        assert_eq!(all.len(), 21 + DATA.len() - have as usize + 65, "only the rest");
        all.chunks(11).for_each(|piece| partial.take(piece).unwrap());
        assert_eq!(partial.last_word().unwrap(), "bentpipe-resume 1 same\n");
        let said = partial.greeting() + &partial.last_word().unwrap();
        assert_eq!(Offer::verdict(said.as_bytes()), None);
        partial.finish().unwrap();
        assert_eq!(fs::read(&got).unwrap(), DATA);
        assert!(Partial::open(&got).is_err(), "nothing is overwritten");
    }

    #[test]
    fn what_is_not_the_beginning_of_the_file_is_not_continued() {
        let (_folder, data, got) = folder();
        for other in [&b"another beginning"[..], &[b'x'; 100]] {
            fs::write(got.with_file_name("got.part"), other).unwrap();
            let mut partial = Partial::open(&got).unwrap();
            let mut offer = Offer::of(&data).unwrap();
            let all = sent(&mut offer, &partial.greeting()).unwrap();
            let why = offer.refusal().unwrap();
            assert!(why.contains("not the beginning"), "{why}");
            let why = partial.take(&all).unwrap_err().to_string();
            assert!(
                partial.is_foreign() && why.contains("got.part holds") && why.contains("remove it"),
                "{why}"
            );
        }
    }

    #[test]
    fn what_was_changed_on_the_way_is_noticed_and_not_kept() {
        let (_folder, data, got) = folder();
        let mut partial = Partial::open(&got).unwrap();
        let greeting = partial.greeting();
        let mut all = sent(&mut Offer::of(&data).unwrap(), &greeting).unwrap();
        all[40] ^= 1;
        partial.take(&all).unwrap();
        let said = greeting + &partial.last_word().unwrap();
        assert!(Offer::verdict(said.as_bytes()).unwrap().contains("SHA-256"));
        assert!(partial.finish().is_err());
        assert!(!got.exists() && !got.with_file_name("got.part").exists());
    }

    #[test]
    fn strange_words_are_refused() {
        let (_folder, data, got) = folder();
        for said in
            ["HTTP/1.1 200 OK\n", "bentpipe-resume 2 0 00\n", "bentpipe-resume 1 x\n", &"x".repeat(200)]
        {
            assert!(Offer::of(&data).unwrap().step(said.as_bytes()).is_err(), "{said}");
            assert!(Partial::open(&got).unwrap().take(said.as_bytes()).is_err(), "{said}");
        }
        let mut partial = Partial::open(&got).unwrap();
        assert!(partial.take(format!("bentpipe-resume 1 1\na{}", "0".repeat(66)).as_bytes()).is_err());
    }
}
