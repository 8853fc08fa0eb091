//! Selection of the events and sources that a trace keeps.

use bentpipe_base::Instant;
use bentpipe_outcome::{LinkEvent, Observer, Passing};
use bentpipe_scenario::did_you_mean;
use bentpipe_trace::Event;

use crate::watch::Names;

/// Events by their names, and sources by theirs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// All if empty.
    events: Vec<&'static str>,
    /// True for each selected source, by its number; all if empty.
    sources: Vec<bool>,
}

impl Filter {
    /// Each word is the name of an event or of a source, or the beginning of such names: `flow.bulk` selects `flow.bulk.0.sender` and
    /// similar ones. Without a word for an event, all events are kept; the same holds for sources.
    ///
    /// # Errors
    ///
    /// Found and accepted values.
    pub fn of(words: &[String], names: &Names) -> Result<Self, String> {
        let sources: Vec<String> = (0..names.sources()).map(|source| names.source(source)).collect();
        let mut filter = Self::default();
        for word in words.iter().map(|word| word.trim()) {
            if let Some(event) = Event::NAMES.iter().find(|event| **event == word) {
                filter.events.push(event);
                continue;
            }
            let is_meant = |source: &String| {
                source.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            if !sources.iter().any(is_meant) {
                return Err(unknown(word, &sources));
            }
            filter.sources.resize(sources.len(), false);
            for (wanted, source) in filter.sources.iter_mut().zip(&sources) {
                *wanted |= is_meant(source);
            }
        }
        Ok(filter)
    }

    fn keeps(&self, source: u32, event: &'static str) -> bool {
        (self.events.is_empty() || self.events.contains(&event))
            && (self.sources.is_empty() || self.sources.get(source as usize).copied().unwrap_or(false))
    }
}

fn unknown(word: &str, sources: &[String]) -> String {
    let mut some: Vec<&str> = Event::NAMES.to_vec();
    some.extend(sources.iter().map(String::as_str));
    let hint = did_you_mean(word, &some).map_or(String::new(), |near| format!("; did you mean {near}?"));
    let shown = sources.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
    let more = if sources.len() > 12 { format!(" and {} more", sources.len() - 12) } else { String::new() };
    format!(
        "found {word:?}, accepted: events ({}) and sources ({shown}{more}){hint}",
        Event::NAMES.join(", ")
    )
}

/// An observer behind a filter.
pub struct Filtered<O> {
    inner: O,
    filter: Filter,
    first_link: u32,
}

impl<O> Filtered<O> {
    /// Creates an observer that passes the records that `filter` keeps to `inner`, in a world with these names.
    pub fn new(inner: O, filter: Filter, names: &Names) -> Self {
        Self { inner, filter, first_link: 2 * names.flows.len() as u32 }
    }

    /// Returns the observer.
    pub fn into_inner(self) -> O {
        self.inner
    }
}

impl<O: Observer> Observer for Filtered<O> {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        let name = match event {
            LinkEvent::Offered { .. } => "offered",
            LinkEvent::Dropped(_) => "dropped",
            LinkEvent::Delivered => return,
        };
        if self.filter.keeps(self.first_link + passing.link, name) {
            self.inner.on_link(at, event, passing);
        }
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        if self.filter.keeps(end, event.name()) {
            self.inner.on_end(at, end, event);
        }
    }

    fn on_fresh(&mut self, at: Instant, end: u32) {
        self.inner.on_fresh(at, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let links = ["satellite", "sat"]
            .into_iter()
            .flat_map(|l| [(l.to_owned(), "forward"), (l.to_owned(), "reverse")]);
        Names { flows: vec!["bulk.0".into(), "bulk.1".into()], links: links.collect(), carriers: Vec::new() }
    }

    /// Returns the kept ones of two events of each source.
    fn kept(words: &[&str]) -> Vec<(u32, &'static str)> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let filter = Filter::of(&words, &names()).unwrap();
        let all = (0..8).flat_map(|source| ["window", "dropped"].map(|event| (source, event)));
        all.filter(|(source, event)| filter.keeps(*source, event)).collect()
    }

    #[test]
    fn words_name_events_and_sources_or_their_beginnings() {
        assert_eq!(kept(&[]).len(), 16);
        assert_eq!(kept(&["window"]).len(), 8);
        assert_eq!(kept(&["link.sat"]), [(6, "window"), (6, "dropped"), (7, "window"), (7, "dropped")]);
        assert_eq!(kept(&["flow.bulk.1.sender", "window"]), [(2, "window")]);
        assert_eq!(kept(&["flow.bulk", "dropped", "link.satellite.forward"]).len(), 5);
    }

    #[test]
    fn a_word_that_names_nothing_is_refused() {
        let why = Filter::of(&["windw".into()], &names()).unwrap_err();
        assert!(why.starts_with("found \"windw\"") && why.ends_with("did you mean window?"), "{why}");
        assert!(Filter::of(&["flow.bul".into()], &names()).is_err());
    }
}
