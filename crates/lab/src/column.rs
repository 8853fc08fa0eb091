//! Numbers that some results have, as columns of tables.

use crate::number::short;

/// A number that some of the results of one kind have.
pub(crate) struct Column<T> {
    /// Heading, with the unit.
    pub title: &'static str,
    of: fn(&T) -> Option<f64>,
}

impl<T> Column<T> {
    /// `of` gives the number in the unit that the title names.
    pub const fn new(title: &'static str, of: fn(&T) -> Option<f64>) -> Self {
        Self { title, of }
    }

    /// The number as text: counts are whole.
    pub fn show(&self, result: &T) -> String {
        match (self.of)(result) {
            Some(value) if value.fract() == 0.0 => format!("{value}"),
            value => value.map_or("–".into(), short),
        }
    }
}

/// The columns that at least one of these results has.
pub(crate) fn present<T>(columns: &'static [Column<T>], results: &[T]) -> Vec<&'static Column<T>> {
    columns.iter().filter(|column| results.iter().any(|result| (column.of)(result).is_some())).collect()
}
