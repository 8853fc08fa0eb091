/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* The least of the values of a time that slides, in constant room (the kernel's lib/minmax.c has the same idea). */
#ifndef BP_WINDOWED_H
#define BP_WINDOWED_H

struct bp_sample {
	bp_u64 at;		/* us */
	bp_u32 value;
	bp_u32 known;
};

/* Best first, youngest last. For the greatest, give the complements. */
struct bp_windowed {
	struct bp_sample best[3];
};

BP_INLINE void bp_windowed_reset(struct bp_windowed *least, bp_u64 now, bp_u32 value)
{
	struct bp_sample sample = { now, value, 1 };

	least->best[0] = sample;
	least->best[1] = sample;
	least->best[2] = sample;
}

/* A value seen now; what is older than the window is forgotten. */
BP_APART bp_windowed_update(struct bp_windowed *least, bp_u64 now, bp_u32 value, bp_u64 window)
{
	struct bp_sample *best, sample = { now, value, 1 };

	if (!least)
		return 0;
	best = least->best;
	if (!best[0].known || value <= best[0].value || now - best[2].at > window) {
		bp_windowed_reset(least, now, value);
		return 0;
	}
	if (value <= best[1].value) {
		best[1] = sample;
		best[2] = sample;
	} else if (value <= best[2].value) {
		best[2] = sample;
	}
	if (now - best[0].at > window) {
		best[0] = best[1];
		best[1] = best[2];
		best[2] = sample;
		if (now - best[0].at > window) {
			best[0] = best[1];
			best[1] = best[2];
		}
	} else if (best[1].at == best[0].at && now - best[0].at > window / 4) {
		best[1] = sample;
		best[2] = sample;
	} else if (best[2].at == best[1].at && now - best[0].at > window / 2) {
		best[2] = sample;
	}
	return 0;
}

#endif
