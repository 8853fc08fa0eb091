/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP Westwood+: one bandwidth sample per round trip; a loss sets the threshold to the bandwidth-delay product.
 *
 * L. A. Grieco, S. Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion Control",
 * ACM SIGCOMM CCR 34(2), 2004. Three details follow Linux's own module: the filter; half of the window during recovery and the
 * estimate afterwards; and a new minRTT after a timeout.
 */
#include "law.h"
#include "bandwidth.h"

/* Shortest interval of a bandwidth sample, us. */
#define WESTWOOD_LEAST_ROUND 50000

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	struct bp_rounds rounds;
	bp_u32 min_rtt;		/* minRTT, us */
	bp_u32 marked_until;	/* the reduction for a mark is complete when this is acknowledged */
	bp_u8 marked;
	bp_u8 stale;		/* the next sample replaces `min_rtt` */
};

BP_INLINE void westwood_established(struct bp_law *law, const struct bp_path *path)
{
	law->rounds.since = path->now;
	law->min_rtt = path->min_rtt;
}

BP_INLINE bp_window westwood_pipe(const struct bp_law *law, const struct bp_path *path)
{
	return bp_pipe(law->rounds.rate, law->min_rtt, path->mss);
}

BP_INLINE void westwood_observe(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	if (ack->rtt && (ack->rtt < law->min_rtt || law->stale)) {
		law->min_rtt = ack->rtt;
		law->stale = 0;
	}
	bp_rounds_on_ack(&law->rounds, path->now, ack->delivered * path->mss,
			 BP_MAX(path->srtt, (bp_u32)WESTWOOD_LEAST_ROUND));
	if ((ack->ends_episode && ack->phase == BP_RECOVERY) ||
	    (law->marked && ack->phase == BP_OPEN && !bp_after(law->marked_until, path->una))) {
		law->marked = 0;
		law->now.cwnd = BP_MAX(westwood_pipe(law, path), BP_SEGMENTS(2));
		law->now.ssthresh = law->now.cwnd;
	}
}

/* Halves the window during recovery. The estimate sets the window when recovery ends. */
BP_INLINE bp_window westwood_reduce(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	law->marked = loss->cause == BP_MARKED;
	law->marked_until = path->nxt;
	return law->now.cwnd / 2;
}

BP_INLINE bp_window westwood_at_timeout(struct bp_law *law, const struct bp_path *path)
{
	law->marked = 0;
	law->stale = 1;
	return westwood_pipe(law, path);
}

#define BP_ESTABLISHED(law, path) westwood_established(law, path)
#define BP_OBSERVE(law, ack, path) westwood_observe(law, ack, path)
#define BP_REDUCE(law, loss, path) westwood_reduce(law, loss, path)
#define BP_UNDONE(law) ((law)->marked = 0)
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) westwood_at_timeout(law, path)
#define BP_IDLE(law, path) ((law)->rounds.resting = 1)
#include "classic.h"
