/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Minimum over a sliding time window, in constant memory (as in the kernel's lib/minmax.c). */
#ifndef BP_WINDOWED_H
#define BP_WINDOWED_H

struct bp_sample {
	bp_u64 at;		/* time of the value, us */
	bp_u32 value;
	bp_u32 known;
};

/* Best value first, newest value last. For a maximum, store complements of the values. */
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

/* Adds a new value and discards values older than the window. */
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
