/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Declarations of the kernel's types and functions that the programs use. The loader finds each field by name in the type
 * information (BTF) of the running kernel (CO-RE). Offsets and sizes therefore need not be right here.
 */
#ifndef BP_KERNEL_H
#define BP_KERNEL_H

#include "law/law.h"

/* Encodes a number in the description of a map, as libbpf expects it. */
#define BP_INT(name, value) int(*name)[value]
#define SEC(name) __attribute__((section(name), used))
#define BP_RELOCATED __attribute__((preserve_access_index))

char bp_license[] SEC("license") = "Dual MIT/GPL";

struct net {
	bp_u64 net_cookie;
} BP_RELOCATED;

typedef struct {
	struct net *net;
} BP_RELOCATED possible_net_t;

struct sock_common {
	possible_net_t skc_net;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned short skc_dport;
	unsigned short skc_num;
	unsigned int skc_daddr;
	unsigned int skc_rcv_saddr;
	struct in6_addr {
		unsigned char in6_u[16];
	} skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} BP_RELOCATED;

struct net_device {
	int ifindex;
	char name[16];
} BP_RELOCATED;

struct dst_entry {
	struct net_device *dev;
} BP_RELOCATED;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	bp_u32 sk_pacing_status;
	struct dst_entry *sk_dst_cache;
} BP_RELOCATED;

struct inet_sock {
	struct sock sk;
} BP_RELOCATED;

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	bp_u32 icsk_rto;
	const struct tcp_congestion_ops *icsk_ca_ops;
	bp_u8 icsk_ca_state : 5;
	bp_u8 icsk_retransmits;
	bp_u64 icsk_ca_priv[13];
} BP_RELOCATED;

struct minmax_sample {
	bp_u32 t;
	bp_u32 v;
} BP_RELOCATED;

struct minmax {
	struct minmax_sample s[3];
} BP_RELOCATED;

struct tcp_options_received {
	bp_u32 rcv_tsval;
	unsigned short saw_tstamp : 1;
	unsigned short sack_ok : 3;
} BP_RELOCATED;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	bp_u32 mss_cache;
	bp_u32 snd_una;
	bp_u32 snd_nxt;
	bp_u32 write_seq;
	bp_u32 snd_wnd;
	bp_u32 snd_cwnd;
	bp_u32 snd_cwnd_clamp;
	bp_u32 snd_ssthresh;
	bp_u32 prior_cwnd;
	bp_u32 prr_out;
	bp_u32 packets_out;
	bp_u32 retrans_out;
	bp_u32 sacked_out;
	bp_u32 lost_out;
	bp_u32 lost;
	bp_u32 max_packets_out;
	bp_u32 srtt_us;
	bp_u32 mdev_us;
	bp_u32 rttvar_us;
	bp_u32 lsndtime;
	bp_u32 delivered;
	bp_u32 delivered_ce;
	bp_u32 total_retrans;
	bp_u32 data_segs_out;
	bp_u32 dsack_dups;
	int undo_retrans;
	bp_u64 bytes_acked;
	bp_u64 tcp_mstamp;
	struct minmax rtt_min;
	bp_u8 ecn_flags;
	bp_u8 is_cwnd_limited : 1;
} BP_RELOCATED;

struct rate_sample {
	int losses;
	int delivered;
	bp_u32 prior_delivered;
	bp_u32 prior_in_flight;
	long interval_us;
	unsigned char is_app_limited;
	long rtt_us;
	bp_u32 acked_sacked;
} BP_RELOCATED;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} BP_RELOCATED;

/* Argument of an iterator over TCP sockets. */
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
} BP_RELOCATED;

/* From the kernel's header net/tcp.h. */
struct tcp_congestion_ops {
	bp_u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, bp_u8 new_state);
	void (*cwnd_event)(struct sock *sk, int event);
	bp_u32 (*undo_cwnd)(struct sock *sk);
	bp_u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, bp_u32 ack, int flag, const struct rate_sample *rs);
	void (*init)(struct sock *sk);
	char name[16];
	bp_u32 flags;
} BP_RELOCATED;

/* Constants that are fixed by the kernel's interface to user space or have never changed. */
#define BP_CONG_NON_RESTRICTED 1
#define BP_CONG_NEEDS_ECN 2
#define BP_CA_OPEN 0
#define BP_CA_DISORDER 1
#define BP_CA_CWR 2
#define BP_CA_RECOVERY 3
#define BP_CA_LOSS 4
#define BP_CA_EVENT_TX_START 0
#define BP_ECN_OK 1
#define BP_SACK_SEEN 1
#define BP_PACING_NONE 0
#define BP_PACING_NEEDED 1

/* Reads a bit field at the offset and in the word size that the running kernel uses. */
#define BP_BITS(source, field)                                                                                     \
	({                                                                                                         \
		const void *place = (const bp_u8 *)(source) + __builtin_preserve_field_info((source)->field, 0);   \
		bp_u64 bits = 0;                                                                                   \
		switch (__builtin_preserve_field_info((source)->field, 1)) {                                       \
		case 1:                                                                                            \
			bits = *(const bp_u8 *)place;                                                              \
			break;                                                                                     \
		case 2:                                                                                            \
			bits = *(const unsigned short *)place;                                                     \
			break;                                                                                     \
		case 4:                                                                                            \
			bits = *(const bp_u32 *)place;                                                             \
			break;                                                                                     \
		case 8:                                                                                            \
			bits = *(const bp_u64 *)place;                                                             \
			break;                                                                                     \
		}                                                                                                  \
		bits <<= __builtin_preserve_field_info((source)->field, 4);                                        \
		bits >> __builtin_preserve_field_info((source)->field, 5);                                         \
	})

/* Kernel helpers, by their numbers in the kernel's interface. */
__attribute__((unused)) static bp_u64 (*bp_jiffies)(void) = (void *)118;
__attribute__((unused)) static void *(*bp_lookup)(void *map, const void *key) = (void *)1;
__attribute__((unused)) static long (*bp_setsockopt)(void *context, int level, int name, void *value, int size) = (void *)49;
__attribute__((unused)) static void *(*bp_storage)(void *map, void *sk, void *value, bp_u64 flags) = (void *)107;
__attribute__((unused)) static long (*bp_seq_write)(struct seq_file *seq, const void *data, bp_u32 size) = (void *)127;
__attribute__((unused)) static struct tcp_sock *(*bp_tcp_sock)(void *sk) = (void *)137;
__attribute__((unused)) static long (*bp_read_kernel)(void *to, bp_u32 size, const void *from) = (void *)113;

#endif
