//! Results of applications, as columns; present if at least one flow has them.

use bentpipe_outcome::FlowOutcome;

use crate::column::{Column, present};

const COLUMNS: &[Column<FlowOutcome>] = &[
    Column::new("converged after, s", |flow| flow.convergence_s),
    Column::new("real-time index", |flow| Some(flow.stream?.real_time_index)),
    Column::new("packets late, %", |flow| Some(100.0 * flow.stream?.delayed_packets_rate)),
    Column::new("packets lost, %", |flow| Some(100.0 * flow.stream?.packet_drop_rate)),
    Column::new("frames missed, %", |flow| Some(100.0 * flow.stream?.frames_missed)),
    Column::new("MOS", |flow| Some(flow.call?.mos)),
    Column::new("mouth to ear, ms", |flow| Some(flow.call?.mouth_to_ear_ms)),
    Column::new("not played, %", |flow| Some(100.0 * flow.call?.lost)),
    Column::new("transfers", |flow| Some(flow.transfers?.completed as f64)),
    Column::new("median, s", |flow| flow.transfers?.median_s),
    Column::new("95th percentile, s", |flow| flow.transfers?.p95_s),
    Column::new("video, Mbit/s", |flow| Some(flow.player?.mean_rate_bps? / 1e6)),
    Column::new("startup, s", |flow| flow.player?.startup_s),
    Column::new("stalls", |flow| Some(flow.player?.stalls as f64)),
    Column::new("rebuffering, %", |flow| Some(100.0 * flow.player?.rebuffering_ratio)),
    Column::new("bundles delivered, %", |flow| {
        let bundles = flow.bundles.filter(|bundles| bundles.made > 0)?;
        Some(100.0 * bundles.delivered as f64 / bundles.made as f64)
    }),
    Column::new("mean transfer, s", |flow| flow.bundles?.mean_transfer_s),
    Column::new("mean confirmation, s", |flow| flow.bundles?.mean_confirmation_s),
    Column::new("kept until confirmed, kB", |flow| Some(flow.relayed?.most_kept_bytes as f64 / 1e3)),
    Column::new("retransmitted end to end, kB", |flow| Some(flow.relayed?.resent_bytes as f64 / 1e3)),
];

/// The columns that at least one of these flows has.
pub(crate) fn columns(flows: &[FlowOutcome]) -> Vec<&'static Column<FlowOutcome>> {
    present(COLUMNS, flows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn only_what_a_flow_has_is_a_column() {
        let mut flows = example::outcome("reno", 1).flows;
        assert!(columns(&flows).is_empty());
        flows[1].stream = Some(bentpipe_outcome::StreamOutcome {
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
