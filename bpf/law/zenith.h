/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Zenith: every flow aims at the same small queueing delay as a function of its rate.
 *
 * A scheme of our own; `papers/zenith.md` has its law, and crates/cc/src/zenith.rs the same law in real numbers.
 */
#include "law.h"
#include "cubic.h"
#include "windowed.h"

/* a and p: the queue aimed at is a + p / sqrt(segments a second), us. */
#define ZENITH_FLOOR 2000U
#define ZENITH_PRICE 140000ULL
/* m; g is one half. */
#define ZENITH_SHARING 4
/* D: the queue that the loss of every segment stands for, us. */
#define ZENITH_LOSS 2000000ULL
/* T, us. */
#define ZENITH_MEMORY 10000000ULL
/* n and the most that a path may lose without a queue, with 32 fractional bits. Rounded up, so that a loss that ties with it is explained. */
#define ZENITH_NOISE ((8ULL << 32) / 1000 + 1)
#define ZENITH_MOST_NOISE (1ULL << 29)
#define ZENITH_NOISE_MEMORY 1000ULL
/* A thousandth of a segment decides nothing: rounding differs from that of real numbers. */
#define ZENITH_TIE (BP_ONE >> 10)
/* r and a sixteenth of it, with 24 fractional bits. */
#define ZENITH_GROWTH (BP_ONE / 4)
#define ZENITH_LEAST_GROWTH (ZENITH_GROWTH / 16)
#define ZENITH_SMALLEST BP_SEGMENTS(2)
#define ZENITH_STEPS 4
/* Round trips with too long a queue that ask for a drain, and drains in a row that leave a queue to others. */
#define ZENITH_DOUBTS 3
/* Resolution of the peer's clock, and how far it may be from ours, us. */
#define ZENITH_TICK 1000U
#define ZENITH_CLOCK_SLACK 500000ULL
/* Delays with 16 fractional bits of a microsecond; means with 28. */
#define ZENITH_FINE 16
#define ZENITH_MEAN 28
/* Rates in segments a second with 16 fractional bits. */
typedef bp_u64 zenith_rate;
/* What leaves slower leaves in pairs. */
#define ZENITH_PAIRS_BELOW (50ULL << 16)
#define ZENITH_FASTEST_RATE (1ULL << 46)

enum zenith_mode { ZENITH_GROW, ZENITH_FOLLOW, ZENITH_CONTEST };
enum zenith_tide { ZENITH_NONE, ZENITH_DRAIN, ZENITH_REFILL };
/* What the peer's timestamps are worth. */
enum zenith_clock { ZENITH_UNHEARD, ZENITH_BELIEVED, ZENITH_INCREDIBLE };

struct bp_law {
	bp_window window;
	bp_window before_timeout;	/* the window before a timeout; 0 while there was none */
	bp_window ebb;			/* the window of a drain */
	bp_window emptied;		/* the window when a drain last left no queue, or when the start ended */
	bp_window saved;		/* losses that the path could have had and did not have */
	struct bp_cubic cubic;		/* of a contest */
	bp_u64 mean;			/* Q's part that delays show, 0 until the start has ended */
	bp_u64 loss;			/* the part that losses stand for */
	bp_u64 noise;
	bp_u64 longest;			/* longest queue that a segment has seen, forgotten over T */
	bp_u64 now;			/* time of the newest ACK, us, as all times here */
	bp_u64 trusted_from;		/* segments that left before tell nothing */
	bp_u64 round_since, step_since, drain_until, lowest_at;
	bp_u64 clock_at;		/* our time of the first timestamp */
	struct bp_windowed base;
	struct bp_windowed out_base;	/* delay to the peer by its clock, above 2^31 */
	bp_u32 growth, growth_before_timeout;	/* share of a segment that each segment adds, 24 fractional bits */
	bp_u32 srtt;
	bp_u32 in_flight_before;	/* most segments in flight in the round trip before */
	bp_u32 delivered_before;	/* and what it delivered; BP_UNKNOWN after a silence */
	bp_u32 round_delivered, round_lost, round_in_flight, round_longest;
	bp_u32 step_queue, step_segments;
	bp_u32 queue, latest;		/* of the last step, and of the last ACK */
	bp_u32 lowest, lowest_out;	/* since the last drain began: round trip, and delay to the peer */
	bp_u32 clock_origin;
	bp_u32 drain_queue;		/* before the last drain */
	bp_u32 crowded_rounds;
	bp_u32 full_drains;		/* in a row that have left most of the queue */
	bp_u8 mode, mode_before_timeout, tide, clock, round_counts;
	bp_u8 overflowed;		/* since the last drain */
	bp_u8 timed_out;		/* and no new data was acknowledged since */
};

BP_INLINE bp_u32 zenith_base(const struct bp_law *law)
{
	return law->base.best[0].known ? law->base.best[0].value : BP_UNKNOWN;
}

/* So much in so many us; 0 for no time. */
BP_INLINE zenith_rate zenith_rate_over(bp_window window, bp_u32 time)
{
	zenith_rate rate = time ? (window >> (BP_SHIFT - 16)) * 1000000 / time : 0;

	return BP_MIN(rate, ZENITH_FASTEST_RATE);
}

/* q*(x), that of a segment a second for slower flows: Newton's iteration for the inverse root, which needs no division. */
BP_INLINE bp_u64 zenith_own(const struct bp_law *law)
{
	zenith_rate rate = BP_MAX(zenith_rate_over(law->window, law->srtt), 1ULL << 16);
	bp_u32 shift = 0, turn, bits;
	bp_u64 m, y;

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
	shift = 53 - ZENITH_FINE - shift;
	return ((bp_u64)ZENITH_FLOOR << ZENITH_FINE) + ((ZENITH_PRICE * y + (1ULL << shift >> 1)) >> shift);
}

/* Half of the window was used in this round trip or in the one before: only then may it grow. */
BP_INLINE int zenith_is_used(const struct bp_law *law)
{
	return BP_SEGMENTS(2ULL * BP_MAX(law->round_in_flight, law->in_flight_before)) + 2 * ZENITH_TIE >= law->window;
}

BP_INLINE void zenith_begin_round(struct bp_law *law, bp_u8 counts)
{
	law->round_since = law->now;
	law->round_counts = counts;
	law->round_delivered = 0;
	law->round_lost = 0;
	law->round_in_flight = 0;
	law->round_longest = 0;
}

BP_INLINE void zenith_begin_step(struct bp_law *law)
{
	law->step_since = law->now;
	law->step_queue = BP_UNKNOWN;
	law->step_segments = 0;
}

BP_INLINE void bp_established(struct bp_law *law, bp_window initial, const struct bp_path *path)
{
	law->window = BP_MAX(initial, BP_ONE);
	law->growth = BP_ONE;
	law->noise = ZENITH_NOISE;
	law->saved = ZENITH_NOISE_MEMORY * ZENITH_NOISE >> 8;
	law->now = path->now;
	law->round_since = path->now;
	law->round_counts = 1;
	law->step_queue = BP_UNKNOWN;
	law->lowest = BP_UNKNOWN;
	law->lowest_out = BP_UNKNOWN;
}

/* A value of the base. While it is held only smaller ones replace it. */
BP_INLINE void zenith_update(struct bp_law *law, struct bp_windowed *base, bp_u32 value)
{
	if (law->mode == ZENITH_CONTEST && base->best[0].known)
		bp_windowed_reset(base, law->now, BP_MIN(value, base->best[0].value));
	else
		bp_windowed_update(base, law->now, value, 3 * ZENITH_MEMORY);
}

/* The peer's timestamp less our time of sending is the delay on the way out, but for a constant; BP_UNKNOWN without a clock of milliseconds. */
BP_INLINE bp_u32 zenith_outward(struct bp_law *law, bp_u32 rtt, const struct bp_path *path)
{
	bp_u64 elapsed, peer, late, early, delay;

	if (!path->has_peer_clock || law->clock == ZENITH_INCREDIBLE)
		return BP_UNKNOWN;
	if (law->clock == ZENITH_UNHEARD) {
		law->clock = ZENITH_BELIEVED;
		law->clock_origin = path->peer_clock;
		law->clock_at = law->now;
	}
	elapsed = law->now - law->clock_at;
	/* Above 2^31 ms, so that it is never negative. */
	peer = (bp_u64)(path->peer_clock - law->clock_origin + 0x80000000U) * 1000;
	delay = elapsed + 0x80000000ULL * 1000;
	/* The ACK left the peer between our sending of the segment and now. */
	late = BP_MAX(peer, delay) - delay;
	early = BP_MAX(peer + rtt, delay) - (peer + rtt);
	if (late + early > ZENITH_CLOCK_SLACK + elapsed / 50 || late + early > 1ULL << 30) {
		law->clock = ZENITH_INCREDIBLE;
		return BP_UNKNOWN;
	}
	return peer + rtt + (1ULL << 31) - delay;
}

/* What a round trip is longer than the smallest, or less if the peer's clock says that it is less on the way out, us. */
BP_INLINE bp_u32 zenith_queue_of(const struct bp_law *law, bp_u32 rtt, bp_u32 out)
{
	bp_u32 queue = BP_MAX(rtt, zenith_base(law)) - zenith_base(law), base = law->out_base.best[0].value;

	if (law->clock != ZENITH_BELIEVED || !law->out_base.best[0].known || out == BP_UNKNOWN)
		return queue;
	out = BP_MAX(out, base) - base + ZENITH_TICK;
	return BP_MIN(queue, out);
}

BP_INLINE void zenith_end_growth(struct bp_law *law)
{
	law->mode = ZENITH_FOLLOW;
	if (!law->mean) {
		law->mean = zenith_own(law) << (ZENITH_MEAN - ZENITH_FINE);
		law->emptied = law->window;
	}
}

/*
 * A queue shows that the path is full: the window becomes what the last round trip carried, and the queue aimed at, but at least half of what it was.
 * Of a window that doubles, paced at twice its rate, half a round trip carried that.
 */
BP_APART zenith_notice_queue(struct bp_law *law)
{
	bp_u64 carried, fits;

	if (!law || law->mode != ZENITH_GROW || !law->srtt)
		return 0;
	carried = BP_MAX(law->delivered_before, law->round_delivered);
	carried = BP_SEGMENTS(BP_MIN(carried, 1ULL << 22) * (law->growth < BP_ONE ? 1 : 2));
	fits = carried + (carried >> 12) * ((zenith_own(law) >> 4) / law->srtt);
	law->window = BP_MAX(BP_MIN(law->window, BP_MAX(fits, law->window / 2)), ZENITH_SMALLEST);
	zenith_begin_round(law, 0);
	zenith_end_growth(law);
	return 0;
}

BP_APART zenith_sample(struct bp_law *law, bp_u32 rtt, const struct bp_path *path)
{
	bp_u32 out, queue, seen;

	if (!law || !path)
		return 0;
	out = zenith_outward(law, rtt, path);
	zenith_update(law, &law->base, rtt);
	if (out != BP_UNKNOWN)
		zenith_update(law, &law->out_base, out);
	if (rtt < law->lowest) {
		law->lowest = rtt;
		law->lowest_at = law->now;
	}
	law->lowest_out = BP_MIN(law->lowest_out, out);
	queue = zenith_queue_of(law, rtt, out);
	law->step_queue = BP_MIN(law->step_queue, queue);
	/* A receiver that holds an ACK back (RFC 9293, section 3.8.6.3) does so once. */
	seen = BP_MIN(queue, law->latest);
	law->round_longest = BP_MAX(law->round_longest, seen);
	law->latest = queue;
	if (2 * ((bp_u64)seen << ZENITH_FINE) > zenith_own(law))
		zenith_notice_queue(law);
	return 0;
}

/* The part of a delay with ZENITH_MEAN fractional bits that so many us are of T, at most all of it. No product leaves 64 bits. */
BP_INLINE bp_u64 zenith_part(bp_u64 delay, bp_u64 since)
{
	since = BP_MIN(since, ZENITH_MEMORY);
	return since < 1 << 13 ? delay * since / ZENITH_MEMORY : ((delay >> 12) * since / ZENITH_MEMORY) << 12;
}

/* A mark, or in a contest more losses than the path's own: as CUBIC (RFC 9438), once for what is in flight. */
BP_APART zenith_reduce(struct bp_law *law, bp_u64 now)
{
	bp_window before;

	if (!law)
		return 0;
	before = law->window;
	law->window = BP_MAX(before / 10 * 7, ZENITH_SMALLEST);
	law->round_counts = 0;
	if (law->mode == ZENITH_CONTEST)
		bp_cubic_reduce(&law->cubic, now, before, law->window);
	else
		zenith_end_growth(law);
	return 0;
}

/* Follows the mean queue fast, and moves it to the target slowly: g x (wanted - q) segments a round trip. */
BP_INLINE void zenith_follow(struct bp_law *law, bp_u32 segments)
{
	bp_u64 own = zenith_own(law), mean = law->mean >> (ZENITH_MEAN - ZENITH_FINE), common, urge, apart, shift, wanted, now, step;

	common = BP_MAX((law->mean + law->loss) >> (ZENITH_MEAN - ZENITH_FINE), 1ULL << ZENITH_FINE);
	/* m up to srtt / (e g Q), with 20 fractional bits: 2 / e is 771497 of 2^20. */
	urge = ((bp_u64)BP_MIN(law->srtt, 1U << 30) << 30) / (common >> 6);
	urge = BP_MIN(BP_MIN(urge, 1ULL << 40) * 771497 >> 20, (bp_u64)ZENITH_SHARING << 20);
	apart = (own > common ? own - common : common - own) << 1;
	apart = apart >= common ? 1ULL << 20 : (BP_MIN(apart, 1ULL << 43) << 20) / common;
	shift = (common >> 10) * (urge * apart >> 20) >> 10;
	now = (bp_u64)law->queue << ZENITH_FINE;
	/* What may be subtracted stands on the other side. */
	wanted = own > common ? mean + shift : mean;
	now = own > common ? now : now + shift;
	step = ((wanted > now ? wanted - now : now - wanted) << (BP_SHIFT - ZENITH_FINE - 1)) / BP_MAX(law->srtt, 1U);
	if (wanted > now) {
		if (zenith_is_used(law))
			law->window += segments * BP_MIN(step, ZENITH_GROWTH);
	} else {
		step = segments * BP_MIN(step, ZENITH_GROWTH / 2);
		law->window = BP_MAX(law->window, step + ZENITH_SMALLEST) - step;
	}
	law->window = BP_MIN(law->window, BP_LARGEST);
}

/* Ends a quarter of a round trip. */
BP_APART zenith_step(struct bp_law *law)
{
	bp_u64 elapsed, seen, apart;
	bp_u32 segments;

	if (!law)
		return 0;
	elapsed = law->now - law->step_since;
	if (elapsed * ZENITH_STEPS < law->srtt)
		return 0;
	segments = BP_MIN(law->step_segments, 1U << 20);
	law->queue = law->step_queue;
	zenith_begin_step(law);
	if (law->tide != ZENITH_NONE)
		return 0;
	if (law->mean) {
		seen = (bp_u64)law->queue << ZENITH_MEAN;
		apart = zenith_part(seen > law->mean ? seen - law->mean : law->mean - seen, elapsed);
		law->mean = seen > law->mean ? law->mean + apart : BP_MAX(law->mean - apart, 1ULL);
		law->loss -= zenith_part(law->loss, elapsed);
	}
	if (law->mode == ZENITH_FOLLOW)
		zenith_follow(law, segments);
	else if (law->mode == ZENITH_CONTEST && zenith_is_used(law))
		law->window = bp_cubic_grow(&law->cubic, law->now + law->srtt, law->window, segments);
	return 0;
}

/* Compares the losses of a round trip with the noise. True if something else was lost in a queue. */
BP_APART zenith_judge_losses(struct bp_law *law)
{
	bp_u64 own, sent, share, explained, excess, stands_for;
	int saw_queue;

	if (!law)
		return 0;
	own = zenith_own(law);
	sent = BP_MIN((bp_u64)law->round_delivered + law->round_lost, 1ULL << 22);
	share = law->noise;
	/* A queue that overflows is as long as queues become here. */
	law->longest -= zenith_part(law->longest, law->srtt);
	law->longest = BP_MAX(law->longest, (bp_u64)law->round_longest << ZENITH_MEAN);
	saw_queue = (bp_u64)law->round_longest << (ZENITH_MEAN + 1) >= law->longest && 4 * ((bp_u64)law->round_longest << ZENITH_FINE) >= own;
	if (4 * ((bp_u64)law->round_longest << ZENITH_FINE) < own) {
		law->noise = (ZENITH_NOISE_MEMORY * share + ((bp_u64)BP_MIN(law->round_lost, 1U << 22) << 32)) / (ZENITH_NOISE_MEMORY + sent);
		law->noise = BP_MIN(law->noise, ZENITH_MOST_NOISE);
	}
	/* A buffer may be too short to show a queue. */
	explained = law->saved + ((saw_queue ? share : ZENITH_MOST_NOISE) * sent >> 8);
	excess = BP_SEGMENTS(BP_MIN(law->round_lost, 1U << 22));
	law->saved = BP_MIN(BP_MAX(explained, excess) - excess, ZENITH_NOISE_MEMORY * law->noise >> 8);
	if (excess <= explained + ZENITH_TIE)
		return 0;
	excess -= explained;
	law->overflowed = 1;
	if (law->mode == ZENITH_CONTEST) {
		zenith_reduce(law, law->now);
		return saw_queue;
	}
	law->window = BP_MAX(law->window, excess / 2 + ZENITH_SMALLEST) - excess / 2;
	if (saw_queue) {
		/* What the excess stands for, at most four targets. */
		stands_for = (ZENITH_LOSS * (excess / BP_MAX(sent, 1ULL))) >> (BP_SHIFT - ZENITH_FINE);
		law->loss += zenith_part(BP_MIN(stands_for, 4 * zenith_own(law)) << (ZENITH_MEAN - ZENITH_FINE), law->srtt);
	}
	return saw_queue;
}

/* The window without the part that stands in the queue. */
BP_INLINE bp_window zenith_without_queue(const struct bp_law *law)
{
	bp_u64 path = law->srtt - BP_MIN(law->queue, law->srtt);

	return (law->window >> 12) * ((path << BP_SHIFT) / BP_MAX(law->srtt, 1U)) >> 12;
}

/* Begins and ends drains. */
BP_APART zenith_drains(struct bp_law *law)
{
	int doubtful;

	if (!law)
		return 0;
	doubtful = law->mode == ZENITH_FOLLOW && law->crowded_rounds >= ZENITH_DOUBTS;
	if (law->tide == ZENITH_NONE && law->mode != ZENITH_GROW && (doubtful || law->now >= law->lowest_at + ZENITH_MEMORY)) {
		law->tide = ZENITH_DRAIN;
		law->ebb = BP_MAX(zenith_without_queue(law) / 20 * 19, BP_ONE);
		law->drain_until = law->now + law->srtt;
		law->drain_queue = law->queue;
		law->crowded_rounds = 0;
		law->lowest = BP_UNKNOWN;
		law->lowest_out = BP_UNKNOWN;
		law->lowest_at = law->now;
	} else if (law->tide == ZENITH_DRAIN && law->now >= law->drain_until) {
		law->tide = ZENITH_REFILL;
		zenith_begin_round(law, 1);
	}
	return 0;
}

/* A drain has left no queue, or has found a longer path. */
BP_INLINE void zenith_emptied(struct bp_law *law)
{
	law->emptied = law->window;
	law->crowded_rounds = 0;
	law->full_drains = 0;
}

/* Evaluates a drain. A queue that did not move is part of the path, which has become longer. If most of it stays, others fill it. */
BP_APART zenith_judge_drain(struct bp_law *law)
{
	bp_u64 before, left, base;
	bp_window before_yield;
	int overflowed, contests, flat;

	if (!law)
		return 0;
	before = law->drain_queue;
	left = zenith_queue_of(law, law->lowest, law->lowest_out);
	overflowed = law->overflowed;
	contests = law->mode == ZENITH_CONTEST;
	law->tide = ZENITH_NONE;
	law->overflowed = 0;
	if (left << ZENITH_FINE < zenith_own(law) || (!contests && 2 * left < before)) {
		if (contests) {
			/* The queue is gone, and its part of the window with it. */
			law->window = BP_MAX(zenith_without_queue(law), ZENITH_SMALLEST);
			law->mode = ZENITH_FOLLOW;
		}
		zenith_emptied(law);
		return 0;
	}
	flat = !overflowed && law->window >= law->emptied / 2 && 20 * left >= 19 * before && 19 * left <= 20 * before;
	before_yield = BP_MAX(law->window, law->emptied);
	law->full_drains = BP_MIN(law->full_drains, 1U << 30) + 1;
	if (contests)
		return 0;
	if (flat) {
		base = BP_MIN(BP_MAX(zenith_base(law), 1U), 1U << 30);
		left = BP_MIN((bp_u64)law->lowest, base << 8);
		law->window = BP_MIN(before_yield / base * left + before_yield % base * left / base, BP_LARGEST);
		bp_windowed_reset(&law->base, law->now, law->lowest);
		if (law->lowest_out != BP_UNKNOWN)
			bp_windowed_reset(&law->out_base, law->now, law->lowest_out);
		zenith_emptied(law);
	} else if (law->full_drains >= ZENITH_DOUBTS) {
		law->mode = ZENITH_CONTEST;
		law->window = before_yield;
		bp_cubic_begin(&law->cubic, law->now, law->window);
	}
	return 0;
}

/* Once per round trip. */
BP_APART zenith_end_round(struct bp_law *law)
{
	bp_u64 own;
	int counts, overflowed;

	if (!law)
		return 0;
	counts = law->round_counts;
	overflowed = counts && zenith_judge_losses(law);
	law->in_flight_before = law->round_in_flight;
	law->delivered_before = law->round_delivered;
	/* What left before a reduction does not count. */
	zenith_begin_round(law, !(counts && !law->round_counts));
	if (overflowed)
		zenith_notice_queue(law);
	if (law->tide == ZENITH_REFILL) {
		zenith_judge_drain(law);
		return 0;
	}
	own = zenith_own(law);
	law->crowded_rounds = (bp_u64)law->queue << ZENITH_FINE > 2 * own ? law->crowded_rounds + 1 : 0;
	if (overflowed || !zenith_is_used(law) || 4 * ((bp_u64)law->queue << ZENITH_FINE) >= own || 2 * law->loss >= own << (ZENITH_MEAN - ZENITH_FINE))
		return 0;
	/* A round trip without a queue says that there is room. */
	if (law->mode == ZENITH_FOLLOW) {
		law->mode = ZENITH_GROW;
		law->growth = ZENITH_LEAST_GROWTH;
	} else if (law->mode == ZENITH_GROW && law->growth < ZENITH_GROWTH) {
		law->growth *= 2;
	}
	return 0;
}

/* An ACK after a silence: what left before it says nothing of the path. */
BP_INLINE void zenith_distrust(struct bp_law *law)
{
	law->trusted_from = law->now;
	law->delivered_before = BP_UNKNOWN;
	law->tide = ZENITH_NONE;
	zenith_begin_step(law);
	zenith_begin_round(law, 0);
}

BP_INLINE void bp_on_ack(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u32 segments = BP_MIN(ack->delivered, 1U << 14);
	int silent = path->now - law->now > path->rto;

	law->now = path->now;
	law->srtt = path->srtt;
	if (silent)
		zenith_distrust(law);
	/* After a timeout RFC 5681 doubles from one segment to half of the window; a paced sender begins with that half. */
	if (law->timed_out && !ack->acked)
		return;
	if (law->timed_out) {
		law->timed_out = 0;
		law->window = BP_MAX(law->before_timeout / 2, ZENITH_SMALLEST);
		law->mode = ZENITH_GROW;
		law->growth = BP_ONE;
	}
	law->round_delivered += segments;
	law->round_lost += ack->lost;
	law->round_in_flight = BP_MAX(law->round_in_flight, path->in_flight + segments);
	law->step_segments += segments;
	if (law->mode == ZENITH_GROW && zenith_is_used(law))
		law->window = BP_MIN(law->window + (bp_u64)law->growth * segments, BP_LARGEST);
	if (!ack->rtt || path->now - ack->rtt < law->trusted_from)
		return;
	zenith_sample(law, ack->rtt, path);
	zenith_drains(law);
	zenith_step(law);
	if (path->now - ack->rtt >= law->round_since && law->tide != ZENITH_DRAIN)
		zenith_end_round(law);
}

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
	if (!law->timed_out) {
		law->before_timeout = law->window;
		law->mode_before_timeout = law->mode;
		law->growth_before_timeout = law->growth;
	}
	law->window = BP_ONE;
	law->timed_out = 1;
}

BP_INLINE void bp_on_undo(struct bp_law *law)
{
	if (!law->before_timeout)
		return;
	law->window = law->before_timeout;
	law->mode = law->mode_before_timeout;
	law->growth = law->growth_before_timeout;
	law->before_timeout = 0;
	law->timed_out = 0;
}

/* Half of the window is kept, and must prove itself; as long as the start has seen neither a queue nor a silence, the restart window. */
BP_INLINE void bp_on_idle(struct bp_law *law, bp_window restart, const struct bp_path *path)
{
	if (!law->trusted_from && !law->mean) {
		law->window = restart;
		return;
	}
	law->window = BP_MIN(law->window, BP_MAX(restart, law->window / 2));
	law->mode = ZENITH_GROW;
	law->growth = BP_ONE;
}

BP_INLINE bp_window bp_cwnd(const struct bp_law *law)
{
	return law->tide == ZENITH_DRAIN ? BP_MIN(law->ebb, law->window) : law->window;
}

BP_INLINE bp_window bp_ssthresh(const struct bp_law *law)
{
	return BP_NO_THRESHOLD;
}

/*
 * Segments a second that leave: a little more than would by themselves, so that the pace never holds the window back; while the window doubles,
 * twice what the path needs, so that a queue shows early. 0 while no round trip is known.
 */
BP_INLINE zenith_rate zenith_pace(const struct bp_law *law)
{
	zenith_rate rate = zenith_rate_over(law->window, law->srtt);

	if (law->mode != ZENITH_GROW || law->growth < BP_ONE)
		return rate + rate / 50;
	return law->base.best[0].known ? 2 * zenith_rate_over(law->window, zenith_base(law)) : 2 * rate;
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
