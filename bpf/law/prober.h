/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * What TCP-Peach and TCP-Swift share: they ask the path with low-priority copies of data, and the window opens by the answers.
 *
 * A law includes this header and defines before it BP_INFLATES: answers in recovery open the window until its end (Peach) or for good
 * (Swift); and BP_EXPANDS: every ACK of the round trip after a recovery opens the window by one (Swift).
 *
 * The rules are those of the simulator in safe mode, with the accounting of RFC 6675. The kernel reduces the window over a round trip
 * (RFC 6937), and copies leave with data, at most two with each segment, where the papers send them when no data may leave: as many, evenly
 * over the recovery.
 */
#ifndef BP_PROBER_H
#define BP_PROBER_H

#include "answers.h"

/* The glue sends copies and counts reports. */
#define BP_PROBES 1

/* Most copies of a start and of a recovery. */
#define PROBER_MOST 1024U
/* Copies that leave with a segment. */
#define PROBER_PAIR 2U
/* Episodes without any answer after which the receiver is taken for one that does not report duplicates. */
#define PROBER_SILENT 2
/* No answer is due. */
#define PROBER_NEVER (~0ULL)

enum prober_state {
	PROBER_AVOIDS,		/* congestion avoidance; without answers all of Reno outside recovery */
	PROBER_ARMED,		/* the start waits for data to copy */
	PROBER_STARTS,		/* copies leave with data, everything else is congestion avoidance already */
	PROBER_RECOVERS,
};
enum prober_peer { PROBER_UNKNOWN, PROBER_ASKED, PROBER_REPLIES, PROBER_PLAIN };

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	bp_u64 verdict_at;	/* answers to the first copies of an episode are back by then, us */
	bp_u64 began_at;	/* when this episode began, us: answers within a least round trip are to copies of the one before */
	struct bp_answers answers;
	bp_u32 ignored;		/* wdsn: answers that must not open the window */
	bp_u32 allowed;		/* adsn, aosn: copies that may still leave */
	bp_u32 started;		/* copies of this start that have left */
	bp_u32 inflated;	/* segments by which recovery opened the window */
	bp_u32 expands_until;	/* end of the data sent when the last recovery ended */
	bp_u8 expands;
	bp_u8 state;
	bp_u8 peer;
	bp_u8 silent;		/* episodes without an answer */
};

/* Opens the window up to the receive window. A receive window that shrank takes nothing away. */
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

/* Reno from now on. */
BP_INLINE void bp_do_without(struct bp_law *law)
{
	law->peer = PROBER_PLAIN;
	prober_stop_asking(law);
}

/* The capability check of Peach, section III-A. */
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

/* One segment, then copies; with a plain receiver one segment, then slow start. */
BP_INLINE void prober_start_over(struct bp_law *law, const struct bp_path *path)
{
	prober_begin_episode(law, path);
	law->now.cwnd = BP_ONE;
	law->ignored = 0;
	law->inflated = 0;
	law->state = law->peer == PROBER_PLAIN ? PROBER_AVOIDS : PROBER_ARMED;
}

/* What recovery added to the window is taken back. */
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

/* How many copies may leave with data that leaves now. In a start no more than data is left to send. */
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

/* So many copies leave now. */
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

/* Copies came through. */
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

/* This ACK belongs to the window expanding period (Swift, Fig. 3: ACK <= swift_wep_recv). */
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
	/* Never more than a segment for an ACK: the window is one segment when the hole of a timeout is filled. */
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
	/* Data has been acknowledged, and no program copied it: none stands where it leaves. */
	if (law->state == PROBER_ARMED && ack->acked && path->now >= unserved)
		bp_do_without(law);
	if (law->state == PROBER_RECOVERS && ack->phase == BP_RECOVERY) {
		prober_recover(law, ack, path);
	} else {
		/* Also where a loss was repaired before it was detected, by a tail loss probe. */
		if (law->state == PROBER_RECOVERS)
			prober_leave(law);
		prober_grow(law, ack, path);
	}
	prober_take_answers(law, ack->answers, path);
}

/* RFC 5681: what recovery with copies replaces. */
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
		/* Congestion is known: there is nothing to ask, and nothing is missing. */
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
		/* Peach, equation (4): pairs stay whole. */
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

/* The window is back already, so that the answers of this episode must not open it once more. The next one sets its own number. */
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

/* The data of a start is spread over the round trip, and its copies with it. */
BP_INLINE bp_u64 bp_pace(const struct bp_law *law, const struct bp_path *path)
{
	bp_u64 rate = bp_rate(law->now.cwnd, path);

	return law->state == PROBER_STARTS ? rate + rate / 5 : 0;
}

#endif
