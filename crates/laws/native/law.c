/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* One window law as ordinary functions, for the tests. The build names the law: BP_LAW_HEADER, and BP_LAW as part of an identifier. */
#define SCPS_RATE 1000000
#define BP_RANDOM(n) bp_native_random(n)
unsigned bp_native_random(unsigned n);
#include BP_LAW_HEADER

#define BP_JOIN_(law, what) bp_native_##law##_##what
#define BP_JOIN(law, what) BP_JOIN_(law, what)
#define BP_NATIVE(what) BP_JOIN(BP_LAW, what)

unsigned BP_NATIVE(size)(void)
{
	return sizeof(struct bp_law);
}

void BP_NATIVE(established)(struct bp_law *law, bp_window initial, const struct bp_path *path)
{
	bp_established(law, initial, path);
}

void BP_NATIVE(ack)(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_on_ack(law, ack, path);
}

void BP_NATIVE(loss)(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	bp_on_loss(law, loss, path);
}

void BP_NATIVE(timeout)(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	bp_on_timeout(law, loss, path);
}

void BP_NATIVE(undo)(struct bp_law *law)
{
	bp_on_undo(law);
}

void BP_NATIVE(idle)(struct bp_law *law, bp_window restart, const struct bp_path *path)
{
	bp_on_idle(law, restart, path);
}

void BP_NATIVE(start)(struct bp_law *law, const struct bp_path *path)
{
#ifdef BP_ON_START
	BP_ON_START(law, path);
#endif
}

/* Copies that may leave with data that leaves now; laws without copies have none. */
unsigned BP_NATIVE(may_ask)(struct bp_law *law, const struct bp_path *path)
{
#ifdef BP_PROBES
	return bp_may_ask(law, path);
#else
	return 0;
#endif
}

void BP_NATIVE(asked)(struct bp_law *law, unsigned copies, const struct bp_path *path)
{
#ifdef BP_PROBES
	bp_asked(law, copies, path);
#endif
}

bp_window BP_NATIVE(cwnd)(const struct bp_law *law)
{
	return bp_cwnd(law);
}

bp_window BP_NATIVE(ssthresh)(const struct bp_law *law)
{
	return bp_ssthresh(law);
}

bp_u64 BP_NATIVE(pace)(const struct bp_law *law, const struct bp_path *path)
{
	return bp_pace(law, path);
}
