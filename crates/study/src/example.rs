//! Example results for tests.

use crate::check::{Check, Expr};
use crate::grid::{Form, Grid};
use crate::measure::{Measure, Measured};
use crate::outcome::{
    Choices, ClaimOutcome, FigureOutcome, OpenOutcome, ParameterOutcome, StatedOutcome, StudyOutcome,
};
use crate::results::Results;
use crate::study::Study;
use crate::verdict::Verdict;
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

/// Parses a check of the example results.
pub fn check(text: &str) -> Check<Measured> {
    let study = Study::parse("example.toml", STUDY).unwrap();
    study.experiment["one"].understood(&Check::parse(text).unwrap()).unwrap()
}

/// Example results at x = 1, 2, 3 for seeds 1, 2, 3. `a` is 10, 20, 30, and the seeds add -1, 0, 1. `b` is 5 more with the first
/// choice and 5 less with the second; `c` is 1 more. `noisy` differs from `a` by -3, 0 and 3.
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

fn judged(id: &str, figure: Option<&str>) -> ClaimOutcome {
    ClaimOutcome {
        id: id.into(),
        figure: figure.map(str::to_owned),
        statement: "a | b".into(),
        verdict: Verdict::Fails,
        measured: "1 > 2".into(),
        tolerance: Some("v(a) > v(b)".into()),
        seeds: 3,
        holds_for: vec!["queue = long".into()],
        joint_verdict: Verdict::Holds,
        choices: Choices { holding: 1, of: 2 },
        measured_where_it_holds: Some("3 > 2".into()),
        margin: None,
        criteria: "0123456789abcdef0123".into(),
        stated: vec![StatedOutcome { what: "v of a".into(), paper: 20.0, ours: Some(25.0), ci95: Some(1.0) }],
        words: "the v of a is above that of b".into(),
        note: Some("because".into()),
        advice: None,
        rerun: None,
    }
}

/// Returns a study of two claims; the first belongs to a figure.
pub fn outcome() -> StudyOutcome {
    StudyOutcome {
        name: "mine".into(),
        title: "Mine".into(),
        citation: "Nobody".into(),
        form: Form::default(),
        joint_setting: vec!["queue = long".into()],
        criteria: "0123456789abcdef0123".into(),
        claims: vec![judged("A", Some("1")), judged("B", None)],
        figures: vec![FigureOutcome { number: "1".into(), title: "Values".into(), charts: Vec::new() }],
        parameters: vec![ParameterOutcome {
            name: "Rate".into(),
            value: "1 Mbit/s".into(),
            source: "stated".into(),
            place: "Table 1".into(),
        }],
        open: vec![OpenOutcome {
            name: "queue".into(),
            options: vec!["short".into(), "long".into()],
            experiments: vec!["one".into()],
        }],
        text: String::new(),
    }
}
