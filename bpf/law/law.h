/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Inputs and outputs of every window law (congestion-control algorithm), in integers and without types of the kernel.
 *
 * The same header is compiled into the BPF program and, natively, into the tests. The tests compare it with the Rust
 * implementation.
 *
 * Units: time in microseconds, rates in bytes per second, windows in segments with BP_SHIFT fractional bits ("bp_window"),
 * sequence numbers in bytes modulo 2^32.
 */
#ifndef BP_LAW_H
#define BP_LAW_H

typedef unsigned char bp_u8;
typedef unsigned int bp_u32;
typedef unsigned long long bp_u64;

/* Functions are inlined, because BPF does not support calls with more than five arguments. */
#define BP_INLINE static inline __attribute__((always_inline, unused))

/* A random number. The tests replace it by a known sequence. */
#ifdef __bpf__
__attribute__((unused)) static bp_u32 (*bp_random)(void) = (void *)7;
#define BP_RANDOM(n) bp_random()
#endif

/*
 * Functions that are not inlined, so that the verifier checks each of them once. Inlined, they would exceed the verifier's
 * limit on branches. The verifier assumes that their pointer arguments may be null. They must return a number.
 */
#ifdef __bpf__
#define BP_APART __attribute__((noinline)) int
#else
#define BP_APART static __attribute__((unused)) int
#endif

/* A number of segments in fixed-point format: one segment is 2^24. */
typedef bp_u64 bp_window;
#define BP_SHIFT 24
#define BP_ONE (1ULL << BP_SHIFT)
#define BP_SEGMENTS(n) ((bp_window)(n) << BP_SHIFT)
/* Largest window: four million segments, or 6 GB in flight. */
#define BP_LARGEST BP_SEGMENTS(1ULL << 22)
/* Initial slow-start threshold, larger than any window. */
#define BP_NO_THRESHOLD BP_SEGMENTS(0x7fffffffULL)
/* Value of a round-trip time before the first sample. */
#define BP_UNKNOWN 0xffffffffU

/* The recovery state in which an ACK arrives. */
enum bp_phase { BP_OPEN, BP_RECOVERY, BP_LOSS };

/* The reason why a window must shrink. */
enum bp_cause { BP_LOST, BP_MARKED };

/* State of the connection's path at the time of a call. */
struct bp_path {
	bp_u64 now;		/* us */
	bp_u32 mss;		/* payload bytes of a full segment, at least 1 */
	bp_u32 srtt;		/* smoothed round-trip time, us; 0 before the first sample */
	bp_u32 rttvar;		/* mean deviation of the round-trip time, us */
	bp_u32 min_rtt;		/* least round-trip sample, us; BP_UNKNOWN before the first */
	bp_u32 rto;		/* retransmission timeout without back-off, us */
	bp_u32 outstanding;	/* segments sent and not cumulatively acknowledged */
	bp_u32 in_flight;	/* segments believed to be in the network */
	bp_u32 delivered;	/* segments known to have arrived since the connection began, modulo 2^32 */
	bp_u32 receive_window;	/* receive window, whole segments */
	bp_u32 una;		/* first unacknowledged sequence number */
	bp_u32 nxt;		/* next new sequence number */
	bp_u32 unsent;		/* bytes written by the application and never sent */
	bp_u32 peer_clock;	/* the peer's timestamp on the newest segment (RFC 7323) */
	bp_u8 has_peer_clock;	/* the peer sends timestamps */
	bp_u8 ecn;		/* both ends agreed on ECN (RFC 3168) */
	bp_u8 ordinary;		/* no queue on the path distinguishes low priority: copies prove nothing */
};

/* Information from an ACK. */
struct bp_ack {
	bp_u32 acked;		/* segments newly acknowledged cumulatively; 0 for a duplicate */
	bp_u32 delivered;	/* segments newly acknowledged or reported by SACK */
	bp_u32 lost;		/* segments newly marked lost */
	bp_u32 answers;		/* copies reported by this ACK; filled in if BP_PROBES is defined */
	bp_u32 rtt;		/* round-trip sample, us; 0 without one */
	/* The delivery-rate sample; filled in if BP_WANTS_RATE is defined. */
	bp_u32 rate_interval;	/* us; 0 without a sample */
	bp_u32 rate_delivered;	/* segments delivered in that interval */
	bp_u32 prior_delivered;	/* segments delivered before the newest acknowledged segment left */
	bp_u32 tx_in_flight;	/* segments in flight when it left */
	bp_u32 rate_lost;	/* segments marked lost since it left */
	bp_u8 app_limited;	/* the application did not fill the window */
	bp_u8 phase;		/* enum bp_phase; the ACK that ends a loss episode still arrives in that phase */
	bp_u8 ends_episode;	/* this ACK ended the loss episode */
	bp_u8 window_limited;	/* the window, not the application, limited the sender: the window may grow */
	bp_u8 ecn_echo;		/* the receiver echoed an ECN mark */
};

/* Information about the start of a loss episode or an expiry of the retransmission timer. */
struct bp_loss {
	bp_u32 outstanding;	/* segments outstanding before the detection */
	bp_u32 consecutive;	/* consecutive expiries of the timer; 0 for a loss detected otherwise */
	bp_u8 cause;		/* enum bp_cause */
};

/* Congestion window and slow-start threshold. */
struct bp_windows {
	bp_window cwnd;
	bp_window ssthresh;
};

#define BP_MIN(a, b) ((a) < (b) ? (a) : (b))
#define BP_MAX(a, b) ((a) > (b) ? (a) : (b))

/* True if sequence number a comes after b. */
BP_INLINE int bp_after(bp_u32 a, bp_u32 b)
{
	return (bp_u32)(b - a) > 0x7fffffffU;
}

/* a / b for two windows, as a window; a is below 2^56. Below 2^16 segments the result is exact. */
BP_INLINE bp_window bp_divide(bp_u64 a, bp_window b)
{
	if (b < BP_ONE)
		b = BP_ONE;
	if (a < 1ULL << 40)
		return (a << BP_SHIFT) / b;
	return (a / (b >> 12)) << 12;
}

/*
 * A rate in bytes per second with 8 fractional bits. Whole bytes would stop a slowly converging filter on a slow path through
 * rounding.
 */
typedef bp_u64 bp_fine_rate;
#define BP_FASTEST (1ULL << 42)

/* Bandwidth-delay product of a rate and a round trip of rtt microseconds; 0 while the round trip is unknown. */
BP_INLINE bp_window bp_pipe(bp_fine_rate rate, bp_u32 rtt, bp_u32 mss)
{
	bp_u64 bytes;

	if (rtt == BP_UNKNOWN || !mss)
		return 0;
	rate = BP_MIN(rate, BP_FASTEST);
	rtt = BP_MIN(rtt, 1U << 26);
	/* Computed with 8 fractional bits. Quotient and remainder are multiplied separately, so that no product exceeds 64 bits. */
	bytes = rate / 1000000 * rtt + rate % 1000000 * rtt / 1000000;
	bytes = BP_MIN(bytes, (1ULL << 47) - 1);
	return BP_MIN((bytes << (BP_SHIFT - 8)) / mss, BP_LARGEST);
}

/* Rate in bytes per second of one window per smoothed RTT; 0 before the first round-trip sample. */
BP_INLINE bp_u64 bp_rate(bp_window window, const struct bp_path *path)
{
	bp_u64 bytes = ((BP_MIN(window, BP_LARGEST) >> 8) * path->mss) >> 16;	/* below 2^38 */

	return path->srtt ? bytes * 1000000 / path->srtt : 0;
}

#endif
