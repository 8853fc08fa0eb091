/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Common parts of TCP-Peach and TCP-Swift: they probe the path with low-priority copies of data, and reports of received copies
 * open the window.
 *
 * A law defines two macros before it includes this header. BP_INFLATES: reports during recovery open the window until recovery
 * ends (Peach) or permanently (Swift). BP_EXPANDS: every ACK of the round trip after a recovery opens the window by one segment
 * (Swift).
 *
 * The rules are those of the simulator's safe mode, with the accounting of RFC 6675. The kernel reduces the window over a round
 * trip (RFC 6937). The papers send copies when no data may leave. Here the same number of copies leaves with data, at most two
 * per segment, spread over the recovery.
 */
#ifndef BP_PROBER_H
#define BP_PROBER_H

#include "answers.h"

/* Makes glue.h send copies and count reports. */
#define BP_PROBES 1

/* Largest number of copies of a start or of a recovery. */
#define PROBER_MOST 1024U
/* Largest number of copies that leave with a segment. */
#define PROBER_PAIR 2U
/* Consecutive episodes without a report after which the receiver is assumed not to report duplicates. */
#define PROBER_SILENT 2
/* No report is expected. */
#define PROBER_NEVER (~0ULL)

enum prober_state {
	PROBER_AVOIDS,		/* congestion avoidance; if the receiver does not report duplicates, all of Reno except recovery */
	PROBER_ARMED,		/* the start waits for data to copy */
	PROBER_STARTS,		/* copies leave with data; otherwise this is already congestion avoidance */
	PROBER_RECOVERS,
};
enum prober_peer { PROBER_UNKNOWN, PROBER_ASKED, PROBER_REPLIES, PROBER_PLAIN };

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	bp_u64 verdict_at;	/* time by which reports about the first copies of an episode must have arrived, us */
	bp_u64 began_at;	/* start of this episode, us; reports within a minRTT after it concern older copies */
	struct bp_answers answers;
	bp_u32 ignored;		/* wdsn of the paper: reports that must not open the window */
	bp_u32 allowed;		/* adsn, aosn of the papers: copies that may still leave */
	bp_u32 started;		/* copies of this start already sent */
	bp_u32 inflated;	/* segments by which recovery opened the window */
	bp_u32 expands_until;	/* end of the data sent when the last recovery ended */
	bp_u8 expands;
	bp_u8 state;
	bp_u8 peer;
	bp_u8 silent;		/* consecutive episodes without a report */
};

/* Opens the window up to the receive window. If the receive window shrank, the window stays unchanged. */
BP_INLINE void prober_open(struct bp_law *law, bp_window segments, const struct bp_path *path)
{
	bp_window limit = BP_MIN(BP_SEGMENTS(path->receive_window), BP_LARGEST);

	limit = BP_MAX(limit, law->now.cwnd);
	law->now.cwnd = BP_MIN(law->now.cwnd + segments, limit);
}

BP_INLINE void prober_rest(struct bp_law *law)
{
	law->state = PROBER_AVOIDS;
	law->allowed = 0;
}

BP_INLINE void prober_stop_asking(struct bp_law *law)
{
	law->allowed = 0;
	if (law->state != PROBER_RECOVERS)
		law->state = PROBER_AVOIDS;
}

/* Switches to Reno for the rest of the connection. */
BP_INLINE void bp_do_without(struct bp_law *law)
{
	law->peer = PROBER_PLAIN;
	prober_stop_asking(law);
}

/* The test of Peach, section III-A, for a receiver that reports duplicates. */
BP_INLINE void prober_check(struct bp_law *law, const struct bp_path *path)
{
	if (law->peer != PROBER_ASKED || path->now < law->verdict_at)
		return;
	law->silent++;
	law->verdict_at = PROBER_NEVER;
	if (law->silent < PROBER_SILENT)
		return;
	law->now.ssthresh = BP_SEGMENTS(BP_MAX(path->receive_window, 2U));
	bp_do_without(law);
}

BP_INLINE void prober_begin_episode(struct bp_law *law, const struct bp_path *path)
{
	law->began_at = path->now;
	law->allowed = 0;
}

/* Starts with one segment and copies. If the receiver does not report duplicates, one segment and slow start follow. */
BP_INLINE void prober_start_over(struct bp_law *law, const struct bp_path *path)
{
	prober_begin_episode(law, path);
	law->now.cwnd = BP_ONE;
	law->ignored = 0;
	law->inflated = 0;
	law->state = law->peer == PROBER_PLAIN ? PROBER_AVOIDS : PROBER_ARMED;
}

/* Removes the segments that recovery added to the window. */
BP_INLINE void prober_deflate(struct bp_law *law, bp_u32 segments)
{
	segments = BP_MIN(segments, law->inflated);
	law->inflated -= segments;
	law->now.cwnd = BP_MAX(law->now.cwnd, BP_SEGMENTS(segments) + BP_ONE) - BP_SEGMENTS(segments);
}

BP_INLINE void prober_leave(struct bp_law *law)
{
	prober_deflate(law, law->inflated);
	prober_rest(law);
}

BP_INLINE void bp_established(struct bp_law *law, bp_window initial, const struct bp_path *path)
{
	law->now.cwnd = BP_MAX(initial, BP_ONE);
	law->now.ssthresh = BP_NO_THRESHOLD;
	law->began_at = path->now;
	law->state = PROBER_ARMED;
}

/* Returns how many copies may leave with the data that leaves now. In a start, at most as many as unsent data. */
BP_INLINE bp_u32 bp_may_ask(struct bp_law *law, const struct bp_path *path)
{
	bp_u32 window = law->now.cwnd >> BP_SHIFT, rwnd = path->receive_window;
	bp_u64 bytes = (bp_u64)(path->nxt - path->una) + path->unsent;
	bp_u64 most;

	prober_check(law, path);
	if (law->state == PROBER_ARMED) {
		law->allowed = BP_MIN(BP_MAX(rwnd, window) - window, PROBER_MOST);
		law->started = 0;
		law->state = law->allowed ? PROBER_STARTS : PROBER_AVOIDS;
	}
	if (law->state != PROBER_STARTS)
		return law->allowed;
	most = (bytes + path->mss - 1) / BP_MAX(path->mss, 1U);
	most = BP_MAX(most, law->started + 1ULL) - law->started - 1;
	return BP_MIN(most, law->allowed);
}

/* Records that a number of copies leaves now. */
BP_INLINE void bp_asked(struct bp_law *law, bp_u32 copies, const struct bp_path *path)
{
	law->allowed -= BP_MIN(copies, law->allowed);
	law->started += copies;
	if (law->state == PROBER_STARTS && !law->allowed)
		law->state = PROBER_AVOIDS;
	bp_answers_sent(&law->answers, copies, path->now);
	if (law->peer == PROBER_UNKNOWN || (law->peer == PROBER_ASKED && law->verdict_at == PROBER_NEVER)) {
		law->peer = PROBER_ASKED;
		law->verdict_at = path->now + 2ULL * path->srtt + path->rto / 2;
	}
}

/* Handles reports of received copies. */
BP_INLINE void prober_take_answers(struct bp_law *law, bp_u32 answers, const struct bp_path *path)
{
	bp_u32 ignored = BP_MIN(answers, law->ignored), least = path->min_rtt == BP_UNKNOWN ? 0 : path->min_rtt;

	if (!answers || path->ordinary)
		return;
	law->peer = PROBER_REPLIES;
	if (path->now < law->began_at + least)
		return;
	law->ignored -= ignored;
	answers -= ignored;
	if (BP_INFLATES && law->state == PROBER_RECOVERS) {
		law->inflated += answers;
		law->now.cwnd = BP_MIN(law->now.cwnd + BP_SEGMENTS(answers), BP_LARGEST);
	} else {
		prober_open(law, BP_SEGMENTS(answers), path);
	}
}

/* True if this ACK belongs to the window expanding period (Swift, Fig. 3: ACK <= swift_wep_recv). */
BP_INLINE int prober_expands(struct bp_law *law, const struct bp_path *path)
{
	if (!BP_EXPANDS || !law->expands)
		return 0;
	if (!bp_after(law->expands_until, path->una))
		law->expands = 0;
	return !bp_after(path->una, law->expands_until);
}

BP_INLINE void prober_grow(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_window acked = BP_SEGMENTS(BP_MIN(ack->delivered, 1U << 14)), step;

	if (!ack->acked || !ack->window_limited)
		return;
	if (law->peer == PROBER_PLAIN && law->now.cwnd < law->now.ssthresh) {
		prober_open(law, acked, path);
		return;
	}
	/* At most one segment per ACK, because the window is one segment when the hole of a timeout is filled. */
	step = BP_MIN(bp_divide(acked, law->now.cwnd), BP_ONE);
	if (law->peer != PROBER_PLAIN && prober_expands(law, path))
		step = BP_ONE;
	prober_open(law, step, path);
}

BP_INLINE void prober_recover(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	if (BP_INFLATES && ack->acked && !ack->ends_episode)
		prober_deflate(law, ack->acked - 1);	/* RFC 6582 section 3.2 step 5 */
	if (!ack->ends_episode || (BP_INFLATES && !ack->acked))
		return;
	prober_leave(law);
	law->expands = BP_EXPANDS;
	law->expands_until = path->nxt;
}

BP_INLINE void bp_on_ack(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u64 unserved = law->began_at + (path->min_rtt == BP_UNKNOWN ? path->srtt : path->min_rtt);

	prober_check(law, path);
	if (path->ordinary && law->peer != PROBER_PLAIN)
		bp_do_without(law);
	/* Data has been acknowledged but never copied, so no program sends copies on its interface. */
	if (law->state == PROBER_ARMED && ack->acked && path->now >= unserved)
		bp_do_without(law);
	if (law->state == PROBER_RECOVERS && ack->phase == BP_RECOVERY) {
		prober_recover(law, ack, path);
	} else {
		/* Also if a tail loss probe repaired the loss before it was detected. */
		if (law->state == PROBER_RECOVERS)
			prober_leave(law);
		prober_grow(law, ack, path);
	}
	prober_take_answers(law, ack->answers, path);
}

/* RFC 5681: the reduction if copies are not used. */
BP_INLINE void prober_halve(struct bp_law *law, const struct bp_loss *loss)
{
	law->now.ssthresh = BP_MAX(BP_SEGMENTS(loss->outstanding) / 2, BP_SEGMENTS(2));
	law->now.cwnd = law->now.ssthresh;
}

BP_INLINE void bp_on_loss(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	bp_u32 cwnd0;

	prober_check(law, path);
	law->before = law->now;
	law->inflated = 0;
	prober_begin_episode(law, path);
	law->answers.srtt_at_loss = path->srtt;
	law->state = PROBER_RECOVERS;
	if (loss->cause == BP_MARKED) {
		/* A mark proves congestion. Copies would tell nothing, and no data is missing. */
		prober_halve(law, loss);
		law->state = PROBER_AVOIDS;
	} else if (law->peer == PROBER_PLAIN) {
		prober_halve(law, loss);
	} else {
		cwnd0 = BP_MIN(law->now.cwnd >> BP_SHIFT, path->receive_window);
		cwnd0 = BP_MIN(cwnd0, loss->outstanding);
		law->ignored = cwnd0 / 2;
		law->now.cwnd = BP_SEGMENTS(BP_MAX(cwnd0 / 2, 1U));
		law->now.ssthresh = law->now.cwnd;
		/* Peach, equation (4), rounded so that pairs stay whole. */
		law->allowed = BP_MIN(BP_INFLATES ? 2 * law->ignored : cwnd0, PROBER_MOST);
		law->expands = 0;
	}
}

BP_INLINE void bp_on_timeout(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	prober_check(law, path);
	if (loss->consecutive == 1) {
		law->before = law->now;
		law->now.ssthresh = BP_MAX(BP_SEGMENTS(loss->outstanding) / 2, BP_SEGMENTS(2));
	}
	law->answers.srtt_at_loss = path->srtt;
	law->expands = 0;
	prober_start_over(law, path);
}

/*
 * Undoes the last reduction. The window is then restored, so reports about copies of this episode must not open it again. The
 * next episode sets `ignored` anew.
 */
BP_INLINE void bp_on_undo(struct bp_law *law)
{
	if (law->before.cwnd) {
		prober_deflate(law, law->inflated);
		law->now.cwnd = BP_MAX(law->now.cwnd, law->before.cwnd);
		law->now.ssthresh = BP_MAX(law->now.ssthresh, law->before.ssthresh);
		law->ignored = 0xffffffffU;
		law->before.cwnd = 0;
		prober_rest(law);
	} else if (BP_EXPANDS) {
		prober_rest(law);
	}
}

BP_INLINE void bp_on_idle(struct bp_law *law, bp_window restart, const struct bp_path *path)
{
	prober_check(law, path);
	if (law->peer == PROBER_REPLIES)
		prober_start_over(law, path);
	else
		law->now.cwnd = BP_MIN(law->now.cwnd, restart);
}

BP_INLINE bp_window bp_cwnd(const struct bp_law *law)
{
	return law->now.cwnd;
}

BP_INLINE bp_window bp_ssthresh(const struct bp_law *law)
{
	return law->peer == PROBER_PLAIN ? law->now.ssthresh : BP_NO_THRESHOLD;
}

/* Paces the data of a start, and thereby its copies, over the round trip. */
BP_INLINE bp_u64 bp_pace(const struct bp_law *law, const struct bp_path *path)
{
	bp_u64 rate = bp_rate(law->now.cwnd, path);

	return law->state == PROBER_STARTS ? rate + rate / 5 : 0;
}

#endif
