//! Result of a comparison or a run, in a sentence.

use bentpipe_outcome::Outcome;
use bentpipe_scenario::Scenario;

use crate::comparison::{self, Comparison, Row};
use crate::metric::Metric;
use crate::number::{RATE_UNIT, plus_minus, short};
use crate::paired::{BySeed, Difference};
use crate::plan::{Plan, Setting};
use crate::stats::Summary;

/// Formats a value of the main metric as the end of a sentence: `took 8.40 ± 0.12 s`.
fn said(metric: Metric, summary: &Summary) -> String {
    let (_, unit, divisor) = metric.shown();
    let value = plus_minus(*summary, divisor);
    match metric {
        Metric::Completion => format!("took {value} s"),
        Metric::TransferMedian => format!("took {value} s for a page or file (median)"),
        Metric::Mos => format!("had a mean opinion score of {value}"),
        Metric::RealTimeIndex => format!("had a real-time performance index of {value}"),
        Metric::VideoRate => format!("played video of {value} {unit}"),
        _ => format!("carried {value} {unit}"),
    }
}

/// `loss.rate = 1e-4, count = 20`.
pub(crate) fn shown(vary: &[Setting]) -> String {
    let one = |setting: &Setting| format!("{} = {}", setting.key, setting.value);
    vary.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A difference by a smaller factor than this is not the finding where another quantity differs more.
const SMALL_FACTOR: f64 = 1.25;

/// Returns the combination at which the algorithms differ most, which an example shows.
pub fn most_telling(comparison: &Comparison) -> Option<&[Setting]> {
    finding(comparison).map(|(_, vary)| vary)
}

/// Returns the scenario of [`most_telling`], which a report draws. `scenarios` are those of the plan's cells.
pub fn most_telling_scenario<'a>(
    plan: &Plan,
    scenarios: &'a [Scenario],
    comparison: &Comparison,
) -> Option<&'a Scenario> {
    let vary = most_telling(comparison)?;
    plan.cells().into_iter().zip(scenarios).find(|(cell, _)| cell.vary == vary).map(|(_, scenario)| scenario)
}

/// Returns the metric in which the algorithms differ most, and the combination. The main metric has priority; the fairness ratio is the
/// finding if the main metric differs by less than [`SMALL_FACTOR`].
fn finding(comparison: &Comparison) -> Option<(Metric, &[Setting])> {
    let widest = |metric| {
        let combinations = comparison.combinations().into_iter();
        let spreads = combinations.map(|vary| (spread(&ranked(comparison, metric, vary)), vary));
        spreads.max_by(|a, b| a.0.0.total_cmp(&b.0.0).then(a.0.1.total_cmp(&b.0.1)))
    };
    let ((main, _), vary) = widest(comparison.measures)?;
    let fairness =
        widest(Metric::FairnessRatio).filter(|((ratio, _), _)| main < SMALL_FACTOR && *ratio > main);
    Some(fairness.map_or((comparison.measures, vary), |(_, vary)| (Metric::FairnessRatio, vary)))
}

/// Returns the ratio of largest to smallest mean: significant differences rank first.
fn spread(ranking: &[Ranked<'_>]) -> (f64, f64) {
    let means = || ranking.iter().filter_map(|ranked| ranked.summary.mean);
    let (low, high) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
    let ratio = if high > 0.0 { high / low.max(high * 1e-9) } else { 1.0 };
    if differ(ranking) { (ratio, ratio) } else { (1.0, ratio) }
}

/// True if the difference between the first and the last of a ranking is significant. The p-value is corrected for the number of all
/// pairs.
fn differ(ranking: &[Ranked<'_>]) -> bool {
    let [first, .., last] = ranking else { return false };
    let pairs = ranking.len() * (ranking.len() - 1) / 2;
    Difference::of(&first.values, &last.values).is_significant(pairs)
}

/// An algorithm with its values of a metric.
pub(crate) struct Ranked<'a> {
    pub cc: &'a str,
    values: BySeed,
    summary: Summary,
}

/// The algorithms at a combination, the best in the finding of the comparison first.
pub(crate) fn ranking<'a>(comparison: &'a Comparison, vary: &[Setting]) -> Vec<Ranked<'a>> {
    finding(comparison).map_or(Vec::new(), |(metric, _)| ranked(comparison, metric, vary))
}

/// The algorithms that have a value of a metric at a combination, the best first.
fn ranked<'a>(comparison: &'a Comparison, metric: Metric, vary: &[Setting]) -> Vec<Ranked<'a>> {
    let of = |cc| {
        let values = of_compared(comparison, metric, comparison.row(cc, vary)?);
        Some(Ranked { cc, summary: comparison::summary(&values), values })
    };
    let mut all: Vec<_> = comparison.algorithms().into_iter().filter_map(of).collect();
    all.retain(|ranked| ranked.summary.mean.is_some());
    let mean = |of: &Ranked<'_>| of.summary.mean.unwrap_or_default();
    all.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
    if metric.less_is_better() {
        all.reverse();
    }
    all
}

/// Returns a metric of the flows under comparison alone, if they have it.
fn of_compared(comparison: &Comparison, metric: Metric, row: &Row) -> BySeed {
    let compared = row.by_seed_of(metric, &comparison.compared);
    if comparison.fixed().is_empty() || compared.is_empty() { row.by_seed(metric) } else { compared }
}

/// Returns the finding of a comparison.
pub(crate) fn of_comparison(comparison: &Comparison) -> String {
    let Some((metric, vary)) = finding(comparison) else { return "Nothing finished.".into() };
    let ranking = ranked(comparison, metric, vary);
    let (Some(best), Some(last)) = (ranking.first(), ranking.last()) else { return String::new() };
    let at = if vary.is_empty() { String::new() } else { format!("at {}, ", shown(vary)) };
    let first = said_of(comparison, metric, best);
    let second = match metric {
        Metric::FairnessRatio => format!("with {} {} times", last.cc, plus_minus(last.summary, 1.0)),
        _ => said_of(comparison, metric, last),
    };
    let sentence = match ranking.len() {
        1 => format!("{at}{first}."),
        _ if !differ(&ranking) => {
            format!("No difference is significant: {at}{first} and {second}.")
        }
        _ => {
            let at = if at.is_empty() { at } else { format!("Where they differ most, {at}") };
            format!("{at}{first}, {second}{}.", times(metric, (&best.summary, &last.summary)))
        }
    };
    sentence + &uncounted(comparison, (metric, best.cc), vary) + &unfinished(comparison, vary)
}

/// `peach carried 8.40 ± 0.12 Mbit/s in all`.
fn said_of(comparison: &Comparison, metric: Metric, Ranked { cc, summary, .. }: &Ranked<'_>) -> String {
    if let (Metric::FairnessRatio, [first, second, ..]) = (metric, comparison.groups.as_slice()) {
        let value = plus_minus(*summary, 1.0);
        return format!("with {cc} a flow of {first} got {value} times the goodput of one of {second}");
    }
    let several = comparison.rows.iter().flat_map(|row| &row.samples).any(|sample| sample.flows() > 1);
    let in_all = if several && metric == Metric::Goodput { " in all" } else { "" };
    format!("{cc} {}{in_all}", said(metric, summary))
}

/// Names the groups that are not counted, if that changes the number.
fn uncounted(comparison: &Comparison, (metric, cc): (Metric, &str), vary: &[Setting]) -> String {
    let values =
        comparison.row(cc, vary).map(|row| [of_compared(comparison, metric, row), row.by_seed(metric)]);
    match values.map(|values| values.map(|values| comparison::summary(&values).mean.unwrap_or_default())) {
        Some([counted, all]) if (counted - all).abs() > 1e-9 * all.abs() => {
            format!(
                " Flows of {}, which keep their algorithm, are not counted.",
                comparison.fixed().join(", ")
            )
        }
        _ => String::new(),
    }
}

/// Returns the ratio of the larger to the smaller value, for metrics where ratios have a meaning.
fn times(metric: Metric, (best, last): (&Summary, &Summary)) -> String {
    let (Some(best), Some(last)) = (best.mean, last.mean) else { return String::new() };
    match metric {
        Metric::Mos | Metric::RealTimeIndex | Metric::FairnessRatio => String::new(),
        Metric::Completion | Metric::TransferMedian if best > 0.0 => {
            format!(": {} times as long", short(last / best))
        }
        _ if last > 0.0 => format!(": {} times as much", short(best / last)),
        _ => String::new(),
    }
}

/// Whose flows did not all complete: the mean of those that did flatters it.
fn unfinished(comparison: &Comparison, vary: &[Setting]) -> String {
    let of = |cc| Some((cc, comparison.row(cc, vary)?.part(Metric::Completion)?));
    let all: Vec<_> = comparison
        .algorithms()
        .into_iter()
        .filter_map(of)
        .map(|(cc, share)| format!("{} of {} with {cc}", share.count, share.of))
        .collect();
    if all.is_empty() { String::new() } else { format!(" Flows that completed in time: {}.", all.join(", ")) }
}

/// Returns the finding of one run.
pub(crate) fn of_run(outcome: &Outcome, metric: Metric) -> String {
    let count = |of: usize| if of == 1 { "One flow".to_owned() } else { format!("{of} flows") };
    let all = outcome.flows.len();
    let goodput = short(outcome.totals.goodput_bps / RATE_UNIT.0);
    let seconds = short(outcome.measured_s());
    let carried = format!("carried {goodput} {} in all over {seconds} s", RATE_UNIT.1);
    let Some(value) = metric.of(outcome).filter(|_| metric != Metric::Goodput) else {
        return match fairness(outcome) {
            Some(fairness) => format!("{} {carried}; {fairness}.", count(all)),
            None => format!("{} {carried}.", count(all)),
        };
    };
    let with = outcome.flows.iter().filter(|flow| metric.of_flow(flow).is_some()).count();
    let mean = if with > 1 { "on average " } else { "" };
    let value = said(metric, &Summary::of(&[value]));
    let whose = if with < all { format!("all {all} ") } else { String::new() };
    format!("{} {mean}{value}; {whose}{carried}.", count(with))
}

/// Describes the fairness of the flows; `None` if fewer than two can be compared.
fn fairness(outcome: &Outcome) -> Option<&'static str> {
    let several = bentpipe_outcome::comparable(&outcome.flows).count() > 1;
    several.then_some(match outcome.totals.jain_index {
        x if x > 0.95 => "they shared evenly",
        x if x > 0.8 => "they shared fairly evenly",
        _ => "they shared unevenly",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Sample;
    use crate::example;
    use bentpipe_scenario::{FlowGroup, builtin};

    /// Flows that end, of 100 kB each, whose completion times are those of `times`.
    fn transfers(times: &[(&str, [Option<f64>; 2])], seeds: u32) -> Comparison {
        let mut plan = example::plan();
        plan.vary.clear();
        plan.seeds = seeds;
        plan.algorithms = times.iter().map(|(cc, _)| (*cc).to_owned()).collect();
        plan.measures = Metric::Completion;
        let mut groups: Vec<FlowGroup> = builtin("geo-single").unwrap().flows;
        groups[0].traffic = bentpipe_scenario::Traffic::File { bytes: 100_000 };
        let run = |point: crate::plan::Point| {
            let (cc, times) = &times[point.cell];
            let mut outcome = example::outcome(cc, point.seed);
            outcome.totals.goodput_bps = 666.7e3;
            for (flow, time) in outcome.flows.iter_mut().zip(times) {
                flow.completion_s = time.map(|time| time + 0.01 * point.seed as f64);
            }
            (point, Sample::of(&outcome, &groups))
        };
        Comparison::new(&plan, plan.points().into_iter().map(run))
    }

    #[test]
    fn transfers_that_end_are_told_by_how_long_they_took() {
        let both = transfers(&[("cubic", [Some(13.2); 2]), ("hybla", [Some(8.4); 2])], 1);
        assert_eq!(of_comparison(&both), "hybla took 8.41 s, cubic took 13.21 s: 1.57 times as long.");
        let several = transfers(&[("cubic", [Some(13.2); 2]), ("hybla", [Some(8.4); 2])], 3);
        assert_eq!(
            of_comparison(&several),
            "hybla took 8.42 ± 0.02 s, cubic took 13.22 ± 0.02 s: 1.57 times as long."
        );
        let equal = transfers(&[("cubic", [Some(9.0); 2]), ("hybla", [Some(9.0); 2])], 3);
        assert!(of_comparison(&equal).starts_with("No difference is significant: "));
    }

    #[test]
    fn flows_that_did_not_complete_are_counted() {
        let some = transfers(&[("cubic", [Some(13.2), None]), ("hybla", [Some(8.4); 2])], 1);
        assert!(of_comparison(&some).ends_with("Flows that completed in time: 1 of 2 with cubic."));
    }

    #[test]
    fn where_nothing_completes_goodput_is_what_there_is() {
        let none = transfers(&[("cubic", [None; 2]), ("hybla", [None; 2])], 1);
        assert_eq!(none.measures, Metric::Goodput);
    }

    #[test]
    fn goodput_has_its_interval() {
        let text = of_comparison(&example::comparison());
        let expected = "Where they differ most, at link.satellite.loss.rate = 1e-3, peach carried 0.8040 ± 0.0050 \
                        Mbit/s in all, reno carried 0.4040 ± 0.0050 Mbit/s in all: 1.99 times as much.";
        assert_eq!(text, expected);
    }

    /// One flow under comparison and one `fixed` flow that keeps its algorithm, with these goodputs in Mbit/s.
    fn beside_fixed(goodputs: &[(&str, [f64; 2])]) -> Comparison {
        let mut plan = example::plan();
        (plan.vary, plan.seeds) = (Vec::new(), 3);
        plan.groups = vec!["bulk".into(), "fixed".into()];
        plan.algorithms = goodputs.iter().map(|(cc, _)| (*cc).to_owned()).collect();
        let run = |point: crate::plan::Point| {
            let (cc, [own, other]) = &goodputs[point.cell];
            let luck = 1e4 * point.seed as f64;
            let flows = [("bulk", own, luck), ("fixed", other, -luck)];
            let mut outcome = example::outcome(cc, point.seed);
            outcome.flows = flows.map(|(name, mbps, luck)| example::flow(name, cc, 1e6 * mbps + luck)).into();
            outcome.groups = bentpipe_outcome::GroupOutcome::of(&outcome.flows);
            outcome.totals = bentpipe_outcome::Totals::of(&outcome.flows);
            (point, Sample::of(&outcome, &[]))
        };
        Comparison::new(&plan, plan.points().into_iter().map(run))
    }

    #[test]
    fn flows_that_keep_their_algorithm_do_not_count_for_another() {
        let comparison = beside_fixed(&[("zenith", [12.0, 6.0]), ("cubic", [4.0, 14.0])]);
        assert_eq!(
            of_comparison(&comparison),
            "zenith carried 12.02 ± 0.02 Mbit/s in all, cubic carried 4.02 ± 0.02 Mbit/s in all: 2.99 times as \
             much. Flows of fixed, which keep their algorithm, are not counted."
        );
    }

    #[test]
    fn fairness_is_the_finding_where_goodput_hardly_differs() {
        let mut comparison = beside_fixed(&[("zenith", [10.0, 5.0]), ("cubic", [9.6, 20.0])]);
        assert_eq!(
            of_comparison(&comparison),
            "with zenith a flow of bulk got 2.01 ± 0.02 times the goodput of one of fixed, with cubic 0.4815 ± 0.0018 times."
        );
        assert_eq!(ranking(&comparison, &[])[0].cc, "zenith");
        comparison.compared = comparison.groups.clone();
        assert!(
            of_comparison(&comparison).starts_with("cubic carried 29.60 Mbit/s in all, zenith carried 15.00")
        );
    }

    #[test]
    fn flows_that_do_something_else_are_not_counted_as_browsers() {
        let mut run = example::outcome("cubic", 1);
        run.flows[0].transfers =
            Some(bentpipe_outcome::TransferOutcome { median_s: Some(1.53), ..Default::default() });
        assert_eq!(
            of_run(&run, Metric::TransferMedian),
            "One flow took 1.53 s for a page or file (median); all 2 carried 0.4020 Mbit/s in all over 100.0 s."
        );
        assert_eq!(of_run(&run, Metric::Goodput), "2 flows carried 0.4020 Mbit/s in all over 100.0 s.");
    }

    #[test]
    fn one_flow_is_no_company() {
        let mut run = example::outcome("peach", 1);
        assert_eq!(
            of_run(&run, Metric::Goodput),
            "2 flows carried 0.8020 Mbit/s in all over 100.0 s; they shared evenly."
        );
        run.flows.truncate(1);
        assert_eq!(of_run(&run, Metric::Goodput), "One flow carried 0.8020 Mbit/s in all over 100.0 s.");
        run.flows[0].completion_s = Some(8.4);
        assert_eq!(
            of_run(&run, Metric::Completion),
            "One flow took 8.40 s; carried 0.8020 Mbit/s in all over 100.0 s."
        );
    }
}
