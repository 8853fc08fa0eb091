//! Words: a choice from a list, free text, names.

use bentpipe_tcp::InitialWindow;

use super::{Codec, Refused, SEGMENTS};
use crate::suggest::did_you_mean;
use crate::tree::{Node, Value};

/// Codec of one word of a list, each with its value.
pub(crate) struct Words<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: PartialEq> Words<T> {
    /// Returns the word of a value; empty if there is none.
    pub fn word(&self, typed: &T) -> &'static str {
        self.0.iter().find(|(_, value)| value == typed).map_or("", |(word, _)| word)
    }
}

impl<T: Copy + PartialEq> Codec<T> for Words<T> {
    fn read(&self, value: &Value) -> Result<T, Refused> {
        let Value::Text(text) = value else { return Err(Refused::default()) };
        match self.0.iter().find(|(word, _)| word == text) {
            Some((_, typed)) => Ok(*typed),
            None => {
                let words: Vec<_> = self.0.iter().map(|(word, _)| *word).collect();
                Err(Refused::meant(did_you_mean(text, &words)))
            }
        }
    }

    fn show(&self, typed: &T) -> Value {
        Value::Text(self.word(typed).to_owned())
    }

    fn accepted(&self) -> String {
        let words: Vec<_> = self.0.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        words.join(", ")
    }
}

/// Codec of a choice from false, true and one more word.
pub(crate) struct FlagOrWord<T: 'static> {
    pub off: T,
    pub on: T,
    pub word: (&'static str, T),
}

impl<T: Copy + PartialEq> Codec<T> for FlagOrWord<T> {
    fn read(&self, value: &Value) -> Result<T, Refused> {
        match value {
            Value::Flag(flag) => Ok(if *flag { self.on } else { self.off }),
            Value::Text(text) if text == self.word.0 => Ok(self.word.1),
            Value::Text(text) => Err(Refused::meant(did_you_mean(text, &[self.word.0]))),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &T) -> Value {
        match typed {
            typed if *typed == self.word.1 => Value::Text(self.word.0.to_owned()),
            typed => Value::Flag(*typed == self.on),
        }
    }
    fn accepted(&self) -> String {
        format!("true, false or \"{}\"", self.word.0)
    }
}

/// Codec of `None` as a word, and of other values by the inner codec.
pub(crate) struct OrWord<C>(pub &'static str, pub C);

impl<T, C: Codec<T>> Codec<Option<T>> for OrWord<C> {
    fn read(&self, value: &Value) -> Result<Option<T>, Refused> {
        match value {
            Value::Text(text) if text == self.0 => Ok(None),
            _ => self.1.read(value).map(Some),
        }
    }
    fn show(&self, typed: &Option<T>) -> Value {
        match typed {
            None => Value::Text(self.0.to_owned()),
            Some(typed) => self.1.show(typed),
        }
    }
    fn accepted(&self) -> String {
        format!("\"{}\", or {}", self.0, self.1.accepted())
    }
}

/// Codec of free text.
pub(crate) struct Text;

/// Codec of free text.
pub(crate) const TEXT: Text = Text;

impl Codec<String> for Text {
    fn read(&self, value: &Value) -> Result<String, Refused> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &String) -> Value {
        Value::Text(typed.clone())
    }
    fn accepted(&self) -> String {
        "a text in quotes".to_owned()
    }
}

/// Codec of the names of two node groups.
pub(crate) struct Names;

impl Codec<(String, String)> for Names {
    fn read(&self, value: &Value) -> Result<(String, String), Refused> {
        let Value::List(items) = value else { return Err(Refused::default()) };
        match items.as_slice() {
            [from, to] => Ok((TEXT.read(&from.value)?, TEXT.read(&to.value)?)),
            _ => Err(Refused::default()),
        }
    }
    fn show(&self, typed: &(String, String)) -> Value {
        let name = |name: &String| Node::computed(TEXT.show(name));
        Value::List(vec![name(&typed.0), name(&typed.1)])
    }
    fn accepted(&self) -> String {
        "two names of node groups, near end first, such as [\"sender\", \"gateway\"]".to_owned()
    }
}

/// Codec of an initial window.
pub(crate) struct Initial;

impl Codec<InitialWindow> for Initial {
    fn read(&self, value: &Value) -> Result<InitialWindow, Refused> {
        match value {
            Value::Text(text) if text == "rfc3390" => Ok(InitialWindow::Rfc3390),
            Value::Text(text) if text == "rfc6928" => Ok(InitialWindow::Rfc6928),
            _ => SEGMENTS.read(value).map(InitialWindow::Segments),
        }
    }
    fn show(&self, typed: &InitialWindow) -> Value {
        match typed {
            InitialWindow::Segments(segments) => SEGMENTS.show(segments),
            InitialWindow::Rfc3390 => Value::Text("rfc3390".to_owned()),
            InitialWindow::Rfc6928 => Value::Text("rfc6928".to_owned()),
        }
    }
    fn accepted(&self) -> String {
        format!("\"rfc3390\", \"rfc6928\", or {}", Codec::<u32>::accepted(&SEGMENTS))
    }
}
