//! Results for notebooks: one line for each run.

use std::io::Write;

use crate::comparison::{Comparison, Metric, Row, Sample};

/// Writes one line for each run; the columns stand in `docs/csv.md`.
///
/// # Errors
/// Those of `out`.
pub fn write(comparison: &Comparison, out: impl Write) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let keys = comparison.rows.first().map_or(&[][..], |row| &row.cell.vary);
    let keys = keys.iter().map(|setting| setting.key.as_str());
    let metrics = metrics(comparison);
    let names = metrics.iter().map(|metric| metric.key());
    writer.write_record(["scenario", "cc", "seed"].into_iter().chain(keys).chain(names))?;
    for row in &comparison.rows {
        for sample in &row.samples {
            writer.write_record(line((&comparison.scenario, &metrics), row, sample))?;
        }
    }
    writer.flush()?;
    Ok(())
}

/// The columns of metrics: always the same, then those that have a meaning here.
fn metrics(comparison: &Comparison) -> Vec<Metric> {
    let always = Metric::ALL.into_iter().filter(|metric| !metric.is_optional());
    always.chain(comparison.optional_metrics()).collect()
}

fn line((scenario, metrics): (&str, &[Metric]), row: &Row, sample: &Sample) -> Vec<String> {
    let head = [scenario.to_owned(), row.cell.cc.clone(), sample.seed.to_string()];
    let values = row.cell.vary.iter().map(|setting| setting.value.0.clone());
    let number = |metric: &Metric| sample.get(*metric).map_or(String::new(), |value| value.to_string());
    head.into_iter().chain(values).chain(metrics.iter().map(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

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
