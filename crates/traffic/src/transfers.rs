use bentpipe_base::Duration;

use crate::outcome::TransferOutcome;

/// Durations of complete transfers.
#[derive(Clone, Default, Debug)]
pub struct Transfers(Vec<Duration>);

impl Transfers {
    /// Adds a duration.
    pub(crate) fn note(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Returns the number of transfers.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the mean duration; `None` without transfers.
    pub fn mean(&self) -> Option<Duration> {
        let sum = self.0.iter().fold(Duration::ZERO, |sum, time| sum + *time);
        (!self.0.is_empty()).then(|| sum / self.count())
    }

    /// Returns the `p` quantile (above 0 to 1) of the durations; `None` without transfers.
    pub fn quantile(&self, p: f64) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = libm::ceil(p * sorted.len() as f64) as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }

    /// Returns the measures for results; `failed_connections` connections ended early.
    pub fn outcome(&self, failed_connections: u64) -> TransferOutcome {
        let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
        TransferOutcome {
            completed: self.count(),
            failed_connections,
            mean_s: seconds(self.mean()),
            median_s: seconds(self.quantile(0.5)),
            p95_s: seconds(self.quantile(0.95)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_occurred() {
        let mut transfers = Transfers::default();
        assert_eq!((transfers.mean(), transfers.quantile(0.5)), (None, None));
        for seconds in [5, 1, 4, 2] {
            transfers.note(Duration::from_secs(seconds));
        }
        let quantile = |p| transfers.quantile(p).unwrap().as_secs_f64();
        assert_eq!((quantile(0.01), quantile(0.5), quantile(0.75), quantile(0.95)), (1.0, 2.0, 4.0, 5.0));
        assert_eq!(transfers.mean(), Some(Duration::from_secs(3)));
    }
}
