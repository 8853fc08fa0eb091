//! What is wrong with a scenario, for the person who wrote it.

use std::fmt;
use std::sync::Arc;

use crate::suggest::did_you_mean;

/// A scenario that cannot be used. Every case is a mistake in the request, never one of the program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Unreadable {
        /// Path as the user gave it.
        file: String,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// Neither a file nor a built-in scenario.
    #[error("{}", unknown("scenario", .name, .known))]
    UnknownScenario {
        /// What the user typed.
        name: String,
        /// Names of the built-in scenarios.
        known: Vec<String>,
    },
    /// No such congestion control.
    #[error("{}", unknown("algorithm", .name, .known))]
    UnknownAlgorithm {
        /// What the user typed.
        name: String,
        /// Names of the algorithms, or of the recoveries if that part is the unknown one.
        known: Vec<String>,
    },
    /// An algorithm of the program's own cannot have this name.
    #[error(
        "found a second algorithm \"{name}\", accepted: for each that the program brings a name that no other has, without `+`, all brought \
         at once"
    )]
    TakenAlgorithm {
        /// The name.
        name: String,
    },
    /// Mistakes in the file or in the arguments that change it, at least one, each on a line of its own.
    #[error("{}", Lines(.0))]
    Mistakes(Vec<Mistake>),
}

impl Error {
    /// The mistakes of a file; empty for the other errors.
    pub fn mistakes(&self) -> &[Mistake] {
        match self {
            Self::Mistakes(mistakes) => mistakes,
            _ => &[],
        }
    }
}

/// One mistake: where, at which key, what was found and what is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Where it was written.
    pub place: Place,
    /// Path of the key, such as `link.satellite.rate`; empty if the text is no TOML.
    pub key: String,
    /// What stands there.
    pub found: String,
    /// What may stand there.
    pub accepted: String,
    /// What was probably meant.
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

/// So many characters are shown of what was typed, and of what is accepted, which may be a list.
const SHOWN: usize = 300;
const SHOWN_ACCEPTED: usize = 4000;

/// The beginning of a long text.
fn shortened(text: &str, shown: usize) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(shown) {
        Some((end, _)) => format!("{} ... ({} bytes in all)", &text[..end], text.len()).into(),
        None => text.into(),
    }
}

/// Where something was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a file.
    File {
        /// Path of the file, or the name of the built-in scenario.
        file: Arc<str>,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// On the command line, such as `--set duration=60 s`.
    Argument(Arc<str>),
    /// Nowhere: computed from a typed scenario.
    Computed,
}

impl Place {
    /// True for the command line, which wins over the file.
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

/// Most mistakes that are reported at once.
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
