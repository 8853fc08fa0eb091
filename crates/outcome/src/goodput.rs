//! When rates settle: the goodput of each flow is sampled once a second.

use bentpipe_base::{Duration, Instant};

/// Time between two samples, over which goodput is averaged.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Looks over which it must hold.
const HELD: usize = 10;

/// Finds the first second from which on the goodput of each of ten seconds lies within 10 % of their mean.
/// There is one for each of very many flows.
#[derive(Clone, Debug)]
struct Convergence {
    /// Bytes of the latest seconds, in turn.
    latest: Latest,
    seen: u32,
    /// Number of the second, from 0; [`NEVER`] while there is none.
    found: u32,
}

/// Numbers of bytes in the latest seconds: half as long as long as all are below 2^32.
#[derive(Clone, Debug)]
enum Latest {
    Few([u32; HELD]),
    Many(Box<[u64; HELD]>),
}

impl Latest {
    fn set(&mut self, place: usize, bytes: u64) {
        match (&mut *self, u32::try_from(bytes)) {
            (Self::Few(latest), Ok(bytes)) => latest[place] = bytes,
            (Self::Few(_), Err(_)) => {
                let mut latest = Box::new(self.all());
                latest[place] = bytes;
                *self = Self::Many(latest);
            }
            (Self::Many(latest), _) => latest[place] = bytes,
        }
    }

    fn all(&self) -> [u64; HELD] {
        match self {
            Self::Few(latest) => latest.map(u64::from),
            Self::Many(latest) => **latest,
        }
    }
}

/// No second.
const NEVER: u32 = u32::MAX;

impl Default for Convergence {
    fn default() -> Self {
        Self { latest: Latest::Few([0; HELD]), seen: 0, found: NEVER }
    }
}

impl Convergence {
    /// Notes the bytes of the next second.
    fn note(&mut self, bytes: u64) {
        if self.found != NEVER {
            return;
        }
        self.latest.set(self.seen as usize % HELD, bytes);
        self.seen += 1;
        let latest = self.latest.all();
        let sum = latest.iter().sum::<u64>();
        // |bytes - mean| <= mean / 10, in whole numbers.
        let is_near = |bytes: &u64| (bytes * 100).abs_diff(sum * 10) <= sum;
        if self.seen >= HELD as u32 && sum > 0 && latest.iter().all(is_near) {
            self.found = self.seen - HELD as u32;
        }
    }

    /// Number of the second, from 0.
    fn found(&self) -> Option<u64> {
        (self.found != NEVER).then_some(u64::from(self.found))
    }
}

/// The goodput of something that began at some time.
#[derive(Clone, Debug, Default)]
struct Gauge {
    /// Bytes delivered at the sample before.
    delivered: u64,
    convergence: Convergence,
}

impl Gauge {
    fn sample(&mut self, now: Instant, start: Instant, delivered: u64) {
        if now > first_sample(start) {
            self.convergence.note(delivered.saturating_sub(self.delivered));
        }
        self.delivered = delivered;
    }

    /// Time from the start until the goodput had settled.
    fn convergence(&self, start: Instant) -> Option<Duration> {
        Some((first_sample(start) + SAMPLE_INTERVAL * self.convergence.found()?).since(start))
    }
}

/// Time from `start`, when the first of several flows began, until their goodput had settled; they had delivered so many bytes at each sample.
pub fn convergence(start: Instant, delivered: &[u64]) -> Option<Duration> {
    let mut all = Gauge::default();
    for (second, delivered) in (0..).zip(delivered) {
        all.sample(Instant::ZERO + SAMPLE_INTERVAL * second, start, *delivered);
    }
    all.convergence(start)
}

/// When the first full second begins of something that begins at `start`: samples are taken at whole seconds.
fn first_sample(start: Instant) -> Instant {
    Instant::ZERO + SAMPLE_INTERVAL * start.as_nanos().div_ceil(SAMPLE_INTERVAL.as_nanos())
}

/// The goodput of each flow.
#[derive(Debug, Default)]
pub struct GoodputSampler {
    flows: Vec<Gauge>,
    /// Bytes delivered by now, by flow.
    pub delivered: Vec<u64>,
}

impl GoodputSampler {
    /// Samples the flows that began at these times and have delivered so many bytes by now; all of them together, in bytes.
    pub fn sample(&mut self, now: Instant, starts: impl ExactSizeIterator<Item = Instant>) -> u64 {
        self.flows.resize_with(starts.len(), Gauge::default);
        for ((start, gauge), delivered) in starts.zip(&mut self.flows).zip(&self.delivered) {
            gauge.sample(now, start, *delivered);
        }
        self.delivered.iter().sum()
    }

    /// Time from the start of a flow until its goodput had settled.
    pub fn of_flow(&self, flow: usize, start: Instant) -> Option<Duration> {
        self.flows.get(flow)?.convergence(start)
    }

    /// Takes over what another one, where the flow has another number, knows of a flow.
    pub fn take_over(&mut self, flow: usize, (other, number): (&mut Self, usize)) {
        self.flows.resize_with(self.flows.len().max(flow + 1), Gauge::default);
        if let Some(gauge) = other.flows.get_mut(number) {
            std::mem::swap(&mut self.flows[flow], gauge);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: impl IntoIterator<Item = u64>) -> Option<u64> {
        let mut convergence = Convergence::default();
        bytes.into_iter().for_each(|bytes| convergence.note(bytes));
        convergence.found()
    }

    #[test]
    fn one_two_three_four_four_four_converges_after_three_seconds() {
        let rates = [1, 2, 3].into_iter().chain([4; 10]);
        assert_eq!(found(rates.clone()), Some(3));
        assert_eq!(found(rates.take(12)), None, "ten seconds must follow");
    }

    #[test]
    fn a_tenth_of_the_mean_is_near_enough_and_more_is_not() {
        assert_eq!(found([90, 110, 90, 110, 90, 110, 90, 110, 90, 110]), Some(0));
        assert_eq!(found([89, 111, 90, 110, 90, 110, 90, 110, 90, 110]), None);
        assert_eq!(found([0; 20]), None, "silence is no rate");
        assert_eq!(found([90, 110].map(|bytes| bytes << 26).repeat(5)), Some(0), "of many bytes as well");
    }

    #[test]
    fn time_counts_from_the_start_and_seconds_from_the_first_full_one() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut gauge = Gauge::default();
        (0..=14).for_each(|second| gauge.sample(at(1000 * second), at(400), 1000 * second));
        assert_eq!(gauge.convergence(at(400)), Some(Duration::from_millis(600)));
    }
}
