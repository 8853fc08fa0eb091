//! Studies: experiments, figures and claims of a paper as data, and their comparison with simulations.
//!
//! A [`Study`] is a TOML file. [`conduct`] runs its simulations, draws its figures and judges its claims. Reading order: `file`
//! (content of a study), `check` (language of claims), `measure` (quantities of a run), `study` (resolved study), `grid` and
//! `plan` (required runs), then `results`, `verdict`, `joint`, `criteria`, `conduct`. `draw`, `words`, `page` and `markdown`
//! present the outcome.

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
#[cfg(test)]
mod provenance;
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
