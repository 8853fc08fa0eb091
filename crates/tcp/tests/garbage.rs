//! Forged segments: no end panics, and none from outside the windows disturbs a transfer.

mod common;
#[path = "common/dice.rs"]
mod dice;

use bentpipe_base::{
    Duration, EcnField, Extension, Flags, Probe, ProbeTag, Rate, Rng, SackBlocks, SackRange, Segment, Snack,
    SynOptions,
};
use bentpipe_tcp::{Connection, Events, State};
use common::Pair;
use dice::{Dice, config, ms};

/// Numbers seen on the wire of a pair, where forgeries would fit.
#[derive(Clone, Copy, Default)]
struct AckTiming {
    /// Highest sequence number sent by an end, plus one.
    sent: u64,
    /// Highest number acknowledged by an end, and the right edge that it granted.
    acked: u64,
    edge: u64,
}

fn seen(pair: &Pair) -> [AckTiming; 2] {
    let mut seen = [AckTiming::default(); 2];
    for (_, end, segment) in &pair.log {
        let it = &mut seen[*end];
        it.sent = it.sent.max(segment.seq_end());
        it.acked = it.acked.max(segment.ack);
        it.edge = it.edge.max(segment.ack + u64::from(segment.window));
    }
    seen
}

/// Returns a random number, often near a critical one.
fn number(dice: &mut Dice, seen: &[AckTiming; 2]) -> u64 {
    let end = dice.one_of(seen);
    let any = dice.0.bits();
    let base = dice.one_of(&[0, 1, end.sent, end.acked, end.edge, 1 << 31, 1 << 32, 1 << 62, u64::MAX, any]);
    let step = dice.one_of(&[0, 0, 1, 2, 1000, 65_536]);
    if dice.coin() { base.wrapping_add(step) } else { base.wrapping_sub(step) }
}

fn short(dice: &mut Dice) -> u32 {
    let any = dice.0.bits() as u32;
    dice.one_of(&[0, 0, 0, 1, 100, 1000, 1448, 65_535, 1 << 20, u32::MAX, any])
}

fn garbage(dice: &mut Dice, seen: &[AckTiming; 2]) -> Segment {
    let mut sack = SackBlocks::EMPTY;
    for _ in 0..dice.one_of(&[0, 0, 1, 2, 4]) {
        sack.push(SackRange { start: number(dice, seen), end: number(dice, seen) });
    }
    if dice.chance(0.2) {
        let vector = dice.0.bits().to_be_bytes();
        let (offset, size) = (short(dice) as u16, short(dice) as u16);
        sack = SackBlocks::Missing(Snack::new(offset, size, &vector));
    }
    let mut flags = Flags::from_bits_truncate(dice.0.bits() as u16);
    if dice.chance(0.7) {
        flags = (flags - Flags::RST - Flags::SYN) | Flags::ACK;
    }
    let tag = ProbeTag(dice.0.bits() as u16);
    let scale = dice.0.bits() as u8;
    let syn_options = SynOptions {
        mss: dice.one_of(&[None, Some(0), Some(1), Some(536), Some(65_535)]),
        window_scale: dice.one_of(&[None, Some(0), Some(14), Some(scale)]),
        sack_permitted: dice.coin(),
        snack_permitted: dice.coin(),
        best_effort: dice.coin(),
        probes_permitted: dice.coin(),
        feedback: dice.one_of(&[0, 1, 255]),
    };
    let nothing = dice.0.bits();
    Segment {
        seq: number(dice, seen),
        ack: number(dice, seen),
        len: short(dice),
        // With large windows some algorithms send long trains of probes, which this test does not need.
        window: short(dice).min(1 << 20),
        flags,
        ecn: dice.one_of(&[EcnField::NotCapable, EcnField::L4s, EcnField::Capable, EcnField::Congested]),
        probe: dice.one_of(&[Probe::No, Probe::No, Probe::Probe(tag), Probe::Reply(tag)]),
        low_priority: dice.coin(),
        timestamps: dice.coin().then(|| (short(dice), short(dice))),
        syn_options: dice.coin().then_some(syn_options),
        sack,
        extension: dice.one_of(&[
            Extension::None,
            Extension::Value(nothing),
            Extension::Value(u64::MAX),
            Extension::ReceiveRate { id: 7, rate: Rate::from_bps(u64::MAX), valid: true },
            Extension::Wave { id: 7, size: 0, index: 9, limited: true },
        ]),
    }
}

fn pair(dice: &mut Dice, seed: u64) -> Pair {
    let config = |dice: &mut Dice| {
        config(dice).with(|config| {
            config.lifetime.keep_alive = None;
            config.lifetime.user_timeout = None;
        })
    };
    let mut pair = Pair::new(config(dice), config(dice));
    if dice.chance(0.1) {
        pair.ends[1] = Connection::connect(config(dice).into(), seed, pair.now);
    }
    pair.delay_one_way = ms(dice.within(1, 100));
    pair
}

/// In every state, at any time.
#[test]
fn arbitrary_segments_never_panic() {
    for seed in 0..3000 {
        let mut dice = Dice(Rng::stream(seed, "garbage"));
        let mut pair = pair(&mut dice, seed);
        let replay = Replay("garbage", seed);
        pair.reads = dice.coin();
        for _ in 0..dice.within(1, 60) {
            match dice.within(0, 9) {
                0 => pair.ends[dice.within(0, 1) as usize].close(pair.now),
                1 | 2 => drop(pair.ends[dice.within(0, 1) as usize].write(pair.now, 10_000)),
                3 => pair.run(ms(dice.spread(1, 100_000))),
                4 | 5 => pair.run(ms(dice.spread(1, 200))),
                _ => {
                    let forged = garbage(&mut dice, &seen(&pair));
                    pair.ends[dice.within(0, 1) as usize].handle_segment(pair.now, &forged);
                }
            }
        }
        pair.run(Duration::from_secs(100));
        std::mem::forget(replay);
    }
}

/// Returns a segment that does not fit: its sequence number is outside the window, or its acknowledgement is
/// impossible.
fn misfit(dice: &mut Dice, seen: &[AckTiming; 2], end: usize) -> Option<Segment> {
    let (own, peer) = (seen[end], seen[1 - end]);
    let mut forged = garbage(dice, seen);
    let window = own.edge;
    let outside = forged.seq > own.edge + 1 || forged.seq + u64::from(forged.len) + 2 + window < own.acked;
    let reset_or_syn = forged.flags.intersects(Flags::RST | Flags::SYN);
    if outside {
        return Some(forged).filter(|_| own.acked > 0);
    }
    if reset_or_syn {
        // RFC 5961: only the exact next number resets, and a SYN never does.
        let fits = forged.flags.contains(Flags::RST) && forged.seq <= own.edge;
        return Some(forged).filter(|_| !fits && own.acked > 0);
    }
    forged.flags |= Flags::ACK;
    let impossible = forged.ack > own.sent.max(1) || forged.ack + peer.edge + 2 < peer.acked;
    (impossible && own.acked > 0).then_some(forged)
}

#[test]
fn what_lies_outside_the_windows_disturbs_nothing() {
    for seed in 0..1000 {
        let mut dice = Dice(Rng::stream(seed, "misfits"));
        let mut pair = pair(&mut dice, seed);
        let replay = Replay("misfits", seed);
        pair.write(0, 1000);
        pair.write(1, 1000);
        let mut written = [1000; 2];
        pair.run(ms(1000));
        for _ in 0..dice.within(1, 100) {
            let end = dice.within(0, 1) as usize;
            match dice.within(0, 9) {
                0 | 1 => written[end] += pair.ends[end].write(pair.now, 10_000),
                2 | 3 => pair.run(ms(dice.spread(1, 200))),
                _ => {
                    let established = pair.ends[end].state() == State::Established;
                    if let Some(forged) = misfit(&mut dice, &seen(&pair), end).filter(|_| established) {
                        pair.ends[end].handle_segment(pair.now, &forged);
                    }
                }
            }
        }
        (0..2).for_each(|end| pair.close(end));
        pair.run(Duration::from_secs(40_000));
        assert_eq!([pair.delivered(0), pair.delivered(1)], [written[1], written[0]], "seed {seed}");
        assert!(
            pair.events.iter().all(|events| events.contains(Events::CLOSED)),
            "seed {seed}: {:?}",
            pair.events
        );
        std::mem::forget(replay);
    }
}

/// Prints the seed of a run whose engine panics.
struct Replay(&'static str, u64);

impl Drop for Replay {
    fn drop(&mut self) {
        eprintln!("in {} with seed {}", self.0, self.1);
    }
}
