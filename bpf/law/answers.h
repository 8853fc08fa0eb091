/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Copies of data that left in low priority, and the reports of duplicates (RFC 2883) that answer them. The kernel counts reports and does
 * not say of which segments, so a report answers a copy as long as one is under way.
 */
#ifndef BP_ANSWERS_H
#define BP_ANSWERS_H

struct bp_answers {
	bp_u64 last_at;		/* when the newest copy left, us */
	bp_u32 sent;		/* copies that left */
	bp_u32 answered;
	bp_u32 open;		/* copies that are neither answered nor given up */
	bp_u32 srtt_at_loss;	/* smoothed round trip of data when some of it was lost last, us; 0 before */
	bp_u32 through_full_queue;	/* answers that came through a queue as long as that */
};

/* Waiting that counts as a queue: beyond this part of the least round trip. */
#define BP_LEAST_QUEUE 16
/* Answers through full queues, and losses of data, before it is more than chance that copies are treated as data. */
#define BP_ENOUGH_ANSWERS 32
#define BP_ENOUGH_LOSSES 3

BP_INLINE void bp_answers_sent(struct bp_answers *answers, bp_u32 copies, bp_u64 now)
{
	answers->last_at = now;
	answers->sent += copies;
	answers->open += copies;
}

/*
 * How many copies so many reports answer. Copies older than the longest wait for an answer were lost or have filled a hole. The round
 * trip of a copy is not known; that of the data that arrives at the same time stands for it.
 */
BP_INLINE bp_u32 bp_answers_take(struct bp_answers *answers, bp_u32 reports, const struct bp_path *path)
{
	bp_u32 full = BP_MAX(answers->srtt_at_loss, path->min_rtt) - path->min_rtt;
	bp_u32 waited = BP_MAX(path->srtt, path->min_rtt) - path->min_rtt;

	if (path->now > answers->last_at + path->srtt + path->rto)
		answers->open = 0;
	reports = BP_MIN(reports, answers->open);
	answers->open -= reports;
	answers->answered += reports;
	if (full > path->min_rtt / BP_LEAST_QUEUE && 4ULL * waited >= 3ULL * full && 2ULL * waited <= 3ULL * full)
		answers->through_full_queue += reports;
	return reports;
}

/*
 * Copies get through queues that lose data, and are lost no more often than data: nothing at the bottleneck knows low priority
 * (docs/peach-without-a-receiver.md, rule 8).
 */
BP_INLINE int bp_answers_are_of_data(const struct bp_answers *answers, bp_u32 retransmitted, bp_u32 data)
{
	bp_u64 unanswered = answers->sent - answers->answered;

	return answers->through_full_queue >= BP_ENOUGH_ANSWERS && retransmitted >= BP_ENOUGH_LOSSES &&
	       unanswered * data <= 4ULL * retransmitted * answers->sent;
}

#endif
