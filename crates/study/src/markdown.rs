//! Markdown page of a study, figure by figure, with the numbers of the paper and the measured ones.

use std::fmt::Write;

use crate::outcome::{
    ClaimOutcome, FigureOutcome, OpenOutcome, ParameterOutcome, StatedOutcome, StudyOutcome,
};
use crate::verdict::Verdict;

/// Maximum number of characters of measured values in a table cell; the report and the JSON have all of them.
const LETTERS: usize = 60;

/// Renders the page. Pictures are named `FOLDER/figure-NUMBER.svg`; the folder has the study's name.
pub fn render(outcome: &StudyOutcome) -> String {
    let mut page = head(outcome);
    for figure in &outcome.figures {
        let claims: Vec<&ClaimOutcome> =
            outcome.claims.iter().filter(|one| one.figure.as_deref() == Some(&*figure.number)).collect();
        page += &section(outcome, figure, &claims);
    }
    let shown = |number: &str| outcome.figures.iter().any(|figure| figure.number == number);
    let rest = outcome.claims.iter().filter(|one| one.figure.as_deref().is_none_or(|number| !shown(number)));
    let rest: Vec<&ClaimOutcome> = rest.collect();
    if !rest.is_empty() {
        page += "\n## Without a figure\n";
        page += &judged(&rest);
    }
    page += &parameters(&outcome.parameters);
    page += &open(&outcome.open);
    page
}

fn head(outcome: &StudyOutcome) -> String {
    let count = |which: &dyn Fn(&ClaimOutcome) -> Verdict, verdict: Verdict| {
        outcome.claims.iter().filter(|claim| which(claim) == verdict).count()
    };
    let row = |name: &str, which: &dyn Fn(&ClaimOutcome) -> Verdict| {
        let all = [Verdict::Holds, Verdict::Tied, Verdict::Fails, Verdict::NotTestable];
        let counts: Vec<String> = all.iter().map(|verdict| count(which, *verdict).to_string()).collect();
        format!("| {name} | {} |\n", counts.join(" | "))
    };
    let quick = if outcome.form.quick { " --quick" } else { "" };
    let seeds = outcome.form.seeds.map_or(String::new(), |seeds| format!(" --seeds {seeds}"));
    let joint = match outcome.joint_setting.as_slice() {
        [] => String::new(),
        options => {
            let verdicts = row("joint setting", &|claim| claim.joint_verdict);
            format!("{verdicts}\nJoint setting: `{}`.\n", options.join("`, `"))
        }
    };
    format!(
        "# {}\n\n{}.\n\nWritten by `bentpipe paper {}{quick}{seeds} --report DIR`. [Verdicts](../studies.md#verdicts) explains figures, columns and `±`. \
         Criteria, frozen before the results: SHA-256 `{}`.\n\n\
         | | HOLDS | TIED | FAILS | NOT-TESTABLE |\n|---|---:|---:|---:|---:|\n{}{joint}",
        outcome.title,
        outcome.citation,
        outcome.name,
        &outcome.criteria[..16],
        row("default configuration", &|claim| claim.verdict),
    )
}

/// A figure of the default configuration, and its claims. The HTML report has the other choices.
fn section(outcome: &StudyOutcome, figure: &FigureOutcome, claims: &[&ClaimOutcome]) -> String {
    let (number, title, folder) = (&figure.number, &figure.title, &outcome.name);
    let picture = format!("![Figure {number}]({folder}/figure-{number}.svg)");
    format!("\n## Figure {number}: {title}\n\n{picture}\n{}", judged(claims))
}

/// Writes claims with their verdicts, measured values, the paper's numbers and notes. The report and the TOML file have the checks.
fn judged(claims: &[&ClaimOutcome]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let mut text = "\n| claim | verdict | statement | measured |\n|---|---|---|---|\n".to_owned();
    for claim in claims {
        let cells = [&claim.id, &claim.verdict.to_string(), &claim.statement, &measured(claim)];
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text += &stated(claims);
    let notes: Vec<String> = claims
        .iter()
        .filter_map(|claim| {
            Some(format!("* **{}** ({}): {}\n", claim.id, claim.verdict, claim.note.as_ref()?))
        })
        .collect();
    if !notes.is_empty() {
        let _ = write!(text, "\n{}", notes.concat());
    }
    text
}

/// The measured values; if the claim holds for some choices only, those, and the joint verdict if it differs.
fn measured(claim: &ClaimOutcome) -> String {
    let mut text = format!("`{}`", shortened(&claim.measured));
    if (1..claim.choices.of).contains(&claim.choices.holding) {
        let _ = write!(text, "<br>holds for {} choices", claim.choices);
        if claim.verdict != Verdict::Holds && !claim.holds_for.is_empty() {
            let _ = write!(text, ": `{}`", claim.holds_for.join("`, `"));
        }
    }
    if claim.joint_verdict != claim.verdict {
        let _ = write!(text, "; joint: {}", claim.joint_verdict);
    }
    text
}

fn stated(claims: &[&ClaimOutcome]) -> String {
    let all: Vec<(&str, &StatedOutcome)> =
        claims.iter().flat_map(|claim| claim.stated.iter().map(|one| (claim.id.as_str(), one))).collect();
    if all.is_empty() {
        return String::new();
    }
    let mut text =
        "\n| claim | number of the paper | paper | here | deviation |\n|---|---|---:|---:|---:|\n".to_owned();
    for (claim, one) in all {
        let (ours, deviation) = (one.ours_written(), one.deviation_written());
        let _ = writeln!(text, "| {claim} | {} | {} | {ours} | {deviation} |", cell(&one.what), one.paper);
    }
    text
}

fn parameters(all: &[ParameterOutcome]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text =
        "\n## Parameters\n\n| parameter | value | source | place or reason |\n|---|---|---|---|\n".to_owned();
    for one in all {
        let (name, value, place) = (cell(&one.name), cell(&one.value), cell(&one.place));
        let _ = writeln!(text, "| {name} | `{value}` | {} | {place} |", one.source);
    }
    text
}

fn open(all: &[OpenOutcome]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = "\n## Left open\n\nThe paper leaves these parameters open. Every option is run; the first option is the default.\n\n\
                    | parameter | options | experiments |\n|---|---|---|\n"
        .to_owned();
    for one in all {
        let (options, where_run) = (cell(&one.options.join("; ")), cell(&one.experiments.join(", ")));
        let _ = writeln!(text, "| {} | {options} | {where_run} |", cell(&one.name));
    }
    text
}

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Returns the first relations that fit, at least one.
fn shortened(measured: &str) -> String {
    if measured.chars().count() <= LETTERS {
        return measured.to_owned();
    }
    let begin: String = measured.chars().take(LETTERS).collect();
    let whole = begin.rsplit_once(';').map(|(whole, _)| whole);
    match whole.or_else(|| Some(measured.split_once(';')?.0)) {
        Some(first) => format!("{first}; ..."),
        None => measured.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::outcome::Choices;

    #[test]
    fn a_page_has_each_claim_where_its_figure_is_and_the_papers_number_beside_ours() {
        let page = render(&example::outcome());
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}\n{page}"));
        let row = "| FAILS | a \\| b | `1 > 2`<br>holds for 1 of 2 choices: `queue = long`; joint: HOLDS |";
        let order = [
            at("| joint setting | 2 | 0 | 0 | 0 |"),
            at("![Figure 1](mine/figure-1.svg)"),
            at(&format!("| A {row}")),
            at("| A | v of a | 20 | 25.00 ± 1.00 | +25 % |"),
            at("* **A** (FAILS): because"),
            at("## Without a figure"),
            at(&format!("| B {row}")),
            at("| Rate | `1 Mbit/s` | stated | Table 1 |"),
            at("| queue | short; long | one |"),
        ];
        assert!(order.is_sorted(), "{order:?}");
    }

    #[test]
    fn a_claim_that_holds_lists_no_choices_and_one_that_never_holds_says_nothing_of_them() {
        let mut outcome = example::outcome();
        outcome.claims[0].verdict = Verdict::Holds;
        outcome.claims[1].choices = Choices { holding: 0, of: 2 };
        outcome.claims[1].joint_verdict = Verdict::Fails;
        let page = render(&outcome);
        assert!(page.contains("| A | HOLDS | a \\| b | `1 > 2`<br>holds for 1 of 2 choices |"), "{page}");
        assert!(page.contains("| B | FAILS | a \\| b | `1 > 2` |"), "{page}");
    }
}
