//! Random configurations of connections for tests.

#![allow(dead_code, reason = "every test file uses its own part")]

use bentpipe_base::{Duration, Instant, Rate, Rng};
use bentpipe_cc::{Algorithm, Capacity, PathMemory, REGISTRY, TimeoutProbe, careful_resume};
use bentpipe_tcp::{
    AckCounting, AckDelay, AckPace, Config, DelayedAck, EcnMode, InitialWindow, KeepAlive, Pacing,
    ReceiveWindow, Recovery, Restore, RtoBounds, SpuriousTimeout, WindowValidation,
};

const SPURIOUS_TIMEOUTS: &[SpuriousTimeout] = &[
    SpuriousTimeout::Off,
    SpuriousTimeout::FRto,
    SpuriousTimeout::Eifel,
    SpuriousTimeout::ENHANCED,
    SpuriousTimeout::Enhanced { fraction: 0.9, restore: Restore::Both },
    SpuriousTimeout::AEN,
    SpuriousTimeout::Aen { probe: TimeoutProbe::Oldest, max_probes: 1, paced: false },
    SpuriousTimeout::Aen { probe: TimeoutProbe::Keepalive, max_probes: 2, paced: true },
];

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Random draws from ranges.
pub struct Dice(pub Rng);

impl Dice {
    pub fn coin(&mut self) -> bool {
        self.0.chance(0.5)
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }

    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// Draws numbers with a log-uniform distribution.
    pub fn spread(&mut self, low: u64, high: u64) -> u64 {
        let ratio = high as f64 / low as f64;
        ((low as f64) * ratio.powf(self.0.uniform())) as u64
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize]
    }
}

fn delayed_ack(dice: &mut Dice) -> DelayedAck {
    if dice.chance(0.3) {
        DelayedAck::Off
    } else {
        DelayedAck::On {
            every: dice.within(1, 4) as u32,
            timer: ms(dice.within(0, 500)),
            quick: dice.within(0, 16) as u32,
            after_duplicate: dice.within(0, 16) as u32,
        }
    }
}

/// Returns a memory with the capacity of some path.
fn memory(dice: &mut Dice) -> PathMemory {
    let memory = PathMemory::new();
    memory.save_capacity(Capacity {
        bytes: dice.spread(1000, 1 << 24),
        min_rtt: ms(dice.spread(1, 1000)),
        at: Instant::ZERO,
    });
    memory
}

const RECOVERIES: &[Recovery] =
    &[Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Rack, Recovery::Snack];

/// Returns a random valid configuration.
pub fn config(dice: &mut Dice) -> Config {
    let entry = dice.0.below(REGISTRY.len() as u64) as usize;
    let initial = dice.spread(1000, 200_000);
    Config {
        cc: Algorithm::from_name(REGISTRY[entry].name).unwrap(),
        mss: dice.one_of(&[50, 88, 536, 536, 1000, 1448, 1448, 1460, 8960]),
        timestamps_len: 12,
        recovery: dice.one_of(RECOVERIES),
        prr: dice.coin(),
        undo: dice.coin(),
        limited_transmit: dice.coin(),
        dup_thresh: dice.within(1, 5) as u32,
        dsack: dice.coin(),
        timestamps: dice.coin(),
        window_scaling: dice.coin(),
        ecn: dice.one_of(&[EcnMode::Off, EcnMode::Classic, EcnMode::Accurate]),
        nagle: dice.coin(),
        delayed_ack: delayed_ack(dice),
        rto: RtoBounds {
            initial: ms(dice.within(200, 3000)),
            floor: ms(dice.within(0, 1000)),
            margin: ms(dice.one_of(&[0, 200])),
            ceiling: ms(dice.within(5000, 60_000)),
            tick: ms(dice.one_of(&[0, 1, 1, 10, 500])),
            each_sample: dice.coin(),
            restart_on_sacks: dice.coin(),
        },
        spurious_timeout: dice.one_of(SPURIOUS_TIMEOUTS),
        pacing: dice.one_of(&[Pacing::Algorithm, Pacing::Off, Pacing::WINDOW]),
        window_validation: dice.one_of(&[
            WindowValidation::Off,
            WindowValidation::Restart,
            WindowValidation::Rfc7661,
        ]),
        initial_window: dice.one_of(&[
            InitialWindow::Segments(1),
            InitialWindow::Segments(64),
            InitialWindow::Rfc3390,
            InitialWindow::Rfc6928,
        ]),
        initial_ssthresh: dice.one_of(&[None, Some(2.0), Some(17.5)]),
        receive_window: match dice.within(0, 3) {
            0 => ReceiveWindow::Fixed(dice.spread(1, 5000)),
            1 => ReceiveWindow::Fixed(dice.spread(5000, 1 << 20)),
            2 => ReceiveWindow::Auto { initial, limit: 64 << 20 },
            _ => ReceiveWindow::Auto { initial, limit: initial * 4 },
        },
        send_buffer: dice.spread(1000, 1 << 20),
        max_burst: dice.one_of(&[None, None, Some(1), Some(4)]),
        keep_alive: dice.chance(0.3).then(|| KeepAlive {
            idle: ms(dice.spread(100, 60_000)),
            interval: ms(dice.spread(1000, 60_000)),
            probes: dice.within(3, 9) as u32,
        }),
        user_timeout: dice.chance(0.1).then(|| ms(dice.spread(5000, 600_000))),
        retries: dice.within(6, 15) as u32,
        syn_retries: dice.within(4, 8) as u32,
        time_wait: Duration::from_secs(dice.within(1, 120)),
        fin_wait_2: Duration::from_secs(60),
        orphan_timeout: Duration::from_secs(120),
        least_mss: 48,
        probe_replies: dice.chance(0.8),
        ack_counting: dice.one_of(&[AckCounting::Segments, AckCounting::Acks]),
        ack_delay: dice.one_of(&[AckDelay::Auto, AckDelay::Auto, AckDelay::Paced(AckPace::default())]),
        best_effort: None,
        reflection: None,
        rate_limit: dice.coin().then(|| Rate::from_bps(dice.spread(1_000_000, 1_000_000_000))),
        careful_resume: dice.coin().then(careful_resume::Config::default),
        memory: dice.coin().then(|| memory(dice)),
    }
}
