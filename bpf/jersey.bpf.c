/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
#include "law/jersey.h"
#define BP_FLAGS BP_CONG_NEEDS_ECN
#define BP_NAME "bp_jersey"
#include "glue.h"
