/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
#include "law/tcp-j.h"
#define BP_NAME "bp_tcp_j"
#include "glue.h"
