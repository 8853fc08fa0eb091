/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * HighSpeed TCP: with a large window, the window grows faster and shrinks less at a loss.
 *
 * S. Floyd, "HighSpeed TCP for Large Congestion Windows", RFC 3649, 2003. The law is the table of appendix B, since integer
 * arithmetic has no logarithm.
 */
#include "law.h"

#define HIGHSPEED_ROWS 73

/*
 * Parameters for windows up to `window` segments: growth by row + 1 segments per round trip, and the reduction at a loss in
 * hundredths.
 */
struct highspeed_row {
	bp_u32 reach;
	bp_u32 decrease;
};

/* 128 rows, so that every index of seven bits is valid. */
static const struct highspeed_row highspeed_table[128] = {
	{ 38, 50 }, { 118, 44 }, { 221, 41 }, { 347, 38 }, { 495, 37 }, { 663, 35 }, { 851, 34 }, { 1058, 33 },
	{ 1284, 32 }, { 1529, 31 }, { 1793, 30 }, { 2076, 29 }, { 2378, 28 }, { 2699, 28 }, { 3039, 27 }, { 3399, 27 },
	{ 3778, 26 }, { 4177, 26 }, { 4596, 25 }, { 5036, 25 }, { 5497, 24 }, { 5979, 24 }, { 6483, 23 }, { 7009, 23 },
	{ 7558, 22 }, { 8130, 22 }, { 8726, 22 }, { 9346, 21 }, { 9991, 21 }, { 10661, 21 }, { 11358, 20 }, { 12082, 20 },
	{ 12834, 20 }, { 13614, 19 }, { 14424, 19 }, { 15265, 19 }, { 16137, 19 }, { 17042, 18 }, { 17981, 18 }, { 18955, 18 },
	{ 19965, 17 }, { 21013, 17 }, { 22101, 17 }, { 23230, 17 }, { 24402, 16 }, { 25618, 16 }, { 26881, 16 }, { 28193, 16 },
	{ 29557, 15 }, { 30975, 15 }, { 32450, 15 }, { 33986, 15 }, { 35586, 14 }, { 37253, 14 }, { 38992, 14 }, { 40808, 14 },
	{ 42707, 13 }, { 44694, 13 }, { 46776, 13 }, { 48961, 13 }, { 51258, 13 }, { 53677, 12 }, { 56230, 12 }, { 58932, 12 },
	{ 61799, 12 }, { 64851, 11 }, { 68113, 11 }, { 71617, 11 }, { 75401, 10 }, { 79517, 10 }, { 84035, 10 }, { 89053, 10 },
	{ 94717, 9 },
};

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
};

/* Returns the first row that covers the window, or the last row for windows beyond the table. */
BP_INLINE bp_u32 highspeed_row(bp_window window)
{
	bp_u32 low = 0, high = HIGHSPEED_ROWS - 1, middle, step;

	for (step = 0; step < 7; step++) {
		middle = ((low + high) / 2) & 127;
		if (low < high && BP_SEGMENTS(highspeed_table[middle].reach) < window)
			low = middle + 1;
		else if (low < high)
			high = middle;
	}
	return low & 127;
}

BP_INLINE void highspeed_avoid(struct bp_law *law, bp_u32 acked)
{
	bp_u32 increase = highspeed_row(law->now.cwnd & ~(BP_ONE - 1)) + 1;

	law->now.cwnd += bp_divide(BP_SEGMENTS(acked) * increase, law->now.cwnd);
}

BP_INLINE bp_window highspeed_reduce(const struct bp_law *law, const struct bp_loss *loss)
{
	bp_window flight = BP_MIN(BP_SEGMENTS(loss->outstanding), law->now.cwnd);

	return flight * (100 - highspeed_table[highspeed_row(law->now.cwnd)].decrease) / 100;
}

#define BP_AVOID(law, ack, acked, path) highspeed_avoid(law, acked)
#define BP_REDUCE(law, loss, path) highspeed_reduce(law, loss)
#include "classic.h"
