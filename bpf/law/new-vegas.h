/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP New Vegas: Vegas with paced pairs of segments and rapid convergence after slow start.
 *
 * J. Sing, B. Soh, "TCP New Vegas: Improving the Performance of TCP Vegas Over High Latency Links", IEEE NCA 2005. The
 * fine-grained timeout of Vegas is left out. A congestion control of the kernel can neither request a retransmission nor detect
 * the loss of one.
 */
#include "law.h"

#define NEW_VEGAS_ALPHA 1
#define NEW_VEGAS_BETA 3
#define NEW_VEGAS_GAMMA 1
/* Round trips after which the rapid convergence ends in any case. */
#define NEW_VEGAS_ROUNDS 16
#define NEW_VEGAS_SMALLEST BP_SEGMENTS(2)
/* Largest window that leaves slow start without rapid convergence, since its steps would be single segments. */
#define NEW_VEGAS_TOO_SMALL BP_SEGMENTS(4)

enum new_vegas_stage { NEW_VEGAS_SLOW_START, NEW_VEGAS_CONVERGES, NEW_VEGAS_AVOIDS };
enum new_vegas_growth { NEW_VEGAS_STANDS, NEW_VEGAS_DOUBLES, NEW_VEGAS_STEPS };

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	bp_window size;		/* size of the next step of the convergence */
	bp_u64 sum;		/* sum of the round-trip samples of the epoch, us */
	bp_u32 growth_step;	/* growth in segments per acknowledged segment, at most 1; 24 fractional bits */
	bp_u32 first;		/* first sequence number of the connection */
	bp_u32 begin;		/* first sequence number of the epoch */
	bp_u32 samples;
	bp_u32 base;		/* minRTT (the paper's BaseRTT), us */
	bp_u32 cut;		/* first sequence number not yet sent at the last reduction */
	bp_u32 cut_before;
	bp_u32 began;		/* start of the epoch, us */
	bp_u8 stage;
	bp_u8 growth;
	bp_u8 rounds;
	bp_u8 stage_before;	/* for undo, like `cut_before` */
	bp_u8 growth_before;
};

BP_INLINE void new_vegas_established(struct bp_law *law, const struct bp_path *path)
{
	law->first = path->una;
	law->begin = path->una;
	law->cut = path->una;
	law->base = BP_UNKNOWN;
	law->began = path->now;
	law->growth = NEW_VEGAS_DOUBLES;
}

BP_INLINE void new_vegas_avoids(struct bp_law *law, bp_u32 delta)
{
	law->stage = NEW_VEGAS_AVOIDS;
	law->growth = NEW_VEGAS_STANDS;
	/* The least threshold: only a timeout leads back to slow start. */
	law->now.ssthresh = NEW_VEGAS_SMALLEST;
	if (delta > NEW_VEGAS_BETA) {
		law->now.cwnd = BP_MAX(law->now.cwnd - BP_ONE, NEW_VEGAS_SMALLEST);
	} else if (delta < NEW_VEGAS_ALPHA) {
		law->growth = NEW_VEGAS_STEPS;
		law->growth_step = bp_divide(BP_ONE, law->now.cwnd);
	}
}

BP_INLINE void new_vegas_leaves_slow_start(struct bp_law *law)
{
	int small = law->now.cwnd <= NEW_VEGAS_TOO_SMALL;

	law->now.ssthresh = NEW_VEGAS_SMALLEST;
	law->now.cwnd = BP_MAX(law->now.cwnd - law->now.cwnd / 8, NEW_VEGAS_SMALLEST);
	law->size = BP_MAX(law->now.cwnd / 8, BP_ONE);
	law->rounds = 0;
	law->stage = small ? NEW_VEGAS_AVOIDS : NEW_VEGAS_CONVERGES;
	law->growth = NEW_VEGAS_STANDS;
}

/* Rapid convergence: keeps the step size while too few segments are queued. Otherwise halves it, since the right window is near. */
BP_INLINE void new_vegas_converges(struct bp_law *law, bp_u32 delta)
{
	bp_window step = law->size;

	if (delta > NEW_VEGAS_BETA)
		law->now.cwnd = BP_MAX(law->now.cwnd, step + NEW_VEGAS_SMALLEST) - step;
	law->growth = NEW_VEGAS_STANDS;
	if (delta < NEW_VEGAS_ALPHA) {
		law->growth = NEW_VEGAS_STEPS;
		law->growth_step = bp_divide(step, law->now.cwnd);
	} else {
		law->size = step / 2;
	}
	law->rounds++;
	if (law->size < BP_ONE || law->rounds >= NEW_VEGAS_ROUNDS)
		law->stage = NEW_VEGAS_AVOIDS;
}

BP_INLINE void new_vegas_decides(struct bp_law *law, bp_u32 delta)
{
	if (law->stage == NEW_VEGAS_SLOW_START && law->now.cwnd < law->now.ssthresh) {
		if (delta > NEW_VEGAS_GAMMA)
			new_vegas_leaves_slow_start(law);
		else
			law->growth = NEW_VEGAS_DOUBLES;
	} else if (law->stage == NEW_VEGAS_CONVERGES) {
		new_vegas_converges(law, delta);
	} else {
		new_vegas_avoids(law, delta);
	}
}

/* Ends the epoch. The segments in queues are (Expected - Actual) BaseRTT, rounded to whole segments. */
BP_INLINE void new_vegas_epoch(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u32 sent = path->nxt - law->begin;
	bp_u64 expected, actual, rtt;

	/* Mean round-trip time in sixteenths of a microsecond. */
	rtt = law->samples ? (law->sum << 4) / law->samples : (bp_u64)((bp_u32)path->now - law->began) << 4;
	law->begin = path->nxt;
	law->began = path->now;
	law->sum = 0;
	law->samples = 0;
	if (!rtt)
		return;
	if (sent <= path->mss || rtt >> 4 < law->base)
		law->base = rtt >> 4;
	if (ack->phase == BP_RECOVERY)
		return;
	expected = ((bp_u64)(path->outstanding + 1) << 16) + (1 << 15);
	actual = ((bp_u64)sent * BP_MIN(law->base, 1U << 27) * 16 / rtt << 16) / path->mss;
	new_vegas_decides(law, expected > actual ? (expected - actual) >> 16 : 0);
}

BP_INLINE void new_vegas_observe(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	if (ack->acked && bp_after(path->una, law->begin))
		new_vegas_epoch(law, ack, path);
	/*
	 * A sample counts only if the ACK covers whole pairs, because the ACK of half a pair may be delayed by the receiver's
	 * timer.
	 */
	if (ack->rtt && (ack->acked > 1 || (path->una - law->first) / path->mss % 2 == 0)) {
		law->sum += ack->rtt;
		law->samples++;
		law->base = BP_MIN(law->base, ack->rtt);
	}
}

BP_INLINE void new_vegas_slow_start(struct bp_law *law, bp_u32 acked)
{
	if (law->growth == NEW_VEGAS_DOUBLES)
		law->now.cwnd = BP_MIN(law->now.cwnd + BP_SEGMENTS(acked), law->now.ssthresh);
}

BP_INLINE void new_vegas_avoid(struct bp_law *law, bp_u32 acked)
{
	if (law->growth == NEW_VEGAS_STEPS)
		law->now.cwnd += (bp_window)acked * law->growth_step;
}

BP_INLINE void new_vegas_remember(struct bp_law *law)
{
	law->cut_before = law->cut;
	law->stage_before = law->stage;
	law->growth_before = law->growth;
}

BP_INLINE void new_vegas_undone(struct bp_law *law)
{
	law->cut = law->cut_before;
	law->stage = law->stage_before;
	law->growth = law->growth_before;
}

/* Reduces to three quarters of the window. A segment sent before the last reduction causes no further reduction. */
BP_INLINE bp_window new_vegas_reduce(struct bp_law *law, const struct bp_path *path)
{
	bp_window usable = BP_MIN(law->now.cwnd, BP_SEGMENTS(path->receive_window));

	new_vegas_remember(law);
	law->growth = NEW_VEGAS_STANDS;
	if (law->stage == NEW_VEGAS_CONVERGES)
		law->stage = NEW_VEGAS_AVOIDS;
	if (bp_after(law->cut, path->una))
		return law->now.cwnd;
	law->cut = path->nxt;
	return usable <= BP_SEGMENTS(3) ? NEW_VEGAS_SMALLEST : usable - usable / 4;
}

BP_INLINE bp_window new_vegas_at_timeout(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	new_vegas_remember(law);
	law->cut = path->nxt;
	law->stage = NEW_VEGAS_SLOW_START;
	law->growth = NEW_VEGAS_DOUBLES;
	return BP_SEGMENTS(loss->outstanding) / 2;
}

#define BP_ESTABLISHED(law, path) new_vegas_established(law, path)
#define BP_OBSERVE(law, ack, path) new_vegas_observe(law, ack, path)
#define BP_SLOW_START(law, ack, acked, path) new_vegas_slow_start(law, acked)
#define BP_AVOID(law, ack, acked, path) new_vegas_avoid(law, acked)
#define BP_REDUCE(law, loss, path) new_vegas_reduce(law, path)
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) new_vegas_at_timeout(law, loss, path)
#define BP_UNDONE(law) new_vegas_undone(law)
#define BP_AFTER_TIMEOUT(law) NEW_VEGAS_SMALLEST
#define BP_PACE(law, path) bp_rate((law)->now.cwnd, path)
#define BP_SPACES_WINDOW 1
#include "classic.h"
