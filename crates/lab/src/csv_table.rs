//! Results for notebooks: one line for each run.

use std::io::Write;

use crate::columns::{Column, Values, legend, runs};
use crate::comparison::Comparison;
use crate::origin::Origin;

/// The last columns, which are the same in each line, and their meanings.
const ORIGIN: [[&str; 2]; 2] = [
    ["version", "version, commit and state of the source of Bentpipe"],
    ["files", "files that were read, with the first twelve digits of their SHA-256"],
];

/// Writes one line per run; `docs/csv.md` describes the columns.
///
/// # Errors
///
/// Errors of `out`.
pub fn write((comparison, origin): (&Comparison, &Origin), out: impl Write) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let columns = runs(comparison);
    let version = format!("{} {}", comparison.version, origin.build.short());
    let (version, files) = (version.trim_end().to_owned(), origin.files_in_short());
    let names = columns.iter().map(|column| column.name.as_str());
    writer.write_record(names.chain(ORIGIN.iter().map(|[name, _]| *name)))?;
    let lines = comparison.rows.iter().map(|row| row.samples.len()).sum();
    for line in 0..lines {
        let fields = columns.iter().map(|column| field(&column.values, line));
        writer.write_record(fields.chain([version.clone(), files.clone()]))?;
    }
    writer.flush()?;
    Ok(())
}

/// Writes name, unit and meaning of each column of [`write()`].
///
/// # Errors
///
/// Errors of `out`.
pub fn write_legend(comparison: &Comparison, out: impl Write) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["column", "unit", "meaning"])?;
    for line in legend(comparison) {
        writer.write_record(line)?;
    }
    ORIGIN.iter().try_for_each(|[name, meaning]| writer.write_record([name, "", meaning]))?;
    writer.flush()?;
    Ok(())
}

/// Writes columns as they are.
///
/// # Errors
/// Those of `out`.
pub fn write_columns(columns: &[Column], out: impl Write) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(|column| &column.name))?;
    for line in 0..columns.first().map_or(0, Column::lines) {
        writer.write_record(columns.iter().map(|column| field(&column.values, line)))?;
    }
    writer.flush()?;
    Ok(())
}

/// Returns the text of a field; empty without a value.
fn field(values: &Values, line: usize) -> String {
    match values {
        Values::Text(values) => values[line].clone().unwrap_or_default(),
        Values::Whole(values) => values[line].map_or(String::new(), |value| value.to_string()),
        Values::Number(values) => values[line].map_or(String::new(), clean),
        Values::Typed(values) => values[line].0.clone(),
    }
}

/// Formats a number with nine significant digits, which hides rounding errors of binary numbers.
fn clean(value: f64) -> String {
    format!("{value:.8e}").parse::<f64>().unwrap_or(value).to_string()
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
        comparison.groups = vec!["voice".into(), "bulk".into()];
        let mut bytes = Vec::new();
        write((&comparison, &Origin::default()), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let head = text.lines().next().unwrap();
        assert!(head.contains(",flow_goodput_bps.voice,flow_goodput_bps.bulk,goodput_bps.bulk,"), "{text}");
        assert!(text.lines().nth(1).unwrap().contains(",64000,201000,402000,"), "{text}");
    }

    #[test]
    fn one_line_for_each_run() {
        let mut bytes = Vec::new();
        write((&example::comparison(), &Origin::default()), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let mut lines = text.lines();
        let head = "scenario,cc,seed,link.satellite.loss.rate,goodput_bps,goodput_segments_per_s,jain_index,\
                    retransmitted_segments,timeouts,probe_overhead,completion_s,throughput_bps,convergence_s,version,files";
        assert_eq!(lines.next(), Some(head));
        assert_eq!(lines.next(), Some("example,reno,1,1e-4,402000,50.25,1,20,2,0,,406020,,0.1.0,"));
        assert_eq!(lines.count(), 11);
    }
}
