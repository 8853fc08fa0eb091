/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 OR MIT */
/*
 * SCPS-TP's fixed rate: no congestion control, for links with reserved capacity that no other traffic shares.
 *
 * CCSDS 714.0-B-2, "Space Communications Protocol Specification - Transport Protocol", 2006. The window is the receive window.
 * Segments are paced at a rate that the administrator sets when loading the program. Losses, ECN marks and timeouts change
 * neither.
 */
#include "law.h"

/* Sending rate in bytes per second, set when the program is loaded. */
#ifndef SCPS_RATE
#define SCPS_RATE 0
#endif

struct bp_law {
	struct bp_windows now;
	struct bp_windows before;
};

#define BP_ESTABLISHED(law, path) ((law)->now.cwnd = BP_SEGMENTS((path)->receive_window))
#define BP_OBSERVE(law, ack, path) ((law)->now.cwnd = BP_MAX(BP_SEGMENTS((path)->receive_window), BP_ONE))
#define BP_SLOW_START(law, ack, acked, path) ((void)(acked))
#define BP_AVOID(law, ack, acked, path) ((void)(acked))
#define BP_LOSE(law, loss, path) ((void)0)
#define BP_REDUCE_AT_TIMEOUT(law, loss, path) (law)->now.ssthresh
#define BP_AFTER_TIMEOUT(law) (law)->now.cwnd
#define BP_KEEPS_WHEN_IDLE 1
#define BP_PACE(law, path) SCPS_RATE
#include "classic.h"
