//! Results of flow groups, as columns.

use bentpipe_outcome::GroupOutcome;

use crate::column::{Column, present};

const COLUMNS: &[Column<GroupOutcome>] = &[
    Column::new("flows", |group| Some(group.flows as f64)),
    Column::new("goodput, Mbit/s", |group| Some(group.goodput_bps / 1e6)),
    Column::new("fairness (Jain)", |group| Some(group.jain_index).filter(|_| group.flows > 1)),
    Column::new("sent", |group| Some(group.sent_segments as f64)),
    Column::new("retransmitted", |group| Some(group.retransmitted_segments as f64)),
    Column::new("timeouts", |group| Some(group.timeouts as f64)),
    Column::new("completed", |group| Some(group.completed as f64).filter(|count| *count > 0.0)),
    Column::new("completion, s", |group| group.completion_s),
    Column::new("median of pages or files, s", |group| group.transfer_median_s),
    Column::new("MOS", |group| group.mos),
    Column::new("real-time index", |group| group.real_time_index),
    Column::new("video, Mbit/s", |group| Some(group.video_rate_bps? / 1e6)),
];

/// Delays of groups, in a table of their own.
const DELAYS: &[Column<GroupOutcome>] = &[
    Column::new("RTT: median, ms", |group| Some(group.delays.rtt?.p50_ms)),
    Column::new("95 %", |group| Some(group.delays.rtt?.p95_ms)),
    Column::new("99 %", |group| Some(group.delays.rtt?.p99_ms)),
    Column::new("smoothed RTT: median, ms", |group| Some(group.delays.smoothed_rtt?.p50_ms)),
    Column::new("95 %", |group| Some(group.delays.smoothed_rtt?.p95_ms)),
    Column::new("one-way delay of data: median, ms", |group| Some(group.delays.one_way_delay?.p50_ms)),
    Column::new("95 %", |group| Some(group.delays.one_way_delay?.p95_ms)),
    Column::new("99 %", |group| Some(group.delays.one_way_delay?.p99_ms)),
];

/// The columns of delays that at least one group has.
pub(crate) fn delays(groups: &[GroupOutcome]) -> Vec<&'static Column<GroupOutcome>> {
    present(DELAYS, groups)
}

/// The columns that at least one of several groups has; none where one group is all there is.
pub(crate) fn columns(groups: &[GroupOutcome]) -> Vec<&'static Column<GroupOutcome>> {
    if groups.len() > 1 { present(COLUMNS, groups) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn several_groups_are_summed_up_in_the_order_of_their_flows() {
        let mut flows = vec![example::flow("web.0", "reno", 1e6), example::flow("bulk.0", "reno", 3e6)];
        flows.push(example::flow("bulk.1", "reno", 1e6));
        (flows[0].completion_s, flows[1].completion_s) = (Some(2.0), None);
        let groups = GroupOutcome::of(&flows);
        let names: Vec<_> = groups.iter().map(|group| (group.name.as_str(), group.flows)).collect();
        assert_eq!(names, [("web", 1), ("bulk", 2)]);
        assert_eq!((groups[1].goodput_bps, groups[1].jain_index, groups[1].sent_segments), (4e6, 0.8, 2020));
        assert_eq!(
            [&groups[0], &groups[1]].map(|group| (group.completed, group.completion_s)),
            [(1, Some(2.0)), (0, None)]
        );
        let columns = columns(&groups);
        let shown = |title: &str| {
            let column = columns.iter().find(|column| column.title == title).unwrap();
            [0, 1].map(|group| column.show(&groups[group]))
        };
        assert_eq!(shown("goodput, Mbit/s"), ["1", "4"]);
        assert_eq!(shown("completion, s"), ["2", "–"]);
        assert!(!columns.iter().any(|column| column.title == "MOS"));
        assert!(super::columns(&groups[..1]).is_empty(), "all there is stands in the totals");
    }
}
