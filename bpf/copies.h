/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Sends low-priority copies (DSCP LE, RFC 8622) of data that leaves an interface. The congestion control of the connection
 * decides how many copies. This program runs at the egress of an interface because congestion controls cannot send packets
 * themselves.
 *
 * A program whose law defines BP_PROBES includes this header after glue.h.
 */

/* Argument of a program at an interface: the kernel's `struct __sk_buff`. Its layout is a fixed interface of the kernel. */
struct bp_skb {
	bp_u32 len;
	bp_u32 marks[9];
	bp_u32 ifindex;
	bp_u32 numbers[30];
	bp_u32 gso_segs;
	void *sk;
};
_Static_assert(__builtin_offsetof(struct bp_skb, ifindex) == 40, "as in the kernel's linux/bpf.h");
_Static_assert(__builtin_offsetof(struct bp_skb, gso_segs) == 164, "as in the kernel's linux/bpf.h");
_Static_assert(__builtin_offsetof(struct bp_skb, sk) == 168, "as in the kernel's linux/bpf.h");

/* The packet in the kernel's own representation. */
struct sk_buff {
	unsigned short transport_header;
	unsigned short network_header;
	unsigned char *head;
	unsigned char *data;
} BP_RELOCATED;

extern void *bpf_cast_to_kern_ctx(void *context) SEC(".ksyms");

static long (*bp_store)(struct bp_skb *skb, bp_u32 at, const void *from, bp_u32 size, bp_u64 flags) = (void *)9;
static long (*bp_ip_checksum)(struct bp_skb *skb, bp_u32 at, bp_u64 from, bp_u64 to, bp_u64 size) = (void *)10;
static long (*bp_clone)(struct bp_skb *skb, bp_u32 ifindex, bp_u64 flags) = (void *)13;
static long (*bp_load)(const struct bp_skb *skb, bp_u32 at, void *to, bp_u32 size) = (void *)26;

/* Return value: the packet continues unchanged. */
#define BP_NEXT -1
/* The DSCP "lower effort" (RFC 8622) and the two ECN bits of a traffic class. */
#define BP_LOWER_EFFORT (1 << 2)
#define BP_ECN_BITS 3

/* Replaces the traffic class in the first two bytes of an IP header. */
BP_INLINE void bp_mark(struct bp_skb *skb, bp_u32 network, const bp_u8 *from, const bp_u8 *to)
{
	if (from[0] >> 4 == 4)
		bp_ip_checksum(skb, network + 10, from[0] | from[1] << 8, to[0] | to[1] << 8, 2);
	bp_store(skb, network, to, 2, 0);
}

/* Sends the copies before the segment itself leaves, since afterwards the program no longer has the packet. */
BP_INLINE void bp_send_copies(struct bp_skb *skb, bp_u32 network, bp_u32 times)
{
	bp_u8 plain[2], low[2], class;

	if (bp_load(skb, network, plain, 2))
		return;
	if (plain[0] >> 4 == 4) {
		low[0] = plain[0];
		low[1] = (plain[1] & BP_ECN_BITS) | BP_LOWER_EFFORT;
	} else {
		class = (plain[1] >> 4 & BP_ECN_BITS) | BP_LOWER_EFFORT;
		low[0] = (plain[0] & 0xf0) | class >> 4;
		low[1] = class << 4 | (plain[1] & 0xf);
	}
	bp_mark(skb, network, plain, low);
	bp_clone(skb, skb->ifindex, 0);
	if (times > 1)
		bp_clone(skb, skb->ifindex, 0);
	bp_mark(skb, network, low, plain);
}

/*
 * True if a duplicate of this segment may be reported to the kernel (D-SACK). The kernel reads a report about retransmitted
 * data as proof of a spurious retransmission. Hence retransmissions are not copied, except after a timeout, when nearly
 * everything sent is a retransmission.
 */
BP_INLINE int bp_may_be_reported(const struct tcp_sock *tp, bp_u32 seq)
{
	return !bp_after(tp->snd_nxt, seq) || BP_BITS(&tp->inet_conn, icsk_ca_state) == BP_CA_LOSS;
}

SEC("tcx/egress")
int bp_copy(struct bp_skb *skb)
{
	/* A copy belongs to no socket, so this program does not copy it again. */
	void *sk = skb->sk;
	struct tcp_sock *tp = sk ? bp_tcp_sock(sk) : 0;
	struct bp_law *law = tp ? bp_storage(&bp_laws, sk, 0, 0) : 0;
	bp_u32 network, transport, seq, segments, times;
	struct sk_buff *packet;
	bp_u64 skipped;
	struct bp_path path;
	bp_u8 offset;

	if (!law)
		return BP_NEXT;
	packet = bpf_cast_to_kern_ctx(skb);
	skipped = packet->data - packet->head;
	/* The verifier regards both as pointers. It allows only their difference in arithmetic. */
	asm volatile("" : "+r"(skipped));
	network = packet->network_header - skipped;
	transport = packet->transport_header - skipped;
	if (bp_load(skb, transport + 4, &seq, sizeof(seq)) || bp_load(skb, transport + 12, &offset, 1))
		return BP_NEXT;
	if (skb->len <= transport + (offset >> 4) * 4 || !bp_may_be_reported(tp, __builtin_bswap32(seq)))
		return BP_NEXT;
	bp_look_at_copies(tp, law, &path);
	segments = BP_MAX(skb->gso_segs, 1U);
	times = BP_MIN(bp_may_ask(law, &path) / segments, PROBER_PAIR);
	if (!times)
		return BP_NEXT;
	bp_asked(law, times * segments, &path);
	bp_send_copies(skb, network, times);
	return BP_NEXT;
}
