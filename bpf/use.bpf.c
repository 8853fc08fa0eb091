/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Selects the congestion control for connections of a control group (cgroup), by destination address and outgoing interface. */
#include "kernel.h"

struct bpf_sock;

/*
 * The kernel's interface for socket operations, with a fixed layout. `volatile` makes each access a separate load from the
 * context.
 */
struct bp_sock_ops {
	volatile bp_u32 op;
	volatile bp_u32 reply[4];
	volatile bp_u32 family;
	volatile bp_u32 remote_ip4;
	bp_u32 local_ip4;
	volatile bp_u32 remote_ip6[4];
	bp_u32 local_ip6[4];
	bp_u32 remote_port;
	bp_u32 local_port;
	bp_u32 is_fullsock;
	bp_u32 connection[23];	/* state of the connection, not used here */
	bp_u64 bytes[2];
	struct bpf_sock *sk;
};
_Static_assert(__builtin_offsetof(struct bp_sock_ops, sk) == 184, "as in the kernel's linux/bpf.h");

#define BP_OP_ACTIVE_ESTABLISHED 4
#define BP_OP_PASSIVE_ESTABLISHED 5
#define BP_OP_NEEDS_ECN 6

/*
 * Key of a rule, matched by its longest prefix. The interface comes first; zeros match any interface. It is identified by its name and the
 * cookie of its network namespace, because numbers of interfaces and namespaces are reused. IPv4 addresses are mapped into IPv6.
 */
struct bp_key {
	bp_u32 length;
	bp_u32 namespace[2];
	char interface[16];
	bp_u32 address[4];
};

struct bp_choice {
	char name[16];
	bp_u32 ecn;		/* the algorithm needs ECN: request it in the handshake */
};

struct {
	BP_INT(type, 11);	/* longest prefix match */
	BP_INT(max_entries, 4096);
	BP_INT(map_flags, 1);	/* no preallocation */
	struct bp_key *key;
	struct bp_choice *value;
} bp_rules SEC(".maps");

/* Interface of a key. Bytes after the end of the name are zero. */
BP_INLINE void bp_set_interface(struct bp_key *key, bp_u64 namespace, struct net_device *device)
{
	char over = 0;

	key->namespace[0] = (bp_u32)namespace;
	key->namespace[1] = (bp_u32)(namespace >> 32);
#pragma unroll
	for (int at = 0; at < 16; at++) {
		char letter = device->name[at];

		over |= !letter;
		key->interface[at] = over ? 0 : letter;
	}
}

BP_INLINE struct bp_choice *bp_choose(struct bp_sock_ops *ops, bp_u64 namespace, struct net_device *device)
{
	struct bp_key key = { .length = 320 };

	if (device)
		bp_set_interface(&key, namespace, device);
	bp_u32 four = ops->remote_ip4, six[4];

	/*
	 * All fields are loaded for both address families, because the verifier requires accesses to the context independent of
	 * branches.
	 */
	six[0] = ops->remote_ip6[0];
	six[1] = ops->remote_ip6[1];
	six[2] = ops->remote_ip6[2];
	six[3] = ops->remote_ip6[3];
	if (ops->family == 2) {
		key.address[2] = __builtin_bswap32(0xffff);
		key.address[3] = four;
	} else {
		key.address[0] = six[0];
		key.address[1] = six[1];
		key.address[2] = six[2];
		key.address[3] = six[3];
	}
	return bp_lookup(&bp_rules, &key);
}

SEC("sockops")
int bp_use(struct bp_sock_ops *ops)
{
	struct bp_choice *choice = 0;
	struct dst_entry *route;
	struct bpf_sock *sk;
	struct tcp_sock *tp;

	if (ops->op != BP_OP_ACTIVE_ESTABLISHED && ops->op != BP_OP_PASSIVE_ESTABLISHED && ops->op != BP_OP_NEEDS_ECN)
		return 1;
	sk = ops->sk;
	tp = sk ? bp_tcp_sock(sk) : 0;
	route = tp ? tp->inet_conn.icsk_inet.sk.sk_dst_cache : 0;
	if (route)
		choice = bp_choose(ops, tp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net->net_cookie, route->dev);
	if (!choice)
		choice = bp_choose(ops, 0, 0);
	if (!choice)
		return 1;
	if (ops->op == BP_OP_NEEDS_ECN)
		ops->reply[0] = choice->ecn;
	else
		bp_setsockopt(ops, 6, 13, choice->name, sizeof(choice->name));
	return 1;
}
