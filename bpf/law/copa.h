/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Copa: a target rate inversely proportional to the queueing delay, with a more aggressive mode against loss-based competitors.
 *
 * V. Arun, H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", USENIX NSDI 2018.
 */
#include "law.h"
#include "windowed.h"

/* 1 / delta of the default mode, with 16 fractional bits. */
#define COPA_INVERSE (2U << 16)
/* Rounds without a nearly empty queue after which another sender is assumed to fill it. */
#define COPA_PATIENCE 5
/* Time over which the minRTT is measured, us. */
#define COPA_MEMORY 10000000ULL
/* Rounds of change in the same direction after which the velocity doubles. */
#define COPA_STEADY 3
#define COPA_SMALLEST BP_SEGMENTS(2)

/* Values that a loss or a timeout changes, as they were before the last one. */
struct copa_before {
	bp_window cwnd;			/* 0: nothing to undo */
	bp_window window_before;
	bp_u64 velocity;
	bp_u32 inverse;
	bp_u32 rounds;
	bp_u8 falls;
	bp_u8 steady;
};

struct bp_law {
	bp_window cwnd;
	bp_window window_before;	/* window at the end of the last round */
	bp_u64 nearly_empty;		/* last time when the queue was nearly empty, us */
	struct bp_windowed least;
	struct bp_windowed standing;	/* least RTT of the last half round trip (the standing RTT) */
	struct bp_windowed most;	/* complements of the greatest RTT of four round trips */
	bp_u64 velocity;		/* 16 fractional bits */
	bp_u32 inverse;			/* 1 / delta, 16 fractional bits */
	bp_u32 mark;			/* a round ends when this is acknowledged */
	bp_u32 rounds;			/* rounds in the same direction */
	bp_u8 falls;			/* direction of the window's change: 1 if it falls */
	bp_u8 competes;
	bp_u8 steady;			/* slow start is over */
	bp_u8 lost;			/* a loss occurred in this round */
	struct copa_before before;
};

BP_INLINE void copa_sample(struct bp_law *law, bp_u32 rtt, const struct bp_path *path)
{
	bp_u32 least, most;

	bp_windowed_update(&law->least, path->now, rtt, COPA_MEMORY);
	bp_windowed_update(&law->standing, path->now, rtt, path->srtt / 2);
	bp_windowed_update(&law->most, path->now, ~rtt, 4ULL * path->srtt);
	least = law->least.best[0].value;
	most = BP_MAX(~law->most.best[0].value, least);
	/* The queue is nearly empty: the RTT is within a tenth of its range above the least RTT. */
	if (rtt <= least || 10ULL * (rtt - least) <= most - least)
		law->nearly_empty = path->now;
}

BP_INLINE void bp_established(struct bp_law *law, bp_window initial, const struct bp_path *path)
{
	law->cwnd = initial;
	law->window_before = initial;
	law->nearly_empty = path->now;
	law->velocity = 1 << 16;
	law->inverse = COPA_INVERSE;
	law->mark = path->una;
	if (path->srtt)
		copa_sample(law, path->srtt, path);
}

/* Doubles the velocity every round once the window has moved in one direction for some rounds. */
BP_INLINE void copa_accelerate(struct bp_law *law)
{
	bp_u8 falls = law->cwnd <= law->window_before;

	law->window_before = law->cwnd;
	if (falls == law->falls) {
		law->rounds++;
	} else {
		law->velocity = 1 << 16;
		law->falls = falls;
		law->rounds = 0;
	}
	if (law->rounds >= COPA_STEADY)
		law->velocity = BP_MIN(2 * law->velocity, BP_MAX(law->cwnd, BP_ONE) >> (BP_SHIFT - 16));
}

BP_INLINE void copa_end_round(struct bp_law *law, const struct bp_path *path)
{
	bp_u8 competed = law->competes, lost = law->lost;

	if (!law->steady)
		law->window_before = law->cwnd;
	else
		copa_accelerate(law);
	law->competes = path->now - law->nearly_empty > (bp_u64)COPA_PATIENCE * path->srtt;
	law->lost = 0;
	if (!law->competes)
		law->inverse = COPA_INVERSE;
	else if (competed && !lost)
		law->inverse = BP_MIN(law->inverse + (1U << 16), 1U << 26);
}

/*
 * Raises the window below the target rate 1 / (delta d) and lowers it above. The step is velocity / (delta cwnd) segments per
 * acknowledged segment.
 */
BP_INLINE void copa_steer(struct bp_law *law, bp_u32 acked, bp_u8 window_limited)
{
	bp_u32 least = law->least.best[0].value, standing = law->standing.best[0].value;
	bp_u64 queueing = BP_MIN(standing > least ? standing - least : 0, 1U << 26);
	int up = (law->cwnd >> 10) * queueing <= (law->inverse >> 2) * (bp_u64)standing;
	bp_u64 push;
	bp_window step;

	if (!law->steady && up) {
		if (window_limited)
			law->cwnd += BP_SEGMENTS(acked);
		return;
	}
	law->steady = 1;
	push = ((law->velocity >> 8) * (law->inverse >> 8)) << (BP_SHIFT - 16);
	step = push >= law->cwnd ? BP_SEGMENTS(acked) : acked * bp_divide(push, law->cwnd);
	if (!up)
		law->cwnd = BP_MAX(law->cwnd, step + COPA_SMALLEST) - step;
	else if (window_limited)
		law->cwnd += step;
}

BP_INLINE void bp_on_ack(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u32 acked = BP_MIN(ack->acked ? ack->acked : ack->delivered, 1U << 14);

	if (ack->rtt)
		copa_sample(law, ack->rtt, path);
	if (ack->acked && bp_after(path->una, law->mark)) {
		law->mark = path->nxt;
		copa_end_round(law, path);
	}
	if (acked)
		copa_steer(law, acked, ack->window_limited);
	law->cwnd = BP_MIN(law->cwnd, BP_LARGEST);
}

BP_INLINE void copa_remember(struct bp_law *law)
{
	struct copa_before *before = &law->before;

	before->cwnd = law->cwnd;
	before->window_before = law->window_before;
	before->velocity = law->velocity;
	before->inverse = law->inverse;
	before->rounds = law->rounds;
	before->falls = law->falls;
	before->steady = law->steady;
}

/* Ignores a loss in the default mode. In the competitive mode it makes the sender less aggressive. */
BP_INLINE void bp_on_loss(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	copa_remember(law);
	law->lost = 1;
	if (law->competes)
		law->inverse = BP_MAX(law->inverse / 2, COPA_INVERSE);
}

BP_INLINE void bp_on_timeout(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	if (loss->consecutive == 1)
		copa_remember(law);
	law->cwnd = BP_ONE;
	law->window_before = BP_ONE;
	law->velocity = 1 << 16;
	law->falls = 0;
	law->rounds = 0;
	law->steady = 0;
}

/* Undoes the last reduction. A window that has since grown beyond its old value stays unchanged. */
BP_INLINE void bp_on_undo(struct bp_law *law)
{
	struct copa_before *before = &law->before;

	if (!before->cwnd)
		return;
	law->lost = 0;
	law->inverse = BP_MAX(law->inverse, before->inverse);
	if (before->cwnd > law->cwnd) {
		law->cwnd = before->cwnd;
		law->window_before = before->window_before;
		law->velocity = before->velocity;
		law->rounds = before->rounds;
		law->falls = before->falls;
		law->steady = before->steady;
	}
	before->cwnd = 0;
}

BP_INLINE void bp_on_idle(struct bp_law *law, bp_window restart, const struct bp_path *path)
{
}

BP_INLINE bp_window bp_cwnd(const struct bp_law *law)
{
	return law->cwnd;
}

BP_INLINE bp_window bp_ssthresh(const struct bp_law *law)
{
	return BP_NO_THRESHOLD;
}

/* Twice the window per standing round trip. */
BP_INLINE bp_u64 bp_pace(const struct bp_law *law, const struct bp_path *path)
{
	bp_u32 standing = law->standing.best[0].value;
	bp_u64 bytes = ((law->cwnd >> 8) * path->mss) >> 15;

	return standing ? bytes * 1000000 / standing : 0;
}
