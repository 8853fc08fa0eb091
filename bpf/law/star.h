/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP-STAR: the estimated bandwidth-delay product raises Reno's window, and a loss sets the window to it.
 *
 * H. Obata, K. Ishida, S. Takeuchi, S. Hanasaki, "TCP-STAR: TCP Congestion Control Method for Satellite Internet", IEICE Trans.
 * Commun. E89-B(6), 2006. This header implements Lift Window Control and Congestion Window Setting. It leaves out
 * Acknowledgement Error Notification, since a control of the kernel cannot send a probe at a timeout. The kernel's F-RTO (RFC
 * 5682) undoes spurious timeouts instead.
 */
#include "law.h"
#include "bandwidth.h"

struct bp_law {
	struct bp_windows now;	/* cwnd is that of the paper */
	bp_window reno;		/* the Reno component of the window */
	struct bp_windows before;
	bp_window reno_before;
	struct bp_abe abe;
	bp_u32 held;		/* first sequence number whose ACK may lift the window again */
	bp_u8 holds;
};

/* Bandwidth-delay product, equation (5). */
BP_INLINE bp_window star_pipe(const struct bp_law *law, const struct bp_path *path)
{
	return bp_pipe(law->abe.rate, path->min_rtt, path->mss);
}

/* Threshold of the Reno component. Before the first loss it is the receive window. */
BP_INLINE bp_window star_threshold(const struct bp_law *law, const struct bp_path *path)
{
	return law->now.ssthresh < BP_NO_THRESHOLD ? law->now.ssthresh : BP_SEGMENTS(path->receive_window);
}

BP_INLINE void bp_established(struct bp_law *law, bp_window initial, const struct bp_path *path)
{
	law->now.cwnd = initial;
	law->now.ssthresh = BP_NO_THRESHOLD;
	law->reno = initial;
	law->abe.gaps.since = path->now;
}

BP_INLINE void bp_on_ack(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_window lift = 0;

	bp_abe_on_ack(&law->abe, path->now, ack->delivered * path->mss);
	if (!ack->acked || ack->phase == BP_RECOVERY || !ack->window_limited)
		return;
	/* Figure 3: the Reno component counts ACKs. */
	if (law->reno < star_threshold(law, path))
		law->reno += BP_ONE;
	else
		law->reno += bp_divide(BP_ONE, law->reno);
	law->reno = BP_MIN(law->reno, BP_LARGEST);
	/* Lift Window Control, equation (4). */
	if (law->holds && bp_after(path->una, law->held))
		law->holds = 0;
	if (!law->holds)
		lift = BP_MIN(star_pipe(law, path), BP_SEGMENTS(path->receive_window));
	law->now.cwnd = BP_MIN(law->reno + lift, BP_LARGEST);
}

BP_INLINE void star_remember(struct bp_law *law)
{
	law->before = law->now;
	law->reno_before = law->reno;
}

/* Congestion Window Setting, Figure 1. */
BP_INLINE void bp_on_loss(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	bp_window pipe = BP_MAX(star_pipe(law, path), BP_SEGMENTS(2));

	star_remember(law);
	if (law->now.cwnd >= star_threshold(law, path))
		law->now.cwnd = pipe;
	law->reno = BP_MAX(law->reno / 2, BP_ONE);
	law->now.ssthresh = pipe;
}

/* Case (I) of section 3.3: the data is lost, and the network counts as congested. */
BP_INLINE void bp_on_timeout(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	if (loss->consecutive == 1) {
		star_remember(law);
		law->now.ssthresh = BP_MAX(star_pipe(law, path), BP_SEGMENTS(2));
		law->held = path->nxt;
		law->holds = 1;
	}
	law->reno = BP_ONE;
	law->now.cwnd = BP_ONE;
}

BP_INLINE void bp_on_undo(struct bp_law *law)
{
	if (!law->before.cwnd)
		return;
	law->now.cwnd = BP_MAX(law->now.cwnd, law->before.cwnd);
	law->now.ssthresh = BP_MAX(law->now.ssthresh, law->before.ssthresh);
	law->reno = BP_MAX(law->reno, law->reno_before);
	law->holds = 0;
	law->before.cwnd = 0;
}

/* Does not lift the window for one round trip, because the bandwidth estimate is old. */
BP_INLINE void bp_on_idle(struct bp_law *law, bp_window restart, const struct bp_path *path)
{
	law->abe.gaps.resting = 1;
	law->reno = BP_MAX(BP_MIN(law->reno, restart), BP_ONE);
	law->now.cwnd = law->reno;
	law->held = path->nxt + (bp_u32)(restart >> BP_SHIFT) * path->mss;
	law->holds = 1;
}

BP_INLINE bp_window bp_cwnd(const struct bp_law *law)
{
	return BP_MAX(law->now.cwnd, BP_ONE);
}

BP_INLINE bp_window bp_ssthresh(const struct bp_law *law)
{
	return law->now.ssthresh;
}

BP_INLINE bp_u64 bp_pace(const struct bp_law *law, const struct bp_path *path)
{
	return 0;
}
