//! Requests of the page, and their answers.

use serde::{Deserialize, Serialize};

use crate::compare::{self, CompareRequest, PlanRequest, RunOfPlan};
use crate::run::Progress;
use crate::world::{Refusal, World};
use crate::{knobs, tables, watch};

/// Request of the page.
#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
enum Request {
    /// Scenarios, algorithms and keys.
    Tables,
    /// Mistakes of a scenario, or its picture and the values that the page can change.
    Check { world: World },
    /// Runs of a comparison.
    Plan(PlanRequest),
    /// One run of a comparison.
    Run(RunOfPlan),
    /// Report of the runs that are done.
    Compare(CompareRequest),
    /// Every packet in an interval of a run.
    Watch(watch::WatchRequest),
}

/// Answers a request: `{ "done": ANSWER }` or `{ "refused": { "message", "mistakes" } }`.
///
/// # Panics
/// If the simulator has a bug.
pub fn answer(request: &str, progress: Progress<'_>) -> String {
    match serde_json::from_str(request) {
        Ok(request) => dispatch(request, progress),
        Err(error) => written::<()>(Err(Refusal::from(format!("request: {error}")))),
    }
}

fn dispatch(request: Request, progress: Progress<'_>) -> String {
    match request {
        Request::Tables => written(Ok(tables::tables())),
        Request::Check { world } => written(knobs::check(&world)),
        Request::Plan(request) => written(compare::plan(&request)),
        Request::Run(request) => written(compare::run(&request, progress)),
        Request::Compare(request) => written(compare::compare(request)),
        Request::Watch(request) => written(watch::watch(&request, progress)),
    }
}

/// An answer as JSON.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer<T> {
    Done(T),
    Refused(Refusal),
}

fn written<T: Serialize>(result: Result<T, Refusal>) -> String {
    let answer = result.map_or_else(Answer::Refused, Answer::Done);
    serde_json::to_string(&answer).expect("answers have text as keys, and no other writer can fail")
}
