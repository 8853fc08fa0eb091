/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * TCP-Swift: copies of outstanding data, and a window that grows with every ACK of the round trip after a recovery.
 *
 * K.-F. Leung, K. L. Yeung, "TCP-Swift: An End-Host Enhancement Scheme for TCP over Satellite IP Networks", IEEE Symposium on
 * Computers and Communications (ISCC), 2004. `papers/swift.md` lists the differences that the kernel's interface requires.
 */
#include "law.h"

#define BP_INFLATES 0
#define BP_EXPANDS 1
#include "prober.h"
