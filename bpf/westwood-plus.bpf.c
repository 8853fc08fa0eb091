/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
#include "law/westwood-plus.h"
#define BP_NAME "bp_westwoodplus"
#include "glue.h"
