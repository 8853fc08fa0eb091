//! File client: fetches files in sequence, each on a new connection, with pauses.

use bentpipe_base::{Duration, Instant, Rng};

use crate::Law;
use crate::act::{Act, Acts};
use crate::transfers::Transfer;

/// Bytes of the command that requests a file.
const COMMAND: u64 = 64;

/// Configuration of a session.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Mean file size before truncation, in bytes; at least one.
    pub mean_bytes: u64,
    /// Standard deviation of the lognormal file size in bytes; zero makes all files equal.
    pub deviation_bytes: u64,
    /// Maximum file size in bytes; larger files are truncated.
    pub largest_bytes: u64,
    /// Mean of the exponential pause between two files.
    pub reading: Duration,
}

impl Default for Config {
    /// FTP model of 3GPP2 C.R1002 (also in 3GPP TR 25.892). The size is lognormal with a mean of 2 MB, a deviation of 0.722 MB
    /// and a maximum of 5 MB. Pauses have a mean of 180 s.
    fn default() -> Self {
        Self {
            mean_bytes: 2_000_000,
            deviation_bytes: 722_000,
            largest_bytes: 5_000_000,
            reading: Duration::from_secs(180),
        }
    }
}

impl Config {
    fn sizes(&self) -> Law {
        let mean = self.mean_bytes as f64;
        let variation = self.deviation_bytes as f64 / mean;
        let square = libm::log1p(variation * variation);
        Law::LogNormal { mu: libm::log(mean) - square / 2.0, sigma: libm::sqrt(square) }
    }
}

/// Client that fetches files.
#[derive(Clone, Debug)]
pub struct Fetcher {
    config: Config,
    /// Time of the next request; infinite during a download.
    next: Instant,
    begun: Instant,
    size: u64,
    missing: u64,
    acts: Acts,
    transfers: Vec<Transfer>,
    rng: Rng,
}

impl Fetcher {
    /// Makes a client that requests a file at the start.
    pub fn new(config: Config, rng: Rng) -> Self {
        let next = Instant::ZERO;
        let (acts, transfers) = (Acts::default(), Vec::new());
        Self { config, next, begun: next, size: 0, missing: 0, acts, transfers, rng }
    }

    /// Returns the times from the request of a file to its last byte.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    pub(crate) fn poll_act(&mut self) -> Option<Act> {
        self.acts.poll()
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.next
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        let size = libm::round(self.config.sizes().draw(&mut self.rng)) as u64;
        self.size = size.clamp(1, self.config.largest_bytes);
        self.begun = now;
        self.ask();
    }

    fn ask(&mut self) {
        (self.next, self.missing) = (Instant::FAR_FUTURE, self.size);
        self.acts.push(Act::Open { connection: 0 });
        self.acts.push(Act::Ask { connection: 0, request: COMMAND, reply: self.size });
    }

    pub(crate) fn handle_reply(&mut self, now: Instant, connection: u32, bytes: u64) {
        if self.missing == 0 {
            return;
        }
        self.missing = self.missing.saturating_sub(bytes);
        if self.missing > 0 {
            return;
        }
        self.transfers.push(Transfer { completed_at: now, took: now.since(self.begun) });
        self.acts.push(Act::Close { connection });
        let pause = self.rng.exponential(self.config.reading.as_secs_f64());
        self.next = now + Duration::from_secs_f64(pause).max(Duration::from_millis(1));
    }

    /// The whole file is requested again.
    pub(crate) fn handle_failure(&mut self, _: Instant, _: u32) {
        if self.missing > 0 {
            self.ask();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_sizes_of_the_model_and_pauses_between_them() {
        let mut fetcher = Fetcher::new(Config::default(), Rng::stream(3, "files"));
        let (mut now, mut sum) = (Instant::ZERO, 0);
        for _ in 0..4000 {
            now = now.max(fetcher.next_timeout());
            fetcher.handle_timeout(now);
            let acts: Vec<_> = std::iter::from_fn(|| fetcher.poll_act()).collect();
            let [.., Act::Open { connection: 0 }, Act::Ask { connection: 0, reply, .. }] = acts[..] else {
                panic!("{acts:?}")
            };
            assert_eq!(fetcher.next_timeout(), Instant::FAR_FUTURE);
            sum += reply;
            now += Duration::from_secs(2);
            fetcher.handle_reply(now, 0, 1);
            fetcher.handle_reply(now, 0, reply - 1);
        }
        let mean = sum as f64 / 4000.0;
        assert!((1.95e6..2.03e6).contains(&mean), "{mean}");
        let pause = now.as_secs_f64() / 4000.0 - 2.0;
        assert!((170.0..190.0).contains(&pause), "{pause}");
        assert!(fetcher.transfers().iter().all(|transfer| transfer.took == Duration::from_secs(2)));
    }

    #[test]
    fn a_failed_file_is_fetched_again_and_its_time_goes_on() {
        let mut fetcher =
            Fetcher::new(Config { deviation_bytes: 0, ..Config::default() }, Rng::stream(3, "files"));
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        fetcher.handle_timeout(at(0));
        fetcher.handle_reply(at(1), 0, 1000);
        fetcher.handle_failure(at(2), 0);
        fetcher.handle_reply(at(3), 0, 1_999_999);
        assert_eq!(fetcher.transfers(), []);
        fetcher.handle_reply(at(4), 0, 1);
        assert_eq!(fetcher.transfers()[0].took, Duration::from_secs(4));
    }
}
