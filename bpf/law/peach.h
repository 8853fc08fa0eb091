/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP-Peach: low-priority copies of data, useless to the receiver, probe the available bandwidth.
 *
 * I. F. Akyildiz, G. Morabito, S. Palazzo, "TCP-Peach: A New Congestion Control Scheme for Satellite IP Networks", IEEE/ACM
 * Transactions on Networking 9(3), 2001. `papers/peach.md` lists the differences that the kernel's interface requires.
 */
#include "law.h"

#define BP_INFLATES 1
#define BP_EXPANDS 0
#include "prober.h"
