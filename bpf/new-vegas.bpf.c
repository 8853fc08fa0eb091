/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
#include "law/new-vegas.h"
#define BP_HEEDS_DELAY 1
#define BP_NAME "bp_new_vegas"
#include "glue.h"
