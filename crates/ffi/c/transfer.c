/* A transfer over a link in memory with CUBIC, Hybla and Zenith, and every failure that the interface reports.
 *
 * cc transfer.c -I ../include -L ../../../target/release -l:libbentpipe_ffi.a -lpthread -ldl -lm */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bentpipe_cc.h"

#define MS 1000000ull
#define SECONDS 60ull
#define RATE_BYTES_PER_S 1250000ull /* 10 Mbit/s */
#define RTT_NS (600 * MS)
#define BUFFER_BYTES 750000ull
#define DATAGRAM 1200u
#define PACKETS 1048576u

static void require(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "failed: %s; last error: %s\n", what, bentpipe_cc_last_error());
        exit(1);
    }
}

static void ok(BentpipeCcStatus status) { require(status == BENTPIPE_CC_STATUS_OK, "a call"); }

/* A packet that left. */
typedef struct {
    uint64_t sent_ns;
    uint64_t ack_ns; /* BENTPIPE_CC_NEVER if it was dropped */
    bool settled;
} Packet;

static Packet packets[PACKETS];

typedef struct {
    BentpipeCc *cc;
    uint64_t next;     /* number of the next packet */
    uint64_t next_ack; /* packets below it are acknowledged or were dropped */
    uint64_t oldest;   /* first packet that may be unsettled */
    uint64_t free_ns;  /* time at which the link is idle */
    uint64_t acked_bytes, lost_packets, last_event_ns;
    uint32_t dice;
} Transfer;

static void transmit(Transfer *transfer, uint64_t now) {
    uint64_t number = transfer->next++;
    require(number < PACKETS, "the table has room");
    ok(bentpipe_cc_on_sent(transfer->cc, now, number, DATAGRAM));
    packets[number] = (Packet){.sent_ns = now, .ack_ns = BENTPIPE_CC_NEVER, .settled = false};
    transfer->last_event_ns = now;
    uint64_t start = transfer->free_ns > now ? transfer->free_ns : now;
    if ((start - now) / 1000 * RATE_BYTES_PER_S / 1000000 + DATAGRAM > BUFFER_BYTES) return;
    transfer->free_ns = start + DATAGRAM * 1000000000ull / RATE_BYTES_PER_S;
    transfer->dice = transfer->dice * 1664525u + 1013904223u;
    if (transfer->dice >> 22 != 0) packets[number].ack_ns = transfer->free_ns + RTT_NS; /* 1 of 1024 is lost */
}

/* Handles the ACK of one packet. Packets sent three or more earlier, or 9/8 of a round trip earlier, are lost. */
static void acknowledge(Transfer *transfer, uint64_t number) {
    uint64_t now = packets[number].ack_ns, rtt = now - packets[number].sent_ns;
    packets[number].settled = true;
    transfer->acked_bytes += DATAGRAM;
    transfer->last_event_ns = now;
    ok(bentpipe_cc_on_acked(transfer->cc, number));
    for (uint64_t earlier = transfer->oldest; earlier < number; earlier++) {
        Packet *packet = &packets[earlier];
        if (packet->settled || (earlier + 3 > number && packet->sent_ns + rtt / 8 * 9 > now)) continue;
        packet->settled = true;
        transfer->lost_packets++;
        ok(bentpipe_cc_on_lost(transfer->cc, earlier));
    }
    while (transfer->oldest < transfer->next && packets[transfer->oldest].settled) transfer->oldest++;
    ok(bentpipe_cc_end_ack(transfer->cc, now, rtt, false, 0));
}

/* Returns the next packet whose ACK arrives. */
static bool next_ack(Transfer *transfer) {
    while (transfer->next_ack < transfer->next && packets[transfer->next_ack].ack_ns == BENTPIPE_CC_NEVER)
        transfer->next_ack++;
    return transfer->next_ack < transfer->next;
}

static void run(const char *algorithm, const char *parameters, double least_mbps) {
    Transfer transfer = {.dice = 1};
    BentpipeCcSettings settings = {.datagram_bytes = DATAGRAM, .seed = 1};
    BentpipeCcState state;
    ok(bentpipe_cc_new(algorithm, parameters, &settings, &transfer.cc));
    ok(bentpipe_cc_established(transfer.cc, 1, RTT_NS));
    uint64_t now = 1, end = SECONDS * 1000 * MS;
    while (now < end) {
        uint64_t next = end, departure;
        while ((departure = bentpipe_cc_departure(transfer.cc, now, DATAGRAM)) <= now) transmit(&transfer, now);
        if (departure < next) next = departure;
        uint64_t probe = transfer.last_event_ns + 2 * RTT_NS;
        if (probe < next) next = probe;
        ok(bentpipe_cc_state(transfer.cc, &state));
        require(state.window >= DATAGRAM && strlen(state.phase) > 0, "a window and a phase");
        if (state.timeout_ns < next) next = state.timeout_ns;
        if (next_ack(&transfer) && packets[transfer.next_ack].ack_ns < next)
            next = packets[transfer.next_ack].ack_ns;
        now = next > now ? next : now;
        while (next_ack(&transfer) && packets[transfer.next_ack].ack_ns <= now)
            acknowledge(&transfer, transfer.next_ack++);
        bool ask_for_ack = false;
        if (state.timeout_ns <= now) ok(bentpipe_cc_on_timeout(transfer.cc, now, &ask_for_ack));
        if (ask_for_ack || transfer.last_event_ns + 2 * RTT_NS <= now) transmit(&transfer, now);
    }
    ok(bentpipe_cc_state(transfer.cc, &state));
    require(state.ignored == 0, "every packet is known");
    ok(bentpipe_cc_close(transfer.cc, now));
    bentpipe_cc_free(transfer.cc);
    double mbps = transfer.acked_bytes * 8.0 / SECONDS / 1e6;
    printf("%-8s %5.2f Mbit/s, %" PRIu64 " packets lost\n", algorithm, mbps, transfer.lost_packets);
    require(mbps <= 10.0 && mbps >= least_mbps, "goodput within the link's capacity");
}

static void fails(BentpipeCcStatus found, BentpipeCcStatus expected, const char *message) {
    require(found == expected, message);
    require(strstr(bentpipe_cc_last_error(), message) != NULL, message);
}

static void report_failures(void) {
    BentpipeCc *cc = NULL;
    BentpipeCcState state;
    fails(bentpipe_cc_new("cubik", NULL, NULL, &cc), BENTPIPE_CC_STATUS_UNKNOWN_ALGORITHM, "`cubik`");
    fails(bentpipe_cc_new("cubic", "{\"bta\": 1}", NULL, &cc), BENTPIPE_CC_STATUS_INVALID_PARAMETERS, "`bta`");
    fails(bentpipe_cc_new("cubic", "{} x", NULL, &cc), BENTPIPE_CC_STATUS_INVALID_PARAMETERS, "`cubic`");
    fails(bentpipe_cc_new("swift", NULL, NULL, &cc), BENTPIPE_CC_STATUS_REFUSED, "probes");
    fails(bentpipe_cc_new(NULL, NULL, NULL, &cc), BENTPIPE_CC_STATUS_INVALID_ARGUMENT, "`algorithm` is NULL");
    fails(bentpipe_cc_new("\xff", NULL, NULL, &cc), BENTPIPE_CC_STATUS_INVALID_ARGUMENT, "UTF-8");
    fails(bentpipe_cc_new("cubic", NULL, NULL, NULL), BENTPIPE_CC_STATUS_INVALID_ARGUMENT, "`cc` is NULL");
    require(cc == NULL, "no handle after a failure");
    fails(bentpipe_cc_end_losses(NULL, 0), BENTPIPE_CC_STATUS_INVALID_ARGUMENT, "`cc` is NULL");
    require(bentpipe_cc_departure(NULL, 0, 1) == BENTPIPE_CC_NEVER, "no departure without a handle");
    bentpipe_cc_free(NULL);

    ok(bentpipe_cc_new("cubic", "{\"beta\": 0.8}", NULL, &cc));
    ok(bentpipe_cc_on_sent(cc, 0, 7, DATAGRAM));
    fails(bentpipe_cc_on_sent(cc, 0, 7, DATAGRAM), BENTPIPE_CC_STATUS_NOT_RISING, "at least 8");
    fails(bentpipe_cc_state(cc, NULL), BENTPIPE_CC_STATUS_INVALID_ARGUMENT, "`state` is NULL");
    ok(bentpipe_cc_on_acked(cc, 99));
    ok(bentpipe_cc_on_lost(cc, 7));
    ok(bentpipe_cc_end_losses(cc, 1));
    ok(bentpipe_cc_on_sent(cc, 1, 8, DATAGRAM));
    ok(bentpipe_cc_on_discarded(cc, 8));
    ok(bentpipe_cc_on_spurious(cc, 2));
    ok(bentpipe_cc_on_persistent_congestion(cc, 3));
    ok(bentpipe_cc_on_outage(cc, 4, true));
    ok(bentpipe_cc_on_timeout(cc, 5, NULL));
    ok(bentpipe_cc_set_datagram_bytes(cc, 9000));
    ok(bentpipe_cc_state(cc, &state));
    require(state.ignored == 1 && state.in_flight == 0 && state.window == 9000, "one unknown packet");
    bentpipe_cc_free(cc);
}

/* RFC 9959: a connection jumps from its initial window to half of the capacity that another one saved. */
static void resume(void) {
    BentpipeCcCapacity capacity = {.bytes = 1};
    BentpipeCcMemory *memory = bentpipe_cc_memory_new();
    ok(bentpipe_cc_memory_capacity(memory, &capacity));
    require(capacity.bytes == 0, "an empty memory");
    capacity.bytes = 1000 * DATAGRAM;
    fails(bentpipe_cc_memory_set_capacity(memory, capacity), BENTPIPE_CC_STATUS_INVALID_ARGUMENT, "min_rtt_ns");
    capacity.min_rtt_ns = RTT_NS;
    ok(bentpipe_cc_memory_set_capacity(memory, capacity));

    BentpipeCc *cc;
    BentpipeCcSettings settings = {.datagram_bytes = DATAGRAM, .careful_resume_ns = 60000 * MS};
    fails(bentpipe_cc_new("cubic", NULL, &settings, &cc), BENTPIPE_CC_STATUS_INVALID_ARGUMENT, "`settings.memory` is NULL");
    settings.memory = memory;
    ok(bentpipe_cc_new("cubic", NULL, &settings, &cc));
    ok(bentpipe_cc_established(cc, 1, RTT_NS));
    BentpipeCcState state;
    ok(bentpipe_cc_state(cc, &state));
    uint64_t packets = state.window / DATAGRAM;
    for (uint64_t number = 0; number < packets; number++) ok(bentpipe_cc_on_sent(cc, 1, number, DATAGRAM));
    for (uint64_t number = 0; number < packets; number++) {
        ok(bentpipe_cc_on_acked(cc, number));
        ok(bentpipe_cc_end_ack(cc, 1 + RTT_NS, RTT_NS, false, 0));
    }
    ok(bentpipe_cc_state(cc, &state));
    printf("resumes from %" PRIu64 " to %" PRIu64 " packets\n", packets, state.window / DATAGRAM);
    require(packets == 10 && state.window == 500 * DATAGRAM, "half of the saved capacity");
    ok(bentpipe_cc_memory_set_capacity(memory, (BentpipeCcCapacity){0}));
    ok(bentpipe_cc_memory_capacity(memory, &capacity));
    require(capacity.bytes == 0, "a deleted capacity");
    fails(bentpipe_cc_memory_capacity(NULL, &capacity), BENTPIPE_CC_STATUS_INVALID_ARGUMENT, "`memory` is NULL");
    bentpipe_cc_memory_free(memory);
    bentpipe_cc_memory_free(NULL);
    /* The handle keeps what it shares. */
    ok(bentpipe_cc_close(cc, 2 + RTT_NS));
    bentpipe_cc_free(cc);
}

int main(void) {
    char name[32];
    size_t count = 0;
    while (bentpipe_cc_algorithm(count, name, sizeof name) == BENTPIPE_CC_STATUS_OK) count++;
    fails(bentpipe_cc_algorithm(0, name, 4), BENTPIPE_CC_STATUS_INVALID_ARGUMENT, "4 bytes");
    printf("bentpipe-cc %s, %zu algorithms\n", bentpipe_cc_version(), count);
    require(count >= 20, "the algorithms are listed");
    report_failures();
    resume();
    run("cubic", NULL, 1.0);
    run("hybla", "{\"rtt0_s\": 0.05}", 1.0);
    run("zenith", NULL, 7.0);
    return 0;
}
