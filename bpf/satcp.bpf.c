/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Set by the loader: phase of handovers in the kernel's clock, us. */
const volatile unsigned long long bp_satcp_phase = 0;
#define SATCP_PHASE bp_satcp_phase
#include "law/satcp.h"
#define BP_NAME "bp_satcp"
#define BP_STORED
#include "glue.h"
