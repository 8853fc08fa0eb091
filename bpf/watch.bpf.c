/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Writes one line for each TCP connection of this network namespace, on demand. Connections cost nothing unless somebody reads. */
#include "kernel.h"

/* The same as `Line` of crates/kernel/src/watch.rs. */
struct bp_line {
	bp_u64 now;		/* time of the connection's clock, us */
	bp_u64 pacing_rate;	/* bytes/s */
	bp_u64 bytes_acked;
	bp_u64 state[13];	/* private state of the algorithm */
	bp_u8 local[16];
	bp_u8 remote[16];
	char name[16];
	bp_u32 cwnd;
	bp_u32 ssthresh;
	bp_u32 srtt;		/* smoothed RTT, us */
	bp_u32 min_rtt;		/* minRTT, us */
	bp_u32 in_flight;
	bp_u32 retransmitted;
	bp_u32 mss;
	unsigned short family;
	unsigned short local_port;
	unsigned short remote_port;	/* network byte order */
	bp_u8 recovery;		/* icsk_ca_state */
	bp_u8 tcp_state;
};

SEC("iter/tcp")
int bp_watch(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;
	struct bp_line line = {};
	struct tcp_sock *tp;

	if (!common)
		return 0;
	/* Skips listening sockets and sockets in TIME-WAIT. */
	tp = bp_tcp_sock(common);
	if (!tp || common->skc_state == 10)
		return 0;
	line.now = tp->tcp_mstamp;
	line.pacing_rate = tp->inet_conn.icsk_inet.sk.sk_pacing_rate;
	line.bytes_acked = tp->bytes_acked;
	bp_read_kernel(line.state, sizeof(line.state), tp->inet_conn.icsk_ca_priv);
	bp_read_kernel(line.name, sizeof(line.name), tp->inet_conn.icsk_ca_ops->name);
	line.family = common->skc_family;
	if (line.family == 2) {
		bp_read_kernel(line.local, 4, &common->skc_rcv_saddr);
		bp_read_kernel(line.remote, 4, &common->skc_daddr);
	} else {
		bp_read_kernel(line.local, 16, &common->skc_v6_rcv_saddr);
		bp_read_kernel(line.remote, 16, &common->skc_v6_daddr);
	}
	line.local_port = common->skc_num;
	line.remote_port = common->skc_dport;
	line.cwnd = tp->snd_cwnd;
	line.ssthresh = tp->snd_ssthresh;
	line.srtt = tp->srtt_us >> 3;
	line.min_rtt = tp->rtt_min.s[0].v;
	line.in_flight = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	line.retransmitted = tp->total_retrans;
	line.mss = tp->mss_cache;
	line.recovery = BP_BITS(&tp->inet_conn, icsk_ca_state);
	line.tcp_state = common->skc_state;
	bp_seq_write(context->meta->seq, &line, sizeof(line));
	return 0;
}
