/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Zenith: every flow aims at the same small queueing delay as a function of its rate.
 *
 * A scheme of our own; `papers/zenith.md` has its law, and crates/cc/src/algorithms/model/zenith.rs the same law in real numbers. The measured start is left
 * out: a control of the kernel cannot space the first segments of a connection one by one, so the window doubles from the first.
 */
#include "law.h"
#include "cubic.h"
#include "windowed.h"

/* a and p: the queue aimed at is a + p / sqrt(segments a second), us. */
#define ZENITH_FLOOR 2000U
#define ZENITH_PRICE 140000ULL
/* m; g is one half. */
#define ZENITH_SHARING 4
/* K, us s: the queue that one loss a second stands for. */
#define ZENITH_LOSS 20000ULL
/* T, us. */
#define ZENITH_MEMORY 10000000ULL
#define ZENITH_FIRST_DRAINS 15000000ULL
/* ACKs that pause for a round trip and this are a silence, us. */
#define ZENITH_SILENCE 100000U
#define ZENITH_LONGEST_WINDOW 10000000ULL
#define ZENITH_BASE_WINDOW 30000000ULL
/*
 * Shares with 32 fractional bits, rounded up, so that a loss that ties with one is explained: n, the least share for which chance counts, and the
 * largest share that a path is believed to lose.
 */
#define ZENITH_NOISE ((8ULL << 32) / 1000 + 1)
#define ZENITH_LEAST_VARIANCE ((10ULL << 32) / 1000 + 1)
#define ZENITH_MOST_NOISE (1ULL << 29)
#define ZENITH_NOISE_MEMORY 1000ULL
#define ZENITH_SAVED 9
/* A thousandth of a loss decides nothing: rounding differs from that of real numbers. */
#define ZENITH_TIE (BP_ONE >> 10)
#define ZENITH_SMALLEST BP_SEGMENTS(2)
#define ZENITH_STEPS 16
#define ZENITH_STEP (BP_ONE / 2)
#define ZENITH_FASTEST 32
/* The longest queue that counts, in targets. */
#define ZENITH_LONGEST 3
/* A drain that leaves more of its own targets, or of those of the smallest window, meets others that do not drain. */
#define ZENITH_FOREIGN 4
#define ZENITH_LONGEST_OWN 2
#define ZENITH_FILLED_DRAINS 3
#define ZENITH_DRAIN_ROUNDS 8
/* Resolution of the peer's clock, and its largest distance from ours, us. */
#define ZENITH_TICK 1000U
#define ZENITH_CLOCK_SLACK 500000ULL
/* Delays with 16 fractional bits of a microsecond; means with 28. */
#define ZENITH_FINE 16
#define ZENITH_MEAN 28
/* Rates in segments a second with 16 fractional bits. */
typedef bp_u64 zenith_rate;
/* Slower flows send in pairs. */
#define ZENITH_PAIRS_BELOW (50ULL << 16)
#define ZENITH_FASTEST_RATE (1ULL << 46)

enum zenith_mode { ZENITH_DOUBLE, ZENITH_FOLLOW, ZENITH_CONTEST };
enum zenith_phase { ZENITH_NONE, ZENITH_DRAIN, ZENITH_REFILL };
/* Segments that left in the previous round trip, whose losses are detected in this one. */
enum zenith_before { ZENITH_ORDINARY, ZENITH_CUT, ZENITH_DRAINED };
/* What the peer's timestamps are worth. */
enum zenith_clock { ZENITH_UNHEARD, ZENITH_BELIEVED, ZENITH_INCREDIBLE };

/* A delay, us: the newest, the smallest of a quarter of a round trip, and that of the path. */
struct zenith_track {
	bp_u32 latest;
	struct bp_windowed standing, base;
};

struct bp_law {
	bp_window window;
	bp_window before_timeout;	/* the window before a timeout; 0 while there was none */
	bp_window drain_window;
	bp_window emptied;		/* the window when a drain last left no queue, or when the start ended */
	bp_window crowded_window;	/* the window when the queue became too long */
	bp_window allowance;		/* losses that the noise still explains */
	struct bp_cubic cubic;		/* of a contest */
	bp_u64 mean, overflow;		/* Q, and the part of it that losses stand for */
	bp_u64 noise;
	bp_u64 root, target;		/* results of functions that the verifier checks once */
	zenith_rate delivery_rate, delivery_rate_before;
	bp_u64 now;			/* time of the newest ACK, us, as all times here */
	bp_u64 trusted_from;		/* segments that left before are not measured */
	bp_u64 round_since, drain_until, lowest_at, empty_at;
	bp_u64 pending_time;		/* since the law's last step */
	bp_u64 clock_at;		/* our time of the first timestamp */
	struct zenith_track rtt, out;	/* round trip, and delay to the peer by its clock, above 2^31 */
	struct bp_windowed longest;	/* complements of the longest queue that two ACKs in a row showed */
	bp_u32 pending;			/* segments since the law's last step */
	bp_u32 srtt, latest_rtt;		/* smoothed, and the newest, whether it is trusted or not */
	bp_u32 in_flight_before, round_in_flight;	/* most segments in flight, in the round trip before and in this one */
	bp_u32 round_delivered, round_lost, round_longest, round_clock;
	bp_u32 previous_queue;		/* of the ACK before, us */
	bp_u32 lowest;			/* round trip since the last drain began */
	bp_u32 drain_standing, drain_base;
	bp_u32 drain_rounds, crowded_rounds, calm_rounds;
	bp_u32 filled_drains;		/* in a row that have left most of the queue */
	bp_u32 speed;
	bp_u32 clock_origin, latest_clock;
	bp_u8 mode, phase, before, clock;
	bp_u8 round_has_clock;
	bp_u8 overflowed;		/* since the queue became too long */
	bp_u8 met_others;		/* there has been a contest */
	bp_u8 timed_out;		/* and no new data was acknowledged since */
};

BP_INLINE bp_u32 zenith_base(const struct bp_law *law)
{
	return law->rtt.base.best[0].value;
}

BP_INLINE bp_u32 zenith_standing(const struct bp_law *law)
{
	return law->rtt.standing.best[0].value;
}

/* Growth of a round trip over the smallest one, or of the delay to the peer if that is less, us. */
BP_INLINE bp_u32 zenith_above_base(const struct bp_law *law, bp_u32 rtt, bp_u32 out)
{
	bp_u32 queue = BP_MAX(rtt, zenith_base(law)) - zenith_base(law), base = law->out.base.best[0].value;

	if (law->clock != ZENITH_BELIEVED)
		return queue;
	out = BP_MAX(out, base) - base + ZENITH_TICK;
	return BP_MIN(queue, out);
}

/* Standing queueing delay on the way out, us. */
BP_INLINE bp_u32 zenith_queue(const struct bp_law *law)
{
	return zenith_above_base(law, zenith_standing(law), law->out.standing.best[0].value);
}

BP_INLINE bp_u64 zenith_fine_queue(const struct bp_law *law)
{
	return (bp_u64)zenith_queue(law) << ZENITH_FINE;
}

/* The rate of a window that leaves in `time` us; 0 if the time is 0. */
BP_INLINE zenith_rate zenith_rate_over(bp_window window, bp_u32 time)
{
	zenith_rate rate = time ? (window >> (BP_SHIFT - 16)) * 1000000 / time : 0;

	return BP_MIN(rate, ZENITH_FASTEST_RATE);
}

/* x. */
BP_INLINE zenith_rate zenith_rate_of(const struct bp_law *law)
{
	return zenith_rate_over(law->window, zenith_standing(law));
}

/*
 * q* of a window that leaves in `time` us, that of a segment a second for slower flows. Newton's iteration for the inverse root needs no division.
 * The rate has 24 fractional bits: with 16, the target of a slow flow would be wrong by a tenth of a microsecond.
 */
BP_APART zenith_find_target(struct bp_law *law, bp_window window, bp_u32 time)
{
	bp_u32 shift = 0, turn, bits;
	bp_u64 rate, m, y;

	if (!law)
		return 0;
	rate = window >> 42 || !time ? zenith_rate_over(window, time) << 8 : window * 1000000 / time;
	rate = BP_MAX(rate, BP_ONE);
	/* By an even power of two into [2^62, 2^64). */
	for (bits = 32; bits >= 2; bits /= 2) {
		if (rate < 1ULL << (64 - bits)) {
			rate <<= bits;
			shift += bits / 2;
		}
	}
	/* m in [1, 4) and y near 1 / sqrt(m), with 30 fractional bits; within a tenth at first. */
	m = rate >> 32;
	y = 1167264891ULL - (170940000ULL * m >> 30);
	for (turn = 0; turn < 4; turn++)
		y = (((3ULL << 30) - ((y * y >> 30) * m >> 30)) * y) >> 31;
	/* To the nearest: targets in whole us, which queues can equal, come out whole. */
	shift = 49 - ZENITH_FINE - shift;
	law->target = ((bp_u64)ZENITH_FLOOR << ZENITH_FINE) + ((ZENITH_PRICE * y + (1ULL << shift >> 1)) >> shift);
	return 0;
}

BP_INLINE bp_u64 zenith_target(struct bp_law *law, bp_window window, bp_u32 time)
{
	zenith_find_target(law, window, time);
	return law->target;
}

BP_INLINE bp_u64 zenith_own(struct bp_law *law)
{
	return zenith_target(law, law->window, zenith_standing(law));
}

/* The window was used in this round trip or in the one before, but for a quarter and a segment: only then may it grow. */
BP_INLINE int zenith_is_used(const struct bp_law *law)
{
	bp_u64 most = BP_MAX(law->round_in_flight, law->in_flight_before);

	return BP_SEGMENTS(most + 1) >= law->window - law->window / 4;
}

BP_INLINE void zenith_begin_round(struct bp_law *law, bp_u8 before)
{
	law->round_since = law->now;
	law->before = before;
	law->round_delivered = 0;
	law->round_lost = 0;
	law->round_in_flight = 0;
	law->round_longest = 0;
	law->round_clock = law->latest_clock;
	law->round_has_clock = law->clock == ZENITH_BELIEVED;
}

/* What left before now is no longer measured: neither its rate nor its losses, nor the drain that it belongs to. */
BP_INLINE void zenith_cut_round(struct bp_law *law)
{
	law->phase = ZENITH_NONE;
	zenith_begin_round(law, ZENITH_CUT);
}

BP_INLINE void bp_established(struct bp_law *law, bp_window initial, const struct bp_path *path)
{
	law->window = BP_MAX(initial, BP_ONE);
	law->now = path->now;
	law->round_since = path->now;
	law->noise = ZENITH_NOISE;
	law->lowest = BP_UNKNOWN;
	law->speed = 1;
}

/* In a contest nothing shows the path without a queue: the smallest delays are kept. */
BP_INLINE void zenith_track(struct bp_law *law, struct zenith_track *track, bp_u32 delay, bp_u32 span)
{
	track->latest = delay;
	bp_windowed_update(&track->base, law->now, delay, law->mode == ZENITH_CONTEST ? ~0ULL : ZENITH_BASE_WINDOW);
	bp_windowed_update(&track->standing, law->now, delay, span);
}

/* The peer's timestamp less our time of sending is the delay on the way out, but for a constant. */
BP_INLINE void zenith_hear_clock(struct bp_law *law, bp_u32 rtt, bp_u32 span, bp_u32 clock)
{
	bp_u64 elapsed, peer, late, early, delay;

	if (law->clock == ZENITH_UNHEARD) {
		law->clock = ZENITH_BELIEVED;
		law->clock_origin = clock;
		law->clock_at = law->now;
	}
	elapsed = law->now - law->clock_at;
	/* Above 2^31 ms, so that it is never negative. */
	peer = (bp_u64)(clock - law->clock_origin + 0x80000000U) * 1000;
	delay = elapsed + 0x80000000ULL * 1000;
	/* The ACK left the peer between our sending of the segment and now. */
	late = BP_MAX(peer, delay) - delay;
	early = BP_MAX(peer + rtt, delay) - (peer + rtt);
	if (late + early > ZENITH_CLOCK_SLACK + elapsed / 50 || late + early > 1ULL << 30) {
		law->clock = ZENITH_INCREDIBLE;
		return;
	}
	law->latest_clock = clock;
	zenith_track(law, &law->out, peer + rtt + (1ULL << 31) - delay, span);
}

BP_APART zenith_sample(struct bp_law *law, bp_u32 rtt, const struct bp_path *path)
{
	bp_u32 span, queue;

	if (!law || !path)
		return 0;
	/* A quarter of a round trip, or more of it where that brings less than six ACKs. */
	span = BP_MIN(6ULL * rtt / BP_MAX(path->in_flight, 1U), (bp_u64)rtt);
	span = BP_MAX(span, rtt / 4);
	zenith_track(law, &law->rtt, rtt, span);
	if (path->has_peer_clock && law->clock != ZENITH_INCREDIBLE)
		zenith_hear_clock(law, rtt, span, path->peer_clock);
	queue = zenith_above_base(law, rtt, law->out.latest);
	/* A receiver that holds an ACK back (RFC 9293, section 3.8.6.3) does so once. */
	bp_windowed_update(&law->longest, law->now, ~BP_MIN(queue, law->previous_queue), ZENITH_LONGEST_WINDOW);
	law->previous_queue = queue;
	law->round_longest = BP_MAX(law->round_longest, queue);
	/* A path that shows itself without a queue needs no drain, but a contest is judged by drains alone. */
	if (rtt < law->lowest || (rtt == law->lowest && law->mode != ZENITH_CONTEST)) {
		law->lowest = rtt;
		law->lowest_at = law->now;
	}
	return 0;
}

/* The start has ended: the law sets the window. */
BP_INLINE void zenith_settle(struct bp_law *law)
{
	law->mode = ZENITH_FOLLOW;
	law->emptied = law->window;
	law->empty_at = law->now;
	law->calm_rounds = 0;
	law->mean = zenith_own(law) << (ZENITH_MEAN - ZENITH_FINE);
}

BP_APART zenith_double(struct bp_law *law, bp_u32 segments)
{
	if (!law || law->mode != ZENITH_DOUBLE)
		return 0;
	if (zenith_fine_queue(law) > zenith_own(law) / 2 + (1000ULL << ZENITH_FINE))
		zenith_settle(law);
	else if (zenith_is_used(law))
		law->window = BP_MIN(law->window + BP_SEGMENTS(segments), BP_LARGEST);
	return 0;
}

/* The window that a rate fills in a delay with 16 fractional bits of a microsecond. No product exceeds 64 bits. */
BP_INLINE bp_window zenith_fills(zenith_rate rate, bp_u64 delay)
{
	bp_u64 segments;

	delay = BP_MIN(delay >> 8, 1ULL << 34);
	segments = (rate / 1000000 * delay >> 8) + (rate % 1000000 * delay / 1000000 >> 8);
	return BP_MIN(segments, BP_LARGEST >> (BP_SHIFT - 16)) << (BP_SHIFT - 16);
}

/* Ends fast growth until two more round trips show no queue. */
BP_INLINE void zenith_end_speed(struct bp_law *law)
{
	law->speed = 1;
	law->calm_rounds = 0;
}

/*
 * The window becomes what a measured rate fills with the queue aimed at. Doing so twice changes nothing. A rate over a round trip goes with the
 * mean of its delays: where ACKs wait on their way back, the smallest is far from it.
 */
BP_APART zenith_fit(struct bp_law *law, zenith_rate rate)
{
	bp_window fits;
	bp_u32 path;

	if (!law)
		return 0;
	path = law->srtt - BP_MIN(zenith_queue(law), law->srtt);
	fits = zenith_fills(rate, ((bp_u64)path << ZENITH_FINE) + zenith_own(law));
	law->window = BP_MAX(BP_MIN(law->window, fits), ZENITH_SMALLEST);
	if (law->mode == ZENITH_DOUBLE)
		zenith_settle(law);
	zenith_end_speed(law);
	zenith_cut_round(law);
	return 0;
}

/* A mark, or in a contest more losses than noise: the window falls as CUBIC's does, once for what is in flight. */
BP_APART zenith_reduce(struct bp_law *law, bp_u64 now)
{
	bp_window before;

	if (!law)
		return 0;
	before = law->window;
	law->window = BP_MAX(before / 10 * 7, ZENITH_SMALLEST);
	law->before = ZENITH_CUT;
	if (law->mode == ZENITH_CONTEST)
		bp_cubic_reduce(&law->cubic, now, before, law->window);
	else if (law->mode == ZENITH_FOLLOW)
		zenith_end_speed(law);
	else
		zenith_settle(law);
	return 0;
}

/* More was lost than noise explains: n and three halves of what is known, and three standard deviations. */
BP_APART zenith_is_excessive(struct bp_law *law)
{
	bp_u64 sent, share, expected, excess, variance;

	if (!law)
		return 0;
	share = ZENITH_NOISE + law->noise + law->noise / 2;
	sent = (bp_u64)law->round_delivered + law->round_lost;
	/* With 16 fractional bits. Rounded up: losses that tie with what noise and chance explain are explained. */
	sent = BP_MIN(BP_MAX(sent << 16, law->window >> (BP_SHIFT - 16)), 1ULL << 40);
	expected = (sent >> 8) * (share >> 8) >> 16;
	expected += 1 + (expected >> 20);
	excess = (bp_u64)law->round_lost << 16;
	if (excess <= expected)
		return 0;
	excess -= expected;
	variance = 9 * ((sent >> 8) * (BP_MAX(law->noise, ZENITH_LEAST_VARIANCE) >> 8) >> 8);
	variance += 1 + (variance >> 20);
	/* Both sides with 24 fractional bits, or with 16 where the square would leave 64. */
	if (excess < 1ULL << 31)
		return excess * excess >> 8 > variance;
	excess = BP_MIN(excess >> 4, 1ULL << 31);
	return excess * excess > variance;
}

/* The longest queue of the last seconds. */
BP_INLINE bp_u64 zenith_longest(const struct bp_law *law)
{
	return law->longest.best[0].known ? (bp_u64)~law->longest.best[0].value << ZENITH_FINE : 0;
}

/* The whole root, bit by bit. It grows in memory: the verifier would follow each value that a register could have. */
BP_INLINE bp_u64 zenith_root(struct bp_law *law, bp_u64 value)
{
	bp_u64 more;
	bp_u32 turn;

	law->root = 0;
	for (turn = 0; turn < 31; turn++) {
		more = *(volatile bp_u64 *)&law->root | 1ULL << (30 - turn);
		if (more * more <= value)
			*(volatile bp_u64 *)&law->root = more;
	}
	return law->root;
}

/* The share since / T, at most 1, of a delay with ZENITH_MEAN fractional bits. No product exceeds 64 bits. */
BP_INLINE bp_u64 zenith_part(bp_u64 delay, bp_u64 since)
{
	since = BP_MIN(since, ZENITH_MEMORY);
	return since < 1 << 13 ? delay * since / ZENITH_MEMORY : ((delay >> 12) * since / ZENITH_MEMORY) << 12;
}

/*
 * The queue that the loss of every segment stands for, us with 8 fractional bits: a round trip and, as far as losses make up Q, K for each
 * segment a second. No product exceeds 64 bits up to 2^18 segments a second, 3 Gbit/s; for faster flows a loss is worth no more.
 */
BP_INLINE bp_u64 zenith_loss_worth(const struct bp_law *law)
{
	bp_u64 rate = BP_MIN(zenith_rate_of(law), 1ULL << 34);
	bp_u64 share = (BP_MIN(law->overflow >> 12, (1ULL << 35) - 1) << 29) / BP_MAX(law->mean >> 12, 1ULL);

	return ((bp_u64)zenith_standing(law) << 8) + ((rate * BP_MIN(share, 1ULL << 29) >> 21) * ZENITH_LOSS >> 16);
}

/* A segment that overflows a queue is the rest of that queue: half of it leaves the window, and it counts in Q. */
BP_APART zenith_charge(struct bp_law *law, bp_u64 took)
{
	bp_u64 noise, most, explained, excess, own, stands_for, taken, sent;
	int losses_tell;

	if (!law)
		return 0;
	own = zenith_own(law);
	losses_tell = 4 * ((bp_u64)law->round_longest << ZENITH_FINE) >= own && 2 * zenith_longest(law) < 3 * own;
	noise = losses_tell ? law->noise : ZENITH_MOST_NOISE;
	/* The root of 40 fractional bits has 20. */
	most = ZENITH_SAVED * zenith_root(law, (BP_MIN(law->window, BP_LARGEST) >> 8) * (noise >> 8)) << (BP_SHIFT - 20);
	sent = BP_MIN((bp_u64)law->round_delivered + law->round_lost, 1ULL << 24);
	explained = BP_MIN(law->allowance, most) + (noise * sent >> 8);
	excess = BP_SEGMENTS(BP_MIN(law->round_lost, 1U << 20));
	law->allowance = BP_MAX(explained, excess) - excess;
	if (excess <= explained + ZENITH_TIE || law->mode != ZENITH_FOLLOW)
		return 0;
	if (losses_tell)
		zenith_end_speed(law);
	excess -= explained;
	/* The share of losses with 28 fractional bits. */
	stands_for = (excess << 4) / BP_MAX(sent, 1ULL) * BP_MIN(zenith_loss_worth(law), 1ULL << 35) >> (36 - ZENITH_FINE);
	stands_for = zenith_part(BP_MIN(stands_for, ZENITH_LONGEST * own) << (ZENITH_MEAN - ZENITH_FINE), took);
	/* g is one half, and at most half of the window counts. */
	taken = BP_MIN(excess, law->window / 2) / 2;
	law->window = BP_MAX(law->window, taken + ZENITH_SMALLEST) - taken;
	law->mean = BP_MIN(law->mean + stands_for, ZENITH_LONGEST * own << (ZENITH_MEAN - ZENITH_FINE));
	law->overflow = BP_MIN(law->overflow + stands_for, law->mean);
	return 0;
}

/* Where a round trip saw less than a quarter of the target, its losses are noise. */
BP_APART zenith_learn_noise(struct bp_law *law)
{
	bp_u64 lost, sent;

	if (!law || 4 * ((bp_u64)law->round_longest << ZENITH_FINE) >= zenith_own(law))
		return 0;
	lost = BP_MIN(law->round_lost, 1U << 22);
	sent = BP_MIN((bp_u64)law->round_delivered + lost, 1ULL << 24);
	law->noise = (ZENITH_NOISE_MEMORY * law->noise + (lost << 32)) / (ZENITH_NOISE_MEMORY + sent);
	law->noise = BP_MIN(law->noise, ZENITH_MOST_NOISE);
	return 0;
}

/* Evaluates a drain. A queue that did not move is part of the path, which has become longer, unless it overflows. */
BP_APART zenith_judge_drain(struct bp_law *law)
{
	bp_u64 own, longest_own, foreign, left, queue, moved, base, lowest, before_yield;
	int tells, flat, empties, stays, contests, yielded;

	if (!law)
		return 0;
	own = zenith_own(law);
	base = law->drain_base;
	lowest = law->lowest;
	queue = BP_MAX(law->drain_standing, law->drain_base) - law->drain_base;
	moved = BP_MAX(law->drain_standing, law->lowest) - BP_MIN(law->drain_standing, law->lowest);
	before_yield = BP_MAX(law->window, law->crowded_window);
	contests = law->mode == ZENITH_CONTEST;
	/* The drain of a flow with the smallest window moves no queue. */
	tells = law->window > ZENITH_SMALLEST && !law->overflowed;
	flat = queue << ZENITH_FINE > own && tells && 20 * moved < queue;
	law->phase = ZENITH_NONE;
	law->crowded_rounds = 0;
	law->crowded_window = 0;
	if (contests)
		law->overflowed = 0;
	left = BP_MIN(zenith_queue(law), BP_MAX(lowest, base) - base);
	empties = left << (ZENITH_FINE + 2) < own;
	law->filled_drains = !empties && 4 * left >= 3 * queue ? BP_MIN(law->filled_drains, 1U << 30) + 1 : 0;
	stays = law->filled_drains >= ZENITH_FILLED_DRAINS;
	longest_own = ZENITH_LONGEST_OWN * zenith_target(law, ZENITH_SMALLEST, law->drain_base);
	foreign = BP_MIN(ZENITH_FOREIGN * own, longest_own);
	yielded = !contests && (stays || left << ZENITH_FINE > longest_own) && before_yield < law->emptied / 2;
	if ((!flat && left << ZENITH_FINE > foreign) || yielded) {
		if (contests)
			return 0;
		/* Zenith flows that have just begun leave such a queue, too, until they drain. */
		if (stays || law->met_others || law->now >= law->empty_at + ZENITH_FIRST_DRAINS) {
			law->mode = ZENITH_CONTEST;
			law->met_others = 1;
			law->speed = 1;
			law->window = before_yield;
			bp_cubic_begin(&law->cubic, law->now, law->window);
		} else {
			law->crowded_window = before_yield;
		}
		return 0;
	}
	if (contests) {
		law->mode = ZENITH_FOLLOW;
		zenith_fit(law, law->delivery_rate);
	}
	if (flat) {
		bp_windowed_reset(&law->rtt.base, law->now, law->lowest);
		if (law->clock == ZENITH_BELIEVED)
			bp_windowed_reset(&law->out.base, law->now, law->out.standing.best[0].value);
		base = BP_MIN(BP_MAX(base, 1ULL), 1ULL << 30);
		lowest = BP_MIN(lowest, base << 8);
		law->window = BP_MIN(before_yield / base * lowest + before_yield % base * lowest / base, BP_LARGEST);
	} else if (empties) {
		law->empty_at = law->now;
		law->emptied = law->window;
	}
	return 0;
}

/* The rate of a round trip. By the peer's clock, with the millisecond that it hides, where ACKs are held up on their way back. */
BP_APART zenith_measure_rate(struct bp_law *law, bp_u64 took)
{
	bp_u64 arrived;

	if (!law || !took)
		return 0;
	arrived = 1000 * ((bp_u64)(bp_u32)(law->latest_clock - law->round_clock) + 1);
	if (!law->round_has_clock || law->clock != ZENITH_BELIEVED || arrived > took)
		arrived = took;
	law->delivery_rate_before = law->delivery_rate;
	law->delivery_rate = ((bp_u64)BP_MIN(law->round_delivered, 1U << 22) << 16) * 1000000 / arrived;
	law->delivery_rate = BP_MIN(law->delivery_rate, ZENITH_FASTEST_RATE);
	return 0;
}

/* Counts round trips without a queue: from the second on the growth doubles. */
BP_APART zenith_count_calm(struct bp_law *law, bp_u64 queue)
{
	int empty;

	if (!law)
		return 0;
	empty = queue < zenith_own(law) / 4;
	if (empty)
		law->empty_at = law->now;
	/* After a silence the path fills first. */
	if (!empty || !zenith_is_used(law) || law->before == ZENITH_CUT) {
		law->calm_rounds = 0;
		return 0;
	}
	law->calm_rounds++;
	if (law->calm_rounds >= 2 && law->mode == ZENITH_FOLLOW)
		law->speed = BP_MIN(2 * law->speed, ZENITH_FASTEST);
	return 0;
}

/* Counts round trips with too long a queue. */
BP_APART zenith_watch_queue(struct bp_law *law, bp_u64 queue)
{
	bp_u64 own;

	if (!law)
		return 0;
	own = zenith_own(law);
	law->drain_rounds++;
	if (queue > own + own / 2 + (1000ULL << ZENITH_FINE)) {
		if (!law->crowded_rounds)
			law->crowded_window = BP_MAX(law->crowded_window, law->window);
		law->crowded_rounds++;
		return 0;
	}
	law->crowded_rounds = 0;
	law->crowded_window = 0;
	law->overflowed = 0;
	return 0;
}

/* Once per round trip: speed, losses, and whether the path is still the same. */
BP_APART zenith_end_round(struct bp_law *law)
{
	bp_u64 took, queue;
	bp_u8 before, contests, excessive = 0;

	if (!law)
		return 0;
	took = law->now - law->round_since;
	queue = zenith_fine_queue(law);
	before = law->before;
	contests = law->mode == ZENITH_CONTEST;
	law->in_flight_before = law->round_in_flight;
	zenith_measure_rate(law, took);
	/* The counts of the new round trip are empty. */
	law->round_in_flight = 0;
	zenith_count_calm(law, queue);
	if (before != ZENITH_CUT) {
		if (!contests)
			zenith_charge(law, took);
		zenith_learn_noise(law);
		excessive = zenith_is_excessive(law);
	}
	if (excessive) {
		law->overflowed = 1;
		if (!contests && before == ZENITH_ORDINARY) {
			if ((bp_u64)law->round_longest << ZENITH_FINE >= BP_MAX(zenith_longest(law) / 2, zenith_own(law) / 4))
				zenith_fit(law, law->delivery_rate);
			else
				zenith_begin_round(law, ZENITH_ORDINARY);
			return 0;
		}
	}
	zenith_begin_round(law, ZENITH_ORDINARY);
	if (excessive && contests)
		zenith_reduce(law, law->now);
	if (before == ZENITH_DRAINED)
		zenith_judge_drain(law);
	zenith_watch_queue(law, queue);
	return 0;
}

/* Begins and ends drains: T after the lowest round trip, or when the queue stays too long. */
BP_APART zenith_drains(struct bp_law *law)
{
	bp_u32 standing;
	zenith_rate rate;
	int doubtful;

	if (!law)
		return 0;
	standing = zenith_standing(law);
	doubtful = law->mode == ZENITH_FOLLOW && law->crowded_rounds >= 2 && law->drain_rounds >= ZENITH_DRAIN_ROUNDS;
	if (law->phase == ZENITH_NONE && law->mode != ZENITH_DOUBLE && (doubtful || law->now >= law->lowest_at + ZENITH_MEMORY)) {
		/* 0.95 of the path without its queue; where much is lost, less arrives than leaves, and what leaves would keep the queue full. */
		rate = BP_MIN(zenith_rate_of(law), law->delivery_rate);
		law->drain_window = zenith_fills(rate - rate / 20, (bp_u64)(standing - zenith_queue(law)) << ZENITH_FINE);
		law->drain_window = BP_MAX(law->drain_window, BP_ONE);
		law->drain_until = law->now + (11ULL * standing + 9) / 10;
		law->phase = ZENITH_DRAIN;
		law->lowest = BP_UNKNOWN;
		law->lowest_at = law->now;
		law->drain_standing = standing;
		law->drain_base = zenith_base(law);
		law->drain_rounds = 0;
	} else if (law->phase == ZENITH_DRAIN && law->now >= law->drain_until) {
		law->phase = ZENITH_REFILL;
		zenith_begin_round(law, ZENITH_DRAINED);
	}
	return 0;
}

/* The mean queue follows the queue over `since` us. */
BP_INLINE void zenith_average(struct bp_law *law, bp_u64 queue, bp_u64 own, bp_u64 since)
{
	bp_u64 seen = BP_MIN(queue, ZENITH_LONGEST * own) << (ZENITH_MEAN - ZENITH_FINE), apart;

	apart = zenith_part(seen > law->mean ? seen - law->mean : law->mean - seen, since);
	law->mean = seen > law->mean ? law->mean + apart : law->mean - apart;
	law->mean = BP_MIN(law->mean, ZENITH_LONGEST * own << (ZENITH_MEAN - ZENITH_FINE));
	law->overflow -= zenith_part(law->overflow, since);
}

/* The law: g x (q_t - q) segments a round trip, spread over its steps. */
BP_APART zenith_steer(struct bp_law *law, bp_u32 segments, bp_u64 since)
{
	bp_u64 queue, own, mean, urge, apart, shift, wanted, now, step;
	int up;

	if (!law)
		return 0;
	law->pending += segments;
	law->pending_time += since;
	if (law->pending_time * ZENITH_STEPS < law->srtt)
		return 0;
	segments = BP_MIN(law->pending, 1U << 20);
	since = law->pending_time;
	law->pending = 0;
	law->pending_time = 0;
	if (law->mode == ZENITH_CONTEST) {
		if (zenith_is_used(law))
			law->window = bp_cubic_grow(&law->cubic, law->now + law->srtt, law->window, segments);
		return 0;
	}
	queue = zenith_fine_queue(law);
	own = zenith_own(law);
	zenith_average(law, queue, own, since);
	if (law->speed > 1 && 4 * queue > own) {
		/* The window was about to outgrow the path. Where ACKs come many at once, the larger of two rates is that of the path. */
		zenith_fit(law, BP_MAX(law->delivery_rate, law->delivery_rate_before));
		return 0;
	}
	mean = BP_MAX(law->mean >> (ZENITH_MEAN - ZENITH_FINE), 1ULL << ZENITH_FINE);
	/* Differences between flows decay without oscillation up to g m Q / s = 1 / e; with 20 fractional bits 2 / e is 771497. */
	urge = (BP_MIN((bp_u64)zenith_standing(law), 1ULL << 30) << 30) / (mean >> 6);
	urge = BP_MIN(BP_MIN(urge, 1ULL << 40) * 771497 >> 20, (bp_u64)ZENITH_SHARING << 20);
	apart = (own > mean ? own - mean : mean - own) << 1;
	apart = apart >= mean ? 1ULL << 24 : (apart << 24) / mean;
	shift = mean * (urge * apart >> 24) >> 20;
	/* What may be subtracted stands on the other side. */
	wanted = own > mean ? mean + shift : mean;
	now = own > mean ? queue : queue + shift;
	up = wanted > now;
	/* g is one half. */
	step = ((up ? wanted - now : now - wanted) << (BP_SHIFT + 8 - ZENITH_FINE - 1)) / BP_MAX(zenith_loss_worth(law), 1ULL);
	/* Two round trips without a queue say that there is room, even if Q remembers one. */
	if (law->speed > 1) {
		step = BP_MAX(up ? law->speed * step : 0, law->speed * (BP_ONE / 128));
		up = 1;
	}
	if (up && !zenith_is_used(law))
		return 0;
	step = segments * BP_MIN(step, ZENITH_STEP);
	law->window = up ? law->window + step : BP_MAX(law->window, step + ZENITH_SMALLEST) - step;
	law->window = BP_MIN(BP_MAX(law->window, ZENITH_SMALLEST), BP_LARGEST);
	return 0;
}

/* What left before a silence says nothing of the path. */
BP_INLINE void zenith_distrust(struct bp_law *law)
{
	law->trusted_from = law->now;
	zenith_cut_round(law);
}

/* An ACK of new data after a timeout: as CUBIC after its slow start (RFC 9438, section 4.8), but at once, since segments are paced. */
BP_INLINE void zenith_resume(struct bp_law *law)
{
	law->timed_out = 0;
	zenith_distrust(law);
	if (!law->before_timeout)
		return;
	law->window = BP_MAX(law->before_timeout / 10 * 7, ZENITH_SMALLEST);
	if (law->mode == ZENITH_DOUBLE)
		zenith_settle(law);
}

BP_INLINE void bp_on_ack(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u64 since = path->now - law->now, sent_at = path->now - ack->rtt;
	bp_u32 segments = BP_MIN(ack->delivered, 1U << 14);
	int trusted, begins;

	law->now = path->now;
	law->srtt = path->srtt;
	/* The smoothed round trip follows slowly while many losses await repair. */
	if (since > (bp_u64)BP_MAX(path->srtt, law->latest_rtt) + ZENITH_SILENCE)
		zenith_distrust(law);
	if (ack->rtt)
		law->latest_rtt = ack->rtt;
	if (law->timed_out && !ack->acked)
		return;
	if (law->timed_out)
		zenith_resume(law);
	law->round_delivered += segments;
	law->round_lost += ack->lost;
	law->round_in_flight = BP_MAX(law->round_in_flight, path->in_flight + segments);
	trusted = ack->rtt && sent_at >= law->trusted_from;
	if (trusted)
		zenith_sample(law, ack->rtt, path);
	zenith_drains(law);
	begins = law->mode == ZENITH_DOUBLE;
	zenith_double(law, segments);
	if (!trusted)
		return;
	if (sent_at >= law->round_since && law->phase != ZENITH_DRAIN)
		zenith_end_round(law);
	if (!begins && law->phase == ZENITH_NONE)
		zenith_steer(law, segments, since);
}

/* Nothing was in flight, and something is now: ACKs that nothing was sent for are no silence. */
BP_INLINE void zenith_on_start(struct bp_law *law, const struct bp_path *path)
{
	law->now = path->now;
}
#define BP_ON_START(law, path) zenith_on_start(law, path)

/* Losses are counted one by one, so the beginning of a loss episode changes nothing. A congestion mark counts as it does for CUBIC. */
BP_INLINE void bp_on_loss(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	if (!law->timed_out)
		law->before_timeout = 0;
	if (loss->cause == BP_MARKED)
		zenith_reduce(law, path->now);
}

BP_INLINE void bp_on_timeout(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	if (!law->timed_out || !law->before_timeout)
		law->before_timeout = law->window;
	law->window = BP_ONE;
	law->timed_out = 1;
}

BP_INLINE void bp_on_undo(struct bp_law *law)
{
	if (!law->before_timeout)
		return;
	law->window = law->before_timeout;
	law->before_timeout = 0;
}

/* The pace, and not the window, limits a burst. */
BP_INLINE void bp_on_idle(struct bp_law *law, bp_window restart, const struct bp_path *path)
{
}

BP_INLINE bp_window bp_cwnd(const struct bp_law *law)
{
	return law->phase == ZENITH_DRAIN ? BP_MIN(law->drain_window, law->window) : law->window;
}

BP_INLINE bp_window bp_ssthresh(const struct bp_law *law)
{
	return BP_NO_THRESHOLD;
}

/*
 * Segments a second that leave: a little more than would by itself, so that the pace never holds the window back. While it doubles, twice the
 * window in the path's own round trip; a smoothed one holds what waited on the way back, too. 0 while no round trip is known.
 */
BP_INLINE zenith_rate zenith_pace(const struct bp_law *law)
{
	zenith_rate rate = zenith_rate_of(law);

	if (law->mode == ZENITH_DOUBLE)
		return 2 * zenith_rate_over(law->window, zenith_base(law));
	return rate + rate / 50;
}

/* Segments further apart than 20 ms leave in pairs: a receiver holds the ACK of a lone one back, Linux for 40 ms at least. */
BP_INLINE int zenith_in_pairs(const struct bp_law *law)
{
	zenith_rate rate = zenith_pace(law);

	return rate && rate < ZENITH_PAIRS_BELOW;
}
#define BP_IN_PAIRS(law) zenith_in_pairs(law)

BP_INLINE bp_u64 bp_pace(const struct bp_law *law, const struct bp_path *path)
{
	zenith_rate rate = zenith_pace(law);

	return rate ? rate * path->mss >> 16 : 2 * bp_rate(law->window, path);
}
