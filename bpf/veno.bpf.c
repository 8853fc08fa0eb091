/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
#include "law/veno.h"
#define BP_NAME "bp_veno"
#include "glue.h"
