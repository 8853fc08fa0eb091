//! Results of an experiment's runs, point by point.

use std::collections::BTreeMap;

use crate::check::{Expr, Fold, Operation, Several};
use crate::grid::{Grid, Spot};
use crate::measure::Measured;
use bentpipe_table::Values;

/// One value per seed; `None` if the run has none.
pub type PerSeed = Vec<Option<f64>>;

/// Returns the values that exist.
pub fn known(values: &PerSeed) -> Vec<f64> {
    values.iter().copied().flatten().collect()
}

/// Results of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// Its points.
    pub grid: Grid,
    /// Name of the axis.
    pub axis: Option<String>,
    /// Results of the runs: for each point, one entry per finished seed.
    pub runs: BTreeMap<Spot, Vec<Option<Values>>>,
}

/// Point at which an expression is evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// Index along the axis.
    pub place: usize,
    /// Index of the choice.
    pub choice: usize,
}

impl Results {
    /// Makes an empty collection of results.
    pub fn none(grid: Grid, axis: Option<String>) -> Self {
        let nothing = vec![None; grid.seeds.len()];
        let runs = grid.spots().into_iter().map(|spot| (spot, nothing.clone())).collect();
        Self { grid, axis, runs }
    }

    /// Evaluates an expression at a place for each seed.
    pub fn evaluate(&self, expr: &Expr<Measured>, at: At) -> PerSeed {
        match expr {
            Expr::Number(number) => vec![Some(*number); self.grid.seeds.len()],
            Expr::Quantity(quantity) => self.quantity(quantity, at),
            Expr::Both(a, operation, b) => combine(&[self.evaluate(a, at), self.evaluate(b, at)], |values| {
                operation.apply(values[0], values[1])
            }),
            Expr::OverAxis(fold, inner) => {
                let places = 0..self.grid.places.len();
                let all: Vec<_> = places.map(|place| self.evaluate(inner, At { place, ..at })).collect();
                combine(&all, |values| fold.apply(values))
            }
            Expr::OfSeveral(several, all) => {
                let all: Vec<_> = all.iter().map(|expr| self.evaluate(expr, at)).collect();
                combine(&all, |values| several.apply(values))
            }
        }
    }

    fn quantity(&self, quantity: &Measured, at: At) -> PerSeed {
        let nothing = || vec![None; self.grid.seeds.len()];
        // The short form may lack a place of the full form.
        let place = quantity.elsewhere.map_or(Some(at.place), |position| self.grid.place(position));
        let Some(place) = place else { return nothing() };
        let spot = Spot { arm: quantity.arm, place, choice: at.choice };
        let Some(runs) = self.runs.get(&spot) else { return nothing() };
        let key = quantity.measure.key();
        runs.iter()
            .map(|values| values.as_ref().and_then(|values| values.get(&key).copied().flatten()))
            .collect()
    }
}

/// Combines values of the same seed; the result is `None` if one of them is missing.
fn combine(all: &[PerSeed], apply: impl Fn(&[f64]) -> f64) -> PerSeed {
    let seeds = all.first().map_or(0, Vec::len);
    let of_seed = |seed: usize| all.iter().map(|values| values[seed]).collect::<Option<Vec<f64>>>();
    (0..seeds)
        .map(|seed| of_seed(seed).map(|values| apply(&values)).filter(|value| value.is_finite()))
        .collect()
}

impl Operation {
    fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
        }
    }
}

impl Fold {
    fn apply(self, values: &[f64]) -> f64 {
        match self {
            Self::Highest => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Lowest => values.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Average => values.iter().sum::<f64>() / values.len() as f64,
        }
    }
}

impl Several {
    fn apply(self, values: &[f64]) -> f64 {
        match self {
            Self::Max => Fold::Highest.apply(values),
            Self::Min => Fold::Lowest.apply(values),
            Self::Log2 => values[0].log2(),
            Self::Abs => values[0].abs(),
        }
    }
}

impl Results {
    /// Results for checks that measure nothing.
    pub fn arithmetic() -> Self {
        let grid = Grid {
            arms: Vec::new(),
            places: vec![None],
            choices: vec![crate::grid::Choice::default()],
            seeds: vec![1],
        };
        Self::none(grid, None)
    }
}
