//! Generator of random inputs from a seed: random bytes for the stack, and mutations of known inputs for the
//! parsers.

use std::path::{Path, PathBuf};
use std::{fs, io};

use bentpipe_base::Rng;

use crate::Target;

/// Returns the content of the files below `folder` with the extension `ending`, in order.
fn files(folder: &Path, ending: &str) -> io::Result<Vec<Vec<u8>>> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    paths.sort();
    let fits = |path: &&PathBuf| path.to_string_lossy().ends_with(ending) && path.is_file();
    paths.iter().filter(fits).map(fs::read).collect()
}

/// Returns the packets of a capture (pcapng, little-endian).
fn captured(file: &[u8]) -> Vec<Vec<u8>> {
    const ENHANCED_PACKET: usize = 6;
    let word = |at: usize| {
        file.get(at..at + 4)
            .map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize)
    };
    let (mut at, mut packets) = (0, Vec::new());
    while at < file.len() && word(at + 4) >= 12 {
        if word(at) == ENHANCED_PACKET {
            packets.extend(file.get(at + 28..at + 28 + word(at + 20)).map(<[u8]>::to_vec));
        }
        at += word(at + 4);
    }
    packets
}

/// Returns the known inputs of a target in the repository: files written by people, and inputs found by
/// fuzzing.
fn known(target: Target, root: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut known = match target {
        Target::Wire => captured(&fs::read(root.join("crates/wire/tests/corpus/linux.pcapng"))?),
        Target::Scenario => files(&root.join("scenarios"), ".toml")?,
        Target::Study => files(&root.join("papers"), ".toml")?,
        Target::Setting => Vec::new(),
        Target::Script => files(&root.join("crates/script/statements/rfc9293"), ".pkt")?,
        Target::Stack => Vec::new(),
    };
    known.extend(files(&root.join("crates/fuzz/corpus").join(target.name()), "")?);
    Ok(known)
}

/// Generator of a sequence of inputs.
pub struct Generator {
    target: Target,
    rng: Rng,
    /// Known inputs (the corpus).
    known: Vec<Vec<u8>>,
    input: Vec<u8>,
}

/// Maximum length of a random input, in bytes.
const LONGEST: u64 = 2048;

/// Byte values with a special meaning in many formats.
const TELLING: &[u8] =
    &[0, 1, 4, 5, 6, 8, 0x45, 0x60, 0x7f, 0x80, 0xff, b'"', b'[', b'=', b'\n', b'.', b'-', b'9'];

impl Generator {
    /// Makes a generator for `target` from `seed`, with the known inputs in the repository at `root`.
    ///
    /// # Errors
    /// If these inputs cannot be read.
    pub fn new(target: Target, root: &Path, seed: u64) -> io::Result<Self> {
        let known = known(target, root)?;
        Ok(Self { target, rng: Rng::stream(seed, target.name()), known, input: Vec::new() })
    }

    /// Returns the known inputs.
    pub fn known(&self) -> &[Vec<u8>] {
        &self.known
    }

    /// Returns the next input.
    pub fn next_input(&mut self) -> &[u8] {
        // Random bytes are valid input for the stack. The parsers would reject most of them at once.
        let invents =
            self.known.is_empty() || self.rng.below(16) < if self.target == Target::Stack { 15 } else { 1 };
        if invents {
            self.invent();
        } else {
            let at = self.rng.below(self.known.len() as u64) as usize;
            self.input.clear();
            self.input.extend_from_slice(&self.known[at]);
            for _ in 0..1 + self.rng.below(4) {
                self.change();
            }
        }
        &self.input
    }

    fn invent(&mut self) {
        self.input.clear();
        for _ in 0..1 + self.rng.below(LONGEST / 8) {
            self.input.extend_from_slice(&self.rng.bits().to_le_bytes());
        }
    }

    fn change(&mut self) {
        let len = self.input.len() as u64;
        if len == 0 {
            return self.invent();
        }
        let at = self.rng.below(len) as usize;
        match self.rng.below(8) {
            0 => self.input[at] ^= 1 << self.rng.below(8),
            1 => self.input[at] = self.rng.bits() as u8,
            2 => self.input[at] = self.input[at].wrapping_add(1),
            3 => self.input[at] = TELLING[self.rng.below(TELLING.len() as u64) as usize],
            4 => self.input.truncate(at),
            5 => self.input.insert(at, TELLING[self.rng.below(TELLING.len() as u64) as usize]),
            6 => {
                let end = (at + 1 + self.rng.below(16) as usize).min(self.input.len());
                self.input.drain(at..end);
            }
            _ => {
                // A piece of another input.
                let other = &self.known[self.rng.below(self.known.len() as u64) as usize];
                let from = self.rng.below(other.len() as u64 + 1) as usize;
                let to = (from + 1 + self.rng.below(64) as usize).min(other.len());
                let piece = other[from.min(to)..to].to_vec();
                self.input.splice(at..at, piece);
                self.input.truncate(1 << 16);
            }
        }
    }
}
