/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * SaTCP: CUBIC (RFC 9438) that regains its window nine times sooner after a loss near a handover.
 *
 * X. Cao, X. Zhang, "SaTCP: Link-Layer Informed TCP Adaptation for Highly Dynamic LEO Satellite Networks", IEEE INFOCOM 2023.
 * Handovers are on a grid of 15 s. A report comes half a second before each, without an error of the prediction.
 */
#include "law.h"
#include "cubic.h"
#include "hystart.h"

/* Period of handovers, their phase in the clock of `now`, lead of a report, and the time for which it counts; us. */
#define SATCP_PERIOD 15000000ULL
#ifndef SATCP_PHASE
#define SATCP_PHASE 12000000ULL
#endif
#define SATCP_LEAD 500000ULL
#define SATCP_INHIBITION 2300000ULL
/* Divisor of K near a handover. */
#define SATCP_DIVISOR 9

/* State that an undo restores. */
struct satcp_rule {
	struct bp_hystart hystart;
	struct bp_cubic curve;	/* of this stage */
	bp_window most;		/* W_max of the next stage; 0 before the first loss and after a timeout */
	bp_window prior;	/* window before the last reduction, or at the end of a slow start without one */
	bp_window reno;		/* Reno's window at this time */
	bp_u64 last_ack;	/* us */
	bp_u8 staged;		/* a stage of congestion avoidance has begun */
};

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
	struct satcp_rule rule;
	struct satcp_rule rule_before;
};

BP_INLINE int satcp_is_near(const struct bp_path *path)
{
	return (path->now + SATCP_PERIOD + SATCP_LEAD - SATCP_PHASE % SATCP_PERIOD) % SATCP_PERIOD <= SATCP_INHIBITION;
}

/*
 * Section 5.8: time counts only between ACKs for which the window limits the sender, and not if nothing was outstanding. The start
 * of the stage moves by the other times.
 */
BP_INLINE void satcp_observe(struct satcp_rule *rule, const struct bp_ack *ack, const struct bp_path *path)
{
	bp_u64 silence = path->now - rule->last_ack;

	if (!rule->staged)
		return;
	rule->last_ack = path->now;
	if (!ack->window_limited || silence > path->rto)
		rule->curve.since += silence;
}

BP_INLINE void satcp_slow_start(struct bp_law *law, const struct bp_ack *ack, bp_u32 acked, const struct bp_path *path)
{
	struct satcp_rule *rule = &law->rule;
	bp_u8 plain = rule->hystart.over;

	rule->staged = 0;
	law->now.cwnd += bp_hystart_growth(&rule->hystart, ack, acked, path);
	if (rule->hystart.over && !plain)
		law->now.ssthresh = law->now.cwnd;
	if (!rule->prior && law->now.cwnd >= law->now.ssthresh)
		rule->prior = law->now.cwnd;
}

BP_INLINE void satcp_begin_stage(struct satcp_rule *rule, bp_window window, const struct bp_path *path)
{
	rule->curve.most = rule->most;
	bp_cubic_aim(&rule->curve, path->now, window);
	if (satcp_is_near(path))
		rule->curve.until_most /= SATCP_DIVISOR;
	rule->reno = window;
	rule->last_ack = path->now;
	rule->staged = 1;
}

BP_APART satcp_avoid(struct bp_law *law, bp_u32 acked, const struct bp_path *path)
{
	struct satcp_rule *rule;
	bp_window window, step, wanted;

	if (!law || !path)
		return 0;
	rule = &law->rule;
	window = BP_MAX(law->now.cwnd, BP_ONE);
	if (!rule->staged)
		satcp_begin_stage(rule, window, path);
	/* Section 4.3: Reno's window grows by 3 (1 - 0.7) / (1 + 0.7) per round trip, and by 1 beyond the window of the last loss. */
	step = bp_divide(BP_SEGMENTS(acked), window);
	rule->reno += rule->reno >= rule->prior ? step : step / 17 * 9;
	rule->reno = BP_MIN(rule->reno, BP_LARGEST);
	if (bp_cubic_at(&rule->curve, path->now) < rule->reno) {
		law->now.cwnd = BP_MAX(window, rule->reno);
		return 0;
	}
	/* Section 4.4: the target is the value one round trip ahead. */
	wanted = bp_cubic_at(&rule->curve, path->now + path->srtt);
	wanted = BP_MIN(BP_MAX(wanted, window), window + window / 2);
	law->now.cwnd = BP_MIN(bp_cubic_grow(&rule->curve, path->now + path->srtt, window, acked), wanted);
	return 0;
}

/* A timeout forgets W_max (section 4.8), but not near a handover. */
BP_INLINE bp_window satcp_reduce(struct bp_law *law, const struct bp_loss *loss, const struct bp_path *path)
{
	struct satcp_rule *rule = &law->rule;
	bp_window window = law->now.cwnd;

	law->rule_before = *rule;
	rule->most = loss->consecutive && !satcp_is_near(path) ? 0 : bp_cubic_next_most(window, rule->most);
	rule->prior = window;
	rule->staged = 0;
	rule->hystart.over = 1;
	return BP_MIN(BP_SEGMENTS(loss->outstanding), window) / 10 * 7;
}

#define BP_ESTABLISHED(law, path) bp_hystart_begin(&(law)->rule.hystart)
#define BP_OBSERVE(law, ack, path) satcp_observe(&(law)->rule, ack, path)
#define BP_SLOW_START(law, ack, acked, path) satcp_slow_start(law, ack, acked, path)
#define BP_AVOID(law, ack, acked, path) satcp_avoid(law, acked, path)
#define BP_REDUCE(law, loss, path) satcp_reduce(law, loss, path)
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) satcp_reduce(law, loss, path)
#define BP_UNDONE(law) ((law)->rule = (law)->rule_before)
#include "classic.h"
