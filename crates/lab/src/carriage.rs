//! Counters of links, as columns.

use bentpipe_outcome::LinkOutcome;

use crate::column::{Column, present};

const COLUMNS: &[Column<LinkOutcome>] = &[
    Column::new("busy, %", |link| Some(100.0 * link.utilisation)),
    Column::new("delivered", |link| Some(link.delivered_packets as f64)),
    Column::new("queue drops", |link| Some(link.dropped_by_queue as f64)),
    Column::new("errors", |link| Some(link.dropped_by_error as f64)),
    Column::new("low-priority drops", |link| Some(link.dropped_low_priority as f64)),
    Column::new("mean wait, ms", |link| link.queueing_delay_ms),
    Column::new("parity", |link| if_any(link.parity_packets)),
    Column::new("repaired", |link| if_any(link.repaired_packets)),
    Column::new("gaps", |link| Some(link.gaps.map_or(0, |gaps| gaps.count) as f64)),
    Column::new("mean gap, ms", |link| Some(link.gaps?.mean_ms)),
];

fn if_any(count: u64) -> Option<f64> {
    (count > 0).then_some(count as f64)
}

/// At most `most` links, the busiest first, and the columns that at least one of all of them has.
pub(crate) fn busiest(
    links: &[LinkOutcome],
    most: usize,
) -> (Vec<&'static Column<LinkOutcome>>, Vec<&LinkOutcome>) {
    let mut busiest: Vec<_> = links.iter().collect();
    busiest.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
    busiest.truncate(most);
    (present(COLUMNS, links), busiest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn the_busiest_link_comes_first_and_parity_is_a_column_where_there_is_any() {
        let mut links = example::outcome("reno", 1).links;
        let titles =
            |links: &[LinkOutcome]| busiest(links, 9).0.iter().map(|column| column.title).collect::<Vec<_>>();
        assert!(!titles(&links).contains(&"parity"));
        let least = links.iter_mut().min_by(|a, b| a.utilisation.total_cmp(&b.utilisation)).unwrap();
        (least.utilisation, least.parity_packets, least.repaired_packets) = (1.0, 40, 3);
        let name = least.name.clone();
        assert!(titles(&links).ends_with(&["parity", "repaired", "gaps"]), "{:?}", titles(&links));
        let (columns, shown) = busiest(&links, 1);
        assert_eq!((shown.len(), &shown[0].name), (1, &name));
        assert_eq!(columns[0].show(shown[0]), "100");
    }
}
