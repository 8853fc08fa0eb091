//! Studies: experiments, figures and claims of a paper as data, and what simulations say of them.
//!
//! A [`Study`] is a TOML file. [`conduct`] runs what it needs, draws its figures and judges its claims. Reading order: `file` (what a study
//! says), `check` (the language of claims), `grid` (which runs), `measure` (what is kept of a run), `results`, `verdict`, `conduct`; `draw`
//! and `page` show the outcome.

mod builtin;
mod chart;
mod check;
mod conduct;
pub mod draw;
#[cfg(test)]
mod example;
mod file;
mod grid;
mod measure;
mod outcome;
mod page;
mod results;
mod store;
mod verdict;

pub use builtin::{load, names};
pub use chart::{Chart, ChartLine};
pub use conduct::{Unfinished, Wish, conduct};
pub use file::{Study, StudyError};
pub use grid::Form;
pub use outcome::{ClaimOutcome, FigureOutcome, StudyOutcome};
pub use page::render;
pub use store::Store;
pub use verdict::Verdict;
