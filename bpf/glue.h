/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Turns a window law (a congestion-control algorithm) into a congestion control of the kernel. A program includes its law,
 * defines BP_NAME and includes this header.
 *
 * The law decides the window. A control with `cong_control` bypasses the kernel's own window reduction (PRR), window growth and
 * choice of the pacing rate. This header therefore implements them.
 */
#include "kernel.h"

/* Additional flags of the congestion control. */
#ifndef BP_FLAGS
#define BP_FLAGS 0
#endif

/* 1 if the law's pacing rate is a link rate, which does not follow from a window and a round trip. */
#ifndef BP_ALWAYS_PACED
#define BP_ALWAYS_PACED 0
#endif

/* Number of arguments of `cong_control`: four from kernel 6.10 on, two before. The loader sets it. */
const volatile bp_u8 bp_cong_control_arguments = 4;

/*
 * 1 if the law sets its window in recovery itself. Such a law need not shrink its window at a loss, so PRR has no reduction to
 * spread. At loss rates of 1 % its connection is in recovery nearly all the time.
 */
#ifndef BP_OWNS_RECOVERY
#define BP_OWNS_RECOVERY 0
#endif

#ifdef BP_PROBES
/* Reports of duplicates (RFC 2883), and reductions that the kernel undoes because of these reports. */
struct bp_reports {
	bp_u32 seen;		/* dsack_dups at the last ACK */
	bp_u32 at_loss;		/* dsack_dups at the start of the last loss episode */
	bp_u32 recover;		/* snd_nxt at the start of that episode */
	bp_u8 copied;		/* copies have been in flight since that start */
	bp_u8 refused;		/* the kernel left that episode because of reports about copies */
};
#endif

/* Private state of a connection: 104 bytes. `bentpipe watch` reads the fields before the law. */
struct bp_private {
	bp_u32 una;		/* snd_una at the last ACK */
	bp_u32 prr_delivered;	/* segments delivered in this recovery */
	bp_u32 marks;		/* delivered_ce at the last ACK */
	bp_u8 state;		/* icsk_ca_state at the last ACK */
	bp_u8 begins;		/* the kernel asked for ssthresh: an episode begins with the next state */
#ifdef BP_PROBES
	struct bp_reports reports;
#endif
#ifndef BP_STORED
	struct bp_law law;
#endif
};
/* Makes the compiler describe the private state in the object file, for `bentpipe watch`. Otherwise it is null and unused. */
struct bp_private *const volatile bp_described = 0;

_Static_assert(sizeof(struct bp_private) <= 104, "the kernel keeps 104 bytes for a congestion control");

#define BP_TCP(sk) ((struct tcp_sock *)(sk))
#define BP_PRIVATE(sk) ((struct bp_private *)BP_TCP(sk)->inet_conn.icsk_ca_priv)

#ifdef BP_STORED
/* State of a law that does not fit into 104 bytes. The kernel frees this storage together with the socket. */
struct {
	BP_INT(type, 24);
	BP_INT(map_flags, 1);	/* no preallocation */
	int *key;
	struct bp_law *value;
} bp_laws SEC(".maps");

#define BP_CREATE 1
/* Null if the kernel had no memory for the state. The window then only shrinks, by half at each loss. */
#define BP_LAW_OF(sk, flags) ((struct bp_law *)bp_storage(&bp_laws, sk, 0, flags))
#else
#define BP_CREATE 0
#define BP_LAW_OF(sk, flags) (&BP_PRIVATE(sk)->law)
#endif

BP_INLINE bp_u32 bp_whole(bp_window window)
{
	return window >> BP_SHIFT;
}

BP_INLINE bp_u32 bp_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

BP_INLINE void bp_look(const struct tcp_sock *tp, struct bp_path *path)
{
	path->now = tp->tcp_mstamp;
	path->mss = BP_MAX(tp->mss_cache, 1U);
	path->srtt = tp->srtt_us >> 3;
	path->rttvar = tp->rttvar_us >> 2;
	path->min_rtt = tp->rtt_min.s[0].v;
	path->outstanding = tp->packets_out;
	path->in_flight = bp_in_flight(tp);
	path->delivered = tp->delivered;
	path->rto = path->srtt + tp->rttvar_us;
	path->receive_window = tp->snd_wnd / path->mss;
	path->una = tp->snd_una;
	path->nxt = tp->snd_nxt;
	path->unsent = tp->write_seq - tp->snd_nxt;
	path->peer_clock = tp->rx_opt.rcv_tsval;
	path->has_peer_clock = BP_BITS(tp, rx_opt.saw_tstamp);
	path->ecn = tp->ecn_flags & BP_ECN_OK;
	path->ordinary = 0;
}

#ifdef BP_PROBES
BP_INLINE void bp_look_at_copies(const struct tcp_sock *tp, const struct bp_law *law, struct bp_path *path)
{
	bp_look(tp, path);
	path->ordinary = bp_answers_are_of_data(&law->answers, tp->total_retrans, tp->data_segs_out);
}

/* Begins a loss episode. Returns false if this is the previous episode, which the kernel left because of reports about copies. */
BP_INLINE bp_u8 bp_reports_begin(const struct tcp_sock *tp, struct bp_reports *reports, const struct bp_law *law)
{
	bp_u8 same = reports->refused && bp_after(reports->recover, tp->snd_una);

	reports->refused = 0;
	if (same)
		return 0;
	reports->at_loss = tp->dsack_dups;
	reports->recover = tp->snd_nxt;
	reports->copied = law->answers.open > 0;
	return 1;
}

/*
 * Decides whether to refuse an undo of the kernel. The kernel undoes a reduction when every retransmission was reported as a
 * duplicate. Reports about copies look the same to it. If copies can explain the reports, the reduction is kept.
 */
BP_INLINE bp_u8 bp_reports_refuse(const struct tcp_sock *tp, struct bp_reports *reports, const struct bp_law *law)
{
	bp_u8 copied = reports->copied || law->answers.open;

	reports->refused = tp->undo_retrans <= 0 && copied && tp->dsack_dups != reports->at_loss;
	return reports->refused;
}

/*
 * Counts the copies that an ACK reports. Subtracts from `delivered` the segments that the kernel took for retransmissions
 * received twice.
 */
BP_INLINE void bp_reports_take(const struct tcp_sock *tp, struct bp_reports *reports, struct bp_law *law, struct bp_ack *ack, struct bp_path *path)
{
	bp_u32 seen = tp->dsack_dups - reports->seen;

	reports->seen = tp->dsack_dups;
	if (law->answers.open)
		reports->copied = 1;
	if (tp->dsack_dups <= tp->total_retrans)
		ack->delivered -= BP_MIN(seen, ack->delivered);
	ack->answers = bp_answers_take(&law->answers, seen, path);
}
#else
#define bp_look_at_copies(tp, law, path) bp_look(tp, path)
#endif

/* Copies the law's window and threshold to the kernel. */
BP_INLINE void bp_set_window(struct tcp_sock *tp, const struct bp_law *law)
{
	bp_u32 cwnd = bp_whole(bp_cwnd(law));

#ifdef BP_IN_PAIRS
	/* A sender of pairs may have one segment more in flight than its window, so that the last pair is not split. */
	if (BP_IN_PAIRS(law) && bp_cwnd(law) > BP_SEGMENTS(bp_in_flight(tp)))
		cwnd = bp_in_flight(tp) + 2 * bp_whole((bp_cwnd(law) - BP_SEGMENTS(bp_in_flight(tp)) + 2 * BP_ONE - 1) / 2);
#endif
	tp->snd_cwnd = BP_MAX(BP_MIN(cwnd, tp->snd_cwnd_clamp), 1U);
	tp->snd_ssthresh = bp_whole(BP_MIN(bp_ssthresh(law), BP_NO_THRESHOLD));
}

/*
 * Proportional rate reduction (RFC 6937 with the slow-start reduction bound, as in the kernel). It reduces the kernel's window
 * to the law's window over one round trip, as data is delivered.
 */
BP_INLINE void bp_reduce(struct tcp_sock *tp, struct bp_private *own, bp_u32 target, const struct bp_ack *ack, bp_u32 losses)
{
	bp_u32 in_flight = bp_in_flight(tp), out = tp->prr_out;
	bp_u32 send = 0, allowed;

	if (!ack->delivered)
		return;
	own->prr_delivered += ack->delivered;
	if (in_flight > target) {
		allowed = ((bp_u64)target * own->prr_delivered + tp->prior_cwnd - 1) / BP_MAX(tp->prior_cwnd, 1U);
		send = allowed > out ? allowed - out : 0;
	} else {
		allowed = own->prr_delivered > out ? own->prr_delivered - out : 0;
		send = BP_MAX(allowed, ack->delivered);
		if (ack->acked && !losses)
			send++;
		send = BP_MIN(send, target - in_flight);
	}
	if (!out)
		send = BP_MAX(send, 1U);
	tp->snd_cwnd = BP_MAX(in_flight + send, 1U);
}

/* 1 if the law paces its whole window evenly over a round trip. */
#ifndef BP_SPACES_WINDOW
#define BP_SPACES_WINDOW 0
#endif

/*
 * True if the window limited the sender, by the kernel's own rule, which lets slow start run ahead. A sender that paces its
 * whole window never fills the window while it grows. For such a sender the result is true if data is unsent and the receive
 * window has room for it.
 */
BP_INLINE bp_u8 bp_is_limited(const struct tcp_sock *tp, const struct bp_path *path)
{
	if (BP_BITS(tp, is_cwnd_limited))
		return 1;
	if (BP_SPACES_WINDOW && path->unsent >= path->mss && path->nxt + path->mss - path->una <= tp->snd_wnd)
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/*
 * Round-trip time in us below which segments are not paced. Such an interval is shorter than the resolution of timers, so
 * pacing would cost CPU time without any effect.
 */
#define BP_LEAST_PACED_RTT 2000

/*
 * 1 if the law estimates the queue from round-trip times. Round trips below the limit above mainly measure the host's
 * scheduling delay. For such a law they count as if there were no queue.
 */
#ifndef BP_HEEDS_DELAY
#define BP_HEEDS_DELAY 0
#endif

BP_INLINE bp_u32 bp_rtt_of(long sample, const struct bp_path *path)
{
	bp_u32 rtt = sample > 0 ? sample : 0;

	return BP_HEEDS_DELAY && rtt && rtt < BP_LEAST_PACED_RTT ? BP_MIN(rtt, path->min_rtt) : rtt;
}

/*
 * Sets the pacing rate. If the law sets none, the kernel's rule applies: twice the window per smoothed RTT in slow start,
 * otherwise 1.2 times.
 */
BP_INLINE void bp_set_pace(struct sock *sk, const struct bp_law *law, const struct bp_path *path)
{
	bp_u64 rate = bp_pace(law, path), most = sk->sk_max_pacing_rate;

	if (path->srtt < BP_LEAST_PACED_RTT && !BP_ALWAYS_PACED)
		rate = 0;
	if (rate) {
		if (sk->sk_pacing_status == BP_PACING_NONE)
			sk->sk_pacing_status = BP_PACING_NEEDED;
	} else {
		rate = bp_rate(bp_cwnd(law), path);
		rate = bp_cwnd(law) < bp_ssthresh(law) / 2 ? 2 * rate : rate + rate / 5;
	}
	if (rate)
		sk->sk_pacing_rate = BP_MIN(rate, most);
}

/* Clears the law's state, since a connection may select an algorithm a second time. The private state is already clear. */
BP_INLINE void bp_clear(struct bp_law *law)
{
#ifdef BP_STORED
	bp_u64 *words = (bp_u64 *)law;
	bp_u32 word;

	for (word = 0; word < sizeof(*law) / sizeof(*words); word++) {
		words[word] = 0;
		/* Prevents the compiler from replacing the loop by a call of memset, which BPF does not have. */
		asm volatile("" ::: "memory");
	}
#endif
}

SEC("struct_ops/bp_init")
void bp_init(bp_u64 *context)
{
	struct sock *sk = (struct sock *)context[0];
	struct tcp_sock *tp = BP_TCP(sk);
	struct bp_private *own = BP_PRIVATE(sk);
	struct bp_law *law;
	struct bp_path path;

	bp_look(tp, &path);
	__builtin_memset(own, 0, sizeof(*own));
	law = BP_LAW_OF(sk, BP_CREATE);
	if (!law)
		return;
	own->una = tp->snd_una;
	own->marks = tp->delivered_ce;
	bp_clear(law);
	bp_established(law, BP_SEGMENTS(tp->snd_cwnd), &path);
#ifdef BP_PROBES
	own->reports.seen = tp->dsack_dups;
	if (!(BP_BITS(tp, rx_opt.sack_ok) & BP_SACK_SEEN))
		bp_do_without(law);
#endif
	bp_set_window(tp, law);
	bp_set_pace(sk, law, &path);
}

/*
 * Returns the current threshold to the kernel. The kernel calls this before it reports the event. The law decides in
 * `bp_set_state`, which follows within the same call of the kernel.
 */
SEC("struct_ops/bp_get_ssthresh")
bp_u32 bp_get_ssthresh(bp_u64 *context)
{
	struct sock *sk = (struct sock *)context[0];
	struct tcp_sock *tp = BP_TCP(sk);
	struct bp_private *own = BP_PRIVATE(sk);

	own->begins = 1;
	own->prr_delivered = 0;
	return BP_LAW_OF(sk, 0) ? tp->snd_ssthresh : BP_MAX(tp->snd_cwnd / 2, 2U);
}

/* True if a new loss episode begins, false if the kernel reports the previous one again. */
BP_INLINE bp_u8 bp_begins(const struct tcp_sock *tp, struct bp_private *own, const struct bp_law *law)
{
#ifdef BP_PROBES
	return bp_reports_begin(tp, &own->reports, law);
#else
	return 1;
#endif
}

SEC("struct_ops/bp_set_state")
void bp_set_state(bp_u64 *context)
{
	struct sock *sk = (struct sock *)context[0];
	bp_u8 state = context[1];
	struct tcp_sock *tp = BP_TCP(sk);
	struct bp_private *own = BP_PRIVATE(sk);
	struct bp_law *law = BP_LAW_OF(sk, 0);
	struct bp_path path;
	struct bp_loss loss = {};

	if (!law)
		return;
	if (state == BP_CA_LOSS) {
#ifdef BP_PROBES
		bp_reports_begin(tp, &own->reports, law);
#endif
		bp_look(tp, &path);
		loss.consecutive = own->begins ? 1 : tp->inet_conn.icsk_retransmits + 1U;
		loss.outstanding = path.outstanding;
		bp_on_timeout(law, &loss, &path);
		bp_set_window(tp, law);
	} else if (own->begins && state >= BP_CA_CWR && bp_begins(tp, own, law)) {
		bp_look(tp, &path);
		loss.cause = state == BP_CA_CWR && tp->delivered_ce != own->marks ? BP_MARKED : BP_LOST;
		loss.outstanding = path.outstanding;
		bp_on_loss(law, &loss, &path);
		tp->snd_ssthresh = bp_whole(BP_MIN(bp_ssthresh(law), BP_NO_THRESHOLD));
	}
	own->begins = 0;
}

SEC("struct_ops/bp_undo")
bp_u32 bp_undo(bp_u64 *context)
{
	struct sock *sk = (struct sock *)context[0];
	struct tcp_sock *tp = BP_TCP(sk);
	struct bp_law *law = BP_LAW_OF(sk, 0);

	if (!law)
		return tp->snd_cwnd;
#ifdef BP_PROBES
	if (bp_reports_refuse(tp, &BP_PRIVATE(sk)->reports, law))
		return tp->snd_cwnd;
#endif
	bp_on_undo(law);
	return BP_MAX(bp_whole(bp_cwnd(law)), tp->snd_cwnd);
}

/* Restarts the window after an idle period (RFC 5681 section 4.1). The kernel does not do this for controls with `cong_control`. */
SEC("struct_ops/bp_event")
void bp_event(bp_u64 *context)
{
	struct sock *sk = (struct sock *)context[0];
	int event = context[1];
	struct tcp_sock *tp = BP_TCP(sk);
	struct bp_path path;
	struct bp_law *law;
	bp_u32 idle;

	if (event != BP_CA_EVENT_TX_START)
		return;
	law = BP_LAW_OF(sk, 0);
	if (!law)
		return;
#ifdef BP_ON_START
	/* The law asks to be called when data leaves while nothing is in flight. */
	bp_look(tp, &path);
	BP_ON_START(law, &path);
#endif
	idle = (bp_u32)bp_jiffies() - tp->lsndtime;
	if ((int)idle <= (int)tp->inet_conn.icsk_rto)
		return;
	bp_look(tp, &path);
	bp_on_idle(law, BP_MIN(bp_cwnd(law), BP_SEGMENTS(10)), &path);
	bp_set_window(tp, law);
	bp_set_pace(sk, law, &path);
}

BP_INLINE bp_u8 bp_phase_of(bp_u8 state)
{
	return state == BP_CA_LOSS ? BP_LOSS : state >= BP_CA_CWR ? BP_RECOVERY : BP_OPEN;
}

#ifdef BP_WANTS_RATE
/* Fills in the kernel's delivery-rate sample, and the in-flight data and losses recorded when the segment left. */
BP_INLINE void bp_sample_rate(struct tcp_sock *tp, struct bp_law *law, const struct rate_sample *rs, struct bp_ack *ack)
{
	int place = bp_flights_find(&law->flights, rs->prior_delivered);
	struct bp_flight *then = &law->flights.diary[place & (BP_FLIGHTS - 1)];

	ack->rate_interval = rs->delivered > 0 && rs->interval_us > 0 ? rs->interval_us : 0;
	ack->rate_delivered = rs->delivered;
	ack->prior_delivered = rs->prior_delivered;
	ack->app_limited = rs->is_app_limited;
	ack->tx_in_flight = rs->prior_in_flight;
	ack->rate_lost = ack->lost;
	if (place >= 0 && then->in_flight) {
		ack->tx_in_flight = then->in_flight;
		ack->rate_lost = tp->lost - then->lost;
	}
	bp_flights_note(&law->flights, tp->delivered, tp->lost, rs->prior_in_flight);
}
#endif

/* Handles an ACK. */
BP_INLINE void bp_control(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = BP_TCP(sk);
	struct bp_private *own = BP_PRIVATE(sk);
	struct bp_law *law = BP_LAW_OF(sk, 0);
	bp_u8 state = BP_BITS(&tp->inet_conn, icsk_ca_state);
	struct bp_path path;
	struct bp_ack ack;

	if (!law) {
		tp->snd_cwnd = BP_MIN(tp->snd_cwnd, tp->snd_ssthresh);
		return;
	}
	bp_look_at_copies(tp, law, &path);
	ack.acked = (tp->snd_una - own->una + path.mss - 1) / path.mss;
	ack.delivered = rs->acked_sacked;
	ack.lost = rs->losses > 0 ? rs->losses : 0;
	ack.answers = 0;
	ack.rtt = bp_rtt_of(rs->rtt_us, &path);
	ack.phase = bp_phase_of(BP_MAX(own->state, state));
	ack.ends_episode = ack.phase != BP_OPEN && bp_phase_of(state) == BP_OPEN;
	ack.window_limited = bp_is_limited(tp, &path);
	ack.ecn_echo = tp->delivered_ce != own->marks;
#ifdef BP_WANTS_RATE
	bp_sample_rate(tp, law, rs, &ack);
#endif
#ifdef BP_PROBES
	bp_reports_take(tp, &own->reports, law, &ack, &path);
#endif
	own->una = tp->snd_una;
	own->marks = tp->delivered_ce;
	own->state = state;

	bp_on_ack(law, &ack, &path);
	if (!BP_OWNS_RECOVERY && (state == BP_CA_RECOVERY || state == BP_CA_CWR))
		bp_reduce(tp, own, bp_whole(bp_cwnd(law)), &ack, rs->losses);
	else
		bp_set_window(tp, law);
	bp_set_pace(sk, law, &path);
}

SEC("struct_ops/bp_cong_control")
void bp_cong_control(bp_u64 *context)
{
	if (bp_cong_control_arguments == 4)
		bp_control((struct sock *)context[0], (const struct rate_sample *)context[3]);
	else
		bp_control((struct sock *)context[0], (const struct rate_sample *)context[1]);
}

#ifdef BP_PROBES
/* Asks for short bursts, since a segmentation-offload burst can only be copied as a whole. */
SEC("struct_ops/bp_min_tso_segs")
bp_u32 bp_min_tso_segs(bp_u64 *context)
{
	return 1;
}
#endif

SEC(".struct_ops.link")
struct tcp_congestion_ops bp_ops = {
	.init = (void *)bp_init,
	.ssthresh = (void *)bp_get_ssthresh,
	.set_state = (void *)bp_set_state,
	.undo_cwnd = (void *)bp_undo,
	.cwnd_event = (void *)bp_event,
	.cong_control = (void *)bp_cong_control,
#ifdef BP_PROBES
	.min_tso_segs = (void *)bp_min_tso_segs,
#endif
	.flags = BP_CONG_NON_RESTRICTED | BP_FLAGS,
	.name = BP_NAME,
};
