//! `bentpipe paper`.

use std::fs;
use std::path::{Path, PathBuf};

use bentpipe_lab::threads;
use bentpipe_scenario::{FilesRead, did_you_mean};
use bentpipe_study::{
    ClaimOutcome, Form, Store, Study, StudyOutcome, Unfinished, Verdict, Wish, conduct, draw, load, render,
    render_markdown,
};
use comfy_table::{ContentArrangement, Table, presets};
use serde::{Serialize, Serializer};

use crate::args::PaperArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::origin;
use crate::output::{self, Kind, Target};
use crate::progress::Bar;

/// Folder of finished points inside the report's folder.
const POINTS: &str = "points";

/// Runs studies and prints the verdicts on their claims.
pub fn paper(args: &PaperArgs) -> Result<(), Failure> {
    let studies = load(&args.study).map_err(|error| Failure::Request(error.to_string()))?;
    refuse_unknown_figures(&studies, &args.figure)?;
    let store = store(args)?;
    let interrupt = Interrupt::listen()?;
    let wish = Wish {
        form: Form { quick: args.quick, seeds: args.seeds },
        figures: args.figure.clone(),
        threads: threads(args.jobs),
        memory: args.memory,
        stop: interrupt.shared(),
    };
    let bar = Bar::new("Reproducing", &interrupt);
    let outcomes = conduct(&studies, &wish, store, |progress| bar.observe(progress))
        .map_err(|error| unfinished(&error, args))?;
    drop(bar);
    if args.json {
        output::print_json(&Document(&outcomes))?;
    } else {
        for outcome in &outcomes {
            output::print(&format!("{}\n\n", table(outcome)))?;
        }
    }
    args.report.as_deref().map_or(Ok(()), |directory| write(directory, &outcomes))
}

/// Refuses figures that no study has.
pub fn refuse_unknown_figures(studies: &[Study], figures: &[String]) -> Result<(), Failure> {
    let known: Vec<&str> = studies.iter().flat_map(|study| study.figure.keys()).map(String::as_str).collect();
    match figures.iter().find(|figure| !known.contains(&figure.as_str())) {
        Some(figure) => {
            let hint = did_you_mean(figure, &known).map(|near| format!("; did you mean {near}?"));
            let accepted = format!("--figure: found {figure}, accepted: {}", known.join(", "));
            Err(Failure::Request(accepted + &hint.unwrap_or_default()))
        }
        None => Ok(()),
    }
}

fn store(args: &PaperArgs) -> Result<Store, Failure> {
    let beside = args.report.as_ref().map(|directory| directory.join(POINTS));
    let Some(folder) = args.keep.clone().or(beside) else {
        let accepted = "--fresh together with --keep or --report";
        return if args.fresh {
            Err(Failure::Request(format!("found --fresh alone, accepted: {accepted}")))
        } else {
            Ok(Store::in_memory())
        };
    };
    let open = || {
        if args.fresh {
            Store::forget(&folder)?;
        }
        Store::open(&folder)
    };
    open().map_err(|error| Failure::Request(error.to_string()))
}

fn unfinished(error: &Unfinished, args: &PaperArgs) -> Failure {
    match error {
        Unfinished::Impossible(_) => Failure::Request(error.to_string()),
        Unfinished::Broken(_) => Failure::Work(error.to_string()),
        Unfinished::Stopped { .. } if args.report.is_some() || args.keep.is_some() => {
            Failure::Work(format!("{error} and are kept: the same command continues from there"))
        }
        Unfinished::Stopped { .. } => {
            Failure::Work(format!("{error}; with --report or --keep they would be kept"))
        }
    }
}

/// Returns `{ paper: [ claim, ... ] }`, in the order of the studies.
pub struct Document<'a>(pub &'a [StudyOutcome]);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|outcome| (&outcome.name, &outcome.claims)))
    }
}

fn table(outcome: &StudyOutcome) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(output::look().width.unwrap_or(160));
    table.set_header(["claim", "verdict", "joint", "choices", "statement", "measured (mean ± 95 %)"]);
    for claim in &outcome.claims {
        let mut measured = claim.measured.clone();
        if !claim.holds_for.is_empty() {
            measured += &format!("\nholds for {}", claim.where_else());
        }
        table.add_row([
            &claim.id,
            &claim.verdict.to_string(),
            &claim.joint_verdict.to_string(),
            &claim.choices.to_string(),
            &claim.statement,
            &measured,
        ]);
    }
    format!("{}\n{table}\n{}", outcome.title, summary(outcome))
}

/// Returns the verdicts of the default configuration and of the joint setting, which is named.
fn summary(outcome: &StudyOutcome) -> String {
    let joint = match outcome.joint_setting.as_slice() {
        [] => "nothing is left open".to_owned(),
        options => options.join("; "),
    };
    format!(
        "default configuration: {}\njoint setting ({joint}): {}\ncriteria: {}",
        counts(outcome, |claim| claim.verdict),
        counts(outcome, |claim| claim.joint_verdict),
        &outcome.criteria[..16],
    )
}

/// Returns counts such as `12 HOLDS, 1 FAILS`.
fn counts(outcome: &StudyOutcome, verdict_of: impl Fn(&ClaimOutcome) -> Verdict) -> String {
    let all = [Verdict::Holds, Verdict::Tied, Verdict::Fails, Verdict::NotTestable];
    let count = |verdict: Verdict| outcome.claims.iter().filter(|claim| verdict_of(claim) == verdict).count();
    let counted = all.into_iter().map(|verdict| (count(verdict), verdict)).filter(|(count, _)| *count > 0);
    counted.map(|(count, verdict)| format!("{count} {verdict}")).collect::<Vec<_>>().join(", ")
}

/// Writes a page with figures for each study, and all verdicts.
pub fn write(directory: &Path, outcomes: &[StudyOutcome]) -> Result<(), Failure> {
    let failed = |why: String| Failure::Work(format!("report: {why}"));
    for outcome in outcomes {
        let html = render(outcome, (&output::typed(), origin::of(FilesRead::new()))).map_err(failed)?;
        put(directory.join(format!("{}.html", outcome.name)), html.as_bytes(), Kind::Report)?;
        let page = render_markdown(outcome);
        put(directory.join(format!("{}.md", outcome.name)), page.as_bytes(), Kind::Page)?;
        let pictures = directory.join(&outcome.name);
        fs::create_dir_all(&pictures).map_err(|error| Failure::unwritable(&pictures, &error))?;
        for figure in &outcome.figures {
            for (index, chart) in figure.charts.iter().enumerate() {
                let suffix = if index == 0 { String::new() } else { format!("-{index}") };
                let svg = draw::svg(chart).map_err(failed)?;
                let file = |ending: &str| pictures.join(format!("figure-{}{suffix}.{ending}", figure.number));
                put(file("png"), &draw::png(&svg).map_err(failed)?, Kind::Png)?;
                put(file("svg"), svg.as_bytes(), Kind::Svg)?;
            }
        }
    }
    let text =
        serde_json::to_string_pretty(&Document(outcomes)).map_err(|error| failed(error.to_string()))?;
    put(directory.join("claims.json"), text.as_bytes(), Kind::Claims)
}

fn put(path: PathBuf, bytes: &[u8], kind: Kind) -> Result<(), Failure> {
    Target::open(&path, kind)?.write(bytes)
}
