/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Turns a window law into a congestion control of the kernel. A program includes its law, defines BP_NAME and includes this.
 *
 * The law owns the window: the kernel's own reduction (PRR), its growth and its pacing are left out for a control with
 * `cong_control`, so they stand here.
 */
#include "kernel.h"

/* Further flags of the congestion control. */
#ifndef BP_FLAGS
#define BP_FLAGS 0
#endif

/* The law's rate is the link's, not a window's per round trip. */
#ifndef BP_ALWAYS_PACED
#define BP_ALWAYS_PACED 0
#endif

/* Set by the loader: `cong_control` has four arguments from kernel 6.10 on, and two before. */
const volatile bp_u8 bp_cong_control_arguments = 4;

/*
 * The law sets its window in recovery itself: a loss need not shrink it, so there is no reduction to spread, and at losses of 1 % the connection is
 * in recovery nearly all the time.
 */
#ifndef BP_OWNS_RECOVERY
#define BP_OWNS_RECOVERY 0
#endif

#ifdef BP_PROBES
/* Reports of duplicates (RFC 2883), and reductions that the kernel takes back because of them. */
struct bp_reports {
	bp_u32 seen;		/* dsack_dups at the last ACK */
	bp_u32 at_loss;		/* and when the last episode began */
	bp_u32 recover;		/* snd_nxt then */
	bp_u8 copied;		/* copies were or have been under way since */
	bp_u8 refused;		/* the kernel left that episode because copies were reported */
};
#endif

/* The private state of a connection: 104 bytes. `watch` reads what stands before the law. */
struct bp_private {
	bp_u32 una;		/* snd_una at the last ACK */
	bp_u32 prr_delivered;	/* segments delivered in this recovery */
	bp_u32 marks;		/* delivered_ce at the last ACK */
	bp_u8 state;		/* icsk_ca_state at the last ACK */
	bp_u8 begins;		/* ssthresh was asked for: an episode begins with the next state */
#ifdef BP_PROBES
	struct bp_reports reports;
#endif
#ifndef BP_STORED
	struct bp_law law;
#endif
};
/* Puts the description of the state into the object, for `watch`; otherwise null and unused. */
struct bp_private *const volatile bp_described = 0;

_Static_assert(sizeof(struct bp_private) <= 104, "the kernel keeps 104 bytes for a congestion control");

#define BP_TCP(sk) ((struct tcp_sock *)(sk))
#define BP_PRIVATE(sk) ((struct bp_private *)BP_TCP(sk)->inet_conn.icsk_ca_priv)

#ifdef BP_STORED
/* A law with more state than that keeps it in a storage of the socket, which goes with the socket. */
struct {
	BP_INT(type, 24);
	BP_INT(map_flags, 1);	/* no memory in advance */
	int *key;
	struct bp_law *value;
} bp_laws SEC(".maps");

#define BP_CREATE 1
/* Null where there was no memory for it: the window then only shrinks, by half at each loss. */
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

/* An episode of loss begins. False if it is the last one, which the kernel left because copies were reported. */
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
 * The kernel takes a reduction back when every retransmission was reported as a duplicate. Reports of copies look the same to it. Where copies
 * explain what was reported, the reduction stands.
 */
BP_INLINE bp_u8 bp_reports_refuse(const struct tcp_sock *tp, struct bp_reports *reports, const struct bp_law *law)
{
	bp_u8 copied = reports->copied || law->answers.open;

	reports->refused = tp->undo_retrans <= 0 && copied && tp->dsack_dups != reports->at_loss;
	return reports->refused;
}

/* The copies that an ACK answers. What the kernel took for retransmissions that arrived twice it has counted as delivered. */
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

/* The law's window becomes the kernel's. */
BP_INLINE void bp_set_window(struct tcp_sock *tp, const struct bp_law *law)
{
	bp_u32 cwnd = bp_whole(bp_cwnd(law));

#ifdef BP_IN_PAIRS
	/* Who sends two by two may have one segment more under way than the window: the pair that leaves, leaves whole. */
	if (BP_IN_PAIRS(law) && bp_cwnd(law) > BP_SEGMENTS(bp_in_flight(tp)))
		cwnd = bp_in_flight(tp) + 2 * bp_whole((bp_cwnd(law) - BP_SEGMENTS(bp_in_flight(tp)) + 2 * BP_ONE - 1) / 2);
#endif
	tp->snd_cwnd = BP_MAX(BP_MIN(cwnd, tp->snd_cwnd_clamp), 1U);
	tp->snd_ssthresh = bp_whole(BP_MIN(bp_ssthresh(law), BP_NO_THRESHOLD));
}

/*
 * Proportional rate reduction (RFC 6937 with the reduction bound of slow start, as the kernel has it): the window comes down to
 * the law's over a round trip, as data arrives.
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

/* The law sends a window per round trip, evenly spaced. */
#ifndef BP_SPACES_WINDOW
#define BP_SPACES_WINDOW 0
#endif

/*
 * The window held the sender back: the kernel's own rule, which lets slow start run ahead. A sender that spaces its window never fills it
 * while it grows, and is held back by it all the same, as long as there is data and room for it at the receiver.
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
 * Over a round trip shorter than this a window leaves in less time than timers can divide: spacing it costs CPU time and does nothing.
 * In us.
 */
#define BP_LEAST_PACED_RTT 2000

/* The law reads queues from round trips. In times that short it would read how long the host took to schedule: they count as without a queue. */
#ifndef BP_HEEDS_DELAY
#define BP_HEEDS_DELAY 0
#endif

BP_INLINE bp_u32 bp_rtt_of(long sample, const struct bp_path *path)
{
	bp_u32 rtt = sample > 0 ? sample : 0;

	return BP_HEEDS_DELAY && rtt && rtt < BP_LEAST_PACED_RTT ? BP_MIN(rtt, path->min_rtt) : rtt;
}

/* Where the law sets no rate, the kernel's: twice the window per round trip in slow start, 1.2 times it afterwards. */
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

/* A connection may take up an algorithm a second time. The private state is clear by now. */
BP_INLINE void bp_clear(struct bp_law *law)
{
#ifdef BP_STORED
	bp_u64 *words = (bp_u64 *)law;
	bp_u32 word;

	for (word = 0; word < sizeof(*law) / sizeof(*words); word++) {
		words[word] = 0;
		/* The compiler must not make a call of it, which BPF does not know. */
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
 * The kernel asks before it says what happened: the answer stands until `bp_set_state` is told, in the same call of the kernel.
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

/* False where what the kernel takes for an episode of loss is the one before. */
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

/* The kernel restarts no idle connection that has `cong_control` (RFC 5681 section 4.1). */
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
	/* The law wants to know when data leaves and nothing was under way. */
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
/* The kernel's sample, and what the diary says of the time when the segment left. */
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

/* Every ACK. */
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
/* Trains of segments can only be copied whole: let them be short. */
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
