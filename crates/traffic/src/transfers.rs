use bentpipe_base::{Duration, Instant};

use crate::outcome::TransferOutcome;

/// A complete page or file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Time of the last byte.
    pub completed_at: Instant,
    /// Time from the request to the last byte.
    pub took: Duration,
}

impl TransferOutcome {
    /// Returns the measures of these transfers; `failed_connections` connections ended early.
    pub fn of(transfers: &[Transfer], failed_connections: u64) -> Self {
        let mut sorted: Vec<Duration> = transfers.iter().map(|transfer| transfer.took).collect();
        sorted.sort_unstable();
        let completed = sorted.len() as u64;
        let sum = sorted.iter().fold(Duration::ZERO, |sum, time| sum + *time);
        let quantile = |p: f64| {
            let rank = libm::ceil(p * sorted.len() as f64) as usize;
            sorted.get(rank.saturating_sub(1)).map(|time| time.as_secs_f64())
        };
        Self {
            completed,
            failed_connections,
            mean_s: (completed > 0).then(|| (sum / completed).as_secs_f64()),
            median_s: quantile(0.5),
            p95_s: quantile(0.95),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_occurred() {
        let of = |seconds: &[u64]| {
            let transfer =
                |secs: &u64| Transfer { completed_at: Instant::ZERO, took: Duration::from_secs(*secs) };
            TransferOutcome::of(&seconds.iter().map(transfer).collect::<Vec<_>>(), 3)
        };
        assert_eq!(of(&[]), TransferOutcome { failed_connections: 3, ..TransferOutcome::default() });
        let four = of(&[5, 1, 4, 2]);
        assert_eq!(
            (four.completed, four.mean_s, four.median_s, four.p95_s),
            (4, Some(3.0), Some(2.0), Some(5.0))
        );
    }
}
