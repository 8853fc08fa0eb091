/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Astart (adaptive start): until the first loss, the slow-start threshold follows the measured rate of the path.
 *
 * R. Wang, G. Pau, K. Yamada, M. Y. Sanadidi, M. Gerla, "TCP Startup Performance in Large Bandwidth Delay Networks", IEEE
 * INFOCOM 2004. After the first loss the algorithm is Westwood+ with the filter of that paper (weights nine tenths and one
 * tenth).
 */
#include "law.h"
#include "bandwidth.h"

/* Points of the record of delivered bytes over time. A round trip contains 32 of them. */
#define ASTART_POINTS 64
#define ASTART_PER_ROUND 32
/* Shortest interval of a bandwidth sample of Westwood+ after the start, us. */
#define ASTART_LEAST_ROUND 50000
/* Initial slow-start threshold. */
#define ASTART_THRESHOLD BP_SEGMENTS(4)

struct astart_point {
	bp_u64 at;		/* time, us */
	bp_u64 bytes;		/* bytes delivered until then */
};

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	bp_u64 since;		/* start of the current Westwood+ sample, us */
	bp_fine_rate rate;
	bp_u32 bytes;		/* bytes delivered during the sample */
	bp_u32 min_rtt;		/* minRTT, us */
	bp_u32 newest;		/* index of the newest point */
	bp_u32 srtt;		/* smoothed RTT at the newest point, us */
	bp_u8 stale;		/* the next round-trip sample replaces `min_rtt` */
	bp_u8 began;
	bp_u8 resting;
	bp_u8 started;		/* a loss has ended the start */
	bp_u8 started_before;
	struct astart_point points[ASTART_POINTS];
};

BP_INLINE const struct astart_point *astart_point(const struct bp_law *law, bp_u32 age)
{
	return &law->points[(law->newest - age) % ASTART_POINTS];
}

/* Moves the newest point forward until it is far enough from the previous point. A pause after it fixes it in place. */
BP_INLINE void astart_add(struct bp_law *law, bp_u64 now, bp_u32 bytes, bp_u32 srtt)
{
	bp_u64 at = astart_point(law, 0)->at, total = astart_point(law, 0)->bytes;

	law->srtt = srtt;
	if (ASTART_PER_ROUND * (at - astart_point(law, 1)->at) >= srtt || ASTART_PER_ROUND * (now - at) > srtt)
		law->newest = (law->newest + 1) % ASTART_POINTS;
	law->points[law->newest % ASTART_POINTS].at = now;
	law->points[law->newest % ASTART_POINTS].bytes = total + bytes;
}

/*
 * Returns the bytes delivered until a time in quarters of a microsecond, limited to the recorded points. It interpolates
 * between near points; between distant points the value stays constant and jumps at the later one.
 */
BP_INLINE bp_u64 astart_until(const struct bp_law *law, bp_u64 quarters)
{
	bp_u64 younger_at = astart_point(law, 0)->at, younger = astart_point(law, 0)->bytes, gap;
	bp_u32 age;

	if (4 * younger_at <= quarters)
		return younger;
	for (age = 1; age < ASTART_POINTS; age++) {
		const struct astart_point *older = astart_point(law, age);

		if (4 * older->at <= quarters) {
			gap = younger_at - older->at;
			if (ASTART_PER_ROUND * gap > 2 * (bp_u64)law->srtt || !gap)
				return older->bytes;
			return older->bytes + (younger - older->bytes) * (quarters - 4 * older->at) / (4 * gap);
		}
		younger_at = older->at;
		younger = older->bytes;
	}
	return younger;
}

/* Returns the window that corresponds to the delivery rate of the last quarter of a round trip. */
BP_INLINE bp_window astart_eligible(const struct bp_law *law, const struct bp_path *path)
{
	bp_u64 bytes;

	if (!path->srtt)
		return 0;
	bytes = astart_point(law, 0)->bytes - astart_until(law, 4 * path->now - path->srtt);
	return bp_pipe(bp_fine(4 * bytes, path->srtt), law->min_rtt, path->mss);
}

BP_INLINE bp_window astart_pipe(const struct bp_law *law, const struct bp_path *path)
{
	return bp_pipe(law->rate, law->min_rtt, path->mss);
}

/*
 * Updates Westwood+'s estimate, with one sample per interval of `quarters` quarters of a microsecond. The first sample is the
 * first estimate.
 */
BP_INLINE void astart_sample(struct bp_law *law, bp_u64 now, bp_u32 bytes, bp_u64 quarters)
{
	bp_u64 age = now - law->since;
	bp_fine_rate sample;

	if (law->resting) {
		law->resting = 0;
		law->since = now;
		law->bytes = 0;
		return;
	}
	law->bytes += bytes;
	if (4 * age < quarters || !age)
		return;
	sample = bp_fine(law->bytes, age);
	law->rate = law->began ? (9 * law->rate + sample) / 10 : sample;
	law->began = 1;
	law->since = now;
	law->bytes = 0;
}

BP_INLINE void astart_established(struct bp_law *law, const struct bp_path *path)
{
	law->now.ssthresh = ASTART_THRESHOLD;
	law->min_rtt = path->min_rtt;
	law->since = path->now;
}

BP_INLINE void astart_observe(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u32 bytes = ack->delivered * path->mss;

	if (ack->rtt && (ack->rtt < law->min_rtt || law->stale)) {
		law->min_rtt = ack->rtt;
		law->stale = 0;
	}
	astart_sample(law, path->now, bytes, law->started ? 4ULL * BP_MAX(path->srtt, (bp_u32)ASTART_LEAST_ROUND) : path->srtt);
	if (law->started)
		return;
	astart_add(law, path->now, bytes, path->srtt);
	law->now.ssthresh = BP_MAX(law->now.ssthresh, astart_eligible(law, path));
}

BP_INLINE bp_window astart_reduce(struct bp_law *law, const struct bp_path *path)
{
	law->started_before = law->started;
	law->started = 1;
	return astart_pipe(law, path);
}

BP_INLINE bp_window astart_at_timeout(struct bp_law *law, const struct bp_path *path)
{
	law->stale = 1;
	return astart_reduce(law, path);
}

#define BP_ESTABLISHED(law, path) astart_established(law, path)
#define BP_OBSERVE(law, ack, path) astart_observe(law, ack, path)
#define BP_REDUCE(law, loss, path) astart_reduce(law, path)
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) astart_at_timeout(law, path)
#define BP_UNDONE(law) ((law)->started = (law)->started_before)
#define BP_IDLE(law, path) ((law)->resting = 1)
#include "classic.h"
