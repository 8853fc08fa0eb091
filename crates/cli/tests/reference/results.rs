//! Metrics, columns, and fields of results and traces.

use bentpipe_lab::Metric;
use bentpipe_lab::columns::{Column, Values};

use crate::page::{begin, code, fields, table};
use crate::source;

/// Parts of `run --json` with the struct that is written, and its file.
const PARTS: [(&str, &str, &str); 17] = [
    ("The document", "outcome/src/run.rs", "Outcome"),
    ("`totals`", "outcome/src/run.rs", "Totals"),
    ("`groups`", "outcome/src/run.rs", "GroupOutcome"),
    ("`flows`", "outcome/src/flow.rs", "FlowOutcome"),
    ("`flows[].stream`", "traffic/src/outcome.rs", "StreamOutcome"),
    ("`flows[].call`", "traffic/src/outcome.rs", "CallOutcome"),
    ("`flows[].transfers`", "traffic/src/outcome.rs", "TransferOutcome"),
    ("`flows[].player`", "traffic/src/outcome.rs", "PlayerOutcome"),
    ("`flows[].split`", "outcome/src/flow.rs", "SplitOutcome"),
    ("`flows[].split.legs`", "outcome/src/flow.rs", "LegOutcome"),
    ("`flows[].bundles`", "outcome/src/flow.rs", "BundleOutcome"),
    ("`flows[].relayed`", "outcome/src/flow.rs", "RelayedOutcome"),
    ("`links`", "outcome/src/network.rs", "LinkOutcome"),
    ("`links[].gaps`", "outcome/src/network.rs", "GapOutcome"),
    ("`media`", "outcome/src/network.rs", "MediumOutcome"),
    ("`nodes`", "outcome/src/network.rs", "NodeOutcome"),
    ("`series`", "outcome/src/series.rs", "Series"),
];

pub fn page() -> String {
    let text = "Metrics of `compare`, fields of `run --json`, and columns of traces. [Metrics](../metrics.md) defines the terms.";
    let mut page = begin("Results", text);
    page.push_str("\n## Metrics and columns of `compare`\n\nThese are the columns of `--csv` and `--out`, after `scenario`, `cc`, `seed` and the varied values.\n\n");
    let row = |metric: Metric| {
        let (title, shown_unit, scale) = metric.shown();
        let better = if metric.less_is_better() { "less" } else { "more" };
        let shown = if scale == 1.0 { shown_unit.to_owned() } else { format!("{shown_unit} ({scale:e})") };
        let column = unit(metric.key());
        vec![
            code(metric.key()),
            title.to_owned(),
            metric.meaning().to_owned(),
            column,
            shown,
            better.to_owned(),
        ]
    };
    let rows: Vec<_> = Metric::ALL.into_iter().map(row).collect();
    page.push_str(&table(&["column", "title", "meaning", "unit", "in tables and reports", "better"], &rows));
    page.push_str("\nThe number in brackets is the unit of tables and reports in units of the column.\n");
    for (title, file, name) in PARTS {
        let rows: Vec<_> = fields(&source(file), name)
            .into_iter()
            .map(|field| vec![code(&field.name), unit(&field.name), field.meaning])
            .collect();
        page.push_str(&format!(
            "\n## {title} of `run --json`\n\n{}",
            table(&["field", "unit", "meaning"], &rows)
        ));
    }
    page.push_str(&trace());
    page
}

/// Unit at the end of a field's name.
fn unit(name: &str) -> String {
    Column { name: name.to_owned(), values: Values::Text(Vec::new()) }.unit().to_owned()
}

/// Fields of a trace, which are the columns of its table.
fn trace() -> String {
    let schema = bentpipe_table::trace_schema();
    let row = |field: &std::sync::Arc<arrow_schema::Field>| {
        let of = |key: &str| field.metadata().get(key).cloned().unwrap_or_default();
        let kind = match field.data_type() {
            arrow_schema::DataType::Dictionary(..) => "text".to_owned(),
            arrow_schema::DataType::List(item) => {
                format!("list of {}", item.data_type().to_string().to_lowercase())
            }
            kind => kind.to_string().to_lowercase(),
        };
        vec![code(field.name()), kind, of("unit"), of("meaning")]
    };
    let rows: Vec<_> = schema.fields().iter().map(row).collect();
    format!(
        "\n## Fields of a trace\n\nThe columns of `--trace FILE.parquet`, and the fields of each line of `--trace FILE.jsonl`. A field without a value is null, or absent from a line.\n\n{}",
        table(&["field", "type", "unit", "meaning"], &rows)
    )
}
