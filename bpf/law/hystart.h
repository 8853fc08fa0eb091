/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * HyStart++ (RFC 9406): slow start ends when a rising delay shows that the queue grows. Growth per ACK has no limit, as for paced
 * senders.
 */
#ifndef BP_HYSTART_H
#define BP_HYSTART_H

/* Constants of section 4.3. Times in us. */
#define HYSTART_SAMPLES 8
#define HYSTART_LEAST_RISE 4000U
#define HYSTART_MOST_RISE 16000U
#define HYSTART_SLOWER 4
#define HYSTART_ROUNDS 5

struct bp_hystart {
	bp_u32 end;		/* sequence number that ends the round */
	bp_u32 min_rtt;		/* of this round; BP_UNKNOWN before the first sample, as in the two below */
	bp_u32 last_min_rtt;	/* of the round before */
	bp_u32 baseline;	/* of the round in which conservative slow start began */
	bp_u8 samples;		/* at most HYSTART_SAMPLES */
	bp_u8 began;		/* the first round has begun */
	bp_u8 conservative;
	bp_u8 rounds;		/* of conservative slow start */
	bp_u8 over;		/* slow start is plain from now on */
};

BP_INLINE void bp_hystart_begin(struct bp_hystart *hystart)
{
	hystart->min_rtt = BP_UNKNOWN;
	hystart->last_min_rtt = BP_UNKNOWN;
}

/* True if this round's delay exceeds the last round's by more than an eighth, within bounds (section 4.2). */
BP_INLINE int bp_hystart_shows_queue(const struct bp_hystart *hystart)
{
	bp_u32 rise = hystart->last_min_rtt / 8 + !!(hystart->last_min_rtt % 8);

	if (hystart->samples < HYSTART_SAMPLES || hystart->last_min_rtt == BP_UNKNOWN)
		return 0;
	rise = BP_MIN(BP_MAX(rise, HYSTART_LEAST_RISE), HYSTART_MOST_RISE);
	return hystart->min_rtt >= hystart->last_min_rtt + rise;
}

/* Switches between slow start and its conservative form (section 4.2). */
BP_INLINE void bp_hystart_look(struct bp_hystart *hystart)
{
	if (hystart->conservative) {
		if (hystart->samples >= HYSTART_SAMPLES && hystart->min_rtt < hystart->baseline)
			hystart->conservative = 0;
	} else if (bp_hystart_shows_queue(hystart)) {
		hystart->conservative = 1;
		hystart->baseline = hystart->min_rtt;
		hystart->rounds = 0;
	}
}

/* Handles the end of a round. The initial window is the first round. */
BP_INLINE void bp_hystart_end_round(struct bp_hystart *hystart, const struct bp_path *path)
{
	hystart->end = path->nxt;
	if (!hystart->began) {
		hystart->began = 1;
		return;
	}
	hystart->last_min_rtt = hystart->min_rtt;
	hystart->min_rtt = BP_UNKNOWN;
	hystart->samples = 0;
	if (hystart->conservative && ++hystart->rounds >= HYSTART_ROUNDS)
		hystart->over = 1;
}

/* Growth of the window in slow start. Slow start ends if `over` is set. */
BP_INLINE bp_window bp_hystart_growth(struct bp_hystart *hystart, const struct bp_ack *ack, bp_u32 acked, const struct bp_path *path)
{
	bp_window growth = BP_SEGMENTS(acked);

	if (hystart->over)
		return growth;
	if (hystart->conservative)
		growth /= HYSTART_SLOWER;
	if (ack->rtt) {
		hystart->min_rtt = BP_MIN(hystart->min_rtt, ack->rtt);
		hystart->samples = BP_MIN(hystart->samples + 1, HYSTART_SAMPLES);
	}
	bp_hystart_look(hystart);
	if (!hystart->began || !bp_after(hystart->end, path->una))
		bp_hystart_end_round(hystart, path);
	return growth;
}

#endif
