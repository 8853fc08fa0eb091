//! Output files, which are complete or absent, and standard output.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bentpipe_lab::table::Look;
use bentpipe_lab::{lacking, quoted};
use bentpipe_scenario::Scenario;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// Kind of an output file. An existing file is only replaced if it is of the same kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "full"), allow(dead_code))]
pub enum Kind {
    /// A report, HTML.
    Report,
    /// The runs of a comparison, CSV.
    Runs,
    /// Results or events, Parquet.
    #[cfg(feature = "parquet")]
    Table,
    /// Pages or paths of a run, CSV.
    Lines,
    /// Meanings of such a file's columns, CSV.
    Columns,
    /// Packets, pcapng.
    Packets,
    /// Events, one JSON document per line.
    Events,
    /// Events of a QUIC connection, qlog.
    Qlog,
    /// Final state of an emulation, JSON.
    Summary,
    /// Capacities of paths, JSON.
    Capacities,
    /// Verdicts of studies, JSON.
    Claims,
    /// Page of a study, Markdown.
    Page,
    /// Scenario of a recorded path, TOML.
    Recording,
    /// A picture, SVG.
    Svg,
    /// A picture, PNG.
    Png,
    /// Received data: any bytes.
    Data,
}

/// Comment in the header of compressed traces.
const PACKED: &str = "trace of Bentpipe";

/// Number of bytes at either end of a file that show its kind.
const HEAD_BYTES: u64 = 4096;
const TAIL_BYTES: u64 = 1 << 20;

impl Kind {
    /// True if `head` and `tail` belong to a file of this kind, so that it is safe to overwrite.
    fn holds(self, head: &[u8]) -> bool {
        let text = String::from_utf8_lossy(head);
        let document = |field: &str| text.starts_with('{') && text.contains(field);
        match self {
            Self::Report => text.starts_with("<!doctype html>") && text.contains("Bentpipe</title>"),
            Self::Runs => text.starts_with("scenario,cc,seed,"),
            #[cfg(feature = "parquet")]
            Self::Table => {
                let mark = bentpipe_table::MARK;
                head.starts_with(b"PAR1") && head.windows(mark.len()).any(|bytes| bytes == mark)
            }
            Self::Lines => {
                text.starts_with("scenario,seed,flow,completed_at_s")
                    || text.starts_with("scenario,path,at_s")
            }
            Self::Columns => text.starts_with("column,unit,meaning"),
            Self::Packets => head.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]),
            Self::Events => {
                let is_packed = head.starts_with(&[0x1f, 0x8b]) && text.contains(PACKED);
                text.starts_with("{\"t_s\":") || is_packed
            }
            Self::Qlog => {
                let is_packed = head.starts_with(&[0x1f, 0x8b]) && text.contains(PACKED);
                text.starts_with("\u{1e}{") && text.contains("qlog") || is_packed
            }
            Self::Summary => document("\"at_s\":"),
            Self::Capacities => document("\"capacities\":"),
            Self::Claims => document("\"verdict\":"),
            Self::Page => text.starts_with("# ") && text.contains("Written by `bentpipe paper "),
            Self::Recording => text.starts_with("title = ") && text.contains(", recorded\""),
            Self::Svg => text.starts_with("<svg"),
            Self::Png => head.starts_with(b"\x89PNG"),
            Self::Data => false,
        }
    }

    /// Returns the kind in words.
    const fn name(self) -> &'static str {
        match self {
            Self::Report => "report of Bentpipe",
            Self::Runs | Self::Lines => "CSV file of Bentpipe",
            #[cfg(feature = "parquet")]
            Self::Table => "Parquet file of Bentpipe",
            Self::Columns => "list of columns of Bentpipe",
            Self::Packets => "capture (pcapng)",
            Self::Events => "trace of Bentpipe",
            Self::Qlog => "qlog",
            Self::Summary => "summary of Bentpipe",
            Self::Capacities => "list of capacities of Bentpipe",
            Self::Claims => "list of claims of Bentpipe",
            Self::Page => "page of a study",
            Self::Recording => "recorded path",
            Self::Svg | Self::Png => "picture",
            Self::Data => "empty file",
        }
    }

    /// Refuses an existing file of another kind, which may be somebody's work.
    fn refuse_other(self, path: &Path) -> Result<(), Failure> {
        let mut head = Vec::new();
        let unreadable = |error: io::Error| Failure::Request(format!("{}: {error}", path.display()));
        let mut read = || {
            let mut file = File::open(path)?;
            (&file).take(HEAD_BYTES).read_to_end(&mut head)?;
            // The kind of a Parquet file is at its end.
            file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(TAIL_BYTES).max(HEAD_BYTES)))?;
            file.take(TAIL_BYTES).read_to_end(&mut head)
        };
        read().map_err(unreadable)?;
        if head.is_empty() || self.holds(&head) {
            return Ok(());
        }
        Err(Failure::Request(format!(
            "{}: exists and is no {}, so it was not overwritten; accepted: a path without a file",
            path.display(),
            self.name()
        )))
    }
}

/// A file during writing. It has its name only after [`Target::finish`]; until then an existing file remains.
#[derive(Debug)]
pub enum Target {
    /// A new file in the same folder, which replaces the path at the end.
    Beside(NamedTempFile, PathBuf),
    /// A device or pipe, written directly.
    Direct(File, PathBuf),
}

/// A file whose errors name its path.
#[derive(Debug)]
pub struct Named {
    file: File,
    path: PathBuf,
}

/// Writer of a target.
pub type Writer = BufWriter<Named>;

impl Named {
    fn name(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

impl Write for Named {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| self.name(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.name(&error))
    }
}

/// Compressed writer.
struct Packed(GzEncoder<Writer>);

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    /// Completes the compressed file. Writers of events flush once, at the end.
    fn flush(&mut self) -> io::Result<()> {
        self.0.try_finish()?;
        self.0.get_mut().flush()
    }
}

impl Target {
    /// Opens a file, so that an unwritable path or a file of another kind is refused before the work.
    pub fn open(path: &Path, kind: Kind) -> Result<Self, Failure> {
        // A symbolic link remains; its target is replaced.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&real).is_ok_and(|found| found.is_file()) {
            kind.refuse_other(path)?;
        }
        Self::try_open(real).map_err(|error| Failure::unwritable(path, &error))
    }

    fn try_open(path: PathBuf) -> io::Result<Self> {
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

    /// Returns the file itself, for writers that need one instead of [`Self::writer`].
    pub fn file(&self) -> Result<File, Failure> {
        let (Self::Beside(_, path) | Self::Direct(_, path)) = self;
        let file = match self {
            Self::Beside(file, _) => file.as_file(),
            Self::Direct(file, _) => file,
        };
        file.try_clone().map_err(|error| Failure::unwritable(path, &error))
    }

    /// Returns the writer.
    pub fn writer(&self) -> Result<Writer, Failure> {
        let named = Named { file: self.file()?, path: self.path().to_owned() };
        Ok(BufWriter::with_capacity(1 << 18, named))
    }

    /// Returns the writer of events, compressed if the name ends in `.gz`. Flushing completes the file.
    pub fn events(&self) -> Result<Box<dyn Write + Send>, Failure> {
        let writer = self.writer()?;
        if self.path().extension().is_some_and(|ending| ending == "gz") {
            let header = GzBuilder::new().comment(PACKED);
            return Ok(Box::new(Packed(header.write(writer, Compression::default()))));
        }
        Ok(Box::new(writer))
    }

    /// Gives the complete file its name.
    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Beside(file, path) => match file.persist(&path) {
                Ok(_) => Ok(()),
                Err(error) => Err(Failure::Work(format!("cannot write {}: {}", path.display(), error.error))),
            },
            Self::Direct(..) => Ok(()),
        }
    }

    /// Writes `bytes` and gives the complete file its name.
    pub fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut writer = self.writer()?;
        let written = writer.write_all(bytes).and_then(|()| writer.flush());
        written.map_err(|error| Failure::Work(format!("cannot write {error}")))?;
        drop(writer);
        self.finish()
    }

    /// Returns the final path.
    pub fn path(&self) -> &Path {
        match self {
            Self::Beside(_, path) | Self::Direct(_, path) => path,
        }
    }
}

/// Opens the path if there is one.
pub fn open(path: Option<&PathBuf>, kind: Kind) -> Result<Option<Target>, Failure> {
    path.map(|path| Target::open(path, kind)).transpose()
}

/// Refuses two outputs to one file, by whatever names.
pub fn refuse_twice(paths: &[Option<&PathBuf>]) -> Result<(), Failure> {
    let given: Vec<&PathBuf> = paths.iter().copied().flatten().collect();
    let real: Vec<PathBuf> = given.iter().map(|path| resolved(path)).collect();
    let twice = real.iter().enumerate().find(|(index, path)| real[..*index].contains(path));
    twice.map_or(Ok(()), |(index, _)| {
        Err(Failure::Request(format!("two outputs are to be written to {}", given[index].display())))
    })
}

/// Returns the path without symbolic links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::canonicalize(path)
        .ok()
        .or_else(|| Some(fs::canonicalize(parent).ok()?.join(path.file_name()?)))
        .unwrap_or_else(|| path.to_owned())
}

/// Writes text to standard output. A closed pipe is not a failure.
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

/// Returns the style of tables on standard output.
pub fn look() -> Look {
    let terminal = io::stdout().is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let width =
        terminal.then(|| console::Term::stdout().size_checked()).flatten().map(|(_, columns)| columns);
    Look { width, colour: terminal && !plain }
}

/// Warns on standard error about satellites that are left out, and about algorithms whose required support is missing from the
/// scenarios, once each.
pub fn note_lacking<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) {
    let mut said = Vec::new();
    let notes = |scenario: &Scenario| [scenario.notes_on_satellites(), lacking(scenario)].concat();
    for sentence in scenarios.into_iter().flat_map(notes) {
        if !said.contains(&sentence) {
            eprintln!("bentpipe: {sentence}");
            said.push(sentence);
        }
    }
}

/// Returns the command line as typed, for reports.
pub fn typed() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    std::iter::once("bentpipe".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.csv");
        let old = "scenario,cc,seed,goodput_bps";
        fs::write(&path, old).unwrap();
        let target = Target::open(&path, Kind::Runs).unwrap();
        target.writer().unwrap().write_all(b"half").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), old);
        drop(target);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
        Target::open(&path, Kind::Runs).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_compressed_trace_holds_its_lines_and_may_be_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl.gz");
        for _ in 0..2 {
            let target = Target::open(&path, Kind::Events).unwrap();
            let mut events = target.events().unwrap();
            (0..1000).for_each(|_| events.write_all(b"{\"t_s\":1.0}\n").unwrap());
            events.flush().unwrap();
            drop(events);
            target.finish().unwrap();
            let bytes = fs::read(&path).unwrap();
            assert!(bytes.len() < 1000, "{}", bytes.len());
            let mut text = String::new();
            flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
            assert_eq!(text.lines().count(), 1000);
        }
        fs::write(&path, [0x1f, 0x8b, 8, 0, 0]).unwrap();
        assert!(Target::open(&path, Kind::Events).is_err(), "somebody else's");
    }

    #[test]
    fn devices_are_written_as_they_are() {
        Target::open(Path::new("/dev/null"), Kind::Report).unwrap().write(b"x").unwrap();
        assert!(Target::open(Path::new("/"), Kind::Data).is_err());
        assert!(Target::open(Path::new("/no/such/directory/file"), Kind::Data).is_err());
    }

    #[test]
    fn what_holds_something_else_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("my.toml");
        let all = [
            (Kind::Report, "<!doctype html>\n<title>x – Bentpipe</title>"),
            (Kind::Runs, "scenario,cc,seed,goodput_bps\n"),
            (Kind::Lines, "scenario,seed,flow,completed_at_s,load_s\n"),
            #[cfg(feature = "parquet")]
            (Kind::Table, "PAR1 bentpipe.kind PAR1"),
            (Kind::Packets, "\n\r\r\n"),
            (Kind::Events, "{\"t_s\":0.0}\n"),
            (Kind::Summary, "{\n  \"at_s\": 1.0}"),
            (Kind::Claims, "{\"peach\": [{\"verdict\": \"HOLDS\"}]}"),
            (Kind::Page, "# Mine\n\nNobody.\n\nWritten by `bentpipe paper mine --report DIR`."),
            (Kind::Recording, "title = \"The path to x, recorded\""),
            (Kind::Svg, "<svg xmlns"),
        ];
        for (kind, own) in all {
            for (_, other) in
                all.iter().filter(|(other, _)| *other != kind).chain([&(kind, "title = \"mine\"")])
            {
                fs::write(&path, other).unwrap();
                let Err(Failure::Request(why)) = Target::open(&path, kind) else {
                    panic!("{kind:?} over {other}")
                };
                assert!(why.contains("my.toml") && why.contains(kind.name()), "{why}");
                assert_eq!(fs::read_to_string(&path).unwrap(), *other);
            }
            fs::write(&path, own).unwrap();
            assert!(Target::open(&path, kind).is_ok(), "{kind:?}");
        }
        fs::write(&path, "").unwrap();
        assert!(Target::open(&path, Kind::Data).is_ok());
        fs::write(&path, "x").unwrap();
        assert!(Target::open(&path, Kind::Data).is_err());
    }

    #[test]
    fn two_outputs_are_told_apart_by_where_they_lead() {
        let directory = tempfile::tempdir().unwrap();
        let detour = directory.path().join(".").join("out");
        let [plain, other] = ["out", "other"].map(|name| directory.path().join(name));
        assert!(refuse_twice(&[Some(&plain), None, Some(&detour)]).is_err());
        assert!(refuse_twice(&[Some(&plain), Some(&other)]).is_ok());
    }

    #[test]
    fn a_full_disk_names_the_file() {
        let why = match Target::open(Path::new("/dev/full"), Kind::Events).unwrap().write(b"x") {
            Err(Failure::Work(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(why.starts_with("cannot write /dev/full: "), "{why}");
    }
}
