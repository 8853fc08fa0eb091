/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
#include "law/copa.h"
#define BP_HEEDS_DELAY 1
#define BP_NAME "bp_copa"
#define BP_STORED
#define BP_OWNS_RECOVERY 1
#include "glue.h"
