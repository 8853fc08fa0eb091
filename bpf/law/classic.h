/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Common parts of Reno and algorithms derived from it: slow start, threshold, one reduction per loss episode, undo (RFC 5681).
 *
 * A law includes this header last. Before that it defines a `struct bp_law` that begins with the members of BP_CLASSIC. It also
 * defines a macro for each function that it replaces. The defaults are Reno's.
 */
#ifndef BP_CLASSIC_H
#define BP_CLASSIC_H

/* Least slow-start threshold, two segments (RFC 5681 equation 4). */
#define BP_SMALLEST BP_SEGMENTS(2)

#ifndef BP_ESTABLISHED
#define BP_ESTABLISHED(law, path) ((void)0)
#endif
/* Called first for every ACK, including duplicates. Estimators are updated here. */
#ifndef BP_OBSERVE
#define BP_OBSERVE(law, ack, path) ((void)0)
#endif
#ifndef BP_SLOW_START
#define BP_SLOW_START(law, ack, acked, path) ((law)->now.cwnd += BP_SEGMENTS(acked))
#endif
#ifndef BP_AVOID
#define BP_AVOID(law, ack, acked, path) ((law)->now.cwnd += bp_divide(BP_SEGMENTS(acked), (law)->now.cwnd))
#endif
/* New threshold after a loss or an ECN mark, and after a timeout. */
#ifndef BP_REDUCE
#define BP_REDUCE(law, loss, path) (BP_MIN(BP_SEGMENTS((loss)->outstanding), (law)->now.cwnd) / 2)
#endif
#ifndef BP_REDUCE_AT_TIMEOUT
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) (BP_SEGMENTS((loss)->outstanding) / 2)
#endif
#ifndef BP_AFTER_TIMEOUT
#define BP_AFTER_TIMEOUT(law) BP_ONE
#endif
/* Reduction of window and threshold at a loss. */
#ifndef BP_LOSE
#define BP_LOSE(law, loss, path) bp_lose(law, loss, path)
#endif
#ifndef BP_UNDONE
#define BP_UNDONE(law) ((void)0)
#endif
#ifndef BP_IDLE
#define BP_IDLE(law, path) ((void)0)
#endif
#ifndef BP_KEEPS_WHEN_IDLE
#define BP_KEEPS_WHEN_IDLE 0
#endif
/* Pacing rate, in bytes per second; 0 if the law sets none. */
#ifndef BP_PACE
#define BP_PACE(law, path) 0
#endif

BP_INLINE int bp_in_slow_start(const struct bp_law *law)
{
	return law->now.cwnd < law->now.ssthresh;
}

BP_INLINE void bp_hold(struct bp_law *law)
{
	law->now.cwnd = BP_MIN(BP_MAX(law->now.cwnd, BP_ONE), BP_LARGEST);
	law->now.ssthresh = BP_MAX(law->now.ssthresh, BP_SMALLEST);
}

BP_INLINE void bp_lose(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	law->now.ssthresh = BP_REDUCE(law, loss, path);
	law->now.ssthresh = BP_MAX(law->now.ssthresh, BP_SMALLEST);
	law->now.cwnd = BP_MIN(law->now.cwnd, law->now.ssthresh);
}

/* Called when the connection is established or selects this law. The state is zero. */
BP_INLINE void bp_established(struct bp_law *law, bp_window initial, const struct bp_path *path)
{
	law->now.cwnd = initial;
	law->now.ssthresh = BP_NO_THRESHOLD;
	BP_ESTABLISHED(law, path);
	bp_hold(law);
}

BP_INLINE void bp_on_ack(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	/* Segments already reported by SACK have been counted before. */
	bp_u32 acked = BP_MIN(ack->delivered, 1U << 14);

	BP_OBSERVE(law, ack, path);
	/* During fast recovery the window does not change. */
	if (!ack->acked || ack->phase == BP_RECOVERY || !ack->window_limited)
		return;
	/*
	 * The ACK that fills a hole after a timeout covers segments delivered long before. It counts as one segment (RFC 3465
	 * section 2.3).
	 */
	if (ack->phase == BP_LOSS)
		acked = 1;
	if (bp_in_slow_start(law))
		BP_SLOW_START(law, ack, acked, path);
	else
		BP_AVOID(law, ack, acked, path);
	law->now.cwnd = BP_MIN(law->now.cwnd, BP_LARGEST);
}

/* Called once per episode of losses or ECN marks. */
BP_INLINE void bp_on_loss(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	law->before = law->now;
	BP_LOSE(law, loss, path);
	bp_hold(law);
}

/*
 * Called at each expiry of the retransmission timer. Consecutive expiries are one event: the threshold of the first is kept
 * (RFC 5681 section 3.1).
 */
BP_INLINE void bp_on_timeout(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	if (loss->consecutive == 1) {
		law->before = law->now;
		law->now.ssthresh = BP_REDUCE_AT_TIMEOUT(law, loss, path);
		law->now.ssthresh = BP_MAX(law->now.ssthresh, BP_SMALLEST);
	}
	law->now.cwnd = BP_AFTER_TIMEOUT(law);
	bp_hold(law);
}

/* Undoes the last reduction, which was spurious. */
BP_INLINE void bp_on_undo(struct bp_law *law)
{
	if (!law->before.cwnd)
		return;
	law->now.ssthresh = BP_MAX(law->now.ssthresh, law->before.ssthresh);
	if (law->before.cwnd > law->now.cwnd) {
		law->now.cwnd = law->before.cwnd;
		BP_UNDONE(law);
	}
	law->before.cwnd = 0;
}

/*
 * Called before the sender transmits after an idle period of at least one retransmission timeout. `restart` is the restart
 * window of RFC 5681 section 4.1.
 */
BP_INLINE void bp_on_idle(struct bp_law *law, bp_window restart, const struct bp_path *path)
{
	BP_IDLE(law, path);
	if (!BP_KEEPS_WHEN_IDLE)
		law->now.cwnd = BP_MIN(law->now.cwnd, restart);
	bp_hold(law);
}

BP_INLINE bp_window bp_cwnd(const struct bp_law *law)
{
	return law->now.cwnd;
}

BP_INLINE bp_window bp_ssthresh(const struct bp_law *law)
{
	return law->now.ssthresh;
}

BP_INLINE bp_u64 bp_pace(const struct bp_law *law, const struct bp_path *path)
{
	return BP_PACE(law, path);
}

#endif
