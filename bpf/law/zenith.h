/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Zenith: every flow aims at the same small queueing delay as a function of its rate.
 *
 * A scheme of our own; `papers/zenith.md` has its law. The measured start is left out: a control of the kernel cannot space the
 * first segments of a connection one by one, so the window doubles from the first.
 */
#include "law.h"
#include "windowed.h"

#define ZENITH_SMALLEST BP_SEGMENTS(2)

/* a and p of the note: the queue aimed at is a + p / sqrt(segments a second), us. */
#define ZENITH_FLOOR 2000U
#define ZENITH_PRICE 140000ULL
/* m. */
#define ZENITH_SHARING 4
/* K, us s: the queue that one loss a second stands for, where losses and not delays tell of it. */
#define ZENITH_LOSS 20000ULL
/* T: so many round trips, and its bounds, us. */
#define ZENITH_MEMORY_RTTS 20
#define ZENITH_MEMORY_LEAST 5000000U
#define ZENITH_MEMORY_MOST 10000000U
#define ZENITH_DRAIN_ROUNDS 8
#define ZENITH_LONGEST_WINDOW 10000000ULL
#define ZENITH_REGRET 10000000U
/* In a contest a round trip that so many drains in a row have found is that of the path. */
#define ZENITH_SAME 2
/* For how long the smallest delay is believed, us. */
#define ZENITH_BASE_WINDOW 30000000ULL
/* What the peer's clock, which counts milliseconds, may hide, us. */
#define ZENITH_TICK 1000U
/* A clock that is further from our own than this after a while does not count milliseconds, us. */
#define ZENITH_CLOCK_SLACK 500000ULL
/* Fastest growth, in times that of the law. */
#define ZENITH_FASTEST 32
/*
 * Steps of the law in a smoothed round trip at most. The standing queue, which it follows, is the smallest of a quarter of a round trip, kept in
 * quarters of that; a step of this length delays the loop of 1.25 round trips by a thirty-second of one.
 */
#define ZENITH_STEPS 16
/* Largest change of the window for a delivered segment. */
#define ZENITH_STEP (BP_ONE / 2)
/* The longest queue that counts, in targets. */
#define ZENITH_LONGEST 3
/* A drain that leaves more targets than these has others beside it who do not drain. */
#define ZENITH_FOREIGN 4
/* So does one that leaves more targets of the smallest window than these. */
#define ZENITH_LONGEST_OWN 2
/*
 * A flow yields to others who do not drain if it has less than half of the window that it had when a drain last left no queue, and so many
 * drains in a row have left at least three quarters of the queue before them.
 */
#define ZENITH_FILLED_DRAINS 3
/* A contest in which more than one segment of so many is lost is one of flows of our kind with each other. */
#define ZENITH_FUTILE 20
/* For the first contest of a connection the queue that a drain leaves must have been there for one and a half T: so many halves of it. */
#define ZENITH_FIRST_DRAINS 3
/* So many silences in a row, without a round trip between them that is measured, are congestion. */
#define ZENITH_MOST_SILENCES 3
/* What the path is believed to lose before a drain shows it, and as how many segments in drains that weighs for ever. */
#define ZENITH_NOISE ZENITH_SHARE(8)
#define ZENITH_BELIEF 100
/* Rounded up, with 16 fractional bits: losses that tie with what it explains are explained. */
#define ZENITH_BELIEVED_LOST ((ZENITH_BELIEF * ZENITH_NOISE >> 8) + 1)
/* So many standard deviations of the losses of a round trip are saved up. */
#define ZENITH_SAVED 9
/* Queues that moved by less in a drain are none: this, us, and a twentieth of themselves. */
#define ZENITH_STILL 500U

/* Delays with 16 fractional bits of a microsecond; the mean with 28. */
#define ZENITH_FINE 16
#define ZENITH_MEAN 28
/* Rates in segments a second with 16 fractional bits. */
typedef bp_u64 zenith_rate;
/* What leaves slower leaves in pairs. */
#define ZENITH_PAIRS_BELOW (50ULL << 16)
#define ZENITH_FASTEST_RATE (1ULL << 46)
/* Shares with 24 fractional bits, rounded up: two of 25 segments are not more than a fiftieth and chance explain. */
#define ZENITH_SHARE(thousandths) (((thousandths) << 24) / 1000ULL + 1)
/* A binary fraction: so much of a whole number of segments and whole losses tie in Rust and here alike. */
#define ZENITH_MOST_NOISE (1ULL << 21)

enum zenith_stage { ZENITH_DOUBLES, ZENITH_STEADY };
enum zenith_tide { ZENITH_USUAL, ZENITH_EBB, ZENITH_FLOOD };
/* What left in the round trip before this one: its losses are found in this one. */
enum zenith_before { ZENITH_ORDINARY, ZENITH_CUT, ZENITH_DRAINED };
/* What the peer's timestamps are worth. */
enum zenith_clock { ZENITH_UNHEARD, ZENITH_BELIEVED, ZENITH_INCREDIBLE };

struct bp_law {
	bp_window window;
	bp_window before_timeout;	/* the window before a timeout; 0 when there was none */
	bp_window ebb;			/* the window of a drain */
	bp_u64 mean;			/* Q */
	bp_u64 overflow;		/* O, the part of it that losses stand for */
	zenith_rate delivery_rate;	/* in the last round trip, and in the one before */
	zenith_rate delivery_rate_before;
	bp_u64 now;			/* time of the newest ACK, us, as all times here */
	bp_u64 expected_by;		/* no ACK by then is a silence */
	bp_u64 trusted_from;		/* segments that left before tell nothing */
	bp_u64 round_since;
	bp_u64 ebb_until;
	bp_u64 lowest_at;
	bp_u64 rebased_at;
	bp_u64 clock_at;		/* our time of the first timestamp */
	bp_u64 drained_sent;		/* segments sent and lost in drains, 16 fractional bits */
	bp_u64 drained_lost;
	bp_u64 crowded_sent;		/* segments sent and lost while the queue is too long */
	bp_u64 crowded_lost;
	bp_u64 root;			/* that is being found */
	bp_window allowance;		/* losses that the path's own share still explains */
	bp_window crowded_window;	/* the window when the queue became too long */
	bp_window emptied_window;	/* the window when a drain last left no queue or the doubling ended, at least half of that before */
	bp_window contest_most;		/* CUBIC's window at the last loss; 0 while there is no contest */
	bp_u64 empty_at;		/* a round trip last ended without a queue, or the doubling */
	bp_u64 contest_since;
	bp_u64 contest_until_most;	/* how long CUBIC takes to get back to it, us */
	bp_u64 pending_time;		/* since the law's last step, us, and the segments delivered */
	struct bp_windowed base;
	struct bp_windowed standing;
	struct bp_windowed longest;	/* complements of the longest queue that two ACKs in a row showed */
	struct bp_windowed out_base;	/* delay to the peer by its clock, above 2^31 */
	struct bp_windowed out_standing;
	bp_u32 pending;
	bp_u32 in_flight;		/* at the newest ACK */
	bp_u32 in_flight_before;	/* the most at an ACK of the round trip before, what it reports included */
	bp_u32 round_in_flight;		/* and of this one */
	bp_u32 round_delivered;
	bp_u32 round_lost;
	bp_u32 previous_queue;		/* the queue that the ACK before showed, us */
	bp_u32 round_longest;		/* longest queue that a segment saw, us */
	bp_u32 round_clock;		/* the peer's clock when it began */
	bp_u32 silences;		/* since a round trip was measured */
	bp_u32 lowest;			/* round trip since the last drain began */
	bp_u32 lowest_before;		/* between the two drains before */
	bp_u32 drains_same;		/* drains in a row that have found the same */
	bp_u32 drains_filled;		/* drains in a row that have left most of a queue */
	bp_u32 drain_standing;
	bp_u32 drain_base;
	bp_u32 rebased;			/* base before the path was found to be longer; 0 for not */
	bp_u32 rebased_out;		/* and out_base; 0 while there is no clock */
	bp_u32 calm_rounds;
	bp_u32 crowded_rounds;
	bp_u32 rounds_since_drain;
	bp_u32 speed;
	bp_u32 clock_origin;
	bp_u32 latest_clock;
	bp_u32 out_latest;
	bp_u32 srtt;
	bp_u8 stage;
	bp_u8 tide;
	bp_u8 before;
	bp_u8 clock;
	bp_u8 round_has_clock;
	bp_u8 met_others;		/* there has been a contest */
};

BP_INLINE bp_u32 zenith_base(const struct bp_law *law)
{
	return law->base.best[0].value;
}

BP_INLINE bp_u32 zenith_standing(const struct bp_law *law)
{
	return law->standing.best[0].value;
}

/* Queueing delay on the way out, us. */
BP_INLINE bp_u32 zenith_queue(const struct bp_law *law)
{
	bp_u32 there_and_back = BP_MAX(zenith_standing(law), zenith_base(law)) - zenith_base(law), out;

	if (law->clock != ZENITH_BELIEVED)
		return there_and_back;
	out = law->out_standing.best[0].value;
	out = BP_MAX(out, law->out_base.best[0].value) - law->out_base.best[0].value + ZENITH_TICK;
	return BP_MIN(out, there_and_back);
}

/* The recent round trip without the queue on the way out, us: where there is none on the way back either, the smallest one. */
BP_INLINE bp_u32 zenith_empty(const struct bp_law *law)
{
	return zenith_standing(law) - zenith_queue(law);
}

/* So much in so many us; 0 for no time. */
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

/* p / sqrt(x). Newton's iteration for the inverse root, which needs no division. */
BP_INLINE bp_u64 zenith_above_floor(zenith_rate rate)
{
	bp_u32 shift = 0, turn;
	bp_u64 m, y;

	rate = BP_MAX(rate, 1ULL);
	/* By an even power of two into [2^62, 2^64). */
	if (rate < 1ULL << 32) {
		rate <<= 32;
		shift += 16;
	}
	if (rate < 1ULL << 48) {
		rate <<= 16;
		shift += 8;
	}
	if (rate < 1ULL << 56) {
		rate <<= 8;
		shift += 4;
	}
	if (rate < 1ULL << 60) {
		rate <<= 4;
		shift += 2;
	}
	if (rate < 1ULL << 62) {
		rate <<= 2;
		shift += 1;
	}
	/* m in [1, 4) and y near 1 / sqrt(m), with 30 fractional bits; within a tenth at first. */
	m = rate >> 32;
	y = 1167264891ULL - (170940000ULL * m >> 30);
	for (turn = 0; turn < 4; turn++)
		y = (((3ULL << 30) - ((y * y >> 30) * m >> 30)) * y) >> 31;
	/* To the nearest: targets in whole us, which queues can equal, come out whole. */
	shift = 53 - ZENITH_FINE - shift;
	return (ZENITH_PRICE * y + (1ULL << shift >> 1)) >> shift;
}

/* q*(x). */
BP_INLINE bp_u64 zenith_target(zenith_rate rate)
{
	return ((bp_u64)ZENITH_FLOOR << ZENITH_FINE) + zenith_above_floor(rate);
}

BP_INLINE bp_u64 zenith_own_target(const struct bp_law *law)
{
	return zenith_target(BP_MAX(zenith_rate_of(law), 1ULL << 16));
}

/*
 * The window was used in this round trip or in the one before, but for a quarter and a segment: only then may it grow. Where ACKs come many at
 * once, it is full only at the first of them. Whole segments leave.
 */
BP_INLINE int zenith_is_used(const struct bp_law *law)
{
	bp_u64 most = BP_MAX(law->round_in_flight, law->in_flight_before);

	return BP_SEGMENTS(most + 1) >= law->window - law->window / 4;
}

/* How long ACKs may pause: those of a flow that sends once in a round trip do so for a round trip. */
BP_INLINE bp_u32 zenith_patience(const struct bp_path *path)
{
	return BP_MIN(path->srtt, 1U << 30) + 100000;
}

BP_INLINE void bp_established(struct bp_law *law, bp_window initial, const struct bp_path *path)
{
	law->window = BP_MAX(initial, BP_ONE);
	law->expected_by = ~0ULL;
	law->round_since = path->now;
	law->lowest = BP_UNKNOWN;
	law->speed = 1;
	law->drained_sent = (bp_u64)ZENITH_BELIEF << 16;
	law->drained_lost = ZENITH_BELIEVED_LOST;
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
	delay = peer + rtt + (1ULL << 31) - delay;
	law->latest_clock = clock;
	law->out_latest = delay;
	bp_windowed_update(&law->out_base, law->now, delay, law->contest_most ? ~0ULL : ZENITH_BASE_WINDOW);
	bp_windowed_update(&law->out_standing, law->now, delay, span);
}

BP_APART zenith_sample(struct bp_law *law, bp_u32 rtt, const struct bp_path *path)
{
	bp_u32 span, queue, out;

	if (!law || !path)
		return 0;
	/* A quarter of a round trip, or more of it where that brings less than six ACKs. */
	span = BP_MIN(6ULL * rtt / BP_MAX(law->in_flight, 1U), (bp_u64)rtt);
	span = BP_MAX(span, rtt / 4);
	/* In a contest nothing shows the path without a queue: what is known of it is kept. */
	bp_windowed_update(&law->base, law->now, rtt, law->contest_most ? ~0ULL : ZENITH_BASE_WINDOW);
	bp_windowed_update(&law->standing, law->now, rtt, span);
	if (path->has_peer_clock && law->clock != ZENITH_INCREDIBLE)
		zenith_hear_clock(law, rtt, span, path->peer_clock);
	queue = BP_MAX(rtt, zenith_base(law)) - zenith_base(law);
	if (law->clock == ZENITH_BELIEVED) {
		out = BP_MAX(law->out_latest, law->out_base.best[0].value) - law->out_base.best[0].value + ZENITH_TICK;
		queue = BP_MIN(queue, out);
	}
	bp_windowed_update(&law->longest, law->now, ~BP_MIN(queue, law->previous_queue), ZENITH_LONGEST_WINDOW);
	law->previous_queue = queue;
	law->round_longest = BP_MAX(law->round_longest, queue);
	/* A path that shows itself without a queue needs no drain, but a contest is judged by drains alone. */
	if (rtt < law->lowest || (rtt == law->lowest && !law->contest_most)) {
		law->lowest = rtt;
		law->lowest_at = law->now;
	}
	return 0;
}

BP_INLINE void zenith_settle(struct bp_law *law)
{
	law->stage = ZENITH_STEADY;
	law->emptied_window = law->window;
	law->empty_at = law->now;
	law->calm_rounds = 0;
	law->mean = zenith_own_target(law) << (ZENITH_MEAN - ZENITH_FINE);
}

/* The window grows as the law gives it again, until two more round trips show no queue. */
BP_INLINE void zenith_end_speed(struct bp_law *law)
{
	law->speed = 1;
	law->calm_rounds = 0;
}

BP_APART zenith_double(struct bp_law *law, bp_u32 segments)
{
	if (!law)
		return 0;
	if ((bp_u64)zenith_queue(law) << ZENITH_FINE > zenith_own_target(law) / 2 + (1000ULL << ZENITH_FINE))
		zenith_settle(law);
	else if (zenith_is_used(law))
		law->window += BP_SEGMENTS(segments);
	return 0;
}

BP_INLINE void zenith_begin_round(struct bp_law *law, bp_u64 now, bp_u8 before)
{
	law->round_since = now;
	law->before = before;
	law->round_delivered = 0;
	law->round_in_flight = 0;
	law->round_lost = 0;
	law->round_longest = 0;
	law->round_clock = law->latest_clock;
	law->round_has_clock = law->clock == ZENITH_BELIEVED;
}

/* What left before now is no longer measured: neither its rate nor its losses, nor the drain that it belongs to. */
BP_INLINE void zenith_cut_round(struct bp_law *law, bp_u64 now)
{
	law->tide = ZENITH_USUAL;
	zenith_begin_round(law, now, ZENITH_CUT);
}

/* The window that leaves in so many us, with 16 fractional bits. No product leaves 64 bits. */
BP_INLINE bp_window zenith_fills(zenith_rate rate, bp_u64 delay)
{
	bp_u64 segments;

	delay = BP_MIN(delay >> 8, 1ULL << 34);
	segments = (rate / 1000000 * delay >> 8) + (rate % 1000000 * delay / 1000000 >> 8);
	return BP_MIN(segments, BP_LARGEST >> (BP_SHIFT - 16)) << (BP_SHIFT - 16);
}

/*
 * The window becomes what a measured rate fills with the queue aimed at. Doing it twice changes nothing. A rate over a round trip goes
 * with the mean of its delays: where ACKs wait on their way back, the smallest is far from it. While the queue grows fast the smoothed
 * delay is behind it, and the window falls below what fills the path.
 */
BP_APART zenith_fit(struct bp_law *law, bp_u64 now, zenith_rate rate)
{
	bp_window fits;
	bp_u32 queue;
	bp_u32 path;

	if (!law)
		return 0;
	queue = zenith_queue(law);
	path = law->srtt - BP_MIN(queue, law->srtt);
	fits = zenith_fills(rate, ((bp_u64)path << ZENITH_FINE) + zenith_own_target(law));
	law->window = BP_MAX(BP_MIN(law->window, fits), ZENITH_SMALLEST);
	if (law->stage != ZENITH_STEADY)
		zenith_settle(law);
	zenith_end_speed(law);
	zenith_cut_round(law, now);
	return 0;
}

/* The share of losses that is there without a queue, without so much of what is believed before drains show it: a share with 29 fractional bits. */
BP_INLINE bp_u64 zenith_noise_without(const struct bp_law *law, bp_u64 share)
{
	bp_u64 doubted = (((bp_u64)ZENITH_BELIEF << 16) * share) >> 29, doubted_lost = (ZENITH_BELIEVED_LOST * share) >> 29;
	bp_u64 sent = BP_MAX(law->drained_sent, doubted + (1ULL << 16)) - doubted;
	bp_u64 lost = BP_MIN(BP_MAX(law->drained_lost, doubted_lost) - doubted_lost, 1ULL << 39);

	return BP_MIN((lost << 24) / sent, ZENITH_MOST_NOISE);
}

/* The share of losses that is there without a queue. */
BP_INLINE bp_u64 zenith_noise(const struct bp_law *law)
{
	return zenith_noise_without(law, 0);
}

/*
 * More was lost, of so many with 16 fractional bits, than a share and chance explain: lost > share sent + 3 sqrt(variance), the variance with
 * 24 fractional bits and below 2^60.
 */
BP_INLINE int zenith_exceeds(bp_u64 lost, bp_u64 sent, bp_u64 share, bp_u64 variance)
{
	bp_u64 expected, excess;

	sent = BP_MIN(sent, 1ULL << 40);
	/* Rounded up: losses that tie with what is expected and chance are explained. */
	expected = (sent * share >> 24) + 1;
	lost <<= 16;
	if (lost <= expected)
		return 0;
	/* With 16 fractional bits, or with 12 where the square of that would leave 64. */
	excess = lost - expected;
	if (excess < 1ULL << 31)
		return excess * excess >> 8 > 9 * variance;
	excess = BP_MIN(excess >> 4, 1ULL << 31);
	return excess * excess > 9 * variance;
}

BP_INLINE int zenith_is_excessive(const struct bp_law *law)
{
	bp_u64 sent = (bp_u64)law->round_delivered + law->round_lost, noise = zenith_noise(law);

	sent = BP_MIN(BP_MAX(sent << 16, law->window >> (BP_SHIFT - 16)), 1ULL << 40);
	return zenith_exceeds(law->round_lost, sent, ZENITH_NOISE + noise + noise / 2, sent * BP_MAX(noise, ZENITH_SHARE(10)) >> 16);
}

/* The longest queue of the last seconds. */
BP_INLINE bp_u64 zenith_longest(const struct bp_law *law)
{
	return law->longest.best[0].known ? (bp_u64)~law->longest.best[0].value << ZENITH_FINE : 0;
}

/* A segment of the round trip saw a queue, one of those that are long here. */
BP_INLINE int zenith_saw_queue(const struct bp_law *law, bp_u32 longest)
{
	return (bp_u64)longest << ZENITH_FINE >= BP_MAX(zenith_longest(law) / 2, zenith_own_target(law) / 4);
}

/* The smallest delays are these: of a round trip, and to the peer, if it is known. */
BP_INLINE void zenith_rebase(struct bp_law *law, bp_u64 now, bp_u32 base, bp_u32 out)
{
	bp_windowed_reset(&law->base, now, base);
	if (law->clock == ZENITH_BELIEVED && out)
		bp_windowed_reset(&law->out_base, now, out);
}

/*
 * More was lost, of so many, than the path loses, as far as drains can tell: half as much again as in drains, and more than three standard
 * deviations, to which the smaller of both samples contributes most.
 */
BP_INLINE int zenith_overflows(const struct bp_law *law, bp_u64 sent, bp_u64 lost)
{
	bp_u64 noise = zenith_noise(law), all = BP_MIN((lost << 12) + (law->drained_lost >> 4), 1ULL << 32), ratio, variance;

	sent = BP_MIN(sent, 1ULL << 24) << 16;
	/* With 20 fractional bits, or with 12 where it is large. */
	ratio = (sent << 20) / BP_MAX(law->drained_sent, 1ULL);
	variance = ratio < 1ULL << 31 ? all * ratio >> 8 : all * BP_MIN(ratio >> 8, 1ULL << 28);
	return zenith_exceeds(lost, sent, noise + noise / 2, variance);
}

/* The whole root of a power, bit by bit. It grows in memory: the verifier would follow each value that a register could have. */
BP_INLINE bp_u64 zenith_root(struct bp_law *law, bp_u64 value, bp_u32 cubic)
{
	bp_u64 bit, more;
	bp_u32 turn;

	law->root = 0;
	for (turn = 0; turn < 31; turn++) {
		bit = 1ULL << (30 - turn);
		more = *(volatile bp_u64 *)&law->root | bit;
		if (cubic ? more < 1ULL << 21 && more * more * more <= value : more * more <= value)
			*(volatile bp_u64 *)&law->root = more;
	}
	return law->root;
}

/* T, us. */
BP_INLINE bp_u32 zenith_memory(const struct bp_law *law)
{
	bp_u32 base = BP_MIN(zenith_base(law), ZENITH_MEMORY_MOST / ZENITH_MEMORY_RTTS);

	return BP_MAX(ZENITH_MEMORY_RTTS * base, ZENITH_MEMORY_LEAST);
}

/* The part of a delay with ZENITH_MEAN fractional bits that so many us are of T, at most all of it. No product leaves 64 bits. */
BP_INLINE bp_u64 zenith_part(bp_u64 delay, bp_u64 since, bp_u64 memory)
{
	since = BP_MIN(since, memory);
	return since < 1 << 13 ? delay * since / memory : ((delay >> 12) * since / memory) << 12;
}

/* O / Q, the share of Q that losses stand for, with 29 fractional bits: a round trip may be shorter than a millionth of what a loss is worth. */
BP_INLINE bp_u64 zenith_loss_share(const struct bp_law *law)
{
	bp_u64 share = (BP_MIN(law->overflow >> 12, (1ULL << 35) - 1) << 29) / BP_MAX(law->mean >> 12, 1ULL);

	return BP_MIN(share, 1ULL << 29);
}

/*
 * The queue that the loss of every segment stands for, us with 8 fractional bits: a round trip and, as far as losses make up Q, K for each
 * segment a second. No product leaves 64 bits up to 2^18 segments a second, 3 Gbit/s; for faster flows a loss is worth no more.
 */
BP_INLINE bp_u64 zenith_loss_worth(const struct bp_law *law)
{
	bp_u64 rate = BP_MIN(zenith_rate_of(law), 1ULL << 34);

	return ((bp_u64)zenith_standing(law) << 8) + ((rate * zenith_loss_share(law) >> 21) * ZENITH_LOSS >> 16);
}

/*
 * A segment that overflows a queue is the rest of that queue: where one was seen, a share of losses beyond the path's own counts as that
 * share of what the loss of everything stands for. Where none was seen, or a buffer holds more than flows aim at and shows them by its delay
 * that it is full, losses are the path's as far as a path may lose.
 */
BP_APART zenith_charge(struct bp_law *law, bp_u32 delivered, bp_u32 lost, bp_u64 took)
{
	bp_u64 noise, most, allowance, cost, own, overflow, taken, sent;
	int losses_tell;

	if (!law)
		return 0;
	own = zenith_own_target(law);
	losses_tell = 4 * ((bp_u64)law->round_longest << ZENITH_FINE) >= own && 2 * zenith_longest(law) < 3 * own;
	/* Where losses stand for the queue, nothing but drains tells what the path loses. */
	noise = losses_tell ? zenith_noise_without(law, zenith_loss_share(law)) : ZENITH_MOST_NOISE;
	/* The root of 40 fractional bits has 20. */
	most = ZENITH_SAVED * zenith_root(law, (BP_MIN(law->window, BP_LARGEST) >> 8) * noise, 0) << (BP_SHIFT - 20);
	sent = BP_MIN((bp_u64)delivered + lost, 1ULL << 24);
	allowance = BP_MIN(law->allowance, most) + noise * sent;
	cost = BP_SEGMENTS(BP_MIN(lost, 1U << 20));
	if (cost <= allowance) {
		law->allowance = allowance - cost;
		return 0;
	}
	law->allowance = 0;
	if (law->stage != ZENITH_STEADY)
		return 0;
	if (losses_tell) {
		/* Like the queue that they are the rest of, they end fast growth. */
		zenith_end_speed(law);
	}
	cost -= allowance;
	/* The share of losses with 28 fractional bits. */
	overflow = (cost << 4) / BP_MAX(sent, 1ULL) * BP_MIN(zenith_loss_worth(law), 1ULL << 35) >> (36 - ZENITH_FINE);
	overflow = BP_MIN(overflow, ZENITH_LONGEST * own);
	/* g is one half, and at most half of the window counts. */
	taken = BP_MIN(cost, law->window / 2) / 2;
	law->window = BP_MAX(law->window, taken + ZENITH_SMALLEST) - taken;
	overflow = zenith_part(overflow << (ZENITH_MEAN - ZENITH_FINE), took, zenith_memory(law));
	law->mean = BP_MIN(law->mean + overflow, ZENITH_LONGEST * own << (ZENITH_MEAN - ZENITH_FINE));
	law->overflow = BP_MIN(law->overflow + overflow, law->mean);
	return 0;
}

/* In a contest more was lost than the path loses: the window falls as CUBIC's does (RFC 9438). */
BP_INLINE void zenith_yield(struct bp_law *law)
{
	bp_window most = law->window;
	bp_u64 apart;
	bp_u32 shift = 8;

	if (law->window < law->contest_most)
		most = law->window / 20 * 17;
	law->window = BP_MAX(law->window / 10 * 7, ZENITH_SMALLEST);
	/* A window that cannot become smaller is an origin of its own. */
	law->contest_most = BP_MAX(most, law->window);
	apart = law->contest_most - law->window;
	law->contest_since = law->now;
	/* The cubic root of apart / 0.4 in seconds, with as many fractional bits as fit: the root of the 24 of a window has eight. */
	apart = BP_MIN(apart, BP_LARGEST) * 5 / 2;
	for (; apart && apart < 1ULL << 60; shift++)
		apart <<= 3;
	law->contest_until_most = zenith_root(law, apart, 1) * 1000000 >> shift;
}

/* CUBIC's window (RFC 9438) at the end of the round trip that begins now. */
BP_APART zenith_compete(struct bp_law *law, bp_u32 segments)
{
	bp_u64 ahead, behind, apart, wanted;
	bp_u32 shift = 0;

	if (!law || !law->window)
		return 0;
	ahead = law->now - law->contest_since + law->srtt;
	behind = law->contest_until_most;
	/* The cube of the us, of their 21 leading bits, and its 0.4 segments: 10^18 / (0.4 2^24) cubic us are a unit of windows. */
	apart = ahead > behind ? ahead - behind : behind - ahead;
	apart = BP_MIN(apart, 1ULL << 30);
	for (; apart >> 21; shift += 3)
		apart >>= 1;
	apart = apart * apart * apart / 149011611938ULL << shift;
	wanted = ahead > behind ? law->contest_most + apart : BP_MAX(law->contest_most, apart) - apart;
	wanted = BP_MIN(BP_MAX(wanted, law->window), law->window + law->window / 2);
	law->window += segments * (((wanted - law->window) << 16) / (law->window >> 8));
	law->window = BP_MIN(law->window, BP_LARGEST);
	return 0;
}

BP_INLINE void zenith_leave_crowd(struct bp_law *law)
{
	law->crowded_rounds = 0;
	law->crowded_sent = 0;
	law->crowded_lost = 0;
	law->crowded_window = 0;
}

/*
 * What the drain has shown. True if the queue was empty then. A round trip that stayed where it was has no queue in it, the path
 * has become longer.
 */
BP_APART zenith_judge_drain(struct bp_law *law, bp_u64 now)
{
	bp_u32 base, standing, lowest, queue, moved, apart, left, above;
	bp_window before_yield;
	bp_u64 target, longest_own, fine_left, still;
	int flat, overflows, foreign, stays, yielded, empties, fills, futile;

	if (!law)
		return 0;
	target = zenith_own_target(law);
	base = law->drain_base;
	standing = law->drain_standing;
	lowest = law->lowest;
	queue = BP_MAX(standing, base) - base;
	moved = standing > lowest ? standing - lowest : lowest - standing;
	apart = BP_MAX(lowest, law->lowest_before) - BP_MIN(lowest, law->lowest_before);
	still = (bp_u64)queue + 20 * ZENITH_STILL;
	law->drains_same = 20ULL * apart < still ? law->drains_same + 1 : 0;
	/* A queue that overflows does not fall either, before those who fill it have noticed. */
	overflows = zenith_overflows(law, law->crowded_sent, law->crowded_lost) &&
		    !(law->contest_most && law->drains_same >= ZENITH_SAME);
	flat = (bp_u64)queue << ZENITH_FINE > target && 20ULL * moved < still && !overflows;
	/* Flows of our kind that are in a contest with each other lose more than beside CUBIC. */
	futile = law->contest_most && ZENITH_FUTILE * law->crowded_lost > law->crowded_sent;
	law->tide = ZENITH_USUAL;
	before_yield = BP_MAX(law->window, law->crowded_window);
	zenith_leave_crowd(law);
	left = zenith_queue(law);
	above = BP_MAX(lowest, base) - base;
	left = BP_MIN(left, above);
	fine_left = (bp_u64)left << ZENITH_FINE;
	empties = 4 * fine_left < target;
	fills = !empties && 4ULL * left >= 3ULL * queue;
	law->drains_filled = fills ? BP_MIN(law->drains_filled, 1U << 30) + 1 : 0;
	longest_own = ZENITH_LONGEST_OWN * zenith_target(BP_MAX(zenith_rate_over(ZENITH_SMALLEST, base), 1ULL << 16));
	foreign = !flat && !futile && fine_left > BP_MIN(ZENITH_FOREIGN * target, longest_own);
	/* The drain of a slow flow shortens no queue: it may look like a longer path, and that of Reno, which grows slowly, like one of our kind. */
	stays = law->drains_filled >= ZENITH_FILLED_DRAINS;
	yielded = !law->contest_most && before_yield < law->emptied_window / 2 && (stays || fine_left > longest_own);
	if (foreign || yielded) {
		/* Flows of our kind that have just begun leave such a queue, too, until they drain. */
		if (!stays && !law->met_others && now < law->empty_at + ZENITH_FIRST_DRAINS * (bp_u64)zenith_memory(law) / 2) {
			law->crowded_window = before_yield;
			return 0;
		}
		/* Later ones would not: whoever fills it does not drain. */
		if (!law->contest_most) {
			law->met_others = 1;
			law->speed = 1;
			law->window = before_yield;
			law->contest_most = law->window;
			law->contest_since = now;
			law->contest_until_most = 0;
		}
		return 0;
	}
	if (law->contest_most) {
		law->contest_most = 0;
		zenith_fit(law, now, law->delivery_rate);
		if (futile) {
			/* As at the end of the start: nothing is known of others. */
			zenith_settle(law);
			law->met_others = 0;
			law->drains_filled = 0;
		}
	}
	if (flat) {
		law->rebased = zenith_base(law);
		law->rebased_out = law->out_base.best[0].value;
		law->rebased_at = now;
		zenith_rebase(law, now, lowest, law->out_standing.best[0].value);
		/* In proportion, at most 256 times; quotient and remainder apart, so that no product leaves 64 bits. */
		base = BP_MIN(BP_MAX(base, 1U), 1U << 30);
		lowest = BP_MIN(lowest, (bp_u64)base << 8);
		law->window = before_yield / base * lowest + before_yield % base * lowest / base;
		law->window = BP_MIN(law->window, BP_LARGEST);
		return 1;
	}
	if (empties) {
		law->empty_at = now;
		/* A drain of a flow that has yielded may find the queue of others empty once. */
		law->emptied_window = BP_MAX(law->window, law->emptied_window / 2);
	}
	return empties;
}

/*
 * What was lost in a drain tells the path's own losses if no segment saw a queue. If one did, others overflow it, and losses are the
 * less likely to be the path's.
 */
BP_INLINE void zenith_learn_noise(struct bp_law *law, bp_u32 delivered, bp_u32 lost, bp_u32 longest)
{
	bp_u64 belief = ((bp_u64)ZENITH_BELIEF << 16) / 8;

	law->drained_lost -= law->drained_lost / 8;
	if (!zenith_saw_queue(law, longest)) {
		law->drained_sent += belief + ((bp_u64)(delivered + lost) << 16) - law->drained_sent / 8;
		law->drained_lost += ZENITH_BELIEVED_LOST / 8 + ((bp_u64)lost << 16);
	}
}

/* Once per round trip: speed, losses, and whether the path is still the same. */
BP_APART zenith_end_round(struct bp_law *law)
{
	bp_u32 delivered, lost, longest;
	bp_u64 took, arrived, target, queue;
	bp_u8 next = ZENITH_ORDINARY;
	int empty;

	if (!law)
		return 0;
	took = law->now - law->round_since;
	queue = (bp_u64)zenith_queue(law) << ZENITH_FINE;
	delivered = law->round_delivered;
	lost = law->round_lost;
	longest = law->round_longest;
	law->in_flight_before = law->round_in_flight;
	if (took) {
		/* By the peer's clock, with the millisecond that it hides, where ACKs are held up on their way back. */
		arrived = 1000 * ((bp_u64)(bp_u32)(law->latest_clock - law->round_clock) + 1);
		if (!law->round_has_clock || law->clock != ZENITH_BELIEVED || arrived > took)
			arrived = took;
		law->delivery_rate_before = law->delivery_rate;
		law->delivery_rate = ((bp_u64)BP_MIN(delivered, 1U << 22) << 16) * 1000000 / arrived;
		law->delivery_rate = BP_MIN(law->delivery_rate, ZENITH_FASTEST_RATE);
	}
	target = zenith_own_target(law);
	empty = queue < target / 4;
	if (empty)
		law->empty_at = law->now;
	/* After a silence the path fills first. */
	if (empty && zenith_is_used(law) && !law->silences) {
		law->calm_rounds++;
		if (law->calm_rounds >= 2 && law->stage == ZENITH_STEADY)
			law->speed = BP_MIN(2 * law->speed, ZENITH_FASTEST);
	} else {
		law->calm_rounds = 0;
	}
	if (law->before != ZENITH_CUT)
		law->silences = 0;
	if (law->contest_most) {
		if (law->before != ZENITH_CUT && zenith_is_excessive(law)) {
			zenith_yield(law);
			next = ZENITH_CUT;
		}
	} else if (law->before != ZENITH_CUT) {
		zenith_charge(law, delivered, lost, took);
	}
	law->crowded_sent += delivered + lost;
	law->crowded_lost += lost;
	if (law->before == ZENITH_ORDINARY && !law->contest_most && zenith_is_excessive(law)) {
		/* A longer path has room: it was a queue. */
		if (law->rebased && law->now - law->rebased_at < ZENITH_REGRET)
			zenith_rebase(law, law->now, law->rebased, law->rebased_out);
		law->rebased = 0;
		if (zenith_saw_queue(law, longest))
			zenith_fit(law, law->now, law->delivery_rate);
		else
			zenith_begin_round(law, law->now, ZENITH_ORDINARY);
		return 0;
	}
	if (law->before == ZENITH_DRAINED) {
		if (zenith_judge_drain(law, law->now))
			zenith_learn_noise(law, delivered, lost, longest);
		/* The end of a contest cuts the round. */
		if (law->before == ZENITH_CUT)
			next = ZENITH_CUT;
	}
	if (queue > target + target / 2 + (1000ULL << ZENITH_FINE)) {
		if (!law->crowded_rounds)
			law->crowded_window = BP_MAX(law->crowded_window, law->window);
		law->crowded_rounds++;
	} else {
		zenith_leave_crowd(law);
	}
	law->rounds_since_drain++;
	zenith_begin_round(law, law->now, next);
	return 0;
}

/* A drain is due so long after the lowest round trip, or when the queue is longer than it should be. */
BP_INLINE int zenith_is_due(const struct bp_law *law, bp_u64 now)
{
	int doubtful = !law->contest_most && law->crowded_rounds >= 2 && law->rounds_since_drain >= ZENITH_DRAIN_ROUNDS;

	/* What a timeout leaves of the window is not what fills the path. */
	if (law->stage != ZENITH_STEADY || law->before_timeout)
		return 0;
	return doubtful || now >= law->lowest_at + zenith_memory(law);
}

/* Begins and ends drains. True while the law rests. */
BP_APART zenith_drains(struct bp_law *law)
{
	bp_u32 standing;
	zenith_rate rate;

	if (!law)
		return 0;
	standing = zenith_standing(law);
	if (law->tide == ZENITH_USUAL && zenith_is_due(law, law->now)) {
		/* 0.95 of the path without its queue; where much is lost, less arrives than leaves, and what leaves would keep the queue full. */
		rate = BP_MIN(zenith_rate_of(law), law->delivery_rate);
		law->ebb = zenith_fills(rate - rate / 20, (bp_u64)zenith_empty(law) << ZENITH_FINE);
		law->ebb = BP_MAX(law->ebb, BP_ONE);
		law->ebb_until = law->now + (11ULL * standing + 9) / 10;
		law->tide = ZENITH_EBB;
		law->lowest_before = law->lowest;
		law->lowest = BP_UNKNOWN;
		law->lowest_at = law->now;
		law->drain_standing = standing;
		law->drain_base = zenith_base(law);
		law->rounds_since_drain = 0;
	} else if (law->tide == ZENITH_EBB && law->now >= law->ebb_until) {
		law->tide = ZENITH_FLOOD;
		zenith_begin_round(law, law->now, ZENITH_DRAINED);
	}
	return law->tide != ZENITH_USUAL;
}

/* The mean queue follows the queue, at most ZENITH_LONGEST of the own target away; since us have passed. */
BP_INLINE void zenith_average(struct bp_law *law, bp_u32 queue, bp_u64 own, bp_u64 since)
{
	bp_u64 seen = BP_MIN((bp_u64)queue << ZENITH_FINE, ZENITH_LONGEST * own) << (ZENITH_MEAN - ZENITH_FINE);
	bp_u64 memory = zenith_memory(law);
	bp_u64 apart = seen > law->mean ? seen - law->mean : law->mean - seen;

	law->overflow -= zenith_part(law->overflow, since, memory);
	apart = zenith_part(apart, since, memory);
	law->mean = seen > law->mean ? law->mean + apart : law->mean - apart;
	law->mean = BP_MIN(law->mean, ZENITH_LONGEST * own << (ZENITH_MEAN - ZENITH_FINE));
}

/*
 * The magnitude of ln(x_t / x), at most 1, with 24 fractional bits: the rates are as the squares of the queues above the floor
 * that they aim at, so it is 2 ln(a / b) = 4 artanh((a - b) / (a + b)).
 */
BP_INLINE bp_u64 zenith_apart(bp_u64 a, bp_u64 b)
{
	bp_u64 z = ((a > b ? a - b : b - a) << 24) / (a + b), square, sum;

	/* tanh(1 / 4). */
	if (z >= 4109059)
		return 1 << 24;
	square = z * z >> 24;
	sum = (1ULL << 24) / 5 + square / 7;
	sum = (1ULL << 24) / 3 + (square * sum >> 24);
	sum = (1ULL << 24) + (square * sum >> 24);
	return z * sum >> (24 - 2);
}

/* The law: g x (q_t - q) segments a round trip, spread over its steps. */
BP_APART zenith_steer(struct bp_law *law, bp_u32 segments, bp_u64 since)
{
	bp_u32 queue;
	bp_u64 above, own, mean, floor = (bp_u64)ZENITH_FLOOR << ZENITH_FINE, shift, urge, wanted, now, step;
	bp_u64 mean_above, fine_queue, calmest;
	int up;

	if (!law || !zenith_standing(law))
		return 0;
	law->pending += segments;
	law->pending_time += since;
	if (law->pending_time * ZENITH_STEPS < law->srtt)
		return 0;
	segments = BP_MIN(law->pending, 1U << 20);
	since = law->pending_time;
	law->pending = 0;
	law->pending_time = 0;
	if (law->contest_most) {
		if (zenith_is_used(law))
			zenith_compete(law, segments);
		return 0;
	}
	queue = zenith_queue(law);
	fine_queue = (bp_u64)queue << ZENITH_FINE;
	above = zenith_above_floor(zenith_rate_of(law));
	own = floor + above;
	zenith_average(law, queue, own, since);
	mean = law->mean >> (ZENITH_MEAN - ZENITH_FINE);
	if (law->speed > 1 && 4 * fine_queue > own) {
		/*
		 * The window was about to outgrow the path: where much arrives in one round trip and little in the next, the path carries the
		 * larger rate.
		 */
		zenith_fit(law, law->now, BP_MAX(law->delivery_rate, law->delivery_rate_before));
		return 0;
	}
	mean_above = BP_MAX(mean, floor + (1ULL << ZENITH_FINE)) - floor;
	/* m' with 20 fractional bits, and the share by which the wanted queue differs from the mean one. */
	urge = ZENITH_SHARING * BP_MIN((above << 20) / (2 * floor), 1ULL << 20);
	/*
	 * Differences between flows decay without oscillation up to g m' Q / s = 1 / e; 2 / e is 771497 of 2^20. Where Q is next to nothing
	 * the bound is large, and held where the product still has 64 bits.
	 */
	calmest = (BP_MIN((bp_u64)zenith_standing(law), 1ULL << 30) << 30) / BP_MAX(mean >> 6, 1ULL);
	urge = BP_MIN(urge, BP_MIN(calmest, 1ULL << 40) * 771497 >> 20);
	shift = mean * (zenith_apart(above, mean_above) * urge >> 24) >> 20;
	/* Who aims at a longer queue than the mean is slower than the others. What may be subtracted stands on the other side. */
	if (above > mean_above) {
		wanted = mean + shift;
		now = fine_queue;
	} else {
		wanted = mean;
		now = fine_queue + shift;
	}
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

/* Silence after silence, and no round trip between them that could be measured: that is no outage, it is a queue that overflows. */
BP_INLINE void zenith_give_way(struct bp_law *law)
{
	if (law->stage == ZENITH_DOUBLES)
		zenith_settle(law);
	else if (law->before_timeout)
		law->before_timeout = BP_MAX(law->before_timeout / 2, ZENITH_SMALLEST);
	else
		law->window = BP_MAX(law->window / 2, ZENITH_SMALLEST);
}

BP_INLINE void bp_on_ack(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u64 since = path->now - law->now, sent_at = path->now - ack->rtt;
	bp_u32 segments = BP_MIN(ack->delivered, 1U << 14);
	int trusted, rests, begins;

	/* An ACK after a silence: what was under way then says nothing of the queue. */
	if (path->now > law->expected_by) {
		law->silences++;
		if (law->silences >= ZENITH_MOST_SILENCES)
			zenith_give_way(law);
		law->trusted_from = path->now;
		zenith_cut_round(law, path->now);
	}
	law->now = path->now;
	law->in_flight = path->in_flight;
	law->srtt = path->srtt;
	law->expected_by = path->now + zenith_patience(path);
	if (ack->acked && law->before_timeout) {
		law->window = law->before_timeout;
		law->before_timeout = 0;
		law->trusted_from = path->now;
	}
	law->round_delivered += segments;
	law->round_in_flight = BP_MAX(law->round_in_flight, law->in_flight + segments);
	trusted = ack->rtt && sent_at >= law->trusted_from;
	if (trusted)
		zenith_sample(law, ack->rtt, path);
	law->round_lost += ack->lost;
	rests = zenith_drains(law);
	begins = law->stage == ZENITH_DOUBLES;
	if (begins)
		zenith_double(law, segments);
	law->window = BP_MIN(law->window, BP_LARGEST);
	if (!trusted)
		return;
	if (sent_at >= law->round_since && law->tide != ZENITH_EBB)
		zenith_end_round(law);
	if (!begins && law->stage == ZENITH_STEADY && !rests)
		zenith_steer(law, segments, since);
}

/* Nothing was under way, and something is now. */
BP_INLINE void zenith_on_start(struct bp_law *law, const struct bp_path *path)
{
	law->expected_by = path->now + path->srtt + zenith_patience(path);
}
#define BP_ON_START(law, path) zenith_on_start(law, path)

/* Losses are counted as they come; that an episode begins means nothing. A mark is a router's word for a queue. */
BP_INLINE void bp_on_loss(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	if (loss->cause == BP_MARKED && law->delivery_rate)
		zenith_fit(law, path->now, law->delivery_rate);
}

/* The first ACK brings the window back: losses are counted one by one, and a timeout says no more of them. */
BP_INLINE void bp_on_timeout(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	if (!law->before_timeout)
		law->before_timeout = law->window;
	law->window = ZENITH_SMALLEST;
}

BP_INLINE void bp_on_undo(struct bp_law *law)
{
}

BP_INLINE void bp_on_idle(struct bp_law *law, bp_window restart, const struct bp_path *path)
{
}

BP_INLINE bp_window bp_cwnd(const struct bp_law *law)
{
	return law->tide == ZENITH_EBB ? BP_MIN(law->ebb, law->window) : law->window;
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

	if (law->stage == ZENITH_DOUBLES)
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
