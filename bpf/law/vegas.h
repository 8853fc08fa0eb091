/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP Vegas: the window keeps between alpha and beta segments of the connection in queues.
 *
 * L. S. Brakmo, L. L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC 13(8), 1995, with
 * the decisions of Linux's own module: least round-trip time of an epoch, slow start in every epoch, half after a loss. The
 * fine-grained timeout is left out, because a congestion control of the kernel cannot request a retransmission.
 */
#include "law.h"

#define VEGAS_ALPHA BP_SEGMENTS(2)
#define VEGAS_BETA BP_SEGMENTS(4)
#define VEGAS_GAMMA BP_SEGMENTS(1)

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	bp_u64 sum;		/* sum of the round-trip samples of the epoch, us */
	bp_u32 began;		/* when the epoch began, us */
	bp_u32 begin;		/* first sequence number of the epoch */
	bp_u32 base;		/* least round-trip time, us; BP_UNKNOWN before the first sample */
	bp_u32 least;		/* least round-trip sample of the epoch, us; BP_UNKNOWN without a sample */
	bp_u32 samples;
	bp_u8 doubles;		/* slow start goes on until the next epoch */
	bp_u8 doubles_before;
};

BP_INLINE void vegas_established(struct bp_law *law, const struct bp_path *path)
{
	law->began = path->now;
	law->begin = path->una;
	law->base = BP_UNKNOWN;
	law->least = BP_UNKNOWN;
}

BP_INLINE void vegas_decide(struct bp_law *law, bp_u32 base, bp_u32 least, bp_u32 samples)
{
	int slow_start = law->now.cwnd < law->now.ssthresh;
	bp_window queued, target;

	law->doubles = slow_start;
	/* With only two samples, delayed ACKs alone could explain the delay. */
	if (samples <= 2) {
		if (!slow_start)
			law->now.cwnd += bp_divide(BP_ONE, law->now.cwnd);
		return;
	}
	queued = (law->now.cwnd >> 10) * BP_MIN(least - base, 1U << 26) / base << 10;
	if (slow_start && queued > VEGAS_GAMMA) {
		target = ((law->now.cwnd >> 10) * base / least << 10) + BP_ONE;
		law->now.cwnd = BP_MAX(BP_MIN(law->now.cwnd, target), BP_SEGMENTS(2));
		law->now.ssthresh = BP_MIN(law->now.ssthresh, law->now.cwnd - BP_ONE);
		law->now.ssthresh = BP_MAX(law->now.ssthresh, BP_SEGMENTS(2));
		law->doubles = 0;
	} else if (!slow_start && queued > VEGAS_BETA) {
		law->now.cwnd = BP_MAX(law->now.cwnd - BP_ONE, BP_SEGMENTS(2));
		law->now.ssthresh = BP_MIN(law->now.ssthresh, law->now.cwnd - BP_ONE);
		law->now.ssthresh = BP_MAX(law->now.ssthresh, BP_SEGMENTS(2));
	} else if (!slow_start && queued < VEGAS_ALPHA) {
		law->now.cwnd += BP_ONE;
	}
}

/* Ends an epoch of one round trip. */
BP_INLINE void vegas_epoch(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u32 sent = path->nxt - law->begin, samples = law->samples, least = law->least, mean;

	mean = samples ? law->sum / samples : (bp_u32)path->now - law->began;
	law->begin = path->nxt;
	law->began = path->now;
	law->sum = 0;
	law->least = BP_UNKNOWN;
	law->samples = 0;
	if (!mean)
		return;
	/* A single segment in flight meets no queue caused by this connection. Its round-trip time becomes the new base. */
	if (sent <= path->mss || mean < law->base)
		law->base = mean;
	if (ack->phase != BP_RECOVERY)
		vegas_decide(law, law->base, BP_MAX(least, law->base), samples);
}

BP_INLINE void vegas_observe(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	if (ack->rtt) {
		law->sum += ack->rtt;
		law->samples++;
		law->least = BP_MIN(law->least, ack->rtt);
		law->base = BP_MIN(law->base, ack->rtt);
	}
	if (ack->acked && bp_after(path->una, law->begin))
		vegas_epoch(law, ack, path);
}

BP_INLINE void vegas_slow_start(struct bp_law *law, bp_u32 acked)
{
	if (law->doubles)
		law->now.cwnd = BP_MIN(law->now.cwnd + BP_SEGMENTS(acked), law->now.ssthresh);
}

BP_INLINE bp_window vegas_at_timeout(struct bp_law *law, const struct bp_loss *loss)
{
	law->doubles_before = law->doubles;
	law->doubles = 0;
	return BP_SEGMENTS(loss->outstanding) / 2;
}

/* Reduces the window at a loss. The loss does not change whether slow start doubles in this epoch. */
BP_INLINE bp_window vegas_reduce(struct bp_law *law, const struct bp_loss *loss)
{
	law->doubles_before = law->doubles;
	return BP_MIN(BP_SEGMENTS(loss->outstanding), law->now.cwnd) / 2;
}

#define BP_ESTABLISHED(law, path) vegas_established(law, path)
#define BP_OBSERVE(law, ack, path) vegas_observe(law, ack, path)
#define BP_SLOW_START(law, ack, acked, path) vegas_slow_start(law, acked)
#define BP_AVOID(law, ack, acked, path) ((void)(acked))
#define BP_REDUCE(law, loss, path) vegas_reduce(law, loss)
#define BP_UNDONE(law) ((law)->doubles = (law)->doubles_before)
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) vegas_at_timeout(law, loss)
#include "classic.h"
