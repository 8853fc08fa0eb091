/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP Hybla: the throughput of a reference connection with a round-trip time of 25 ms, at any round-trip time.
 *
 * C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International Journal of Satellite
 * Communications and Networking 22(5), 2004. Slow start adds 2^rho - 1 segments per segment acknowledged, congestion avoidance
 * rho^2 / W, with rho = RTT / 25 ms. The spacing of the first three ACKs gives an estimate of the bottleneck's rate, which sets
 * the initial threshold. Segments are paced at W / RTT. Without both measures, a single ACK at 600 ms would open the window to
 * its limit and cause a burst.
 */
#include "law.h"

/* The round-trip time of the reference connection, us. */
#define HYBLA_RTT0 25000
/* Slow-start threshold of the reference connection if there is no estimate, segments. */
#define HYBLA_GAMMA 32
/* Segments sent back to back for the estimate. */
#define HYBLA_TRAIN 3
/* Limit of the exponent: above 2^16 segments per ACK a larger number makes no difference. */
#define HYBLA_LARGEST_EXPONENT (16U << 16)

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	bp_window step;		/* 2^rho - 1 */
	bp_u64 arrived;		/* arrival time of the last ACK of the train, us; 0 before the first */
	bp_u32 rho;		/* 16 fractional bits */
	bp_u32 min_srtt;	/* us; used instead of the current RTT, so that queueing does not accelerate the sender */
	bp_u32 end;		/* first sequence number after the train */
	bp_u32 gap;		/* mean spacing of the ACKs of the train, sixteenths of a us; 0 without a measurement */
	bp_u8 pending;		/* the estimate has not been made yet */
};

/* 2^x - 1 for x with 16 fractional bits; relative error below 2e-4. */
BP_INLINE bp_window hybla_power(bp_u32 x)
{
	bp_u64 f, p;

	x = BP_MIN(x, HYBLA_LARGEST_EXPONENT);
	f = x & 0xffff;
	/* 2^f = 1 + 0.695502 f + 0.227646 f^2 + 0.076852 f^3 for 0 <= f < 1; coefficients with 24 fractional bits. */
	p = (1289358ULL * f) >> 16;
	p = ((3819265ULL + p) * f) >> 16;
	p = ((11668593ULL + p) * f) >> 16;
	return ((BP_ONE + p) << (x >> 16)) - BP_ONE;
}

BP_INLINE void hybla_rescale(struct bp_law *law, const struct bp_path *path)
{
	bp_u64 rho;

	if (!path->srtt || path->srtt >= law->min_srtt)
		return;
	law->min_srtt = path->srtt;
	rho = ((bp_u64)path->srtt << 16) / HYBLA_RTT0;
	law->rho = BP_MIN(BP_MAX(rho, 1ULL << 16), 1ULL << 26);
	law->step = hybla_power(law->rho);
}

BP_INLINE void hybla_established(struct bp_law *law, const struct bp_path *path)
{
	bp_window threshold;

	law->min_srtt = BP_UNKNOWN;
	law->rho = 1 << 16;
	law->step = BP_ONE;
	law->pending = 1;
	law->end = path->nxt + HYBLA_TRAIN * path->mss;
	hybla_rescale(law, path);
	law->now.cwnd = (bp_window)law->rho << (BP_SHIFT - 16);
	threshold = ((bp_window)law->rho * HYBLA_GAMMA) << (BP_SHIFT - 16);
	law->now.ssthresh = BP_MAX(BP_MIN(threshold, BP_SEGMENTS(path->receive_window)), BP_SEGMENTS(2));
}

/* Sets the initial threshold to the bottleneck's rate times the minRTT (Hoe's estimate). */
BP_INLINE void hybla_measure(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u64 segments;
	bp_u32 gap, rtt;

	if (ack->acked && !bp_after(path->una, law->end)) {
		if (law->arrived && path->now > law->arrived) {
			gap = (bp_u32)BP_MIN((path->now - law->arrived) << 4, 1ULL << 31) / ack->acked;
			/* A train of three segments has two gaps, whose median is their mean. */
			law->gap = law->gap && gap ? (law->gap + gap) / 2 : law->gap + gap;
		}
		law->arrived = path->now;
	}
	if (bp_after(law->end, path->una) && ack->phase == BP_OPEN)
		return;
	law->pending = 0;
	if (!law->gap)
		return;
	rtt = BP_MIN(path->min_rtt, path->srtt);
	segments = ((bp_u64)rtt << (BP_SHIFT + 4)) / law->gap;
	segments = BP_MIN(segments, BP_SEGMENTS(path->receive_window));
	law->now.ssthresh = BP_MAX(segments, BP_SEGMENTS(2));
}

BP_INLINE void hybla_observe(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	hybla_rescale(law, path);
	if (law->pending)
		hybla_measure(law, ack, path);
}

BP_INLINE void hybla_slow_start(struct bp_law *law, const struct bp_ack *ack, bp_u32 acked)
{
	if (law->pending)
		return;
	if (ack->phase == BP_LOSS)
		law->now.cwnd += BP_SEGMENTS(acked);
	else
		law->now.cwnd = BP_MIN(law->now.cwnd + acked * law->step, law->now.ssthresh);
}

BP_INLINE void hybla_avoid(struct bp_law *law, const struct bp_ack *ack, bp_u32 acked)
{
	bp_u64 square = ((bp_u64)law->rho * law->rho) >> (32 - BP_SHIFT);

	if (ack->phase == BP_LOSS)
		square = BP_ONE;
	law->now.cwnd += bp_divide(BP_MIN(square * BP_MIN(acked, 1U << 10), (1ULL << 56) - 1), law->now.cwnd);
}

#define BP_ESTABLISHED(law, path) hybla_established(law, path)
#define BP_OBSERVE(law, ack, path) hybla_observe(law, ack, path)
#define BP_SLOW_START(law, ack, acked, path) hybla_slow_start(law, ack, acked)
#define BP_AVOID(law, ack, acked, path) hybla_avoid(law, ack, acked)
#define BP_PACE(law, path) bp_rate((law)->now.cwnd, path)
#define BP_SPACES_WINDOW 1
#include "classic.h"
