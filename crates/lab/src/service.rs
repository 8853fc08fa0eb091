//! How applications were served, as columns: shown where at least one flow has them.

use bentpipe_sim::FlowOutcome;

use crate::table::short;

/// A number that some flows have.
pub(crate) struct Column {
    /// Heading, with the unit.
    pub title: &'static str,
    /// The number of a flow, in that unit.
    of: fn(&FlowOutcome) -> Option<f64>,
}

const fn column(title: &'static str, of: fn(&FlowOutcome) -> Option<f64>) -> Column {
    Column { title, of }
}

const COLUMNS: &[Column] = &[
    column("converged after, s", |flow| flow.convergence_s),
    column("real-time index", |flow| Some(flow.stream?.real_time_index)),
    column("packets late, %", |flow| Some(100.0 * flow.stream?.delayed_packets_rate)),
    column("packets lost, %", |flow| Some(100.0 * flow.stream?.packet_drop_rate)),
    column("frames missed, %", |flow| Some(100.0 * flow.stream?.frames_missed)),
    column("MOS", |flow| Some(flow.call?.mos)),
    column("mouth to ear, ms", |flow| Some(flow.call?.mouth_to_ear_ms)),
    column("not played, %", |flow| Some(100.0 * flow.call?.lost)),
    column("transfers", |flow| Some(flow.transfers?.completed as f64)),
    column("median, s", |flow| flow.transfers?.median_s),
    column("95th percentile, s", |flow| flow.transfers?.p95_s),
    column("video, Mbit/s", |flow| Some(flow.player?.mean_rate_bps? / 1e6)),
    column("startup, s", |flow| flow.player?.startup_s),
    column("stalls", |flow| Some(flow.player?.stalls as f64)),
    column("rebuffering, %", |flow| Some(100.0 * flow.player?.rebuffering_ratio)),
    column("bundles delivered, %", |flow| {
        let bundles = flow.bundles.filter(|bundles| bundles.made > 0)?;
        Some(100.0 * bundles.delivered as f64 / bundles.made as f64)
    }),
    column("mean transfer, s", |flow| flow.bundles?.mean_transfer_s),
    column("mean confirmation, s", |flow| flow.bundles?.mean_confirmation_s),
];

impl Column {
    /// The number of a flow as text: counts are whole.
    pub fn show(&self, flow: &FlowOutcome) -> String {
        match (self.of)(flow) {
            Some(value) if value.fract() == 0.0 => format!("{value}"),
            value => value.map_or("–".into(), short),
        }
    }
}

/// The columns that at least one of these flows has.
pub(crate) fn columns(flows: &[FlowOutcome]) -> Vec<&'static Column> {
    COLUMNS.iter().filter(|column| flows.iter().any(|flow| (column.of)(flow).is_some())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn only_what_a_flow_has_is_a_column() {
        let mut flows = example::outcome("reno", 1).flows;
        assert!(columns(&flows).is_empty());
        flows[1].stream = Some(bentpipe_sim::StreamOutcome {
            frames_sent: 10,
            frames_missed: 0.25,
            real_time_index: 0.9,
            delayed_packets_rate: 0.05,
            packet_drop_rate: 0.01,
        });
        let columns = columns(&flows);
        let titles: Vec<_> = columns.iter().map(|column| column.title).collect();
        assert_eq!(titles, ["real-time index", "packets late, %", "packets lost, %", "frames missed, %"]);
        assert_eq!([0, 1].map(|flow| columns[3].show(&flows[flow])), ["–", "25"]);
        assert_eq!(columns[0].show(&flows[1]), "0.9000");
    }
}
