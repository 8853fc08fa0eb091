/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Low-priority copies of data, and the reports of duplicates (RFC 2883) that answer them. The kernel counts these reports but
 * does not say which segments they concern. A report is therefore assigned to a copy if any copy is in flight.
 */
#ifndef BP_ANSWERS_H
#define BP_ANSWERS_H

struct bp_answers {
	bp_u64 last_at;		/* departure time of the newest copy, us */
	bp_u32 sent;		/* copies sent */
	bp_u32 answered;
	bp_u32 open;		/* copies neither reported nor given up */
	bp_u32 srtt_at_loss;	/* smoothed RTT at the last loss of data, us; 0 before */
	bp_u32 through_full_queue;	/* reports that arrived while the queue was about that long */
};

/* Least queueing delay that counts as a queue: this fraction (1/16) of the minRTT. */
#define BP_LEAST_QUEUE 16
/* Reports through full queues, and losses of data, that are needed to conclude that copies are treated like data. */
#define BP_ENOUGH_ANSWERS 32
#define BP_ENOUGH_LOSSES 3

BP_INLINE void bp_answers_sent(struct bp_answers *answers, bp_u32 copies, bp_u64 now)
{
	answers->last_at = now;
	answers->sent += copies;
	answers->open += copies;
}

/*
 * Returns how many copies are answered by a number of reports. Copies older than the longest wait for a report were lost or
 * have filled a hole. The round trip of a copy is unknown. The smoothed RTT of data arriving at the same time is used instead.
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
 * True if the bottleneck evidently ignores low priority: copies pass queues that lose data, and are lost no more often than
 * data (docs/peach-without-a-receiver.md, rule 8).
 */
BP_INLINE int bp_answers_are_of_data(const struct bp_answers *answers, bp_u32 retransmitted, bp_u32 data)
{
	bp_u64 unanswered = answers->sent - answers->answered;

	return answers->through_full_queue >= BP_ENOUGH_ANSWERS && retransmitted >= BP_ENOUGH_LOSSES &&
	       unanswered * data <= 4ULL * retransmitted * answers->sent;
}

#endif
