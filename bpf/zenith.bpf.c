/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
#include "law/zenith.h"
#define BP_NAME "bp_zenith"
#define BP_STORED
#define BP_OWNS_RECOVERY 1
#include "glue.h"
