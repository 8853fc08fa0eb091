/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP-J: the available bandwidth, estimated from the stream of ACKs, sets threshold and window after a loss.
 *
 * K. Sato, Y. Kunishi, F. Teraoka, IPSJ Journal 43(12), 2002; formulas as in H. Obata, K. Ishida, S. Takeuchi, S. Hanasaki,
 * "TCP-STAR: TCP Congestion Control Method for Satellite Internet", IEICE Trans. Commun. E89-B(6), 2006.
 */
#include "law.h"
#include "bandwidth.h"

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	struct bp_abe abe;
};

BP_INLINE bp_window tcp_j_pipe(const struct bp_law *law, const struct bp_path *path)
{
	return bp_pipe(law->abe.rate, path->min_rtt, path->mss);
}

/* Reduces window and threshold at a loss. In slow start only the threshold changes. The window is never raised. */
BP_INLINE void tcp_j_lose(struct bp_law *law, const struct bp_path *path)
{
	bp_window pipe = BP_MAX(tcp_j_pipe(law, path), BP_SEGMENTS(2));

	if (law->now.cwnd >= law->now.ssthresh)
		law->now.cwnd = BP_MIN(law->now.cwnd, pipe);
	law->now.ssthresh = pipe;
}

#define BP_ESTABLISHED(law, path) ((law)->abe.gaps.since = (path)->now)
#define BP_OBSERVE(law, ack, path) bp_abe_on_ack(&(law)->abe, (path)->now, (ack)->delivered * (path)->mss)
#define BP_LOSE(law, loss, path) tcp_j_lose(law, path)
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) tcp_j_pipe(law, path)
#define BP_IDLE(law, path) ((law)->abe.gaps.resting = 1)
#include "classic.h"
