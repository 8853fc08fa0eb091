/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * Copies data that leaves an interface, in low priority (DSCP LE, RFC 8622), as often as the law of its connection asks for. It stands at the
 * egress of an interface; congestion controls themselves cannot send. A program with a law that has BP_PROBES includes this after glue.h.
 */

/* What a program at an interface is given: the kernel's `struct __sk_buff`, whose places are fixed. */
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

/* The packet as the kernel itself sees it. */
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

/* The packet goes on as if nothing had happened. */
#define BP_NEXT -1
/* Lower effort, and the bits of a traffic class that are ECN's. */
#define BP_LOWER_EFFORT (1 << 2)
#define BP_ECN_BITS 3

/* The first two bytes of an IP header with another traffic class. */
BP_INLINE void bp_mark(struct bp_skb *skb, bp_u32 network, const bp_u8 *from, const bp_u8 *to)
{
	if (from[0] >> 4 == 4)
		bp_ip_checksum(skb, network + 10, from[0] | from[1] << 8, to[0] | to[1] << 8, 2);
	bp_store(skb, network, to, 2, 0);
}

/* Copies leave before the segment does: it must still be there to be copied. */
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
 * Whether the kernel may be told that this arrived twice: it takes reports of what it sent again for signs that nothing was lost. After a
 * timeout nearly all that leaves is sent again.
 */
BP_INLINE int bp_may_be_reported(const struct tcp_sock *tp, bp_u32 seq)
{
	return !bp_after(tp->snd_nxt, seq) || BP_BITS(&tp->inet_conn, icsk_ca_state) == BP_CA_LOSS;
}

SEC("tcx/egress")
int bp_copy(struct bp_skb *skb)
{
	/* A copy belongs to no socket, so that it is not copied again. */
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
	/* To the verifier both are pointers, of which only the difference may be reckoned with. */
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
