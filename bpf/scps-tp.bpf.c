/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/* Set by the loader, in bytes per second. */
const volatile unsigned long long bp_scps_rate = 1;
#define SCPS_RATE bp_scps_rate
#include "law/scps-tp.h"
#define BP_ALWAYS_PACED 1
#define BP_NAME "bp_scps_tp"
#define BP_OWNS_RECOVERY 1
#include "glue.h"
