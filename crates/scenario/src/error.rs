//! Errors of a scenario, for its author.

use std::fmt;
use std::sync::Arc;

use crate::suggest::did_you_mean;

/// Error of a scenario. Every case is a mistake of the user, never of the program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Unreadable {
        /// Path as typed by the user.
        file: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The name is neither a file nor a built-in scenario.
    #[error("{}", unknown("scenario", .name, .known))]
    UnknownScenario {
        /// Name as typed by the user.
        name: String,
        /// Names of the built-in scenarios.
        known: Vec<String>,
    },
    /// There is no such congestion control.
    #[error("{}", unknown("algorithm", .name, .known))]
    UnknownAlgorithm {
        /// Name as typed by the user.
        name: String,
        /// Known algorithms, or known recoveries if that part is unknown.
        known: Vec<String>,
    },
    /// The name of the program's own algorithm is not allowed.
    #[error(
        "found a second algorithm \"{name}\", accepted: for each that the program brings a name that no other has, without `+`, all brought \
         at once"
    )]
    TakenAlgorithm {
        /// The name.
        name: String,
    },
    /// Mistakes in the file or in the arguments that change it: at least one, each on its own line.
    #[error("{}", Lines(.0))]
    Mistakes(Vec<Mistake>),
}

impl Error {
    /// Returns the mistakes of a file; empty for the other errors.
    pub fn mistakes(&self) -> &[Mistake] {
        match self {
            Self::Mistakes(mistakes) => mistakes,
            _ => &[],
        }
    }
}

/// A mistake, with its place and key, what was found and what is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Place of the mistake.
    pub place: Place,
    /// Path of the key, such as `link.satellite.rate`; empty if the text is not TOML.
    pub key: String,
    /// Value found there.
    pub found: String,
    /// Accepted values.
    pub accepted: String,
    /// Value that was probably meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", shortened(&self.key, SHOWN))?;
        }
        let accepted = shortened(&self.accepted, SHOWN_ACCEPTED);
        write!(f, "found {}, accepted: {accepted}", shortened(&self.found, SHOWN))?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; did you mean {suggestion}?"),
            None => Ok(()),
        }
    }
}

/// Maximum number of characters shown of the found value and of the accepted ones.
const SHOWN: usize = 300;
const SHOWN_ACCEPTED: usize = 4000;

/// Returns the beginning of a long text.
fn shortened(text: &str, shown: usize) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(shown) {
        Some((end, _)) => format!("{} ... ({} bytes in all)", &text[..end], text.len()).into(),
        None => text.into(),
    }
}

/// Place of a key or value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a file.
    File {
        /// Path of the file, or the name of the built-in scenario.
        file: Arc<str>,
        /// Line number from 1.
        line: usize,
        /// Column in characters from 1.
        column: usize,
    },
    /// On the command line, such as `--set duration=60 s`.
    Argument(Arc<str>),
    /// Computed from a typed scenario, without a source text.
    Computed,
}

impl Place {
    /// True for the command line, which overrides the file.
    pub(crate) fn is_argument(&self) -> bool {
        matches!(self, Self::Argument(_))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Argument(argument) => f.write_str(&shortened(argument, SHOWN)),
            Self::Computed => f.write_str("scenario"),
        }
    }
}

/// Maximum number of mistakes reported at once.
const LISTED: usize = 100;

struct Lines<'a>(&'a [Mistake]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.0.iter().take(LISTED).enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            write!(f, "{newline}{mistake}")?;
        }
        match self.0.len().checked_sub(LISTED) {
            Some(more) if more > 0 => write!(f, "\n... and {more} more mistakes"),
            _ => Ok(()),
        }
    }
}

fn unknown(what: &str, name: &str, known: &[String]) -> String {
    let shown = shortened(name, SHOWN);
    let message = format!("found {what} \"{shown}\", accepted: {}", known.join(", "));
    match did_you_mean(name, known) {
        Some(suggestion) => format!("{message}; did you mean \"{suggestion}\"?"),
        None => message,
    }
}
