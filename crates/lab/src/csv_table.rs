//! Results for notebooks: one line for each run.

use std::io::Write;

use crate::comparison::{Comparison, Metric, Row, Sample, unique};

/// Writes one line for each run; the columns stand in `docs/csv.md`.
///
/// # Errors
/// Those of `out`.
pub fn write(comparison: &Comparison, out: impl Write) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let keys = comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
    let keys = keys.iter().map(|setting| setting.key.as_str());
    let metrics = metrics(comparison);
    let names = metrics.iter().map(|metric| metric.key().to_owned());
    let groups = groups(comparison);
    let of_groups = groups.iter().map(|group| format!("flow_goodput_bps.{group}"));
    let head = ["scenario", "cc", "seed"].into_iter().chain(keys).map(str::to_owned);
    writer.write_record(head.chain(names).chain(of_groups))?;
    for row in &comparison.rows {
        for sample in &row.samples {
            let of_groups =
                groups.iter().map(|group| sample.groups.get(*group).copied().map_or(String::new(), clean));
            writer.write_record(
                line((&comparison.scenario, &metrics), row, sample).into_iter().chain(of_groups),
            )?;
        }
    }
    writer.flush()?;
    Ok(())
}

/// The flow groups, where there are several.
fn groups(comparison: &Comparison) -> Vec<&str> {
    let samples = comparison.rows.iter().flat_map(|row| &row.samples);
    let names = unique(samples.flat_map(|sample| sample.groups.keys().map(String::as_str)));
    if names.len() > 1 { names } else { Vec::new() }
}

/// A number with nine digits that matter, so that what was computed in binary reads as what it is.
fn clean(value: f64) -> String {
    format!("{value:.8e}").parse::<f64>().unwrap_or(value).to_string()
}

/// The columns of metrics: always the same, then those that have a meaning here.
fn metrics(comparison: &Comparison) -> Vec<Metric> {
    let always = Metric::ALL.into_iter().filter(|metric| !metric.is_optional());
    always.chain(comparison.optional_metrics()).collect()
}

fn line((scenario, metrics): (&str, &[Metric]), row: &Row, sample: &Sample) -> Vec<String> {
    let head = [scenario.to_owned(), row.cell.cc.clone(), sample.seed.to_string()];
    let values = row.cell.vary.iter().map(|setting| setting.value.0.clone());
    let number = |metric: &Metric| sample.get(*metric).map_or(String::new(), clean);
    head.into_iter().chain(values).chain(metrics.iter().map(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn numbers_are_clean_and_groups_have_columns() {
        assert_eq!(
            [0.1 + 0.2, 1e-5, 402_000.0, 1.0 / 3.0].map(clean),
            ["0.3", "0.00001", "402000", "0.333333333"]
        );
        let mut comparison = example::comparison();
        for sample in comparison.rows.iter_mut().flat_map(|row| &mut row.samples) {
            sample.groups.insert("voice".into(), 64_000.0);
        }
        let mut bytes = Vec::new();
        write(&comparison, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.lines().next().unwrap().ends_with(",flow_goodput_bps.bulk,flow_goodput_bps.voice"),
            "{text}"
        );
        assert!(text.lines().nth(1).unwrap().ends_with(",201000,64000"), "{text}");
    }

    #[test]
    fn one_line_for_each_run() {
        let mut bytes = Vec::new();
        write(&example::comparison(), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let mut lines = text.lines();
        let head = "scenario,cc,seed,link.satellite.loss.rate,goodput_bps,goodput_segments_per_s,jain_index,\
                    retransmitted_segments,timeouts,probe_overhead,completion_s,throughput_bps,convergence_s";
        assert_eq!(lines.next(), Some(head));
        assert_eq!(lines.next(), Some("example,reno,1,1e-4,402000,50.25,1,20,2,0,,406020,"));
        assert_eq!(lines.count(), 11);
    }
}
