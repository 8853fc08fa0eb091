//! Results for tests.

use crate::check::{Check, Expr};
use crate::grid::{Form, Grid};
use crate::measure::{Measure, Measured};
use crate::results::Results;
use crate::study::Study;
use bentpipe_table::Values;

pub const STUDY: &str = r#"
title = "An example"
citation = "Nobody: Nothing. 2026"

[experiment.one]
title = "One"
scenario = "geo-single"
arm = { a = "reno", b = "cubic", c = "vegas", noisy = { cc = "hybla" } }
axis = { name = "x", label = "x (1)", keys = ["seed"], values = [1, 2, 3] }
open.queue = { short = {}, long = {} }
seeds = 3
quick = { values = [1, 2] }

[figure.1]
title = "Values"
experiment = "one"
y = "v (1)"
lines = { A = "v(a)", B = "v(b)" }

[figure.2]
title = "The window"
experiment = "one"
y = "Window (segments)"
time = { series = "cwnd", arms = { a = "A" }, at = 2, span = [0.0, 9.0] }

[claim.c1]
figure = "1"
statement = "a grows"
experiment = "one"
check = "v(a) rises"

[claim.c2]
statement = "arithmetic"
check = "2 * 3 in 6..6"

[claim.c3]
statement = "taste"
not-testable = "there is no arguing about it"
"#;

/// A check of the example's results.
pub fn check(text: &str) -> Check<Measured> {
    let study = Study::parse("example.toml", STUDY).unwrap();
    study.experiment["one"].understood(&Check::parse(text).unwrap()).unwrap()
}

/// `a` is 10, 20, 30 at x = 1, 2, 3, and a seed of 1, 2, 3 adds -1, 0, 1; `b` is 5 more with the first choice and 5 less with the other; `c` 1 more;
/// `noisy` differs by -3, 0 and 3.
pub fn results() -> Results {
    let study = Study::parse("example.toml", STUDY).unwrap();
    let grid = Grid::of(&study.experiment["one"], Form::default());
    let Expr::Quantity(quantity) = Expr::parse("v(a)").unwrap() else { unreachable!() };
    let key = Measure::of(&quantity, Some("x")).unwrap().key();
    let mut results = Results::none(grid, Some("x".into()));
    for (spot, runs) in &mut results.runs {
        for (seed, run) in runs.iter_mut().enumerate() {
            let wobble = seed as f64 - 1.0;
            let value = 10.0 * (spot.place + 1) as f64 + wobble;
            let more = match spot.arm {
                1 if spot.choice == 0 => 5.0,
                1 => -5.0,
                2 => 1.0,
                3 => 3.0 * wobble,
                _ => 0.0,
            };
            *run = Some(Values::from([(key.clone(), Some(value + more))]));
        }
    }
    results
}
