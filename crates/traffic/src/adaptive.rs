//! Player of adaptive video as in DASH (ISO/IEC 23009-1). The server holds the video in segments of equal playing time, each in
//! several qualities. The player selects the quality of each segment when it requests it.

use bentpipe_base::{Duration, Instant, Rate};

use crate::act::{Act, Acts};
use crate::outcome::PlayerOutcome;

/// Bytes of a request.
const REQUEST: u64 = 300;
/// Number of downloads in the throughput average.
const SAMPLES: usize = 5;

/// Quality selection of the player.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Logic {
    /// By the buffer level: BBA-0 of Huang, Johari, McKeown, Trunnell and Watson ("A Buffer-Based Approach to Rate Adaptation",
    /// SIGCOMM 2014). Below the reservoir it selects the lowest quality, above reservoir plus cushion the highest. In between the
    /// rate is linear in the level.
    Buffer {
        /// Reservoir as a fraction of the buffer.
        reservoir: f64,
        /// Cushion as a fraction of the buffer; the sum of both is at most 1.
        cushion: f64,
    },
    /// By the harmonic mean throughput of the last five segments, times a factor.
    Throughput {
        /// Factor, up to 1.
        safety: f64,
    },
}

impl Logic {
    /// The paper's buffer of 240 s: a reservoir of 90 s, and the highest quality from 90 % on.
    pub const BUFFER: Self = Self::Buffer { reservoir: 0.375, cushion: 0.525 };
    /// 0.9 times the throughput.
    pub const THROUGHPUT: Self = Self::Throughput { safety: 0.9 };
}

/// Configuration of a player and its video.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Rates of the qualities in ascending order, at least one.
    pub ladder: Vec<Rate>,
    /// Playing time of a segment, above zero.
    pub segment: Duration,
    /// Maximum playing time in the buffer, at least one segment.
    pub buffer: Duration,
    /// Playing time in the buffer that starts the playback, and restarts it after a stall.
    pub startup: Duration,
    /// Quality selection.
    pub logic: Logic,
    /// Playing time of the video; `None` for an endless video.
    pub length: Option<Duration>,
}

impl Default for Config {
    /// Segments of 4 s in six qualities from 300 kbit/s to 5 Mbit/s, a buffer of 60 s, and a start at 4 s.
    fn default() -> Self {
        Self {
            ladder: [300, 750, 1200, 1850, 2850, 5000].map(|kbps| Rate::from_bps(kbps * 1000)).to_vec(),
            segment: Duration::from_secs(4),
            buffer: Duration::from_secs(60),
            startup: Duration::from_secs(4),
            logic: Logic::BUFFER,
            length: None,
        }
    }
}

/// Quality measures of a viewing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Viewing {
    /// Time from the start to the playback; `None` if it never started.
    pub startup: Option<Duration>,
    /// Number of stalls.
    pub stalls: u64,
    /// Total duration of stalls.
    pub stalled: Duration,
    /// Playing time shown.
    pub played: Duration,
    /// Mean rate of the fetched segments in bit/s; `None` without segments.
    pub mean_rate_bps: Option<f64>,
    /// Quality changes between consecutive segments.
    pub switches: u64,
}

impl Viewing {
    /// Returns the measures as results show them.
    pub fn outcome(&self) -> PlayerOutcome {
        let (stalled, played) = (self.stalled.as_secs_f64(), self.played.as_secs_f64());
        PlayerOutcome {
            startup_s: self.startup.map(Duration::as_secs_f64),
            stalls: self.stalls,
            stalled_s: stalled,
            rebuffering_ratio: if stalled > 0.0 { stalled / (stalled + played) } else { 0.0 },
            mean_rate_bps: self.mean_rate_bps,
            switches: self.switches,
        }
    }
}

/// Playback state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Picture {
    /// Not started.
    Waiting,
    Moving,
    /// Stalled since this time.
    Stalled(Instant),
    /// Ended.
    Over,
}

/// Segment being downloaded.
#[derive(Clone, Copy, Debug)]
struct Download {
    asked: Instant,
    size: u64,
    missing: u64,
}

/// The player.
#[derive(Clone, Debug)]
pub struct Player {
    config: Config,
    begun: Instant,
    picture: Picture,
    /// Playing time in the buffer at `clock`.
    level: Duration,
    clock: Instant,
    download: Option<Download>,
    /// Quality of the last requested segment.
    quality: usize,
    /// Throughputs of the last downloads in bit/s.
    throughputs: Vec<f64>,
    /// Number of fetched segments.
    fetched: u64,
    rates_sum_bps: u64,
    connected: bool,
    viewing: Viewing,
    acts: Acts,
}

impl Player {
    /// Makes a player that requests the first segment at its first call.
    pub fn new(config: Config) -> Self {
        let viewing = Viewing {
            startup: None,
            stalls: 0,
            stalled: Duration::ZERO,
            played: Duration::ZERO,
            mean_rate_bps: None,
            switches: 0,
        };
        Self {
            config,
            begun: Instant::FAR_FUTURE,
            picture: Picture::Waiting,
            level: Duration::ZERO,
            clock: Instant::ZERO,
            download: None,
            quality: 0,
            throughputs: Vec::new(),
            fetched: 0,
            rates_sum_bps: 0,
            connected: false,
            viewing,
            acts: Acts::default(),
        }
    }

    /// Returns the measures until `now`.
    pub fn viewing(&self, now: Instant) -> Viewing {
        let mut player = self.clone();
        player.play_until(now);
        let mut viewing = player.viewing;
        if let Picture::Stalled(since) = player.picture {
            viewing.stalled += now.since(since);
        }
        viewing.mean_rate_bps = (self.fetched > 0).then(|| self.rates_sum_bps as f64 / self.fetched as f64);
        viewing
    }

    pub(crate) fn poll_act(&mut self) -> Option<Act> {
        self.acts.poll()
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        if self.begun == Instant::FAR_FUTURE {
            return Instant::ZERO;
        }
        let waits = self.download.is_none() && !self.has_all() && self.picture == Picture::Moving;
        if waits { self.clock + self.surplus() } else { Instant::FAR_FUTURE }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.begun == Instant::FAR_FUTURE {
            (self.begun, self.clock) = (now, now);
        }
        self.play_until(now);
        self.ask(now);
    }

    pub(crate) fn handle_reply(&mut self, now: Instant, connection: u32, bytes: u64) {
        let Some(download) = &mut self.download else { return };
        download.missing = download.missing.saturating_sub(bytes);
        if download.missing > 0 {
            return;
        }
        let taken = now.since(download.asked).max(Duration::from_nanos(1));
        self.throughputs.push(download.size as f64 * 8.0 / taken.as_secs_f64());
        self.throughputs.drain(..self.throughputs.len().saturating_sub(SAMPLES));
        self.download = None;
        self.fetched += 1;
        self.rates_sum_bps += self.config.ladder[self.quality].bps();
        self.play_until(now);
        self.level += self.config.segment;
        if self.level >= self.config.startup || self.has_all() {
            self.show(now);
        }
        if self.has_all() {
            self.acts.push(Act::Close { connection });
        } else {
            self.ask(now);
        }
    }

    pub(crate) fn handle_failure(&mut self, now: Instant, _: u32) {
        self.connected = false;
        let interrupted = self.download.take().is_some();
        if interrupted {
            self.play_until(now);
            self.ask(now);
        }
    }

    /// Advances the playback from `clock` to `now`.
    fn play_until(&mut self, now: Instant) {
        let span = now.since(self.clock);
        if self.picture == Picture::Moving {
            let shown = span.min(self.level);
            self.viewing.played += shown;
            self.level = self.level - shown;
            if self.level.is_zero() && self.has_all() {
                self.picture = Picture::Over;
            } else if self.level.is_zero() && shown < span {
                self.viewing.stalls += 1;
                self.picture = Picture::Stalled(self.clock + shown);
            }
        }
        self.clock = now;
    }

    /// Starts the playback if the buffer level suffices.
    fn show(&mut self, now: Instant) {
        match self.picture {
            Picture::Waiting => self.viewing.startup = Some(now.since(self.begun)),
            Picture::Stalled(since) => self.viewing.stalled += now.since(since),
            Picture::Moving | Picture::Over => return,
        }
        self.picture = Picture::Moving;
    }

    fn has_all(&self) -> bool {
        let fetched = self.config.segment * self.fetched;
        self.config.length.is_some_and(|length| fetched >= length)
    }

    /// Returns the playing time by which the buffer is too full for another segment.
    fn surplus(&self) -> Duration {
        (self.level + self.config.segment).saturating_sub(self.config.buffer)
    }

    /// Requests the next segment if the buffer has room.
    fn ask(&mut self, now: Instant) {
        if self.download.is_some() || self.has_all() || !self.surplus().is_zero() {
            return;
        }
        let quality = self.choose();
        self.viewing.switches += u64::from(self.fetched > 0 && quality != self.quality);
        self.quality = quality;
        if !self.connected {
            self.acts.push(Act::Open { connection: 0 });
            self.connected = true;
        }
        let size = self.config.ladder[quality].bytes_in(self.config.segment).max(1);
        self.download = Some(Download { asked: now, size, missing: size });
        self.acts.push(Act::Ask { connection: 0, request: REQUEST, reply: size });
    }

    fn choose(&self) -> usize {
        match self.config.logic {
            Logic::Buffer { reservoir, cushion } => self.choose_by_buffer(reservoir, cushion),
            Logic::Throughput { safety } => {
                let slowness: f64 = self.throughputs.iter().map(|bps| 1.0 / bps).sum();
                let bps = safety * self.throughputs.len() as f64 / slowness;
                let fits = |rate: &Rate| rate.bps() as f64 <= bps;
                self.config.ladder.iter().rposition(fits).unwrap_or(0)
            }
        }
    }

    /// Algorithm 1 of the paper.
    fn choose_by_buffer(&self, reservoir: f64, cushion: f64) -> usize {
        let rate = |index: usize| self.config.ladder[index].bps() as f64;
        let top = self.config.ladder.len() - 1;
        let share = self.level.as_secs_f64() / self.config.buffer.as_secs_f64();
        if self.fetched == 0 || share <= reservoir {
            return 0;
        }
        if share >= reservoir + cushion {
            return top;
        }
        let line = rate(0) + (rate(top) - rate(0)) * (share - reservoir) / cushion;
        let (above, below) = ((self.quality + 1).min(top), self.quality.saturating_sub(1));
        let qualities = 0..=top;
        if line >= rate(above) && above > self.quality {
            qualities.rev().find(|quality| rate(*quality) < line).unwrap_or(0)
        } else if line <= rate(below) && below < self.quality {
            qualities.clone().find(|quality| rate(*quality) > line).unwrap_or(top)
        } else {
            self.quality
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a player over a line of this rate and round trip until `end`. Returns the requested rates in order.
    fn play(config: Config, rate: impl Fn(f64) -> f64, end_s: f64) -> (Viewing, Vec<u64>) {
        let segment = config.segment.as_secs_f64();
        let mut player = Player::new(config);
        let end = Instant::ZERO + Duration::from_secs_f64(end_s);
        let (mut due, mut asked) = (None, Vec::new());
        loop {
            let arrival = due.map_or(Instant::FAR_FUTURE, |(at, _)| at);
            let now = arrival.min(player.next_timeout());
            if now > end || now == Instant::FAR_FUTURE {
                return (player.viewing(end), asked);
            }
            if let Some((_, bytes)) = due.take_if(|(at, _)| *at == now) {
                player.handle_reply(now, 0, bytes);
            } else {
                player.handle_timeout(now);
            }
            while let Some(act) = player.poll_act() {
                if let Act::Ask { reply, .. } = act {
                    asked.push((reply as f64 * 8.0 / segment) as u64);
                    let seconds = 0.5 + reply as f64 * 8.0 / rate(now.as_secs_f64());
                    due = Some((now + Duration::from_secs_f64(seconds), reply));
                }
            }
        }
    }

    #[test]
    fn a_fast_line_ends_at_the_highest_quality_without_a_stall() {
        for logic in [Logic::BUFFER, Logic::THROUGHPUT] {
            let (viewing, asked) = play(Config { logic, ..Config::default() }, |_| 20e6, 300.0);
            assert_eq!((viewing.stalls, asked.last()), (0, Some(&5_000_000)), "{logic:?}");
            // 1.2 Mbit at 20 Mbit/s, plus a round trip.
            assert_eq!(viewing.startup, Some(Duration::from_millis(560)));
            assert!((viewing.played.as_secs_f64() - 299.44).abs() < 1e-6);
        }
    }

    #[test]
    fn throughput_keeps_below_what_the_line_gives_and_the_buffer_uses_more_of_it() {
        let config = Config { logic: Logic::THROUGHPUT, ..Config::default() };
        let (by_throughput, asked) = play(config.clone(), |_| 3e6, 600.0);
        assert!(asked[6..].iter().all(|bps| *bps == 1_850_000), "{asked:?}");
        let (by_buffer, _) = play(Config { logic: Logic::BUFFER, ..config }, |_| 3e6, 600.0);
        assert!(by_buffer.mean_rate_bps > by_throughput.mean_rate_bps, "{by_buffer:?} {by_throughput:?}");
        assert_eq!((by_buffer.stalls, by_throughput.stalls), (0, 0));
    }

    #[test]
    fn a_line_slower_than_the_lowest_quality_stalls_for_what_is_missing() {
        let (viewing, asked) = play(Config::default(), |_| 150e3, 400.0);
        assert!(asked.iter().all(|bps| *bps == 300_000));
        // A segment of 4 s needs 8.5 s: each is followed by 4.5 s of stall.
        let first = Duration::from_millis(8_500);
        assert_eq!(viewing.startup, Some(first));
        let all = viewing.played + viewing.stalled + first;
        assert_eq!(all, Duration::from_secs(400));
        assert_eq!(viewing.stalls, 46);
    }

    #[test]
    fn an_outage_shorter_than_the_buffer_is_not_seen() {
        let outage =
            |length: f64| move |at: f64| if (200.0..200.0 + length).contains(&at) { 1e3 } else { 8e6 };
        let config = Config { length: Some(Duration::from_secs(400)), ..Config::default() };
        let (viewing, asked) = play(config.clone(), outage(0.0), 1000.0);
        assert_eq!((viewing.stalls, viewing.played, asked.len()), (0, Duration::from_secs(400), 100));
        // A segment requested in the outage takes hours.
        let (viewing, _) = play(config, outage(10.0), 1000.0);
        assert_eq!(viewing.stalls, 1);
    }

    #[test]
    fn after_a_failure_the_segment_is_asked_for_again() {
        let mut player = Player::new(Config::default());
        player.handle_timeout(Instant::ZERO);
        let acts = |player: &mut Player| std::iter::from_fn(|| player.poll_act()).collect::<Vec<_>>();
        let first = acts(&mut player);
        assert_eq!(first.len(), 2);
        player.handle_failure(Instant::ZERO + Duration::from_secs(9), 0);
        assert_eq!(acts(&mut player), first);
    }
}
