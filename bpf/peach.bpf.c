/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
#include "law/peach.h"
#define BP_NAME "bp_peach"
#define BP_STORED
#include "glue.h"
#include "copies.h"
