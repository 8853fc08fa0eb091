/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* CUBIC's curve (RFC 9438): 0.4 for C and 0.7 for beta. */
#ifndef BP_CUBIC_H
#define BP_CUBIC_H

struct bp_cubic {
	bp_window most;		/* W_max */
	bp_u64 since;		/* the last reduction, us */
	bp_u64 until_most;	/* K, us */
	bp_u64 root;		/* that is being found */
};

/* The whole cubic root, bit by bit. It grows in memory: the verifier would follow each value that a register could have. */
BP_INLINE bp_u64 bp_cubic_root(struct bp_cubic *cubic, bp_u64 value)
{
	bp_u64 more;
	bp_u32 turn;

	cubic->root = 0;
	for (turn = 0; turn < 21; turn++) {
		more = *(volatile bp_u64 *)&cubic->root | 1ULL << (20 - turn);
		if (more * more * more <= value)
			*(volatile bp_u64 *)&cubic->root = more;
	}
	return cubic->root;
}

/* A curve that begins on its plateau. */
BP_INLINE void bp_cubic_begin(struct bp_cubic *cubic, bp_u64 now, bp_window window)
{
	cubic->most = window;
	cubic->since = now;
	cubic->until_most = 0;
}

/* A stage begins now at this window: K follows from the distance to W_max (section 4.2). */
BP_APART bp_cubic_aim(struct bp_cubic *cubic, bp_u64 now, bp_window window)
{
	bp_u64 apart;
	bp_u32 shift = 8;

	if (!cubic)
		return 0;
	/* A window beyond W_max is the plateau itself. */
	cubic->most = BP_MAX(cubic->most, window);
	cubic->since = now;
	/* The cubic root of apart / 0.4 in seconds, with as many fractional bits as fit: the root of the 24 of a window has eight. */
	apart = BP_MIN(cubic->most - window, BP_LARGEST) * 5 / 2;
	for (; apart && apart < 1ULL << 60; shift++)
		apart <<= 3;
	cubic->until_most = bp_cubic_root(cubic, apart) * 1000000 >> shift;
	return 0;
}

/* W_max of the next stage after a reduction of this window, with fast convergence (section 4.7). */
BP_INLINE bp_window bp_cubic_next_most(bp_window window, bp_window most)
{
	return window < most ? window / 20 * 17 : window;
}

/* The window falls from one value to another, and a stage begins. */
BP_APART bp_cubic_reduce(struct bp_cubic *cubic, bp_u64 now, bp_window from, bp_window to)
{
	if (!cubic)
		return 0;
	cubic->most = bp_cubic_next_most(from, cubic->most);
	bp_cubic_aim(cubic, now, to);
	return 0;
}

/* W_cubic at a time, at least 0. */
BP_INLINE bp_window bp_cubic_at(const struct bp_cubic *cubic, bp_u64 at)
{
	bp_u64 ahead = at - cubic->since, behind = cubic->until_most, apart;
	bp_u32 shift = 0;

	/* The cube of the us, of their 21 leading bits, and its 0.4 segments: 10^18 / (0.4 2^24) cubic us are a unit of windows. */
	apart = ahead > behind ? ahead - behind : behind - ahead;
	apart = BP_MIN(apart, 1ULL << 30);
	for (; apart >> 21; shift += 3)
		apart >>= 1;
	apart = apart * apart * apart / 149011611938ULL << shift;
	return ahead > behind ? cubic->most + apart : BP_MAX(cubic->most, apart) - apart;
}

/* The window after this number of segments on the way to the value of the curve at that time. */
BP_INLINE bp_window bp_cubic_grow(const struct bp_cubic *cubic, bp_u64 at, bp_window window, bp_u32 segments)
{
	bp_window wanted = bp_cubic_at(cubic, at);

	window = BP_MAX(window, BP_ONE);
	wanted = BP_MIN(BP_MAX(wanted, window), window + window / 2);
	return BP_MIN(window + segments * (((wanted - window) << 16) / (window >> 8)), BP_LARGEST);
}

#endif
