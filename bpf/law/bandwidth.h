/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Bandwidth estimation from the stream of ACKs: the filters of the algorithms that estimate a bandwidth. */
#ifndef BP_BANDWIDTH_H
#define BP_BANDWIDTH_H

/* Rate of a number of bytes over `us` microseconds; `us` is not 0. */
BP_INLINE bp_fine_rate bp_fine(bp_u64 bytes, bp_u64 us)
{
	bp_fine_rate rate = ((BP_MIN(bytes, 1ULL << 34) * 1000000) << 8) / us;

	return BP_MIN(rate, BP_FASTEST);
}

/* Intervals between ACKs, with one sample per ACK. ACKs that arrive too close together are merged into one sample. */
struct bp_gaps {
	bp_u64 since;		/* end of the last sample, us */
	bp_u32 pending;		/* bytes not yet in any sample */
	bp_u8 resting;		/* the sender was idle: the next ACK begins an interval and ends none */
};

/* Returns the length in us of the interval that an ACK ends, or 0. The caller clears `pending` after using it. */
BP_INLINE bp_u64 bp_gap(struct bp_gaps *gaps, bp_u64 now, bp_u32 bytes, bp_u32 least)
{
	bp_u64 gap;

	if (gaps->resting) {
		gaps->since = now;
		gaps->pending = 0;
		gaps->resting = 0;
		return 0;
	}
	gaps->pending = gaps->pending + bytes < bytes ? 0xffffffffU : gaps->pending + bytes;
	gap = now - gaps->since;
	if (!gaps->pending || !gap || gap < least)
		return 0;
	gaps->since = now;
	return gap;
}

/* Available bandwidth estimation (ABE) of TCP-J and TCP-STAR: a sample per ACK, smoothed with weight nine tenths for the past. */
struct bp_abe {
	struct bp_gaps gaps;
	bp_fine_rate sample;
	bp_fine_rate rate;
};

/* ACKs closer together than this make one sample, us. */
#define BP_ABE_LEAST_GAP 250

BP_INLINE void bp_abe_on_ack(struct bp_abe *abe, bp_u64 now, bp_u32 bytes)
{
	bp_u64 gap = bp_gap(&abe->gaps, now, bytes, BP_ABE_LEAST_GAP);
	bp_fine_rate sample;

	if (!gap)
		return;
	sample = bp_fine(abe->gaps.pending, gap);
	abe->gaps.pending = 0;
	abe->rate = (9 * abe->rate + (sample + abe->sample) / 2) / 10;
	abe->sample = sample;
}

/* Westwood+'s estimate: one sample per round trip, in two stages of seven eighths; the first sample is the first estimate. */
struct bp_rounds {
	bp_u64 since;		/* start of the current round, us */
	bp_fine_rate stage;
	bp_fine_rate rate;
	bp_u32 bytes;		/* reported in the current round */
	bp_u8 began;
	bp_u8 resting;
};

BP_INLINE void bp_rounds_on_ack(struct bp_rounds *rounds, bp_u64 now, bp_u32 bytes, bp_u32 round)
{
	bp_u64 age = now - rounds->since;
	bp_fine_rate sample;

	if (rounds->resting) {
		rounds->resting = 0;
		rounds->since = now;
		rounds->bytes = 0;
		return;
	}
	rounds->bytes = rounds->bytes + bytes < bytes ? 0xffffffffU : rounds->bytes + bytes;
	if (age < round || !age)
		return;
	sample = bp_fine(rounds->bytes, age);
	rounds->since = now;
	rounds->bytes = 0;
	if (!rounds->began) {
		rounds->began = 1;
		rounds->stage = sample;
		rounds->rate = sample;
		return;
	}
	rounds->stage = (7 * rounds->stage + sample) / 8;
	rounds->rate = (7 * rounds->rate + rounds->stage) / 8;
}

/* Jersey's estimate: a window that slides over the last round trip, R = (T R + L) / (T + gap) (Clark and Fang). */
struct bp_sliding {
	struct bp_gaps gaps;
	bp_fine_rate rate;
};

BP_INLINE void bp_sliding_on_ack(struct bp_sliding *sliding, bp_u64 now, bp_u32 bytes, bp_u32 window)
{
	bp_u64 gap = bp_gap(&sliding->gaps, now, bytes, 0), span, lost;

	if (!gap)
		return;
	gap = BP_MIN(gap, 1ULL << 26);
	span = BP_MIN(window, 1U << 26) + gap;
	/* rate - rate gap / span in 64 bits: quotient and remainder apart. */
	lost = sliding->rate / span * gap + sliding->rate % span * gap / span;
	sliding->rate = sliding->rate - BP_MIN(lost, sliding->rate) + bp_fine(sliding->gaps.pending, span);
	sliding->rate = BP_MIN(sliding->rate, BP_FASTEST);
	sliding->gaps.pending = 0;
}

#endif
