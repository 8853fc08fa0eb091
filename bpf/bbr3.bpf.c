/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
#include "law/bbr3.h"
#define BP_NAME "bp_bbr3"
#define BP_STORED
#define BP_WANTS_RATE
#define BP_OWNS_RECOVERY 1
#include "glue.h"
