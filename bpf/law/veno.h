/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP Veno: Vegas's estimate of the queue distinguishes losses by congestion from random losses.
 *
 * C. P. Fu, S. C. Liew, "TCP Veno: TCP Enhancement for Transmission Over Wireless Access Networks", IEEE JSAC 21(2), 2003.
 */
#include "law.h"

/* Segments of this connection in queues from which the queue counts as full. */
#define VENO_BETA BP_SEGMENTS(3)
/* Round-trip samples required before the estimate is used. */
#define VENO_LEAST_SAMPLES 3

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	bp_window acked;	/* segments acknowledged since the last decision about the window */
	bp_window acked_before;	/* for undo, like `pauses_before` */
	bp_u32 mark;		/* a round ends when this is acknowledged */
	bp_u32 least;		/* least round-trip sample of the round, us; 0 without one */
	bp_u32 rtt;		/* least round-trip sample of the last complete round, us; 0 before */
	bp_u8 known;		/* round-trip samples so far, at most VENO_LEAST_SAMPLES */
	bp_u8 pauses;		/* at a full queue the window grows every other round trip */
	bp_u8 pauses_before;
};

BP_INLINE int veno_is_full(const struct bp_law *law, const struct bp_path *path)
{
	bp_window backlog;

	if (law->known < VENO_LEAST_SAMPLES || law->rtt <= path->min_rtt)
		return 0;
	backlog = (law->now.cwnd >> 10) * BP_MIN(law->rtt - path->min_rtt, 1U << 26) / law->rtt << 10;
	return backlog >= VENO_BETA;
}

BP_INLINE void veno_observe(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	if (ack->rtt) {
		law->least = law->least ? BP_MIN(law->least, ack->rtt) : ack->rtt;
		law->known = BP_MIN(law->known + 1, VENO_LEAST_SAMPLES);
	}
	if (!bp_after(path->una, law->mark))
		return;
	law->mark = path->nxt;
	if (law->least)
		law->rtt = law->least;
	law->least = 0;
}

BP_INLINE void veno_avoid(struct bp_law *law, bp_u32 acked, const struct bp_path *path)
{
	if (!veno_is_full(law, path)) {
		law->now.cwnd += bp_divide(BP_SEGMENTS(acked), law->now.cwnd);
		return;
	}
	law->acked += BP_SEGMENTS(acked);
	if (law->acked < law->now.cwnd)
		return;
	law->acked = 0;
	if (!law->pauses)
		law->now.cwnd += BP_ONE;
	law->pauses = !law->pauses;
}

BP_INLINE void veno_remember(struct bp_law *law)
{
	law->acked_before = law->acked;
	law->pauses_before = law->pauses;
}

BP_INLINE void veno_undone(struct bp_law *law)
{
	law->acked = law->acked_before;
	law->pauses = law->pauses_before;
}

BP_INLINE bp_window veno_reduce(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	bp_window flight = BP_MIN(BP_SEGMENTS(loss->outstanding), law->now.cwnd);

	veno_remember(law);
	/* An ECN mark always counts as congestion, independent of the queue estimate. */
	if (loss->cause == BP_MARKED || veno_is_full(law, path))
		return flight / 2;
	/* A random loss reduces the window to four fifths. */
	return flight * 4 / 5;
}

BP_INLINE bp_window veno_at_timeout(struct bp_law *law, const struct bp_loss *loss)
{
	veno_remember(law);
	return BP_SEGMENTS(loss->outstanding) / 2;
}

#define BP_ESTABLISHED(law, path) ((law)->mark = (path)->una)
#define BP_OBSERVE(law, ack, path) veno_observe(law, ack, path)
#define BP_AVOID(law, ack, acked, path) veno_avoid(law, acked, path)
#define BP_REDUCE(law, loss, path) veno_reduce(law, loss, path)
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) veno_at_timeout(law, loss)
#define BP_UNDONE(law) veno_undone(law)
#include "classic.h"
