/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * BBR version 3: a model of the path's bandwidth and minRTT, with bounds learned from losses.
 *
 * N. Cardwell, I. Swett, J. Beshay, "BBR Congestion Control", draft-ietf-ccwg-bbr-05, 2026. Brackets contain names of the
 * draft.
 */
#include "law.h"
#include "windowed.h"
#include "flights.h"

/* Rates in whole bits per second. */
typedef bp_u64 bbr3_rate;
#define BBR3_FASTEST (1ULL << 40)
#define BBR3_NONE (~0ULL)
/* Gains with 16 fractional bits. */
#define BBR3_ONE (1U << 16)
#define BBR3_STARTUP_GAIN 181704U		/* 4 ln 2 */
#define BBR3_DRAIN_GAIN (BBR3_ONE / 2)
#define BBR3_CWND_GAIN (2 * BBR3_ONE)
#define BBR3_UP_GAIN (BBR3_ONE + BBR3_ONE / 4)
#define BBR3_UP_CWND_GAIN (2 * BBR3_ONE + BBR3_ONE / 4)
#define BBR3_MIN_WINDOW BP_SEGMENTS(4)
#define BBR3_MIN_RTT_LEN 10000000ULL		/* [MinRTTFilterLen], us */
#define BBR3_PROBE_RTT_INTERVAL 5000000ULL
#define BBR3_PROBE_RTT 200000ULL
#define BBR3_PROBE_WAIT 2000000ULL
#define BBR3_RENO_ROUNDS 63
#define BBR3_STARTUP_LOSSES 6
#define BBR3_EXTRA_ACKED_ROUNDS 10
#define BBR3_DRAIN_ROUNDS 3
#define BBR3_PLATEAU_ROUNDS 3

enum bbr3_state {
	BBR3_STARTUP, BBR3_DRAIN, BBR3_DOWN, BBR3_CRUISE, BBR3_REFILL, BBR3_UP,
	BBR3_EMPTY_FOR_RTT,	/* waits until at most the small window is in flight */
	BBR3_PROBES_RTT,
};
/* Relation of the arriving ACKs to the probe for bandwidth. */
enum bbr3_ack_phase { BBR3_INIT, BBR3_REFILLING, BBR3_PROBE_STARTING, BBR3_PROBE_FEEDBACK, BBR3_PROBE_STOPPING };

struct bp_law {
	struct bp_flights flights;	/* data in flight when segments left, recorded by the program */
	bp_window cwnd;
	bp_window prior_cwnd;
	bp_window initial;
	bp_window most_quantum;		/* 64 KiB, but at least two segments */
	bp_window longterm;		/* [inflight_longterm]; BBR3_NONE for none */
	bp_window inflight;		/* [inflight_shortterm] */
	bbr3_rate bound;		/* [bw_shortterm] */
	bbr3_rate bw_before;		/* largest rates of the previous cycle and of this one */
	bbr3_rate bw_now;
	bbr3_rate bandwidth;
	bbr3_rate pacing;
	bbr3_rate latest_bw;		/* rate of the last round trip */
	bbr3_rate plateau;		/* highest rate so far; a rate above it by a quarter counts as growth */
	bp_window undo_longterm;
	bp_window undo_inflight;
	bbr3_rate undo_bound;
	bp_window slope_acks;
	bp_window slope_per_segment;
	bp_u64 min_at;			/* us, like all times here */
	bp_u64 recent_at;
	bp_u64 probe_rtt_until;
	bp_u64 cycle_since;
	bp_u64 cycle_wait;
	bp_u64 aggregate_since;
	struct bp_windowed extra;	/* complements of the bytes acknowledged beyond the bandwidth, 10 fractional bits */
	/* The ACK being processed. */
	bp_u64 now;
	bbr3_rate rate;
	bp_u32 volume;
	bp_u32 newly;
	bp_u32 lost;
	bp_u32 tx_in_flight;
	bp_u32 in_flight;
	bp_u32 delivered;		/* segments delivered on the connection, modulo 2^32 */
	bp_u32 new_losses;
	bp_u32 rtt;
	bp_u32 mss;
	/* The model of the path. */
	bp_u32 min_rtt;
	bp_u32 recent_rtt;
	bp_u32 latest_volume;		/* segments delivered in the last round trip */
	bp_u32 loss_events;
	bp_u32 latest_mark;
	bp_u32 mark;
	bp_u32 rounds;
	bp_u32 drain_since;		/* round in which Drain began */
	bp_u32 cycle_rounds;
	bp_u32 cycles;
	bp_u32 slope_rounds;
	bp_u32 plateau_rounds;
	bp_u32 aggregated;
	bp_u32 limited_until;
	bp_u32 delivered_at_start;
	bp_u8 state;
	bp_u8 undo_state;
	bp_u8 can_undo;
	bp_u8 ack_phase;
	bp_u8 filled;
	bp_u8 in_recovery;
	bp_u8 loss_in_round;
	bp_u8 probe_samples;
	bp_u8 idle_restart;
	bp_u8 round_done;
	bp_u8 round_start;
	bp_u8 latest_start;
	bp_u8 app_limited;
	bp_u8 window_limited;
	bp_u8 ack_in_recovery;
};

BP_INLINE bbr3_rate bbr3_max_bw(const struct bp_law *law)
{
	return BP_MAX(law->bw_before, law->bw_now);
}

BP_INLINE int bbr3_in_probe_rtt(const struct bp_law *law)
{
	return law->state >= BBR3_EMPTY_FOR_RTT;
}

BP_INLINE int bbr3_in_probe_bw(const struct bp_law *law)
{
	return law->state >= BBR3_DOWN && law->state <= BBR3_UP;
}

/* a >= b for counts of delivered segments, modulo 2^32. */
BP_INLINE int bbr3_reached(bp_u32 a, bp_u32 b)
{
	return !bp_after(b, a);
}

/* Data delivered at a rate during a time, multiplied by a gain. */
BP_INLINE bp_window bbr3_fills(const struct bp_law *law, bbr3_rate rate, bp_u32 us, bp_u32 gain)
{
	bp_window volume;
	bp_u64 bits;

	us = BP_MIN(us, 1U << 26);
	/* Computed with 8 fractional bits. Quotient and remainder are multiplied separately, so that no product exceeds 64 bits. */
	bits = (rate / 1000000 * us << 8) + (rate % 1000000 * us << 8) / 1000000;
	bits = BP_MIN(bits, (1ULL << 48) - 1);
	volume = (bits << 16) / (8 * BP_MAX(law->mss, 1U));
	return (BP_MIN(volume, BP_LARGEST) >> 4) * gain >> 12;
}

/* [BBRBDPMultiple] */
BP_INLINE bp_window bbr3_bdp_at(const struct bp_law *law, bbr3_rate rate, bp_u32 gain)
{
	return law->min_rtt == BP_UNKNOWN ? law->initial : bbr3_fills(law, rate, law->min_rtt, gain);
}

BP_INLINE bp_window bbr3_bdp(const struct bp_law *law, bp_u32 gain)
{
	return bbr3_bdp_at(law, law->bandwidth, gain);
}

/* [BBRQuantizationBudget]: at least three send quanta. A quantum is a millisecond of data, between two segments and 64 KiB. */
BP_INLINE bp_window bbr3_quantized(const struct bp_law *law, bp_window volume)
{
	bp_window quantum = ((law->pacing << (BP_SHIFT - 4)) / (8000ULL * BP_MAX(law->mss, 1U))) << 4;

	quantum = BP_MIN(BP_MAX(quantum, BP_SEGMENTS(2)), law->most_quantum);
	volume = BP_MAX(BP_MAX(volume, 3 * quantum), BBR3_MIN_WINDOW);
	return law->state == BBR3_UP ? volume + BP_SEGMENTS(2) : volume;
}

/* [BBRInflight] */
BP_INLINE bp_window bbr3_inflight(const struct bp_law *law, bbr3_rate rate)
{
	return bbr3_quantized(law, bbr3_bdp_at(law, rate, BBR3_ONE));
}

/* [BBRTargetInflight] */
BP_INLINE bp_window bbr3_target(const struct bp_law *law)
{
	bp_window bdp = bbr3_bdp(law, BBR3_ONE);

	return BP_MIN(bdp, law->cwnd);
}

BP_INLINE bp_window bbr3_with_headroom(const struct bp_law *law)
{
	bp_window room;

	if (law->longterm == BBR3_NONE)
		return BBR3_NONE;
	room = BP_MAX(law->longterm * 3 / 20, BP_ONE);
	return BP_MAX(law->longterm, room + BBR3_MIN_WINDOW) - room;
}

BP_INLINE bp_window bbr3_probe_rtt_window(const struct bp_law *law)
{
	bp_window half = bbr3_bdp(law, BBR3_ONE / 2);

	return BP_MAX(half, BBR3_MIN_WINDOW);
}

BP_INLINE void bbr3_save_cwnd(struct bp_law *law)
{
	if (!law->in_recovery && !bbr3_in_probe_rtt(law))
		law->prior_cwnd = law->cwnd;
	else
		law->prior_cwnd = BP_MAX(law->prior_cwnd, law->cwnd);
}

BP_INLINE void bbr3_restore_cwnd(struct bp_law *law)
{
	law->cwnd = BP_MAX(law->cwnd, law->prior_cwnd);
}

/* [BBRSetPacingRateWithGain]: one percent below the bandwidth. Until the pipe is full, the rate only grows. */
BP_INLINE void bbr3_set_pacing(struct bp_law *law, bp_u32 gain)
{
	bbr3_rate rate = (law->bandwidth * gain >> 16) * 99 / 100;

	if (rate && (law->filled || rate > law->pacing))
		law->pacing = rate;
}

BP_INLINE void bbr3_no_bounds(struct bp_law *law)
{
	law->bound = BBR3_NONE;
	law->inflight = BBR3_NONE;
}

/* [BBRStartProbeBW_DOWN] */
BP_APART bbr3_start_down(struct bp_law *law)
{
	bp_u32 chance;

	if (!law)
		return 0;
	chance = BP_RANDOM(law->cycles);
	law->cycles++;
	law->loss_in_round = 0;
	law->latest_bw = 0;
	law->latest_volume = 0;
	law->slope_per_segment = BBR3_NONE;
	law->cycle_since = law->now;
	law->cycle_wait = BBR3_PROBE_WAIT + ((bp_u64)(chance >> 1) * 1000000 >> 31);
	law->cycle_rounds = chance & 1;
	law->ack_phase = BBR3_PROBE_STOPPING;
	law->mark = law->delivered;
	law->state = BBR3_DOWN;
	return 0;
}

/* [BBRRaiseInflightLongtermSlope] */
BP_INLINE void bbr3_raise_slope(struct bp_law *law)
{
	bp_window share = law->cwnd >> (law->slope_rounds & 31);

	law->slope_rounds = BP_MIN(law->slope_rounds + 1, 30U);
	law->slope_per_segment = BP_MAX(share, BP_ONE);
}

BP_INLINE void bbr3_plateau_above(struct bp_law *law, bbr3_rate rate)
{
	law->plateau = rate;
	law->plateau_rounds = 0;
}

/* [BBRStartProbeBW_UP] */
BP_INLINE void bbr3_start_up(struct bp_law *law, bbr3_rate rate)
{
	law->ack_phase = BBR3_PROBE_STARTING;
	law->mark = law->delivered;
	bbr3_plateau_above(law, rate);
	law->state = BBR3_UP;
	bbr3_raise_slope(law);
}

/* True if more than two percent of the data was lost. */
BP_INLINE int bbr3_is_too_high(const struct bp_law *law)
{
	return 50ULL * law->lost > law->tx_in_flight;
}

BP_INLINE void bbr3_note_loss(struct bp_law *law)
{
	if (!law->loss_in_round) {
		law->latest_mark = law->delivered;
		law->can_undo = 1;
		law->undo_state = law->state;
		law->undo_bound = law->bound;
		law->undo_inflight = law->inflight;
		law->undo_longterm = law->longterm;
	}
	law->loss_in_round = 1;
}

/* [BBRHandleLostPacket], [BBRHandleInflightTooHigh], once per probe. */
BP_APART bbr3_handle_lost(struct bp_law *law)
{
	bp_u32 before, lost_before;
	bp_window crossed = 0, least;

	if (!law)
		return 0;
	bbr3_note_loss(law);
	if (!law->probe_samples || !bbr3_is_too_high(law))
		return 0;
	law->probe_samples = 0;
	if (!law->app_limited) {
		/* [BBRInflightAtLoss]: the in-flight volume at which the losses exceeded the threshold. */
		before = BP_MAX(law->tx_in_flight, 1U) - 1;
		lost_before = law->lost - 1;
		if (before > lost_before)
			crossed = BP_SEGMENTS(before - lost_before) / 49 * 50;
		least = bbr3_target(law) / 10 * 7;
		law->longterm = BP_MAX(crossed, least);
	}
	if (law->state == BBR3_UP)
		bbr3_start_down(law);
	return 0;
}

/* [BBRCheckStartupHighLoss] */
BP_INLINE void bbr3_check_startup_loss(struct bp_law *law)
{
	bp_window bdp;

	law->loss_events += law->new_losses > 0;
	if (!law->latest_start)
		return;
	if (!law->filled && law->ack_in_recovery && law->loss_events >= BBR3_STARTUP_LOSSES && bbr3_is_too_high(law)) {
		law->filled = 1;
		bdp = bbr3_bdp(law, BBR3_ONE);
		law->longterm = BP_MAX(bdp, BP_SEGMENTS(law->latest_volume));
	}
	law->loss_events = 0;
}

/* [BBRAdaptLowerBoundsFromCongestion], once per round. */
BP_INLINE void bbr3_adapt_lower_bounds(struct bp_law *law)
{
	bp_u8 lost = law->loss_in_round;

	law->loss_in_round = 0;
	if (!lost || law->state == BBR3_STARTUP || law->state == BBR3_REFILL || law->state == BBR3_UP)
		return;
	if (law->bound == BBR3_NONE)
		law->bound = bbr3_max_bw(law);
	if (law->inflight == BBR3_NONE)
		law->inflight = law->cwnd;
	law->bound = BP_MAX(law->latest_bw, law->bound * 7 / 10);
	law->inflight = BP_MAX(BP_SEGMENTS(law->latest_volume), law->inflight * 7 / 10);
}

/* [BBRUpdateACKAggregation] */
BP_APART bbr3_aggregate(struct bp_law *law)
{
	bp_window expected, extra;
	bp_u64 since;
	bp_u32 complement;

	if (!law)
		return 0;
	since = law->now - law->aggregate_since;
	expected = bbr3_fills(law, law->bandwidth, BP_MIN(since, 1ULL << 26), BBR3_ONE);
	if (BP_SEGMENTS(law->aggregated) <= expected) {
		law->aggregated = 0;
		law->aggregate_since = law->now;
		expected = 0;
	}
	law->aggregated += law->newly;
	extra = BP_SEGMENTS(law->aggregated);
	extra = BP_MIN(BP_MAX(extra, expected) - expected, law->cwnd);
	complement = ~(bp_u32)(BP_MIN(extra, BP_LARGEST - 1) >> (BP_SHIFT - 10));
	if (!law->filled && law->round_start)
		bp_windowed_reset(&law->extra, law->rounds, complement);
	else
		bp_windowed_update(&law->extra, law->rounds, complement, BBR3_EXTRA_ACKED_ROUNDS);
	return 0;
}

BP_INLINE void bbr3_check_full_pipe(struct bp_law *law)
{
	if (law->plateau_rounds >= BBR3_PLATEAU_ROUNDS || !law->round_start || law->app_limited)
		return;
	/* An increase by a quarter counts as growth. */
	if (4 * law->rate >= 5 * law->plateau)
		bbr3_plateau_above(law, law->rate);
	else
		law->plateau_rounds++;
	if (law->plateau_rounds >= BBR3_PLATEAU_ROUNDS)
		law->filled = 1;
}

/* Startup and Drain. */
BP_APART bbr3_check_drain(struct bp_law *law)
{
	if (!law)
		return 0;
	if (law->state == BBR3_STARTUP && law->filled) {
		law->state = BBR3_DRAIN;
		law->drain_since = law->rounds;
	}
	if (law->state == BBR3_DRAIN &&
	    (BP_SEGMENTS(law->in_flight) <= bbr3_inflight(law, law->bandwidth) ||
	     law->rounds - law->drain_since > BBR3_DRAIN_ROUNDS))
		bbr3_start_down(law);
	return 0;
}

/* [BBRProbeInflightLongtermUpward]: by 1, 2, 4 ... segments a round. */
BP_INLINE void bbr3_probe_upward(struct bp_law *law)
{
	bp_u64 more;

	if (!law->window_limited || law->cwnd < law->longterm)
		return;
	law->slope_acks += BP_SEGMENTS(law->newly);
	if (law->slope_acks >= law->slope_per_segment) {
		more = law->slope_acks / BP_MAX(law->slope_per_segment, 1ULL);
		law->slope_acks -= more * law->slope_per_segment;
		law->longterm = BP_MIN(law->longterm + BP_SEGMENTS(more), BP_LARGEST);
	}
	if (law->round_start)
		bbr3_raise_slope(law);
}

/* [BBRAdaptLongTermModel] */
BP_APART bbr3_adapt_longterm(struct bp_law *law)
{
	if (!law)
		return 0;
	if (law->ack_phase == BBR3_PROBE_STARTING && law->round_start) {
		law->ack_phase = BBR3_PROBE_FEEDBACK;
	} else if (law->ack_phase == BBR3_PROBE_STOPPING && law->round_start) {
		law->probe_samples = 0;
		law->ack_phase = BBR3_INIT;
		/* A cycle without rate samples does not discard the older maximum. */
		if (bbr3_in_probe_bw(law) && !law->app_limited && law->bw_now) {
			law->bw_before = law->bw_now;
			law->bw_now = 0;
		}
	}
	if (bbr3_is_too_high(law) || law->longterm == BBR3_NONE)
		return 0;
	law->longterm = BP_MAX(law->longterm, BP_SEGMENTS(law->tx_in_flight));
	if (law->state == BBR3_UP)
		bbr3_probe_upward(law);
	return 0;
}

/* True after two to three seconds, or after one period of Reno's sawtooth at this window. */
BP_INLINE int bbr3_is_time_to_probe(const struct bp_law *law)
{
	bp_window reno = bbr3_target(law);

	reno = BP_MIN(reno, BP_SEGMENTS(BBR3_RENO_ROUNDS));
	return law->now > law->cycle_since + law->cycle_wait || BP_SEGMENTS(law->cycle_rounds) >= reno;
}

/* [BBRUpdateProbeBWCyclePhase] */
BP_APART bbr3_update_cycle(struct bp_law *law)
{
	if (!law || !law->filled)
		return 0;
	bbr3_adapt_longterm(law);
	if ((law->state == BBR3_DOWN || law->state == BBR3_CRUISE) && bbr3_is_time_to_probe(law)) {
		bbr3_no_bounds(law);
		law->slope_rounds = 0;
		law->slope_acks = 0;
		law->ack_phase = BBR3_REFILLING;
		law->mark = law->delivered;
		law->state = BBR3_REFILL;
	} else if (law->state == BBR3_DOWN) {
		if (BP_SEGMENTS(law->in_flight) <= bbr3_with_headroom(law) &&
		    BP_SEGMENTS(law->in_flight) <= bbr3_inflight(law, bbr3_max_bw(law)))
			law->state = BBR3_CRUISE;
	} else if (law->state == BBR3_REFILL && law->round_start) {
		law->probe_samples = 1;
		bbr3_start_up(law, law->rate);
	} else if (law->state == BBR3_UP) {
		/* A rate that is limited by the long-term bound, not by the path, is no sign of a full pipe. */
		if (law->window_limited && law->cwnd >= law->longterm)
			bbr3_plateau_above(law, law->rate);
		else if (law->plateau_rounds >= BBR3_PLATEAU_ROUNDS)
			bbr3_start_down(law);
	}
	return 0;
}

/* [BBRCheckProbeRTTDone], [BBRExitProbeRTT] */
BP_APART bbr3_check_probe_rtt_done(struct bp_law *law)
{
	if (!law || law->state != BBR3_PROBES_RTT || law->now <= law->probe_rtt_until)
		return 0;
	law->recent_at = law->now;
	bbr3_restore_cwnd(law);
	bbr3_no_bounds(law);
	law->state = BBR3_STARTUP;
	if (law->filled) {
		bbr3_start_down(law);
		law->state = BBR3_CRUISE;
	}
	return 0;
}

/* [BBRUpdateMinRTT], [BBRCheckProbeRTT] */
BP_APART bbr3_probe_rtt(struct bp_law *law)
{
	int expired;

	if (!law)
		return 0;
	expired = law->now > law->recent_at + BBR3_PROBE_RTT_INTERVAL;
	if (law->rtt && (law->rtt < law->recent_rtt || expired)) {
		law->recent_rtt = law->rtt;
		law->recent_at = law->now;
	}
	if (law->recent_rtt < law->min_rtt || law->now > law->min_at + BBR3_MIN_RTT_LEN) {
		law->min_rtt = law->recent_rtt;
		law->min_at = law->recent_at;
	}
	if (!bbr3_in_probe_rtt(law) && expired && !law->idle_restart) {
		bbr3_save_cwnd(law);
		law->state = BBR3_EMPTY_FOR_RTT;
		law->ack_phase = BBR3_PROBE_STOPPING;
		law->mark = law->delivered;
	}
	if (bbr3_in_probe_rtt(law))
		law->limited_until = law->delivered + law->in_flight;
	if (law->state == BBR3_EMPTY_FOR_RTT) {
		if (BP_SEGMENTS(law->in_flight) <= bbr3_probe_rtt_window(law)) {
			law->probe_rtt_until = law->now + BBR3_PROBE_RTT;
			law->state = BBR3_PROBES_RTT;
			law->round_done = 0;
			law->mark = law->delivered;
		}
	} else if (law->state == BBR3_PROBES_RTT) {
		law->round_done |= law->round_start;
		if (law->round_done)
			bbr3_check_probe_rtt_done(law);
	}
	if (law->newly)
		law->idle_restart = 0;
	return 0;
}

/* [BBRUpdateModelAndState] */
BP_APART bbr3_update_model(struct bp_law *law)
{
	bbr3_rate most;

	if (!law)
		return 0;
	if (law->new_losses)
		bbr3_handle_lost(law);
	law->latest_bw = BP_MAX(law->latest_bw, law->rate);
	law->latest_volume = BP_MAX(law->latest_volume, law->volume);
	if (law->rate && (law->rate >= bbr3_max_bw(law) || !law->app_limited))
		law->bw_now = BP_MAX(law->bw_now, law->rate);
	bbr3_check_startup_loss(law);
	if (law->latest_start)
		bbr3_adapt_lower_bounds(law);
	bbr3_aggregate(law);
	bbr3_check_full_pipe(law);
	bbr3_check_drain(law);
	bbr3_update_cycle(law);
	bbr3_probe_rtt(law);
	if (law->latest_start) {
		law->latest_bw = law->rate;
		law->latest_volume = law->volume;
	}
	most = bbr3_max_bw(law);
	law->bandwidth = BP_MIN(most, law->bound);
	return 0;
}

/* [BBRBoundCWNDForModel] */
BP_INLINE void bbr3_bound_cwnd(struct bp_law *law)
{
	bp_window most = BBR3_NONE;

	if (law->state == BBR3_CRUISE || bbr3_in_probe_rtt(law))
		most = bbr3_with_headroom(law);
	else if (law->state >= BBR3_DOWN)
		most = law->longterm;
	most = BP_MIN(most, law->inflight);
	most = BP_MAX(most, BBR3_MIN_WINDOW);
	law->cwnd = BP_MAX(BP_MIN(law->cwnd, most), BP_ONE);
}

/* [BBRUpdateControlParameters] */
BP_APART bbr3_update_control(struct bp_law *law)
{
	bp_u32 gain = BBR3_ONE, cwnd_gain = BBR3_CWND_GAIN;
	bp_window most, extra, small;

	if (!law)
		return 0;
	if (law->state == BBR3_STARTUP)
		gain = BBR3_STARTUP_GAIN;
	else if (law->state == BBR3_DRAIN)
		gain = BBR3_DRAIN_GAIN;
	else if (law->state == BBR3_DOWN)
		gain = BBR3_ONE / 10 * 9 + 5;
	else if (law->state == BBR3_UP)
		gain = BBR3_UP_GAIN;
	bbr3_set_pacing(law, gain);
	if (law->state == BBR3_UP)
		cwnd_gain = BBR3_UP_CWND_GAIN;
	else if (bbr3_in_probe_rtt(law))
		cwnd_gain = BBR3_ONE / 2;
	extra = law->extra.best[0].known ? (bp_window)~law->extra.best[0].value << (BP_SHIFT - 10) : 0;
	most = bbr3_quantized(law, bbr3_bdp(law, cwnd_gain) + extra);
	if (law->filled)
		law->cwnd = BP_MIN(law->cwnd + BP_SEGMENTS(law->newly), most);
	else if (law->cwnd < most || BP_SEGMENTS(law->delivered - law->delivered_at_start) < law->initial)
		law->cwnd += BP_SEGMENTS(law->newly);
	law->cwnd = BP_MIN(BP_MAX(law->cwnd, BBR3_MIN_WINDOW), BP_LARGEST);
	if (bbr3_in_probe_rtt(law)) {
		small = bbr3_probe_rtt_window(law);
		law->cwnd = BP_MIN(law->cwnd, small);
	}
	bbr3_bound_cwnd(law);
	return 0;
}

BP_INLINE void bp_established(struct bp_law *law, bp_window initial, const struct bp_path *path)
{
	bp_u32 srtt = path->srtt ? path->srtt : 1000;

	law->cwnd = initial;
	law->initial = initial;
	law->most_quantum = BP_MAX(BP_SEGMENTS(65536) / path->mss, BP_SEGMENTS(2));
	law->longterm = BBR3_NONE;
	bbr3_no_bounds(law);
	law->min_rtt = path->srtt ? path->srtt : BP_UNKNOWN;
	law->recent_rtt = law->min_rtt;
	law->min_at = path->now;
	law->recent_at = path->now;
	law->aggregate_since = path->now;
	law->delivered = path->delivered;
	law->delivered_at_start = path->delivered;
	law->mark = path->delivered;
	law->latest_mark = path->delivered;
	law->limited_until = path->delivered;
	law->mss = path->mss;
	law->pacing = ((BP_MIN(initial, BP_SEGMENTS(1024)) >> (BP_SHIFT - 8)) * path->mss * 8000000 / srtt) >> 8;
	law->pacing = BP_MIN(law->pacing, BBR3_FASTEST) * BBR3_STARTUP_GAIN >> 16;
}

/* The rate sample of an ACK. */
BP_INLINE void bbr3_sample(struct bp_law *law, const struct bp_ack *ack)
{
	bp_u32 prior = ack->prior_delivered;
	bp_u64 bits;

	law->round_start = 0;
	law->latest_start = 0;
	law->app_limited = 1;
	law->rate = 0;
	law->volume = 0;
	law->lost = 0;
	law->tx_in_flight = 0;
	if (!ack->rate_interval)
		return;
	if (bbr3_reached(prior, law->mark)) {
		law->round_start = 1;
		law->rounds++;
		law->cycle_rounds++;
		law->mark = law->delivered;
	}
	if (bbr3_reached(prior, law->latest_mark)) {
		law->latest_start = 1;
		law->latest_mark = law->delivered;
	}
	law->app_limited = ack->app_limited || bp_after(law->limited_until, prior);
	if (!bp_after(law->limited_until, prior))
		law->limited_until = prior;
	bits = (bp_u64)BP_MIN(ack->rate_delivered, 1U << 22) * law->mss * 8000000;
	law->rate = (bits + ack->rate_interval / 2) / ack->rate_interval;
	law->rate = BP_MIN(law->rate, BBR3_FASTEST);
	law->volume = ack->rate_delivered;
	law->lost = ack->rate_lost;
	law->tx_in_flight = ack->tx_in_flight;
}

BP_INLINE void bp_on_ack(struct bp_law *law, const struct bp_ack *ack, const struct bp_path *path)
{
	law->now = path->now;
	law->mss = path->mss;
	law->delivered = path->delivered;
	law->in_flight = path->in_flight;
	law->newly = BP_MIN(ack->delivered, 1U << 14);
	law->new_losses = ack->lost;
	law->rtt = ack->rtt;
	law->window_limited = ack->window_limited;
	law->ack_in_recovery = ack->phase == BP_RECOVERY;
	bbr3_sample(law, ack);
	/* A loss repaired by a tail loss probe begins no loss episode, so the next ACK finds none. */
	if (law->in_recovery && (ack->ends_episode || ack->phase == BP_OPEN)) {
		law->in_recovery = 0;
		bbr3_restore_cwnd(law);
	}
	bbr3_update_model(law);
	bbr3_update_control(law);
}

/* The window follows the model and does not react to the loss directly. */
BP_INLINE void bp_on_loss(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	if (loss->cause != BP_LOST)
		return;
	law->delivered = path->delivered;
	bbr3_note_loss(law);
	bbr3_save_cwnd(law);
	law->in_recovery = 1;
}

BP_INLINE void bp_on_timeout(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	law->delivered = path->delivered;
	bbr3_note_loss(law);
	bbr3_save_cwnd(law);
	law->in_recovery = 1;
	law->cwnd = BP_ONE;
}

/* [BBRHandleSpuriousLossDetection] */
BP_INLINE void bp_on_undo(struct bp_law *law)
{
	law->in_recovery = 0;
	bbr3_restore_cwnd(law);
	if (!law->can_undo)
		return;
	law->can_undo = 0;
	law->loss_in_round = 0;
	bbr3_plateau_above(law, 0);
	law->bound = BP_MAX(law->bound, law->undo_bound);
	law->inflight = BP_MAX(law->inflight, law->undo_inflight);
	law->longterm = BP_MAX(law->longterm, law->undo_longterm);
	if (bbr3_in_probe_rtt(law) || law->state == law->undo_state)
		return;
	if (law->undo_state == BBR3_STARTUP)
		law->state = BBR3_STARTUP;
	else if (law->undo_state == BBR3_UP)
		bbr3_start_up(law, 0);
}

/* [BBRHandleRestartFromIdle]: the window is unchanged, and the pacing rate is the model's bandwidth. */
BP_INLINE void bp_on_idle(struct bp_law *law, bp_window restart, const struct bp_path *path)
{
	law->now = path->now;
	law->idle_restart = 1;
	law->aggregate_since = path->now;
	if (bbr3_in_probe_bw(law))
		bbr3_set_pacing(law, BBR3_ONE);
	else
		bbr3_check_probe_rtt_done(law);
}

BP_INLINE bp_window bp_cwnd(const struct bp_law *law)
{
	return law->cwnd;
}

BP_INLINE bp_window bp_ssthresh(const struct bp_law *law)
{
	return BP_NO_THRESHOLD;
}

BP_INLINE bp_u64 bp_pace(const struct bp_law *law, const struct bp_path *path)
{
	return law->pacing / 8;
}
