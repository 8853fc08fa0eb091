//! Comparisons: their runs, each for a worker of the page, and their report.

use std::collections::BTreeMap;

use bentpipe_lab::report::{ComparePage, Example, Provenance, World as Picture};
use bentpipe_lab::{
    Cell, Comparison, Plan, Point, Prepared, RunRequest, Sample, Setting, Wish, WithOrigin, most_telling,
    most_telling_scenario, quoted, simulate,
};
use bentpipe_outcome::Series;
use bentpipe_scenario::Draft;
use serde::{Deserialize, Serialize};

use crate::run::{Progress, origin};
use crate::world::{Refusal, World};

/// Comparison that the page wants.
#[derive(Clone, Deserialize)]
pub struct PlanRequest {
    world: World,
    /// Algorithms; without any, each flow keeps its own.
    cc: Vec<String>,
    /// Varied settings, as `--vary` takes them.
    vary: Vec<String>,
    /// First seed, instead of the scenario's.
    seed: Option<u64>,
    /// Runs of each point.
    seeds: u32,
}

/// A run of a comparison: an algorithm with varied values, and a seed.
#[derive(Clone, Serialize, Deserialize)]
pub struct RunOfPlan {
    /// The scenario with the varied values.
    #[serde(skip_serializing)]
    world: World,
    /// Index of algorithm and varied values in the plan.
    cell: usize,
    /// `None` if each flow keeps its own algorithm.
    cc: Option<String>,
    /// The varied values.
    #[serde(default)]
    vary: Vec<String>,
    seed: u64,
    /// True to record curves over time.
    #[serde(default)]
    series: bool,
}

/// Quantities of a sample by name, as text: the reader of JSON numbers rounds some of them in the last bit.
type Quantities = BTreeMap<String, Option<String>>;

/// Result of a run.
#[derive(Serialize)]
pub struct Ran {
    /// The document that `bentpipe run --json` prints.
    json: String,
    quantities: Quantities,
    series: Option<Series>,
}

/// A run that is done.
#[derive(Deserialize)]
struct Done {
    cell: usize,
    seed: u64,
    quantities: Quantities,
}

impl Done {
    fn sample(&self) -> Option<Sample> {
        let number = |(name, value): (&String, &Option<String>)| match value {
            None => Some((name.clone(), None)),
            Some(text) => Some((name.clone(), Some(text.parse().ok()?))),
        };
        Sample::from_quantities(self.seed, &self.quantities.iter().map(number).collect::<Option<_>>()?)
    }
}

/// Curves of a run that is done.
#[derive(Deserialize)]
struct Recorded {
    cell: usize,
    seed: u64,
    series: Series,
}

/// Results for a report.
#[derive(Deserialize)]
pub struct CompareRequest {
    plan: PlanRequest,
    done: Vec<Done>,
    examples: Vec<Recorded>,
}

/// Report of a comparison.
#[derive(Serialize)]
pub struct Compared {
    /// Header and main part of the report.
    html: String,
    /// Its sections with their charts, as JSON.
    sections: String,
    /// The document that `bentpipe compare --json` prints.
    json: String,
    /// The command that repeats the comparison.
    command: String,
    /// Runs whose curves the report shows: one of each algorithm, where the algorithms differ most.
    wanted: Vec<RunOfPlan>,
}

/// Runs of a plan.
#[derive(Serialize)]
pub struct Planned {
    runs: Vec<RunOfPlan>,
    /// Simulated time of each run.
    duration_s: f64,
}

impl PlanRequest {
    fn prepare(&self) -> Result<(Draft, Prepared), Refusal> {
        let draft = self.world.draft()?;
        let vary = self.vary.iter().map(|vary| vary.parse()).collect::<Result<_, _>>()?;
        // Mistakes in the text come with their places; those of the plan do not.
        draft.scenario()?;
        let wish = Wish {
            draft: draft.clone(),
            set: self.world.keys(),
            cc: self.cc.clone(),
            baseline: None,
            vary,
            seed: self.seed,
            seeds: self.seeds,
            threads: 1,
            memory: None,
        };
        let prepared = wish.prepare()?;
        Ok((draft, prepared))
    }

    fn command(&self) -> String {
        let name = &self.world.name;
        let list = |option: &str, values: &[String]| {
            values.iter().map(|value| format!(" {option} {}", quoted(value))).collect::<String>()
        };
        let cc = if self.cc.is_empty() { String::new() } else { format!(" --cc {}", self.cc.join(",")) };
        let (set, vary) = (list("--set", &self.world.set), list("--vary", &self.vary));
        let seed = self.seed.map(|seed| format!(" --seed {seed}")).unwrap_or_default();
        format!("bentpipe compare {}{cc}{set}{vary}{seed} --seeds {}", quoted(name), self.seeds)
    }

    fn run_of(&self, cells: &[Cell], point: &Point) -> RunOfPlan {
        let Cell { cc, vary } = &cells[point.cell];
        RunOfPlan {
            world: self.world.clone(),
            cell: point.cell,
            cc: (!self.cc.is_empty()).then(|| cc.clone()),
            vary: vary.iter().map(Setting::to_string).collect(),
            seed: point.seed,
            series: false,
        }
    }
}

/// Returns the runs of a comparison, after a check of all of them.
pub fn plan(request: &PlanRequest) -> Result<Planned, Refusal> {
    let (_, Prepared { plan, base, .. }) = request.prepare()?;
    let cells = plan.cells();
    let runs = plan.points().iter().map(|point| request.run_of(&cells, point)).collect();
    Ok(Planned { runs, duration_s: base.duration.as_secs_f64() })
}

/// Runs a scenario once.
pub fn run(request: &RunOfPlan, progress: Progress<'_>) -> Result<Ran, Refusal> {
    let mut draft = request.world.draft()?;
    if let Some(cc) = &request.cc {
        draft.set_cc(cc)?;
    }
    request.vary.iter().try_for_each(|setting| draft.set(setting))?;
    let scenario = draft.scenario_for(Some(request.seed))?;
    let wanted = RunRequest { series: request.series, progress: Some(progress), ..RunRequest::default() };
    let run = simulate(&scenario, wanted)?;
    let origin = origin(draft.files());
    let document = WithOrigin { document: &run.outcome, origin: &origin };
    let json = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    let sample = Sample::of(&run.outcome, &scenario.flows);
    let quantities = sample.quantities().map(|(name, value)| (name, value.map(|value| value.to_string())));
    Ok(Ran { json, quantities: quantities.collect(), series: request.series.then_some(run.series) })
}

/// Returns the report of the runs that are done.
pub fn compare(request: CompareRequest) -> Result<Compared, Refusal> {
    let CompareRequest { plan: wish, done, examples } = request;
    let (draft, Prepared { plan, scenarios, base }) = wish.prepare()?;
    let cells = plan.cells();
    let sampled = done.iter().map(|done| {
        Ok((Point { cell: done.cell, seed: done.seed }, done.sample().ok_or("found a run without results")?))
    });
    let comparison =
        Comparison::new(&plan, sampled.collect::<Result<Vec<_>, &str>>().map_err(str::to_owned)?);
    let vary = most_telling(&comparison).map(<[Setting]>::to_vec).unwrap_or_default();
    let drawn = most_telling_scenario(&plan, &scenarios, &comparison);
    let picture = Picture::of(drawn.unwrap_or(&base))?;
    let origin = origin(draft.files());
    let command = wish.command();
    let provenance = Provenance::of(&base, &command, &origin);
    let wanted = wanted(&wish, &plan, &vary);
    let example = |of: Recorded| {
        let Cell { cc, vary } = cells[of.cell].clone();
        Example { cc, vary, seed: of.seed, series: of.series }
    };
    let examples: Vec<_> = examples.into_iter().map(example).collect();
    let page = ComparePage {
        provenance: &provenance,
        world: &picture,
        comparison: &comparison,
        examples: &examples,
    };
    let fragment = page.fragment().map_err(|error| format!("report: {error}"))?;
    let document = WithOrigin { document: &comparison, origin: &origin };
    let json = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    Ok(Compared { html: fragment.html, sections: fragment.sections, json, command, wanted })
}

/// The first run of each algorithm with these varied values.
fn wanted(wish: &PlanRequest, plan: &Plan, vary: &[Setting]) -> Vec<RunOfPlan> {
    let cells = plan.cells();
    let run = |(cell, _): (usize, &Cell)| {
        let point = Point { cell, seed: plan.first_seed };
        RunOfPlan { series: true, ..wish.run_of(&cells, &point) }
    };
    cells.iter().enumerate().filter(|(_, cell)| cell.vary == vary).map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_quotes_what_a_shell_would_read() {
        let request = |name: &str, set: &str| PlanRequest {
            world: World { name: name.into(), text: None, set: vec![set.into()], files: BTreeMap::new() },
            cc: vec!["peach+".into(), "cubic".into()],
            vary: Vec::new(),
            seed: Some(4),
            seeds: 2,
        };
        assert_eq!(
            request("geo", "duration=60 s").command(),
            "bentpipe compare geo --cc peach+,cubic --set 'duration=60 s' --seed 4 --seeds 2"
        );
        assert_eq!(
            request("geo", "title=it's").command().split(" --set ").nth(1),
            Some(r"'title=it'\''s' --seed 4 --seeds 2")
        );
    }
}
