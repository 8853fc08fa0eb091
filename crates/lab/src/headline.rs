//! What was found, in a sentence.

use bentpipe_outcome::Outcome;

use crate::comparison::Comparison;
use crate::metric::Metric;
use crate::number::{RATE_UNIT, plus_minus, short};
use crate::plan::Setting;
use crate::stats::Summary;

/// A value of what a scenario is run for, as the end of a sentence: `took 8.40 ± 0.12 s`.
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

/// The combination at which the algorithms differ most in what the scenario is run for: what an example should show.
pub fn most_telling(comparison: &Comparison) -> Option<&[Setting]> {
    let spread = |vary: &[Setting]| {
        let means = || ranking(comparison, vary).into_iter().filter_map(|(_, summary)| summary.mean);
        let (low, high) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
        if high > 0.0 { high / low.max(high * 1e-9) } else { 1.0 }
    };
    comparison.combinations().into_iter().max_by(|a, b| spread(a).total_cmp(&spread(b)))
}

/// The algorithms that have a value of what the scenario is run for at a combination, the best first.
pub(crate) fn ranking<'a>(comparison: &'a Comparison, vary: &[Setting]) -> Vec<(&'a str, Summary)> {
    let summary = |cc| Some((cc, comparison.row(cc, vary)?.summary(comparison.measures)));
    let mut all: Vec<_> = comparison.algorithms().into_iter().filter_map(summary).collect();
    all.retain(|(_, summary)| summary.mean.is_some());
    let mean = |of: &(&str, Summary)| of.1.mean.unwrap_or_default();
    all.sort_by(|a, b| mean(b).total_cmp(&mean(a)));
    if comparison.measures.less_is_better() {
        all.reverse();
    }
    all
}

/// What a comparison found.
pub(crate) fn of_comparison(comparison: &Comparison) -> String {
    let Some(vary) = most_telling(comparison) else { return "Nothing finished.".into() };
    let ranking = ranking(comparison, vary);
    let (Some(best), Some(last)) = (ranking.first(), ranking.last()) else { return String::new() };
    let metric = comparison.measures;
    let at = if vary.is_empty() { String::new() } else { format!("at {}, ", shown(vary)) };
    let [first, second] = [best, last].map(|(_, summary)| said(metric, summary));
    let sentence = match ranking.len() {
        1 => format!("{at}{} {first}.", best.0),
        _ if alike(&best.1, &last.1) => {
            format!("No two of them differ for certain: even {at}{} {first} and {} {second}.", best.0, last.0)
        }
        _ => {
            let at = if at.is_empty() { at } else { format!("Where they differ most, {at}") };
            format!("{at}{} {first}, {} {second}{}.", best.0, last.0, times(metric, (&best.1, &last.1)))
        }
    };
    sentence + &unfinished(comparison, vary)
}

/// Whether what is known does not tell the two apart.
fn alike(best: &Summary, last: &Summary) -> bool {
    match (best.mean, best.ci95, last.mean, last.ci95) {
        (Some(a), Some(of_a), Some(b), Some(of_b)) => (a - b).abs() <= of_a + of_b,
        (a, _, b, _) => a == b,
    }
}

/// How many times the larger of the two values is the smaller, where that means something.
fn times(metric: Metric, (best, last): (&Summary, &Summary)) -> String {
    let (Some(best), Some(last)) = (best.mean, last.mean) else { return String::new() };
    match metric {
        Metric::Mos | Metric::RealTimeIndex => String::new(),
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

/// What one run found.
pub(crate) fn of_run(outcome: &Outcome, metric: Metric) -> String {
    let flows = match outcome.flows.len() {
        1 => "One flow".to_owned(),
        many => format!("{many} flows"),
    };
    let goodput = short(outcome.totals.goodput_bps / RATE_UNIT.0);
    let seconds = short(outcome.simulated_s);
    let carried = format!("{flows} carried {goodput} {} in all over {seconds} s", RATE_UNIT.1);
    match metric.of(outcome).filter(|_| metric != Metric::Goodput) {
        Some(value) => {
            let mean = if outcome.flows.len() > 1 { "on average " } else { "" };
            let value = said(metric, &Summary::of(&[value]));
            format!("{flows} {mean}{value}; {}", carried[flows.len() + 1..].to_owned() + ".")
        }
        None if outcome.flows.len() > 1 => format!("{carried}; {}.", fairness(outcome.totals.jain_index)),
        None => carried + ".",
    }
}

fn fairness(jain: f64) -> &'static str {
    match jain {
        x if x > 0.95 => "they shared evenly",
        x if x > 0.8 => "they shared fairly evenly",
        _ => "they shared unevenly",
    }
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
        assert!(of_comparison(&equal).starts_with("No two of them differ for certain"));
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
                        Mbit/s, reno carried 0.4040 ± 0.0050 Mbit/s: 1.99 times as much.";
        assert_eq!(text, expected);
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
