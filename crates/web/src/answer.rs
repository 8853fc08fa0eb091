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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn asked(request: &Value) -> Value {
        serde_json::from_str(&answer(&request.to_string(), &|_| ())).unwrap()
    }

    #[test]
    fn a_run_is_done_and_a_mistake_is_refused_with_its_place() {
        let world = |text: &str| json!({ "name": "mine.toml", "text": text, "set": ["duration=1 s"] });
        let text = bentpipe_scenario::builtin_text("geo-single").unwrap();
        let run = json!({ "ask": "run", "world": world(text), "cell": 0, "cc": "cubic", "seed": 7 });
        let document: Value = serde_json::from_str(asked(&run)["done"]["json"].as_str().unwrap()).unwrap();
        assert_eq!((&document["scenario"], &document["seed"]), (&json!("mine"), &json!(7)));
        let wrong = asked(&json!({ "ask": "check", "world": world("\nduratio = 3\n") }));
        assert_eq!(wrong["refused"]["mistakes"][0]["line"], 2);
        let unknown = asked(&json!({ "ask": "nothing" }));
        assert!(unknown["refused"]["message"].as_str().unwrap().starts_with("request: "), "{unknown}");
    }

    #[test]
    fn packets_are_those_of_an_interval_of_the_run() {
        let world = json!({ "name": "geo-single", "text": null, "set": ["duration=3 s"] });
        let watch = |from: f64| json!({ "ask": "watch", "world": world, "cc": "newreno", "seed": 1, "from_s": from, "until_s": 9.0 });
        let hops = &asked(&watch(1.0))["done"]["hops"];
        let times = |name: &str| hops[name].as_array().unwrap().iter().map(|at| at.as_u64().unwrap());
        assert!(times("ended").all(|at| (1_000_000..=3_000_000).contains(&at)));
        assert!(times("offered").zip(times("left")).zip(times("ended")).all(|((a, b), c)| a <= b && b <= c));
        assert!(times("link").count() > 10);
        assert!(asked(&watch(3.0))["refused"]["message"].as_str().unwrap().contains("before 3 s"));
    }

    #[test]
    fn one_loss_has_one_retransmission_also_on_the_first_link() {
        let lossy = json!({ "name": "geo-single", "text": null, "set": [r#"link.satellite.loss={ kind = "list", packets = [40], data-only = true }"#] });
        let watch = json!({ "ask": "watch", "world": lossy, "cc": "newreno", "seed": 1, "from_s": 0.0, "until_s": 9.0 });
        let kinds = &asked(&watch)["done"]["hops"]["kind"];
        let of_kind = |kind: u64| kinds.as_array().unwrap().iter().filter(|one| **one == kind).count();
        assert_eq!(
            (of_kind(1), of_kind(4)),
            (1, 1),
            "one loss has one retransmission, also on the first link"
        );
    }
}
