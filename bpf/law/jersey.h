/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP Jersey: congested routers mark all packets. A loss without an ECN mark counts as a transmission error and does not reduce
 * the window.
 *
 * K. Xu, Y. Tian, N. Ansari, "TCP-Jersey for Wireless IP Communications", IEEE JSAC 22(4), 2004. The kernel requests ECN in the
 * handshake for this control. If the peer refuses and no mark was ever seen, a loss halves the window as in Reno.
 */
#include "law.h"
#include "bandwidth.h"

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	struct bp_sliding sliding;
	bp_u64 warned;		/* time of the last mark, us; 0 for never */
};

/* R RTT / segment size. */
BP_INLINE bp_window jersey_optimal(const struct bp_law *law, const struct bp_path *path)
{
	return bp_pipe(law->sliding.rate, path->srtt ? path->srtt : BP_UNKNOWN, path->mss);
}

BP_INLINE void jersey_observe(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	if (ack->ecn_echo)
		law->warned = path->now;
	bp_sliding_on_ack(&law->sliding, path->now, ack->delivered * path->mss, path->srtt);
}

BP_INLINE void jersey_lose(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	bp_window optimal = BP_MAX(jersey_optimal(law, path), BP_SEGMENTS(2));
	int recent = law->warned && path->now - law->warned <= path->srtt;

	if (loss->cause == BP_MARKED || recent) {
		law->now.ssthresh = optimal;
		law->now.cwnd = BP_MIN(law->now.cwnd, optimal);
	} else if (!law->warned && !path->ecn) {
		optimal = BP_MIN(BP_SEGMENTS(loss->outstanding), law->now.cwnd) / 2;
		law->now.ssthresh = BP_MAX(optimal, BP_SEGMENTS(2));
		law->now.cwnd = BP_MIN(law->now.cwnd, law->now.ssthresh);
	}
	if (loss->cause == BP_MARKED)
		law->warned = path->now;
}

#define BP_ESTABLISHED(law, path) ((law)->sliding.gaps.since = (path)->now)
#define BP_OBSERVE(law, ack, path) jersey_observe(law, ack, path)
#define BP_LOSE(law, loss, path) jersey_lose(law, loss, path)
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) jersey_optimal(law, path)
#define BP_IDLE(law, path) ((law)->sliding.gaps.resting = 1)
#include "classic.h"
