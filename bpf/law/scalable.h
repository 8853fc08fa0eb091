/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Scalable TCP: growth and reduction in proportion to the window.
 *
 * T. Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM SIGCOMM CCR 33(2), 2003.
 */
#include "law.h"

/* Largest window (in segments) at which Reno's law applies. */
#define SCALABLE_LEGACY BP_SEGMENTS(16)

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
};

BP_INLINE void scalable_avoid(struct bp_law *law, bp_u32 acked)
{
	if (law->now.cwnd <= SCALABLE_LEGACY)
		law->now.cwnd += bp_divide(BP_SEGMENTS(acked), law->now.cwnd);
	else
		law->now.cwnd += BP_SEGMENTS(acked) / 100;
}

BP_INLINE bp_window scalable_reduce(const struct bp_law *law, const struct bp_loss *loss)
{
	bp_window flight = BP_MIN(BP_SEGMENTS(loss->outstanding), law->now.cwnd);

	return law->now.cwnd <= SCALABLE_LEGACY ? flight / 2 : flight - flight / 8;
}

#define BP_AVOID(law, ack, acked, path) scalable_avoid(law, acked)
#define BP_REDUCE(law, loss, path) scalable_reduce(law, loss)
#include "classic.h"
