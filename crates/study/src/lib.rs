//! Studies: experiments, figures and claims of a paper as data, and what simulations say of them.
//!
//! A [`Study`] is a TOML file. [`conduct`] runs what it needs, draws its figures and judges its claims. Reading order: `file` (what a study
//! says), `check` (the language of claims), `measure` (what is kept of a run), `study` (what all of this means), `grid` and `plan` (which runs),
//! `results`, `verdict`, `joint`, `criteria`, `conduct`; `draw`, `words`, `page` and `markdown` show the outcome.

mod builtin;
mod chart;
mod check;
mod conduct;
mod criteria;
pub mod draw;
#[cfg(test)]
mod example;
mod experiment;
mod file;
mod grid;
mod joint;
mod known;
mod markdown;
mod measure;
mod mistakes;
mod outcome;
mod page;
mod plan;
mod results;
mod study;
mod units;
mod verdict;
mod words;

pub use builtin::{load, names};
pub use chart::{Chart, ChartLine};
pub use conduct::{Unfinished, conduct};

pub use bentpipe_table::Store;
pub use grid::Form;
pub use markdown::render as render_markdown;
pub use mistakes::StudyError;
pub use outcome::{
    Choices, ClaimOutcome, FigureOutcome, OpenOutcome, ParameterOutcome, StatedOutcome, StudyOutcome,
};
pub use page::render;
pub use plan::Wish;
pub use study::Study;
pub use verdict::Verdict;
